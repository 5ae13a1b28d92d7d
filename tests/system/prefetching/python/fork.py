"""Forks eight children from a process that has prefetched ids. Each child prints 40 ids. The ways to fork are os.fork,
multiprocessing, and a fork that Python does not notice. `unguarded` turns off the client's protection against forks."""

import ctypes
import multiprocessing
import os
import select
import sys

import idmint

url, way, guard = sys.argv[1:]
CHILDREN, IDS = 8, 40

if guard == "unguarded":
    # Let a child keep the ids that its parent has prefetched.
    idmint.Ids._restart = lambda self: None

ids = idmint.Ids(url, "snowflake", prefetch_count=1000)
ids.next()
# The prefetch is complete, so no thread of the client is running.
assert ids._numbers._filler is None


# If Python did not notice a fork, close() in the child must leave the connection of the parent open.
if way == "unnoticed" and guard == "guarded":
    sock = ids._http._addresses[0].idle[0].sock.sock
    closing = ctypes.PyDLL(None).fork()
    if closing == 0:
        ids.close()
        os._exit(0)
    assert os.waitpid(closing, 0)[1] == 0
    assert not select.select([sock], [], [], 0)[0], "the connection was shut down"


def print_ids():
    mine = "".join(f"{ids.next()}\n" for _ in range(IDS))
    os.write(1, mine.encode())


if way == "multiprocessing":
    context = multiprocessing.get_context("fork")
    children = [context.Process(target=print_ids) for _ in range(CHILDREN)]
    for child in children:
        child.start()
    for child in children:
        child.join()
        assert child.exitcode == 0, child
else:
    fork = os.fork if way == "fork" else ctypes.PyDLL(None).fork
    for _ in range(CHILDREN):
        child = fork()
        if child == 0:
            print_ids()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
