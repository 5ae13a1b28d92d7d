"""A thousand children are forked while other threads fill stocks, in every phase of an exchange. Every tenth takes ids."""

import faulthandler
import os
import random
import select
import signal
import sys
import threading
import time

from idmint import IdmintError, Ids

plain, secured, ca_file = sys.argv[1:]
CHILDREN, IDS = 1000, 5
# Small stocks of texts, so that most of the time is spent in exchanges.
clients = [
    Ids(plain, "uuid4", prefetch_count=10_000),
    Ids(plain, "snowflake", prefetch_count=1, prefetch_count_max=1),
    Ids(secured, "uuid4", prefetch_count=2_000, ca_file=ca_file),
]
faulthandler.register(signal.SIGUSR1)
ended = threading.Event()
taken = []


def take(ids):
    while not ended.is_set():
        try:
            ids.next_text()
        except IdmintError:
            pass


def run_child(write):
    lines = [f"{ids.next_text()}\n" for ids in clients for _ in range(IDS)]
    os.write(write, "".join(lines).encode())


def finish(child):
    """Waits for a child, which must not hang."""
    pidfd = os.pidfd_open(child)
    try:
        assert select.select([pidfd], [], [], 30)[0], "a child hangs"
    except AssertionError:
        os.kill(child, signal.SIGUSR1)
        time.sleep(1)
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(pidfd)
        status = os.waitpid(child, 0)[1]
    assert status == 0, status


threads = [threading.Thread(target=take, args=(ids,), daemon=True) for ids in clients]
for thread in threads:
    thread.start()
read, write = os.pipe()
for number in range(CHILDREN):
    time.sleep(random.random() * 0.004)
    child = os.fork()
    if child == 0:
        code = 1
        try:
            if number % 10 == 0:
                run_child(write)
            code = 0
        finally:
            os._exit(code)
    finish(child)
    if number % 10 == 0:
        taken += os.read(read, 1 << 16).decode().split()
ended.set()
taken += [ids.next_text() for ids in clients for _ in range(IDS)]
assert len(taken) == len(set(taken)) == (CHILDREN // 10 + 1) * IDS * len(clients), (len(taken), len(set(taken)))
print("done")
