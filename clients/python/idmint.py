# SPDX-License-Identifier: Apache-2.0
"""Client of an idmint service: https, failover, and a prefetched stock of ids, so that most ids cost no request.

Install the package or copy this file. It needs Python 3.9 and nothing else:

    from idmint import Ids
    with Ids(["http://10.0.0.1:8080", "http://10.0.0.2:8080"], "snowflake", token="…") as ids:
        ids.next()                      # an int, in any number of threads; `await ids.anext()` in asyncio
        ids.next_text()                 # the same as a text, for formats of any kind; `await ids.anext_text()`
        ids.mint(1000)                  # a list of texts, minted now
        ids.decode("1573542478315782144")
        ids.append("aa77f99c", [{"event": "Paid", "entities": {}}])
        ids.number("acme-2026", "order-4711")  # the next number of a series without gaps, the same one for the same key

Every call ends within its timeout and raises an IdmintError if it fails: see Refused, Unavailable, BadResponse and Closed.

Give several addresses to append() or number() only if they belong to one fleet. Other nodes share no ledgers and no numbers, so
another node would give the same number again.

Create one Ids per process. A forked child gets its own stock. If a machine or container is copied while it runs (a snapshot that
is restored twice), create the Ids after the copy, because nothing signals the copy to a process.
"""

from __future__ import annotations

import asyncio
import codecs
import contextlib
import functools
import http.client
import io
import itertools
import json
import mmap
import os
import random
import re
import selectors
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
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Callable, Generic, NoReturn, Optional, TypeVar, Union, cast

__all__ = ["BadResponse", "Closed", "IdmintError", "Ids", "Refused", "SeriesNumber", "Unavailable"]
__version__ = "0.1.0"

T = TypeVar("T")

# Load the codecs that http.client and socket would load during the first request. If the process forked while one of them was being
# loaded, the module would stay locked in the child.
for _codec in ("ascii", "idna", "iso-8859-1", "utf-8"):
    codecs.lookup(_codec)

# Where CLOCK_BOOTTIME exists, the clock also counts the time in which the machine sleeps, so ids expire meanwhile.
_now: Callable[[], float] = time.monotonic
if hasattr(time, "CLOCK_BOOTTIME"):
    _now = functools.partial(time.clock_gettime, time.CLOCK_BOOTTIME)

# `True` if no other thread can run during one step of an iterator that is written in C, as with the GIL of CPython.
_HAS_GIL = sys.implementation.name == "cpython" and getattr(sys, "_is_gil_enabled", lambda: True)()

_TRANSIENT = (408, 429, 502, 503, 504)
_PAUSE_MIN, _PAUSE_MAX, _RETRY_AFTER_MAX = 0.1, 5.0, 30.0
# The service counts a request for more ids than this as bulk work, which it refuses first when it is busy.
_BULK = 1024
_BODY_MAX = 64 << 20
# The maximum wait for a socket, in seconds. 2**31 ms, about 25 days, would overflow in poll and epoll.
_WAIT_MAX = 1e6
_VISIBLE_ASCII = re.compile(r"[!-~]+")

_REMEDIES = {
    401: "set token= to a token that http.tokens of the service has",
    403: "the token does not cover this: its scopes and formats are in http.tokens of the service",
    421: "use a host name of the service, or add this one to its http.hosts",
}


class IdmintError(Exception):
    """Base class of all errors of a call.

    status, slug (of /problems/{slug}), reason and problem describe the response, if there was one. outcome_unknown is True if the
    request may have taken effect although the call failed. retry_after is in seconds.
    """

    def __init__(self, message: str, status: Optional[int] = None, problem: Optional[Mapping[str, Any]] = None,
                 retry_after: Optional[float] = None, outcome_unknown: bool = False) -> None:
        super().__init__(message)
        self.status, self.retry_after, self.outcome_unknown = status, retry_after, outcome_unknown
        self.problem: Mapping[str, Any] = problem or {}
        kind, reason = self.problem.get("type"), self.problem.get("reason")
        self.slug = kind.rpartition("/")[2] if isinstance(kind, str) else None
        self.reason = reason if isinstance(reason, str) else None

    def _is_of_request(self) -> bool:
        """Returns True if the service cannot handle this request now, such as one for a certain series, but may handle others."""
        return self.status in (409, 503, 504) and self.slug not in (None, "", "overloaded", "draining")

    def _waits_for_operator(self) -> bool:
        return self.status != 504 and self._is_of_request() and not self.retry_after

    def _again(self, outcome_unknown: bool, untrusted: Optional[IdmintError] = None) -> IdmintError:
        """Returns a copy to raise, because each call must raise its own exception object. The copy's message includes `untrusted`."""
        message = str(self) if untrusted in (None, self) else f"{self}; {untrusted}"
        copied = type(self)(message, self.status, self.problem, self.retry_after, outcome_unknown)
        copied.__cause__ = self.__cause__
        return copied


class Refused(IdmintError):
    """The service would refuse the request again, so change the request, the token or the configuration.

    Also raised if the service failed with status 500. outcome_unknown is then True.
    """


class Unavailable(IdmintError):
    """No address responded in time, or all of them are busy. The same call may succeed later."""


class BadResponse(IdmintError):
    """The response does not come from an idmint service: check the address."""


class Closed(IdmintError):
    """The Ids was closed before or during the call."""


@dataclass(frozen=True)
class SeriesNumber:
    """A number of a series without gaps, and its text."""

    number: int
    text: str


class Ids:
    """Ids of one format.

    urls: one address or several. If one address fails, the request is sent to another one.
    token: the bearer token of each request. White space around it is removed.
    prefetch_count: the initial number of ids per request, which grows with the rate of use up to prefetch_count_max.
    prefetch_validity: the maximum age of an id in seconds, counted from its request. The stock lasts at most this long in an outage.
    timeout: the time limit of a call in seconds, after which it fails with Unavailable.
    ca_file: the PEM file of the authorities to trust with https, instead of those of the system.
    query: query parameters that the format needs, such as {"type": "message"}.

    Raises ValueError if an argument is invalid, and Refused if the format has half of a surrogate pair. Sends no request.
    """

    next: Callable[[], int]

    def __init__(self, urls: Union[str, Iterable[str]], format: str, token: Optional[str] = None, prefetch_count: int = 100,
                 prefetch_validity: float = 60.0, *, prefetch_count_max: int = 10_000, timeout: float = 10.0,
                 ca_file: Union[str, os.PathLike[str], None] = None, query: Optional[Mapping[str, str]] = None) -> None:
        if not 1 <= prefetch_count <= prefetch_count_max:
            raise ValueError(f"prefetch_count must be from 1 to prefetch_count_max ({prefetch_count_max}), got {prefetch_count}")
        if not (0 < prefetch_validity < float("inf") and 0 < timeout <= threading.TIMEOUT_MAX):
            raise ValueError("prefetch_validity and timeout must be finite seconds above 0")
        self._http = _Http([urls] if isinstance(urls, str) else list(urls), token, timeout, ca_file)
        self._format = _segment(format)
        self._query, self._timeout = dict(query or {}), timeout
        self._mark = _process_mark()
        self._numbers: _Stock[int] = _Stock(self, self._fetch_rows, prefetch_count, prefetch_count_max, prefetch_validity)
        self._texts: _Stock[str] = _Stock(self, self._fetch_texts, prefetch_count, prefetch_count_max, prefetch_validity)
        # Converts a number to a text. None until the service has described the format, False if only the service can write the texts.
        self._text_of: Union[Callable[[int], str], bool, None] = None
        self._learning = threading.Lock()
        self._pid = os.getpid()
        self.next = self._numbers.next
        _all.add(self)

    async def anext(self) -> int:
        """Returns the next id. Other asyncio tasks can run while the stock is empty."""
        return await self._numbers.anext()

    def next_text(self) -> str:
        """Returns the next id as a text. Blocks only while the stock is empty."""
        deadline = None
        if self._text_of is None:
            deadline = _now() + self._timeout
            self._learn(deadline)
        return self._text_of(self._numbers.next(deadline)) if callable(self._text_of) else self._texts.next(deadline)

    async def anext_text(self) -> str:
        """Returns the next id as a text. Other asyncio tasks can run while the stock is empty."""
        deadline = None
        if self._text_of is None:
            deadline = _now() + self._timeout
            learning = asyncio.get_running_loop().run_in_executor(None, self._learn, deadline)
            try:
                # The executor may be busy, so that it does not even start to learn before the deadline.
                await asyncio.wait_for(learning, deadline - _now())
            except asyncio.TimeoutError:
                raise self._not_described() from None
        return self._text_of(await self._numbers.anext(deadline)) if callable(self._text_of) else await self._texts.anext(deadline)

    def mint(self, count: int) -> list[str]:
        """Mints ids now and returns their texts: all of them or none. A retry mints new ids, so no id is returned twice."""
        return self._ask("POST", self._target(count), functools.partial(_texts, count))

    def decode(self, text: str) -> dict[str, Any]:
        """Returns the response of GET /decode/{id}: the possible readings of a text. Raises Refused with status 404 if it is not an id."""
        return self._ask("GET", "/decode/" + _segment(text), _object)

    def append(self, ledger: str, events: Sequence[Mapping[str, Any]], key: Optional[str] = None) -> list[str]:
        """Appends events to a ledger and returns their ids. Calls with the same key (default: random) append only once."""
        headers = {"Idempotency-Key": _checked_key(uuid.uuid4().hex if key is None else key), "Content-Type": "application/json"}
        target, body = f"/ledgers/{_segment(ledger)}/events", json.dumps({"events": list(events)})
        return self._ask("POST", target, functools.partial(_texts, len(events)), headers, body.encode())

    def number(self, series: str, key: str) -> SeriesNumber:
        """Returns the next number of a series without gaps. The same key always gets the same number."""
        return self._ask("POST", f"/numbers/{_segment(series)}",
                         lambda answer: SeriesNumber(_decimal(answer["number"]), _text(answer["text"])),
                         {"Idempotency-Key": _checked_key(key)})

    def close(self) -> None:
        """Closes the connections. Prefetched ids that were not used are lost and remain gaps."""
        self._own()
        self._close()

    def _close(self) -> None:
        self._http.close()
        self._numbers.close()
        self._texts.close()

    def __enter__(self) -> Ids:
        return self

    def __exit__(self, kind: Optional[type[BaseException]], error: Optional[BaseException], traceback: Optional[TracebackType]) -> None:
        self.close()

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise TypeError("a stock of ids cannot be copied or pickled: two owners would hand out the same ids; make another Ids")

    def _ask(self, method: str, target: str, parse: Callable[[Any], T], headers: Optional[Mapping[str, str]] = None,
             body: Optional[bytes] = None, count: int = 1, deadline: Optional[float] = None) -> T:
        self._own()
        return self._http.ask(method, target, parse, headers, body, count, deadline or _now() + self._timeout)

    def _target(self, count: int) -> str:
        return f"/ids/{self._format}?" + urllib.parse.urlencode({**self._query, "count": count})

    def _learn(self, deadline: float) -> None:
        self._own()
        if not self._learning.acquire(timeout=max(0.0, deadline - _now())):
            raise self._not_described()
        try:
            if self._text_of is None:
                target = "/formats/" + self._format
                self._text_of = self._ask("GET", target, lambda answer: _number_text(answer, self._query), deadline=deadline)
        except Refused:
            # The token may permit minting but not reading formats. The next request for texts reports any other cause of the refusal.
            self._text_of = False
        finally:
            self._learning.release()

    def _not_described(self) -> Unavailable:
        return Unavailable(f"the format was not described within {self._timeout:g} s")

    def _fetch_rows(self, count: int) -> Iterator[int]:
        rows = {"Accept": "application/vnd.idmint.rows+json"}
        ranges = self._ask("POST", self._target(count), functools.partial(_ranges, count), rows, count=count)
        return itertools.chain.from_iterable(ranges)

    def _fetch_texts(self, count: int) -> Iterator[str]:
        return iter(self._ask("POST", self._target(count), functools.partial(_texts, count), count=count))

    def _own(self) -> None:
        """Calls _restart in a forked child, even if the fork bypassed os.register_at_fork."""
        if self._pid != os.getpid():
            # Use a lock that this process created, because a lock copied by the fork may be held by a thread that does not exist here.
            with _restarting.setdefault(os.getpid(), threading.Lock()):
                if self._pid != os.getpid():
                    self._restart()

    def _restart(self) -> None:
        """Drops the stock, the locks and the connections, which belong to the parent."""
        _renew_lock()
        was_closed, self._learning = self._numbers.is_closed, threading.Lock()
        self._http.restart()
        self._numbers.restart()
        self._texts.restart()
        if was_closed:
            self._close()
        # Set these last, because another thread that sees the new values relies on all of the above.
        self._pid, self._mark[0] = os.getpid(), 1


class _Stock(Generic[T]):
    """A stock of prefetched ids, in pieces. Taking an id from the last piece starts a request for more, but only one at a time."""

    def __init__(self, ids: Ids, fetch: Callable[[int], Iterator[T]], count: int, count_max: int, validity: float) -> None:
        self._fetch, self._own, self._mark, self._timeout = fetch, ids._own, ids._mark, ids._timeout
        self._count_min, self._count_max, self._validity = count, count_max, validity
        self.restart()

    def restart(self) -> None:
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        # The current piece and the time at which its ids expire, followed by the pieces after it.
        self._piece: tuple[Iterator[T], float] = (iter(()), 0.0)
        self._pieces: deque[tuple[Iterator[T], float]] = deque()
        self._count, self._filled_at, self._grows_at = self._count_min, 0.0, 0.0
        self._filler: Optional[threading.Thread] = None
        self._error: Optional[IdmintError] = None
        self._failures, self._retry_at = 0, 0.0
        self._tasks: list[tuple[asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.is_closed = False

    def next(self, deadline: Optional[float] = None, _now: Callable[[], float] = _now, _has_gil: bool = _HAS_GIL) -> T:
        """Returns the next id. Blocks only while the stock is empty, and at most until the deadline."""
        if not self._mark[0]:
            self._own()
        values, expires = self._piece
        # `values` and the iterators inside it are written in C, so no other thread can run during a step of the loop.
        if _has_gil and _now() < expires:
            for value in values:
                return value
        return self._next_slowly(deadline or _now() + self._timeout)

    def _next_slowly(self, deadline: float) -> T:
        with self._lock:
            while True:
                value = self._next_of_stock()
                if value is not None:
                    return value
                filler = self._filler
                while self._filler is filler:
                    left = deadline - _now()
                    if left <= 0:
                        raise Unavailable(f"the service sent no ids within {self._timeout:g} s")
                    self._changed.wait(left)

    async def anext(self, deadline: Optional[float] = None) -> T:
        if not self._mark[0]:
            self._own()
        deadline = deadline or _now() + self._timeout
        while True:
            with self._lock:
                value = self._next_of_stock()
                if value is not None:
                    return value
                loop = asyncio.get_running_loop()
                is_filled: asyncio.Future[None] = loop.create_future()
                self._tasks.append((loop, is_filled))
            try:
                await asyncio.wait_for(is_filled, deadline - _now())
            except asyncio.TimeoutError:
                raise Unavailable(f"the service sent no ids within {self._timeout:g} s") from None

    def close(self) -> None:
        with self._lock:
            filler, self.is_closed = self._filler, True
            self._piece, self._pieces = (iter(()), 0.0), deque()
        if filler is not None and filler is not threading.current_thread():
            filler.join(self._timeout)

    def _next_of_piece(self) -> Optional[T]:
        values, expires = self._piece
        return next(values, None) if _now() < expires else None

    def _next_of_stock(self) -> Optional[T]:
        """Returns the next id, or None while a request for more ids is in flight. The caller must hold the lock."""
        value = self._next_of_piece()
        if value is not None:
            return value
        if self.is_closed:
            raise _closed()
        was_used_up = _now() < self._piece[1]
        while value is None and self._pieces:
            self._piece = self._pieces.popleft()
            value = self._next_of_piece()
            if value is None and _now() >= self._piece[1]:
                # The ids expired before they were used, so fetch fewer from now on.
                self._count = max(self._count_min, self._count // 2)
        if not self._pieces and self._filler is None:
            if _now() < self._retry_at:
                if value is None and self._error is not None:
                    raise self._error._again(False)
                return value
            if was_used_up and _now() - self._filled_at < 1.0:
                most = self._count_max if _now() >= self._grows_at else min(self._count_max, _BULK)
                self._count = max(self._count, min(most, self._count * 2))
            # Use a daemon thread, so that the program can end while the service does not respond.
            self._filler = threading.Thread(target=self._fill, name="idmint", daemon=True)
            try:
                self._filler.start()
            except RuntimeError as failure:  # No thread can be started, as when the program ends.
                self._filler = None
                if value is None:
                    raise Unavailable(f"no thread can be started: {failure}") from failure
        return value

    def _fill(self) -> None:
        pieces: tuple[tuple[Iterator[T], float], ...] = ()
        error: Optional[IdmintError] = None
        for _ in range(2):
            asked_at, count = _now(), self._count
            try:
                values = self._fetch(count)
                expires, error = asked_at + self._validity, None
                pieces = ((itertools.islice(values, count // 2), expires), (values, expires))
                break
            except IdmintError as failure:
                error = failure
                if not self._asks_for_fewer_after(failure, count):
                    break
            except Exception as failure:  # A waiting caller must get some error.
                error = Unavailable(f"ids cannot be fetched: {failure!r}")
                error.__cause__ = failure
                break
        with self._lock:
            if not self.is_closed:
                self._pieces.extend(pieces)
            self._failures = self._failures + 1 if error else 0
            self._filled_at = _now()
            self._error, self._retry_at = error, self._filled_at + _backoff(self._failures)
            self._filler = None
            self._changed.notify_all()
            tasks, self._tasks = self._tasks, []
        for loop, is_filled in tasks:
            try:
                loop.call_soon_threadsafe(_finish, is_filled)
            except RuntimeError:  # The loop has been closed.
                pass

    def _asks_for_fewer_after(self, error: IdmintError, count: int) -> bool:
        limit = error.problem.get("limit")
        if (error.status, error.reason) == (422, "count") and isinstance(limit, str) and re.fullmatch("[0-9]{1,9}", limit):
            # The service never grants this many at once, so ask for its limit from now on.
            if 0 < int(limit) < count:
                self._count = self._count_max = int(limit)
                self._count_min = min(self._count_min, self._count)
                return True
        if error.status == 503 and count > _BULK:
            self._count, self._grows_at = _BULK, _now() + 60
            return True
        return False


class _Pause:
    """The number of consecutive failures of an address, and the time before which no request is sent to it."""

    def __init__(self) -> None:
        self.failures, self.not_before = 0, 0.0
        self.error: Optional[IdmintError] = None

    def fails(self, error: IdmintError) -> None:
        self.failures, self.error = self.failures + 1, error
        self.not_before = _now() + max(error.retry_after or 0.0, _backoff(self.failures))

    def answers(self) -> None:
        self.failures, self.not_before, self.error = 0, 0.0, None


class _Address(_Pause):
    """One address of the service, with the pause that all calls observe."""

    def __init__(self, url: str) -> None:
        super().__init__()
        given = url if "://" in url else "http://" + url
        # Hide the user name and the password, because error messages contain this text.
        shown = re.sub(r"^.*@", "…@", url, flags=re.DOTALL)
        try:
            parts = urllib.parse.urlsplit(given)
            self.port = parts.port or (443 if parts.scheme == "https" else 80)
        except ValueError:
            raise ValueError(f"{shown!r} is not the address of an idmint service, such as http://127.0.0.1:8080") from None
        if parts.scheme not in ("http", "https") or not parts.hostname or not _VISIBLE_ASCII.fullmatch(given):
            raise ValueError(f"{shown!r} is not the address of an idmint service, such as http://127.0.0.1:8080")
        if "@" in parts.netloc or parts.query or parts.fragment:
            raise ValueError(f"{shown!r} has a user name, a query or a fragment, which the address of an idmint service must not have")
        self.url, self.is_secure, self.host, self.path = given.rstrip("/"), parts.scheme == "https", parts.hostname, parts.path.rstrip("/")
        self.restart()

    def restart(self) -> None:
        self.answers()
        self.idle: list[_Connection] = []


class _Http:
    """Sends requests to the addresses of the service, with failover."""

    def __init__(self, urls: list[str], token: Optional[str], timeout: float, ca_file: Union[str, os.PathLike[str], None]) -> None:
        self._addresses = [_Address(url) for url in urls]
        if not urls:
            raise ValueError("urls must have at least one address")
        self._headers, self._secret, self._timeout = {"User-Agent": f"idmint-python/{__version__}"}, "", timeout
        if token:
            token = token.strip()
            if not _VISIBLE_ASCII.fullmatch(token):
                raise ValueError("token must be one or more visible ASCII characters")
            self._headers["Authorization"], self._secret = f"Bearer {token}", token
        is_secure = any(address.is_secure for address in self._addresses)
        self._ca_file, self._context_pid = ca_file and os.path.abspath(ca_file), os.getpid()
        self._context = _default_context(ca_file) if is_secure else None
        self._open: set[_Connection] = set()
        self.restart()

    def restart(self) -> None:
        """Abandons the connections of the parent. Closes only their descriptors, because a thread of the parent may hold their locks."""
        for connection in list(self._open):
            _abandoned.append(connection)
            if connection.sock is not None:
                os.close(connection.sock.sock.detach())
        self._lock = threading.Lock()
        self._first, self._is_away, self._open = 0, False, set()
        for address in self._addresses:
            address.restart()
        self._is_closed = threading.Event()

    def _tls(self) -> Optional[ssl.SSLContext]:
        """Returns the TLS context. A child creates its own, because a thread of the parent may have held a lock of the inherited one."""
        if self._context is not None and self._context_pid != os.getpid():
            try:
                context = _default_context(self._ca_file)
            except OSError:  # The child may not be permitted to read the file.
                return self._context
            _abandoned.append(self._context)
            self._context, self._context_pid = context, os.getpid()
        return self._context

    def close(self) -> None:
        self._is_closed.set()
        with self._lock:
            for connection in self._open:
                # Wake up a thread that waits for a response on this connection.
                if connection.sock is not None:
                    try:
                        # Bypass SSLSocket.shutdown, which ends the encryption. Another thread would then send its request as plain text.
                        socket.socket.shutdown(connection.sock.sock, socket.SHUT_RDWR)
                    except OSError:
                        pass
            for address in self._addresses:
                while address.idle:
                    connection = address.idle.pop()
                    self._open.discard(connection)
                    connection.end()

    def ask(self, method: str, target: str, parse: Callable[[Any], T], headers: Optional[Mapping[str, str]], body: Optional[bytes],
            count: int, deadline: float) -> T:
        """Sends a request to one address after another until one responds or the deadline passes. It must be safe to repeat."""
        outcome_unknown = False
        untrusted: Optional[IdmintError] = None

        def is_busy(error: IdmintError) -> bool:
            """Returns True if an address is too busy for this many ids. The next request then asks for fewer."""
            return count > _BULK and error.status == 503

        # Pauses after errors that concern only this request, by the index of the address. Other calls do not observe them.
        own: dict[int, _Pause] = {}
        while True:
            error: Optional[IdmintError] = None
            first = self._first
            for place in range(len(self._addresses)):
                at = (first + place) % len(self._addresses)
                address = self._addresses[at]
                pause = own.get(at, address)
                failure = pause.error
                if failure is None or _now() >= pause.not_before:
                    if self._is_closed.is_set():
                        raise _closed(outcome_unknown)
                    # Each attempt gets a share of the timeout. During it, no other call sends a request to an address that has failed.
                    until = _now() + max(0.05, min(self._timeout / (len(self._addresses) + 1), deadline - _now()))
                    pause.not_before = until
                    try:
                        answer = self._attempt(address, method, target, parse, headers, body, until)
                    except IdmintError as raised:
                        failure, outcome_unknown = raised, outcome_unknown or raised.outcome_unknown
                        # Refused without a status means that the certificate is not trusted. Another address may have a valid one.
                        if isinstance(raised, Refused) and raised.status is not None:
                            address.answers()
                            raise raised._again(outcome_unknown) from raised.__cause__
                        pause = address
                        if failure._is_of_request():
                            address.answers()
                            self._is_away, pause = False, own.setdefault(at, _Pause())
                        else:
                            own.pop(at, None)
                        pause.fails(failure)
                    else:
                        address.answers()
                        self._first, self._is_away = at, False
                        return answer
                if isinstance(failure, Refused):
                    untrusted = failure
                # Prefer an error that may pass. Prefer a response about this request to an error without a slug, such as one of a proxy.
                is_better = is_busy(failure) or (failure._is_of_request() and error is not None and not error.slug)
                if error is None or not isinstance(error, Unavailable) or (is_better and not is_busy(error)):
                    error = failure
            assert error is not None
            wait = max(0.0, min(own.get(at, address).not_before for at, address in enumerate(self._addresses)) - _now())
            is_late = _now() + wait > deadline
            if self._is_away or is_late or not isinstance(error, Unavailable) or is_busy(error) or error._waits_for_operator():
                # From now on, calls fail without retries until an address responds.
                self._is_away = self._is_away or (is_late and not error._is_of_request())
                raise error._again(outcome_unknown, untrusted)
            if self._is_closed.wait(wait):
                raise _closed(outcome_unknown)

    def _attempt(self, address: _Address, method: str, target: str, parse: Callable[[Any], T], headers: Optional[Mapping[str, str]],
                 body: Optional[bytes], until: float) -> T:
        response, answer = self._exchange(address, method, target, {**self._headers, **(headers or {})}, body, until)
        if 200 <= response.status < 300:
            try:
                return parse(json.loads(answer))
            except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as failure:
                # The error of a decoder contains the whole response, which may repeat the token.
                raise BadResponse(f"the server at {address.url} is not an idmint service; check the address", response.status,
                                  outcome_unknown=True) from None if isinstance(failure, UnicodeError) else failure
        raise _error(address.url, response.status, response.getheader("Retry-After"), answer, self._secret)

    def _exchange(self, address: _Address, method: str, target: str, headers: Mapping[str, str], body: Optional[bytes],
                  until: float) -> tuple[http.client.HTTPResponse, bytes]:
        is_sent, was_idle = False, True
        while True:
            with self._lock:
                was_idle = was_idle and bool(address.idle)
                connection = address.idle.pop() if was_idle else _Connection(address, self._tls() if address.is_secure else None)
                self._open.add(connection)
            try:
                connection.until = until
                if connection.sock is None:
                    connection.connect()
                is_sent = True
                connection.request(method, address.path + target, body, headers)
                response = connection.getresponse()
                answer = _body(response)
            except ssl.SSLCertVerificationError as failure:
                self._drop(connection)
                raise Refused(f"the certificate of {address.url} is not trusted: {failure.verify_message}; "
                              + "set ca_file= to the certificate of its authority") from failure
            except (OSError, ValueError, http.client.HTTPException) as failure:
                self._drop(connection)
                if self._is_closed.is_set():
                    raise _closed(is_sent) from None
                # The service may have closed an idle connection, so try a new one.
                if was_idle and not isinstance(failure, socket.timeout):
                    was_idle = False
                    continue
                if isinstance(failure, OSError):
                    raise Unavailable(f"{address.url} does not respond: {failure}", outcome_unknown=is_sent) from failure
                # Other errors quote the response, which may repeat the token.
                raise Unavailable(f"{address.url} does not respond: {type(failure).__name__}", outcome_unknown=is_sent) from None
            except BaseException:  # Such as KeyboardInterrupt.
                self._drop(connection)
                raise
            with self._lock:
                keeps = not response.will_close and not self._is_closed.is_set()
                if keeps:
                    address.idle.append(connection)
            if not keeps:
                self._drop(connection)
            return response, answer

    def _drop(self, connection: _Connection) -> None:
        with self._lock:
            self._open.discard(connection)
        connection.end()


class _Connection(http.client.HTTPConnection):
    """A connection with one deadline for the whole exchange, however slowly the bytes arrive."""

    sock: Optional[_Socket]

    def __init__(self, address: _Address, context: Optional[ssl.SSLContext]) -> None:
        super().__init__(address.host, address.port)
        self._context, self.until = context, 0.0
        if address.is_secure:
            self.default_port = 443

    def close(self) -> None:
        """Does nothing, because http.client closes a connection before the last body is read."""

    def end(self) -> None:
        super().close()

    def connect(self) -> None:
        # Try each IP address of the host name. An attempt gets an equal share of the remaining time, so the last one gets all of it.
        found = socket.getaddrinfo(self.host, self.port, type=socket.SOCK_STREAM)
        for left, (family, kind, protocol, _, address) in zip(range(len(found), 0, -1), found):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(_left(self.until) / left)
                sock.connect(address)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if self._context is not None:
                    sock = self._encrypted(self._context, sock)
                self.sock = _Socket(self, sock)
                return
            except OSError:
                sock.close()
                if left == 1:
                    raise

    def _encrypted(self, context: ssl.SSLContext, sock: socket.socket) -> ssl.SSLSocket:
        with _in_openssl:
            encrypted = context.wrap_socket(sock, server_hostname=self.host, do_handshake_on_connect=False)
        try:
            _Socket(self, encrypted).do(encrypted.do_handshake)
        except BaseException:
            encrypted.close()
            raise
        return encrypted


class _Socket:
    """The socket methods that http.client uses, limited by the deadline of the connection."""

    def __init__(self, connection: _Connection, sock: socket.socket) -> None:
        self._connection, self.sock, self.close = connection, sock, sock.close

    def do(self, act: Callable[[], T]) -> T:
        """Calls a method of the socket. With TLS, waits for the network outside of OpenSSL, so that a fork need not wait for it."""
        if not isinstance(self.sock, ssl.SSLSocket):
            self.sock.settimeout(_left(self._connection.until))
            return act()
        self.sock.settimeout(0)
        while True:
            left = _left(self._connection.until)
            try:
                with _in_openssl:
                    return act()
            except ssl.SSLWantReadError:
                event = selectors.EVENT_READ
            except ssl.SSLWantWriteError:
                event = selectors.EVENT_WRITE
            with selectors.DefaultSelector() as selector:
                selector.register(self.sock, event)
                selector.select(left)

    def sendall(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[self.do(functools.partial(self._send, rest)):]

    def _send(self, data: memoryview) -> int:
        sent = self.sock.send(data)
        if sent == 0:
            # With gevent, SSLSocket.send returns 0 instead of raising this.
            raise ssl.SSLWantWriteError
        return sent

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_Reader(self))


class _Reader(io.RawIOBase):
    def __init__(self, sock: _Socket) -> None:
        self._sock = sock

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        return self._sock.do(lambda: self._sock.sock.recv_into(buffer))


def _closed(outcome_unknown: bool = False) -> Closed:
    return Closed("this Ids is closed; create another one", outcome_unknown=outcome_unknown)


def _left(until: float) -> float:
    left = until - _now()
    if left <= 0:
        raise socket.timeout("timed out")
    return min(left, _WAIT_MAX)


def _body(response: http.client.HTTPResponse) -> bytes:
    """Reads a body whose end is marked by a length or by chunks. Otherwise, a truncated body would look complete."""
    if response.length is None and not response.chunked:
        raise http.client.IncompleteRead(b"")
    body = bytearray()
    while True:
        part = response.read(65536)
        body += part
        if len(body) > _BODY_MAX:
            raise http.client.HTTPException("the response body is too long")
        if not part:
            break
    if response.length:
        raise http.client.IncompleteRead(b"", response.length)
    return bytes(body)


def _error(url: str, status: int, header: Optional[str], answer: bytes, secret: str) -> IdmintError:
    try:
        problem = _object(json.loads(answer))
        if secret:
            # The JSON may contain the token with escapes, so search the text that this library writes.
            problem = json.loads(json.dumps(problem).replace(json.dumps(secret)[1:-1], "(token)"))
    except (RecursionError, TypeError, ValueError):
        problem = {}
    retry_after, exact = None, problem.get("retry_after_ms")
    if isinstance(exact, (int, float)) and exact >= 0:
        retry_after = min(exact, _RETRY_AFTER_MAX * 1000) / 1000
    elif header is not None and re.fullmatch("[0-9]{1,20}", header):
        retry_after = min(float(header), _RETRY_AFTER_MAX)
    detail, example = problem.get("detail"), problem.get("example")
    if not isinstance(detail, str) or not detail:
        detail = "it redirects, which is not followed" if 300 <= status < 400 else "no reason is given"
    remedy = _REMEDIES.get(status) or (f"this works: {example}" if isinstance(example, str) else None)
    message = f"{url} answers {status}: {detail}"[:1000]
    is_importing = status == 409 and str(problem.get("type")).endswith("/ledger-importing")
    kind = Unavailable if is_importing or status in _TRANSIENT else Refused if status >= 300 else BadResponse
    outcome_unknown = status < 300 or (status >= 500 and status != 503)
    return kind(f"{message}; {remedy}" if remedy else message, status, problem, retry_after, outcome_unknown)


def _object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise TypeError("the response is not a JSON object")
    return cast("dict[str, Any]", answer)


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("the response has a member that is not a string")
    return value


def _decimal(value: Any) -> int:
    if not re.fullmatch("[0-9]{1,39}", value):
        raise ValueError("the response has an id that is not a decimal number")
    return int(value)


def _texts(count: int, answer: Any) -> list[str]:
    texts = [_text(text) for text in answer["ids"]]
    if len(texts) != count or not isinstance(answer["ids"], list):
        raise ValueError("the response has another number of ids than requested")
    return texts


def _ranges(count: int, answer: Any) -> list[range]:
    ranges: list[range] = []
    for row in answer["rows"]:
        first, step, length = _decimal(row["first"]), _decimal(row["step"]), row["count"]
        if type(length) is not int or not 1 <= length <= count or (step == 0 and length > 1) or first + step * length >> 128:
            raise ValueError("the response has no row of ids")
        ranges.append(range(first, first + max(1, step) * length, max(1, step)))
    if sum(map(len, ranges)) != count:
        raise ValueError("the response has another number of ids than requested")
    return ranges


def _segment(text: str) -> str:
    """Encodes a text as one segment of a path.

    Proxies remove the segments `.` and `..`, even if the dots are written as %2E, so the dots are encoded twice. The service then
    responds that there is no such resource.
    """
    if text in (".", ".."):
        return text.replace(".", "%252E")
    try:
        return urllib.parse.quote(text, safe="")
    except UnicodeEncodeError:
        raise Refused("the text has half of a surrogate pair, which cannot be sent") from None


def _checked_key(key: str) -> str:
    if not _VISIBLE_ASCII.fullmatch(key):
        raise ValueError("a key must be one or more visible ASCII characters")
    return key


def _number_text(format: Any, query: Mapping[str, str]) -> Union[Callable[[int], str], bool]:
    """Returns a function that converts a number to a text, or False unless the text is plain decimal, hexadecimal or base 36."""
    encoding = next((some for some in format["encodings"] if query.get("encoding") in (None, some["name"])), None)
    # The service returns numbers only for sequenced formats.
    if format["rule"] != "sequenced" or not format["minted"] or encoding is None or "prefix" in query:
        return False
    length = encoding["length"] or 0
    for letters in ("", "abcdef", "ABCDEF", string.ascii_lowercase, string.ascii_uppercase):
        span = letters and f"{letters[0]}-{letters[-1]}"
        fixed, free = f"^[0-9{span}]{{{length}}}$", rf"\^\(\?:0\|\[1-9{span}\]\[0-9{span}\]\{{0,\d+\}}\)\$"
        if encoding["pattern"] == fixed or re.fullmatch(free, encoding["pattern"]):
            text_of = functools.partial(_in_digits, string.digits + letters, length)
            # The pattern does not show the order of the alphabet, so compare the text of the example id.
            is_same = text_of(_decimal(format["example"]["value"])) == format["example"]["encodings"][encoding["name"]]
            return (str if text_of.args == (string.digits, 0) else text_of) if is_same else False
    return False


def _in_digits(digits: str, length: int, number: int) -> str:
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


def _backoff(failures: int) -> float:
    """Returns a pause that doubles with each failure, with jitter."""
    return min(_PAUSE_MAX, _PAUSE_MIN * 2.0 ** min(failures - 1, 10)) * random.uniform(0.5, 1.0) if failures else 0.0


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


class _Pid:
    """A process mark for systems on which a fork cannot clear memory in the child."""

    def __init__(self) -> None:
        self._pid = os.getpid()

    def __getitem__(self, _: int) -> int:
        return os.getpid() == self._pid

    def __setitem__(self, _: int, value: int) -> None:
        self._pid = os.getpid()


def _process_mark() -> Union[mmap.mmap, _Pid]:
    """Returns a mark whose first byte is 0 in a forked child. Reading it is faster than getpid()."""
    try:
        mark = mmap.mmap(-1, mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
        mark.madvise(18)  # MADV_WIPEONFORK of Linux.
        mark[0] = 1
        return mark
    except (AttributeError, OSError, ValueError):
        return _Pid()


_all: weakref.WeakSet[Ids] = weakref.WeakSet()
_restarting: dict[int, threading.Lock] = {}
# Held while a thread calls OpenSSL, and during a fork. Otherwise, a child could inherit a lock that a thread of its parent holds in
# OpenSSL, and hang. A signal handler may fork in the thread that holds this lock, so it must be reentrant.
_in_openssl, _in_openssl_pid = threading.RLock(), os.getpid()
# Connections and TLS contexts of the parent process. They are kept, because freeing one would wait for its lock.
_abandoned: list[Union[_Connection, ssl.SSLContext]] = []


def _default_context(ca_file: Union[str, os.PathLike[str], None]) -> ssl.SSLContext:
    _renew_lock()
    with _in_openssl:
        return ssl.create_default_context(cafile=ca_file)


def _renew_lock(is_child: bool = False) -> None:
    """Creates the lock anew in a child, because a thread of the parent may hold the inherited one if Python did not notice the fork."""
    global _in_openssl, _in_openssl_pid
    # A child in another PID namespace may have the number of its parent.
    if is_child or _in_openssl_pid != os.getpid():
        _in_openssl, _in_openssl_pid = threading.RLock(), os.getpid()


def _before_fork() -> None:
    _renew_lock()
    # The thread that holds the lock may wait for a lock that a hook of another library has acquired for this fork. Then fork without it.
    _in_openssl.acquire(timeout=10)


def _after_fork_in_parent() -> None:
    # Raises RuntimeError if this thread does not hold the lock, because _before_fork did not get it in time.
    with contextlib.suppress(RuntimeError):
        _in_openssl.release()


def _after_fork_in_child() -> None:
    _renew_lock(is_child=True)
    for ids in list(_all):
        ids._restart()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)
