"""Prints 40 ids of each of eight gunicorn workers, which are forked from a process that has prefetched ids. `unguarded` turns off
the client's protection against forks. If IDMINT_URL is set, this file is the application that gunicorn serves."""

import http.client
import os
import socket
import subprocess
import sys
import tempfile

WORKERS, IDS = 8, 40

if "IDMINT_URL" in os.environ:
    import idmint

    if os.environ["GUARD"] == "unguarded":
        # Let a worker keep the ids that its parent has prefetched.
        idmint.Ids._restart = lambda self: None
    ids = idmint.Ids(os.environ["IDMINT_URL"], "snowflake", prefetch_count=1000)
    ids.next()


def app(environ, start_response):
    body = " ".join([str(os.getpid())] + [str(ids.next()) for _ in range(IDS)]).encode()
    start_response("200 OK", [("Content-Length", str(len(body)))])
    return [body]


def main(url, guard):
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/socket"
        arguments = ["--preload", "--workers", str(WORKERS), "--bind", f"unix:{path}", "--worker-tmp-dir", folder, "preload:app"]
        told = {**os.environ, "IDMINT_URL": url, "GUARD": guard}
        server = subprocess.Popen(["/usr/bin/gunicorn", *arguments], cwd=os.path.dirname(__file__), env=told)
        try:
            of_worker = {}
            while len(of_worker) < WORKERS:
                assert server.poll() is None, "gunicorn has ended"
                connection = http.client.HTTPConnection("localhost")
                connection.sock = socket.socket(socket.AF_UNIX)
                try:
                    connection.sock.connect(path)
                except OSError:
                    continue
                connection.request("GET", "/")
                response = connection.getresponse()
                body = response.read()
                connection.close()
                # An unguarded worker that needs more ids shares a connection with the others, and may fail.
                if response.status != 200:
                    continue
                worker, *numbers = body.split()
                # Keep only the first response of each worker. Later ones have later ids of the stock.
                of_worker.setdefault(worker, numbers)
        finally:
            server.terminate()
            server.wait()
    for numbers in of_worker.values():
        print(*(number.decode() for number in numbers), sep="\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
