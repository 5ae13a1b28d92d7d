"""Calls a server that misbehaves: see hostile/mod.rs."""

import sys
import threading
import time
import traceback

from idmint import BadResponse, Closed, IdmintError, Ids, Refused, Unavailable

KINDS = {Refused: "refused", Unavailable: "unavailable", BadResponse: "bad-response", Closed: "closed"}
token, *cases = sys.argv[1:]


def call(url, name, kind_of_call, seconds, act):
    count = 10_000 if name == "bulk" else 100
    ids = Ids(url, "snowflake", token=token + "\n", timeout=0.5 if seconds else 3, prefetch_count=count)
    until, longest, seen, failure, messages = time.monotonic() + seconds, 0.0, [], None, set()
    while True:
        begun = time.monotonic()
        try:
            seen.append(act(ids))
        except IdmintError as error:
            failure = error
            messages.add(f"{error!r} {error.__cause__!r} {error.problem} {traceback.format_exception(error)}")
        longest = max(longest, time.monotonic() - begun)
        if time.monotonic() >= until:
            break
        time.sleep(0.01)
    ids.close()
    kind = "" if failure is None else KINDS[type(failure)]
    unknown = str(failure is not None and failure.outcome_unknown).lower()
    wait = 1000 * ((failure and failure.retry_after) or 0)
    message = " ".join(" ".join(messages).split())
    lines.append("\t".join(map(str, (name, kind_of_call, kind, unknown, wait, longest * 1000, len(seen), len(set(seen)), message))))


def append(ids):
    return ids.append("aa77f99c", [{"event": "Paid", "entities": {}}])[0]


def run(case):
    name, url = case.split("=", 1)
    call(url, name, "next", 10, lambda ids: ids.next())
    call(url, name, "append", 0, append)


lines = []
running = [threading.Thread(target=run, args=(case,)) for case in cases]
for thread in running:
    thread.start()
for thread in running:
    thread.join()
print(*lines, sep="\n")
