"""Eight children are forked from a filled stock and print 40 ids each. Ways: os.fork, multiprocessing, and a fork that Python is
not told of. `unguarded` takes the guard away."""

import ctypes
import multiprocessing
import os
import sys

import idmint

url, way, guard = sys.argv[1:]
CHILDREN, IDS = 8, 40

if guard == "unguarded":
    # From now on a process keeps what it was forked with.
    idmint.Ids._restart = lambda self: None

ids = idmint.Ids(url, "snowflake", prefetch_count=1000)
ids.next()
# What is fetched is here: no thread of this process is at work.
assert ids._numbers._filler is None


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
