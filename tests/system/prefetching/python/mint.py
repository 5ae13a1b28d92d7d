"""Mints ids. ../mod.rs describes the arguments, the input and the output. If TASKS is set, uses asyncio tasks instead of threads."""

import asyncio
import os
import struct
import sys
import threading
import time

from idmint import Ids

urls, name, threads, count, validity = sys.argv[1:]
threads, count = int(threads), int(count)
ids = Ids(urls.split(","), name, prefetch_validity=float(validity), timeout=120)
record = struct.Struct(">QQ").pack
failed = []


def share(at):
    return count // threads + (at < count % threads)


def mint(at, parts):
    try:
        now, take = time.time, ids.next
        for _ in range(share(at)):
            asked_ms = int(now() * 1000)
            parts[at].append(record(take(), asked_ms))
    except BaseException as error:
        failed.append(error)
        raise


async def mint_by_tasks(parts):
    async def one(at):
        for _ in range(share(at)):
            asked_ms = int(time.time() * 1000)
            parts[at].append(record(await ids.anext(), asked_ms))

    await asyncio.gather(*map(one, range(threads)))


for _ in sys.stdin.buffer:
    parts = [[] for _ in range(threads)]
    if "TASKS" in os.environ:
        asyncio.run(mint_by_tasks(parts))
    else:
        running = [threading.Thread(target=mint, args=(at, parts)) for at in range(threads)]
        for thread in running:
            thread.start()
        for thread in running:
            thread.join()
    if failed:
        sys.exit(f"{failed[0]!r}")
    sys.stdout.buffer.write(b"".join(record for part in parts for record in part))
    sys.stdout.buffer.flush()
ids.close()
assert threading.active_count() == 1, threading.enumerate()
