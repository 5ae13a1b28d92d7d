"""Prints how many nanoseconds next(), a version 4 UUID and a counter take: the median of 21 runs on one thread."""

import itertools
import statistics
import sys
import timeit
import uuid

from idmint import Ids

CALLS, RUNS = 20_000, 21
ids = Ids(sys.argv[1], "snowflake", prefetch_count=100_000, prefetch_count_max=100_000)
ids.next()
counter = itertools.count()


def nanos(call):
    return round(statistics.median(timeit.repeat(call, number=CALLS, repeat=RUNS)) / CALLS * 1e9, 1)


print(nanos(ids.next), nanos(uuid.uuid4), nanos(lambda: next(counter)))
