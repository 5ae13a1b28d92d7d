"""Ids from an idmint service: https, failover, and a stock of ids, so that most cost no round trip.

Copy this file. It needs Python 3.9 and nothing else:

    from idmint import Ids
    ids = Ids(["http://10.0.0.1:8080", "http://10.0.0.2:8080"], "snowflake", token="…")
    ids.next()                      # an int; any number of threads, and `await ids.anext()` in asyncio
    ids.next_text()                 # the same as a text, for formats of any kind; `await ids.anext_text()`
    ids.mint(1000), ids.decode("1573542478315782144"), ids.append("aa77f99c", [{"event": "Paid", "entities": {}}])
    ids.number("acme-2026", "order-4711")  # the next of a series without gaps, always the same for an order: an int and a text
    ids.close()                     # or `with Ids(…) as ids:`; `Refused` says what to mend, `Unavailable` passes

One object for a process. After a fork each process has a stock of its own. Where a machine or container is copied while it runs
(a snapshot that is restored twice), make the object after the copy: nothing in a process tells that it was copied.
"""

from __future__ import annotations

import asyncio
import functools
import http.client
import itertools
import json
import os
import random
import re
import socket
import ssl
import string
import sys
import threading
import time
import urllib.parse
import uuid
import weakref
from collections import deque

__all__ = ["IdmintError", "Ids", "Refused", "Unavailable"]

# Goes on while the machine sleeps, so that ids grow old then, too.
_now = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME) if hasattr(time, "CLOCK_BOOTTIME") else time.monotonic

# Whether one step of an iterator that is written in C is done before another thread goes on.
_HAS_GIL = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()

_TRANSIENT = (429, 502, 503, 504)
_PAUSE_MIN, _PAUSE_MAX = 0.1, 5.0

# What the service cannot know: where the mistake is mended.
_REMEDIES = {
    401: "set token= to a token that http.tokens of the service has",
    403: "the token does not cover this: its scopes and formats are in http.tokens of the service",
    421: "ask by a name that the service answers for, or add this one to its http.hosts",
}


class IdmintError(Exception):
    """No answer. `status`, `slug` (of /problems/{slug}) and `reason` are None where no service answered."""

    def __init__(self, message, status=None, problem=None, retry_after=None):
        super().__init__(message)
        problem = problem or {}
        self.status, self.problem, self.retry_after = status, problem, retry_after
        self.slug = problem.get("type", "").rpartition("/")[2] or None
        self.reason = problem.get("reason")


class Refused(IdmintError):
    """The service would refuse again: the caller, the token or the configuration must change. Nothing was done."""


class Unavailable(IdmintError):
    """No address answered in time, or each said that it cannot do it now. The same may work later."""


class Ids:
    """Ids of one format.

    urls: one address, or several: another one is asked after a failure.
    prefetch_count: how many ids are asked for at once; grows with the rate of use up to prefetch_count_max.
    prefetch_validity: seconds for which an id may be handed out after it was asked for, so the longest outage that is bridged.
    timeout: seconds after which a call gives up with Unavailable.
    ca_file: whom to trust with https, as PEM, instead of those whom the system trusts.
    query: what else the format needs, as {"type": "message"}.
    """

    def __init__(self, urls, format, token=None, prefetch_count=100, prefetch_validity=60.0, *,
                 prefetch_count_max=10_000, timeout=10.0, ca_file=None, query=None):
        if not 1 <= prefetch_count <= prefetch_count_max:
            raise ValueError(f"prefetch_count is {prefetch_count}, it must be from 1 to prefetch_count_max ({prefetch_count_max})")
        if prefetch_validity <= 0 or timeout <= 0:
            raise ValueError("prefetch_validity and timeout are seconds above 0")
        urls = [urls] if isinstance(urls, str) else list(urls)
        self._http = _Http(urls, token, timeout, ca_file)
        self._format = urllib.parse.quote(format, safe="")
        self._query = dict(query or {})
        sizes = (prefetch_count, prefetch_count_max, prefetch_validity)
        self._numbers = _Stock(self._fetch_rows, self._own, *sizes)
        self._texts = _Stock(self._fetch_texts, self._own, *sizes)
        # What makes a text of a number; None until that is known, False if only the service does.
        self._text_of, self._learning = None, threading.Lock()
        self._pid = os.getpid()
        self.next, self.anext = self._numbers.next, self._numbers.anext
        _all.add(self)

    def next_text(self):
        """The next id as a text. Waits only when there is none here."""
        if self._text_of is None:
            self._learn()
        return self._text_of(self._numbers.next()) if self._text_of else self._texts.next()

    async def anext_text(self):
        """The next id as a text. Lets other tasks run when there is none here."""
        if self._text_of is None:
            await asyncio.get_running_loop().run_in_executor(None, self._learn)
        return self._text_of(await self._numbers.anext()) if self._text_of else await self._texts.anext()

    def mint(self, count):
        """So many ids as texts, minted now: all of them or none. A retry mints others, so no id comes twice."""
        self._own()
        return self._http.json("POST", self._target(count))["ids"]

    def decode(self, text):
        """What the text can be: the answer of GET /decode/{id}. Refused with status 404 if it is no id."""
        self._own()
        return self._http.json("GET", "/decode/" + urllib.parse.quote(text, safe=""))

    def append(self, ledger, events, key=None):
        """Appends to a ledger and returns the ids of the events. Done once, however often it must be sent."""
        self._own()
        headers = {"Idempotency-Key": key or uuid.uuid4().hex, "Content-Type": "application/json"}
        target = f"/ledgers/{urllib.parse.quote(ledger, safe='')}/events"
        return self._http.json("POST", target, headers, json.dumps({"events": list(events)}))["ids"]

    def number(self, series, key):
        """The next number of a series without gaps, an int, and its text. The same key is given the same for ever."""
        self._own()
        target = f"/numbers/{urllib.parse.quote(series, safe='')}"
        answer = self._http.json("POST", target, {"Idempotency-Key": key})
        return int(answer["number"]), answer["text"]

    def close(self):
        """Gives back what is open. Ids that were not handed out stay gaps."""
        self._http.close()
        self._numbers.close()
        self._texts.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def __reduce_ex__(self, protocol):
        raise TypeError("a stock of ids cannot be copied or pickled: two owners would hand out the same ids; make another Ids")

    def _target(self, count):
        return f"/ids/{self._format}?" + urllib.parse.urlencode({**self._query, "count": count})

    def _learn(self):
        self._own()
        with self._learning:
            if self._text_of is None:
                try:
                    self._text_of = _number_text(self._http.json("GET", "/formats/" + self._format), self._query)
                except Refused:
                    # Who may mint need not be allowed to read formats; what else is wrong the request for texts says.
                    self._text_of = False

    def _fetch_rows(self, count):
        answer = self._http.json("POST", self._target(count), {"Accept": "application/vnd.idmint.rows+json"})
        rows = ((int(row["first"]), int(row["step"]), row["count"]) for row in answer["rows"])
        ranges = [range(first, first + step * count, step) for first, step, count in rows]
        return itertools.chain.from_iterable(ranges), sum(map(len, ranges))

    def _fetch_texts(self, count):
        texts = self._http.json("POST", self._target(count))["ids"]
        return iter(texts), len(texts)

    def _own(self):
        """Lets a process that was forked begin anew, also where nothing told of the fork."""
        if self._pid != os.getpid():
            # A lock that is this process's alone: one that was copied may be held by a thread that was not.
            with _restarting.setdefault(os.getpid(), threading.Lock()):
                if self._pid != os.getpid():
                    self._restart()

    def _restart(self):
        """Drops stock, locks and sockets, which the process that was copied keeps."""
        was_closed, self._learning = self._numbers._is_closed, threading.Lock()
        self._http.restart()
        self._numbers.restart()
        self._texts.restart()
        if was_closed:
            self.close()
        # Last: who sees it finds all of the above.
        self._pid = os.getpid()


class _Stock:
    """Ids that are here already, in pieces: when the last one is begun, more are fetched, by one request at a time."""

    def __init__(self, fetch, own, count, count_max, validity):
        self._fetch, self._own = fetch, own
        self._count_min, self._count_max, self._validity = count, count_max, validity
        self.restart()

    def restart(self):
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # What is handed out, and until when; and what comes after it.
        self._piece, self._pieces = (iter(()), 0.0), deque()
        self._count, self._filled_at, self._filler = self._count_min, None, None
        self._error, self._tasks, self._is_closed = None, [], False
        self._pid = os.getpid()

    def next(self, _getpid=os.getpid, _now=_now, _has_gil=_HAS_GIL):
        """The next id. Waits only when there is none here."""
        if _getpid() != self._pid:
            self._own()
        values, expires = self._piece
        # The iterator is written in C, and so is what it goes over.
        if _has_gil and _now() < expires:
            for value in values:
                return value
        return self._next_slowly()

    def _next_slowly(self):
        with self._lock:
            while True:
                value = self._next_of_this_piece()
                if value is not None:
                    return value
                value = self._next_of_another_piece()
                if value is not None:
                    return value
                filler = self._filler
                while self._filler is filler and filler is not None:
                    self._changed.wait()
                self._raise_error_of(filler)

    async def anext(self):
        """The next id. Lets other tasks run when there is none here."""
        if os.getpid() != self._pid:
            self._own()
        while True:
            with self._lock:
                value = self._next_of_this_piece()
                value = self._next_of_another_piece() if value is None else value
                if value is not None:
                    return value
                loop, filler = asyncio.get_running_loop(), self._filler
                is_filled = loop.create_future()
                self._tasks.append((loop, is_filled))
            await is_filled
            with self._lock:
                if not self._pieces:
                    self._raise_error_of(filler)

    def close(self):
        with self._lock:
            filler, self._is_closed = self._filler, True
            self._piece, self._pieces = (iter(()), 0.0), deque()
        if filler not in (None, threading.current_thread()):
            filler.join()

    def _next_of_this_piece(self):
        values, expires = self._piece
        return next(values, None) if _now() < expires else None

    def _next_of_another_piece(self):
        """The first id of the next piece that is not too old; with the last one, or none, more are fetched. Under the lock."""
        if self._is_closed:
            raise IdmintError("this Ids is closed")
        value, was_used_up = None, _now() < self._piece[1]
        while value is None and self._pieces:
            self._piece = self._pieces.popleft()
            value = self._next_of_this_piece()
            if value is None and _now() >= self._piece[1]:
                # Fewer are used than are fetched.
                self._count = max(self._count_min, self._count // 2)
        if not self._pieces and self._filler is None:
            if was_used_up and _now() - self._filled_at < 1.0:
                self._count = min(self._count_max, self._count * 2)
            # Not joined at the end of the program, which may come while a service is silent.
            self._filler, self._error = threading.Thread(target=self._fill, name="idmint", daemon=True), None
            try:
                self._filler.start()
            except RuntimeError:  # The program ends: no thread begins any more.
                self._filler = None
                if value is None:
                    raise
        return value

    def _fill(self):
        asked_at, pieces, error = _now(), (), None
        try:
            values, count = self._fetch(self._count)
            expires = asked_at + self._validity
            pieces = ((itertools.islice(values, count // 2), expires), (values, expires))
        except IdmintError as refused:
            error = refused
            most = refused.problem.get("limit", "")
            if refused.status == 422 and refused.reason == "count" and most.isdigit() and 0 < int(most) < self._count:
                # So many are never had at once: from now on as many as are.
                self._count = self._count_max = int(most)
                self._count_min = min(self._count_min, self._count)
                return self._fill()
        except Exception as unexpected:  # Whoever waits must hear of it.
            error = unexpected
        with self._lock:
            if not self._is_closed:
                self._pieces.extend(pieces)
            self._filled_at, self._error = _now(), (self._filler, error)
            self._filler = None
            self._changed.notify_all()
            tasks, self._tasks = self._tasks, []
        for loop, is_filled in tasks:
            try:
                loop.call_soon_threadsafe(_finish, is_filled)
            except RuntimeError:  # The loop was closed meanwhile.
                pass

    def _raise_error_of(self, filler):
        if self._error is not None and self._error[0] is filler and self._error[1] is not None and not self._pieces:
            raise self._error[1]


class _Http:
    """Requests to whichever address answers."""

    def __init__(self, urls, token, timeout, ca_file):
        if not urls:
            raise ValueError("urls names no address")
        self._urls = [urllib.parse.urlsplit(url if "://" in url else "http://" + url) for url in urls]
        for url in self._urls:
            if url.scheme not in ("http", "https") or not url.hostname:
                raise ValueError(f"{url.geturl()!r} is no http or https address")
        is_secure = any(url.scheme == "https" for url in self._urls)
        self._context = ssl.create_default_context(cafile=ca_file) if is_secure else None
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self.restart()

    def restart(self):
        for connection in getattr(self, "_open", ()):
            connection.close()
        self._lock = threading.Lock()
        self._first, self._not_before, self._refusals = 0, [0.0] * len(self._urls), {}
        self._idle, self._open = [[] for _ in self._urls], set()
        self._is_closed = threading.Event()

    def close(self):
        self._is_closed.set()
        with self._lock:
            for connection in self._open:
                # Ends what another thread waits for.
                if connection.sock is not None:
                    try:
                        connection.sock.shutdown(socket.SHUT_RDWR)
                    except OSError:
                        pass
            for idle in self._idle:
                while idle:
                    connection = idle.pop()
                    self._open.discard(connection)
                    connection.close()

    def json(self, method, target, headers=None, body=None):
        """The answer to a request that may be sent more than once."""
        deadline, pause = _now() + self._timeout, _PAUSE_MIN
        while True:
            error = None
            for place in range(len(self._urls)):
                at = (self._first + place) % len(self._urls)
                if self._not_before[at] > _now():
                    error = error or self._refusals.get(at)
                    continue
                if self._is_closed.is_set():
                    raise IdmintError("this Ids is closed")
                try:
                    status, retry_after, answer = self._exchange(at, method, target, headers, body, deadline)
                except ssl.SSLCertVerificationError as failure:
                    said = f"{self._urls[at].geturl()} is not trusted: {failure.verify_message}"
                    raise Refused(f"{said}; set ca_file= to the certificate of its authority") from failure
                except (OSError, http.client.HTTPException) as failure:
                    error = Unavailable(f"{self._urls[at].geturl()} does not answer: {failure!r}")
                    error.__cause__ = failure
                else:
                    if status < 300:
                        self._first = at
                        return _parsed(answer, self._urls[at])
                    error = _error(status, retry_after, answer, self._urls[at])
                    if status not in _TRANSIENT:
                        raise error
                    self._put_off(at, error)
            now = _now()
            wait = max(min(self._not_before) - now, pause * random.uniform(0.5, 1.0))
            if now + wait > deadline:
                raise error
            if self._is_closed.wait(wait):
                raise IdmintError("this Ids is closed")
            pause = min(pause * 2, _PAUSE_MAX)

    def _put_off(self, at, error):
        self._refusals[at] = error
        self._not_before[at] = _now() + (error.retry_after or 0.0)

    def _exchange(self, at, method, target, headers, body, deadline):
        # Each address gets its share of the time.
        share = max(0.05, min(self._timeout / (len(self._urls) + 1), deadline - _now()))
        while True:
            with self._lock:
                was_idle = bool(self._idle[at])
                connection = self._idle[at].pop() if was_idle else self._connect(at)
                self._open.add(connection)
            connection.timeout = share
            if connection.sock is not None:
                connection.sock.settimeout(share)
            try:
                connection.request(method, self._urls[at].path.rstrip("/") + target, body, {**self._headers, **(headers or {})})
                response = connection.getresponse()
                answer = response.read()
            except (OSError, http.client.HTTPException) as failure:
                self._drop(connection)
                # The service may close a connection on which nothing happened; another one tells whether it is there.
                if was_idle and not isinstance(failure, socket.timeout) and not self._is_closed.is_set():
                    continue
                raise
            with self._lock:
                keeps = not response.will_close and not self._is_closed.is_set()
                if keeps:
                    self._idle[at].append(connection)
            if not keeps:
                self._drop(connection)
            return response.status, response.getheader("Retry-After"), answer

    def _connect(self, at):
        url = self._urls[at]
        if url.scheme == "https":
            return http.client.HTTPSConnection(url.hostname, url.port, context=self._context)
        return http.client.HTTPConnection(url.hostname, url.port)

    def _drop(self, connection):
        with self._lock:
            self._open.discard(connection)
        connection.close()


def _parsed(answer, url):
    try:
        return json.loads(answer)
    except ValueError as failure:
        raise Refused(f"what answers at {url.geturl()} is no idmint service") from failure


def _error(status, retry_after, answer, url):
    try:
        problem = json.loads(answer)
        problem = problem if isinstance(problem, dict) else {}
    except ValueError:
        problem = {}
    wait = problem.get("retry_after_ms")
    wait = wait / 1000 if wait is not None else float(retry_after) if (retry_after or "").isdigit() else None
    remedy = _REMEDIES.get(status) or (f"this works: {problem['example']}" if "example" in problem else None)
    said = f"{url.geturl()} answers {status}: {problem.get('detail', 'no reason is given')}"
    kind = Unavailable if status in _TRANSIENT else Refused
    return kind(f"{said}; {remedy}" if remedy else said, status, problem, wait)


def _number_text(format, query):
    """What makes texts of the numbers of a format, where they are decimal, hex or base 36 and nothing more; else False."""
    encoding = next((some for some in format["encodings"] if query.get("encoding") in (None, some["name"])), None)
    # Only of sequenced formats numbers are to be had.
    if format["rule"] != "sequenced" or not format["minted"] or encoding is None or "prefix" in query:
        return False
    length = encoding["length"] or 0
    for letters in ("", "abcdef", "ABCDEF", string.ascii_lowercase, string.ascii_uppercase):
        span = letters and f"{letters[0]}-{letters[-1]}"
        fixed, free = f"^[0-9{span}]{{{length}}}$", rf"\^\(\?:0\|\[1-9{span}\]\[0-9{span}\]\{{0,\d+\}}\)\$"
        if encoding["pattern"] == fixed or re.fullmatch(free, encoding["pattern"]):
            text_of = functools.partial(_in_digits, string.digits + letters, length)
            # An alphabet in another order has the same pattern.
            is_same = text_of(int(format["example"]["value"])) == format["example"]["encodings"][encoding["name"]]
            return (str if text_of.args == (string.digits, 0) else text_of) if is_same else False
    return False


def _in_digits(digits, length, number):
    if len(digits) == 16:
        text = format(number, "x" if digits[-1] == "f" else "X")
    elif len(digits) == 10:
        text = str(number)
    else:
        text = ""
        while number:
            number, digit = divmod(number, 36)
            text = digits[digit] + text
    return text.rjust(max(1, length), "0")


def _finish(future):
    if not future.done():
        future.set_result(None)


_all = weakref.WeakSet()
_restarting = {}


def _after_fork_in_child():
    for ids in list(_all):
        ids._restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork_in_child)
