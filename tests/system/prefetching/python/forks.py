"""Forks children in every phase of an HTTP exchange, while other threads prefetch ids. Every tenth child takes ids.

The argument is the way to fork: fork, pool or gunicorn. SERVICES has the URL of a service, the URL of a service with TLS, and the
file of its certificate authority. gunicorn imports this file."""

import ctypes
import faulthandler
import http.client
import multiprocessing
import os
import random
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

import idmint
from idmint import IdmintError, Ids

plain, secured, ca_file = os.environ["SERVICES"].split()
CHILDREN, IDS = int(os.environ["CHILDREN"]), 5
# Small stocks of texts, so that most of the time is spent in exchanges.
clients = [
    Ids(plain, "uuid4", prefetch_count=10_000, timeout=120),
    Ids(plain, "snowflake", prefetch_count=1, prefetch_count_max=1, timeout=120),
    Ids(secured, "uuid4", prefetch_count=2_000, ca_file=ca_file, timeout=120),
]
ended = threading.Event()


def take(ids):
    while not ended.is_set():
        try:
            ids.next_text()
        except IdmintError:
            pass


def connect():
    """Performs one TLS handshake after another. A thread takes most locks of OpenSSL during a handshake."""
    while not ended.is_set():
        with Ids(secured, "uuid4", prefetch_count=1, ca_file=ca_file) as ids:
            try:
                ids.next_text()
            except IdmintError:
                pass


def start_threads():
    for ids in clients:
        threading.Thread(target=take, args=(ids,), daemon=True).start()
    threading.Thread(target=connect, daemon=True).start()


def texts_of(number):
    return [ids.next_text() for ids in clients for _ in range(IDS)] if number % 10 == 0 else []


def finish(child):
    """Waits for a child, which must not hang."""
    pidfd = os.pidfd_open(child)
    try:
        assert select.select([pidfd], [], [], 240)[0], "a child hangs"
    except AssertionError:
        os.kill(child, signal.SIGUSR1)
        time.sleep(1)
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(pidfd)
        status = os.waitpid(child, 0)[1]
    assert status == 0, status


def assert_no_child_waits_for_openssl():
    """Checks that a fork waits while a thread calls OpenSSL.

    If Python does not notice a fork, this fork cannot wait, but its child gets a new lock.
    """
    entered, left = threading.Event(), []

    def call_openssl():
        with idmint._in_openssl:
            entered.set()
            time.sleep(0.3)
            left.append(True)

    for fork, has_left in ((os.fork, [True]), (ctypes.PyDLL(None).fork, [])):
        entered.clear()
        left.clear()
        thread = threading.Thread(target=call_openssl)
        thread.start()
        entered.wait()
        child = fork()
        if child == 0:
            os._exit(0 if left == has_left and clients[2].next_text() else 1)
        finish(child)
        thread.join()


def by_fork():
    read, write = os.pipe()
    for number in range(CHILDREN):
        time.sleep(random.random() * 0.004)
        child = os.fork()
        if child == 0:
            os.write(write, "".join(f"{text}\n" for text in texts_of(number)).encode())
            if number % 5 == 0:
                # Exit normally, so that the interpreter frees all objects.
                sys.exit()
            os._exit(0)
        finish(child)
        if number % 10 == 0:
            yield from os.read(read, 1 << 16).decode().split()


def by_pool():
    with multiprocessing.get_context("fork").Pool(8, maxtasksperchild=1) as pool:
        answers = pool.imap_unordered(texts_of, range(CHILDREN))
        for _ in range(CHILDREN):
            yield from answers.next(timeout=600)


def by_gunicorn():
    """Yields the texts of gunicorn workers. Each worker handles one request and then ends."""
    with tempfile.TemporaryDirectory() as folder, open(f"{folder}/log", "w+") as log:
        path = f"{folder}/socket"
        arguments = ["--preload", "--workers", "8", "--max-requests", "1", "--bind", f"unix:{path}", "--worker-tmp-dir", folder]
        # A worker that gets SIGTERM before it handles signals is killed after this time.
        arguments += ["--graceful-timeout", "60", "--timeout", "600"]
        command = ["/usr/bin/gunicorn", *arguments, "forks:app"]
        server = subprocess.Popen(command, cwd=os.path.dirname(os.path.abspath(__file__)), stderr=log)
        try:
            workers = set()
            while len(workers) < CHILDREN:
                assert server.poll() is None, "gunicorn has ended"
                connection = http.client.HTTPConnection("localhost")
                connection.sock = socket.socket(socket.AF_UNIX)
                connection.sock.settimeout(240)
                try:
                    connection.sock.connect(path)
                except (FileNotFoundError, ConnectionRefusedError):
                    assert not workers, "gunicorn has ended"
                    continue
                connection.request("GET", f"/{len(workers)}")
                try:
                    worker, *texts = connection.getresponse().read().decode().split()
                except http.client.RemoteDisconnected:
                    # The worker has ended. If it crashed, the log contains the signal.
                    continue
                finally:
                    connection.close()
                workers.add(worker)
                yield from texts
        finally:
            server.terminate()
            server.wait(240)
            log.seek(0)
            said = log.read()
        # gunicorn aborts and kills a worker that hangs. For a worker that ended too early, gunicorn logs only a TIMEOUT.
        crashes = [line for line in said.splitlines() if "due to signal" in line and not line.endswith("due to signal 15")]
        assert not crashes and "Traceback" not in said and "Fatal" not in said, said


def app(environ, start_response):
    body = " ".join([str(os.getpid()), *texts_of(int(environ["PATH_INFO"][1:]))]).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


if __name__ == "__main__":
    faulthandler.register(signal.SIGUSR1)
    way = {"fork": by_fork, "pool": by_pool, "gunicorn": by_gunicorn}[sys.argv[1]]
    if way is by_fork:
        # Run this check before other threads exist, because Python protects its own locks only
        # during a fork that it notices.
        assert_no_child_waits_for_openssl()
    if way is not by_gunicorn:
        start_threads()
    taken = list(way())
    ended.set()
    taken += texts_of(0)
    assert len(taken) == len(set(taken)) == (CHILDREN // 10 + 1) * IDS * len(clients), (len(taken), len(set(taken)))
    print("done")
else:
    start_threads()
