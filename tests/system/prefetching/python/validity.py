"""Checks that the client returns no id older than its validity, and that its prefetched ids bridge an outage until then."""

import os
import signal
import sys
import time

from idmint import Ids, Unavailable

url, pid = sys.argv[1:]


def unix_ms(snowflake):
    return (snowflake >> 22) + 1_420_070_400_000


# A started service mints at most one second ahead of its clock, so its clock has caught up after two seconds.
time.sleep(2)
short = Ids(url, "snowflake", prefetch_validity=0.3)
first = short.next()
time.sleep(0.4)
asked_ms = time.time() * 1000
second = short.next()
assert unix_ms(first) < asked_ms - 300 and unix_ms(second) > asked_ms - 300, (first, second, asked_ms)
assert short._numbers._count == 100, "a stock that is not used does not grow"
short.close()

for take in ("next", "next_text"):
    ids = Ids(url, "snowflake", prefetch_count=1000, prefetch_count_max=1000, prefetch_validity=3600, timeout=60)
    seen = {int(getattr(ids, take)()) for _ in range(2000)}
    assert len(seen) == 2000
    ids.close()

bridged = Ids(url, "snowflake", prefetch_count=1000, prefetch_validity=20.0, timeout=6)
began = time.monotonic()
seen = {bridged.next()}
os.kill(int(pid), signal.SIGKILL)
# The client requests more ids while half of its stock is left. These requests fail.
seen.update(bridged.next() for _ in range(900))
assert len(seen) == 901
time.sleep(max(0.0, 20.1 - (time.monotonic() - began)))
try:
    bridged.next()
    raise AssertionError("an id that is too old was handed out")
except Unavailable as error:
    assert url in str(error) and error.status is None, error
bridged.close()
print("done")
