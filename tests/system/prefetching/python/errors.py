"""Checks that errors name the remedy, that a repeated append is applied only once, and that TLS trusts a given file."""

import asyncio
import concurrent.futures
import copy
import http.server
import json
import pickle
import re
import socket
import sys
import threading
import time
import urllib.request

import idmint
from idmint import Closed, Ids, Refused, SeriesNumber, Unavailable

port, token, reader, secured_port, ca_file, genesis, minter = sys.argv[1:]
url = f"http://127.0.0.1:{port}"


def refusal(kind, status, *words, urls=url, name="snowflake", act=None, **settings):
    with Ids(urls, name, **{"timeout": 60, **settings}) as ids:
        try:
            (act or take)(ids)
        except kind as error:
            assert error.status == status, (error.status, error)
            for word in words:
                assert word in str(error), (word, str(error))
            return error
    raise AssertionError(f"nothing was refused: {status}")


def take(ids):
    return ids.next()


def take_text(ids):
    return ids.next_text()


resolve = socket.getaddrinfo
socket.getaddrinfo = lambda host, *more, **named: resolve("127.0.0.1" if host == "ids.example.com" else host, *more, **named)

for act in (take, take_text):
    refusal(Refused, 401, "token=", "http.tokens", act=act)
    refusal(Refused, 403, "scopes", "http.tokens", act=act, token=reader)
    refusal(Refused, 421, "http.hosts", act=act, token=token, urls=f"http://ids.example.com:{port}")
    refusal(Refused, 404, "invoice", act=act, token=token, name="invoice")
    refusal(Refused, 422, "this works: POST /ids/siq?type=", act=act, token=token, name="siq")
    began = time.monotonic()
    refusal(Unavailable, None, "http://127.0.0.1:1", act=act, urls="http://127.0.0.1:1", timeout=5)
    assert time.monotonic() - began >= 0.05, "it is asked more than once"
assert refusal(Refused, 406, "drawn at random", act=take, token=token, name="uuid7").reason == "rows"
refusal(Refused, 401, act=lambda ids: asyncio.run(ids.anext()))

# If one address fails, the client uses the other one.
with Ids(["127.0.0.1:1", url], "snowflake", token=token) as ids:
    assert len({ids.next() for _ in range(300)}) == 300
    assert len(set(ids.mint(1000))) == 1000
    for text in (ids.next_text(), str(ids.next())):
        assert any(match["format"] == "snowflake" for match in ids.decode(text)["matches"])
    try:
        ids.decode("no id at all")
        raise AssertionError("it was read")
    except Refused as error:
        assert (error.status, error.slug) == (404, "no-format-matches"), error
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        try:
            copied(ids)
            raise AssertionError("it was copied")
        except TypeError as error:
            assert "make another Ids" in str(error)

# The format never has this many ids at once, so the client requests fewer. The type of the ids is sent with each request.
with Ids(url, "payment", token=token, prefetch_count=90_000, prefetch_count_max=90_000, prefetch_validity=600) as ids:
    assert ids.next() < ids.next() < 36**9
    assert ids._numbers._count < 90_000
with Ids(url, "siq", token=token, query={"type": "message"}) as ids:
    assert ids.next() > 2**64 and len(ids.next_text()) == 28

# Texts that the client makes from numbers, and texts of the service, must have the same form.
for name, query, form, of_numbers in [
    ("snowflake", {}, "[1-9][0-9]{17,18}", True),
    ("snowflake", {"encoding": "hex"}, "[1-9a-f][0-9a-f]{15}", True),
    ("snowflake", {"encoding": "hex_padded"}, "[0-9a-f]{16}", True),
    ("snowflake", {"encoding": "base64"}, ".{12}", False),
    ("payment", {}, "[0-9A-Z]{9}", True),
    ("siq", {"type": "message"}, "00[0-9a-f]{26}", True),
    ("uuid7", {"encoding": "hex_padded"}, "[0-9a-f]{32}", False),
]:
    for allowed in (token, minter):
        with Ids(url, name, token=allowed, query=query, timeout=60) as ids:
            texts = [ids.next_text(), ids.next_text(), asyncio.run(ids.anext_text())]
            assert len(set(texts)) == 3 and all(re.fullmatch(form, text) for text in texts), texts
            # If the token cannot read formats, the client requests texts from the service.
            assert bool(ids._text_of) == (of_numbers and allowed == token), name
            if allowed == token:
                assert any(match["format"] == name for match in ids.decode(texts[0])["matches"]), texts
# The example shows that the alphabet has another order, so the client must not make texts itself.
shuffled = {"name": "x", "length": 4, "pattern": "^[0-9A-Z]{4}$"}
example = {"value": "35", "encodings": {"x": "000A"}}
assert not idmint._number_text({"rule": "sequenced", "minted": True, "encodings": [shuffled], "example": example}, {})

# Create a ledger, and lose the response to an append twice.
headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
with open(genesis, "rb") as file:
    created = urllib.request.Request(url + "/ledgers", file.read(), headers)
ledger = json.load(urllib.request.urlopen(created))["ledger"]
with Ids(url, "snowflake", token=token) as ids:
    exchange, lost = ids._http._exchange, []

    def losing(*request):
        answer = exchange(*request)
        if len(lost) < 2:
            lost.append(answer)
            raise Unavailable("the answer is lost", outcome_unknown=True)
        return answer

    ids._http._exchange = losing
    appended = ids.append(ledger, [{"event": "Paid", "entities": {"order": ["1"]}}])
    assert len(lost) == 2 and [json.loads(answer)["ids"] for _, answer in lost] == [appended] * 2
    assert ids.append(ledger, [{"event": "Paid", "entities": {"order": ["1"]}}]) != appended
    lost.clear()
    assert ids.number("python", "order-1") == SeriesNumber(1, "1") and len(lost) == 2
    assert [ids.number("python", key) for key in ("order-1", "order-2")] == [SeriesNumber(1, "1"), SeriesNumber(2, "2")]

# The client escapes dots, so that they stay a segment of the path, and does not send half of a surrogate pair.
for dots in (".", ".."):
    assert idmint._segment(dots) == dots.replace(".", "%252E")
    refusal(Refused, 404, token=token, act=lambda ids: ids.decode(dots))
    refusal(Refused, 422, token=token, act=lambda ids: ids.number(dots, "order-1"))
refusal(Refused, None, "surrogate", token=token, act=lambda ids: ids.decode("\ud800"))

secured = f"https://127.0.0.1:{secured_port}"
with Ids(secured, "snowflake", ca_file=ca_file, timeout=60) as ids:
    assert len({ids.next() for _ in range(150)}) == 150
# If the certificate of an address is not trusted, the client uses another address. Without another one, the call ends at once.
for urls in ([secured, url], [secured]):
    with Ids(urls, "snowflake", token=token, timeout=86_400) as ids:
        for _ in range(3):
            try:
                assert len(ids.mint(1)) == 1 and len(urls) == 2
            except Refused as error:
                assert len(urls) == 1 and "ca_file" in str(error), error
refusal(Unavailable, None, "http://127.0.0.1:1 ", "ca_file", urls=["http://127.0.0.1:1", secured], timeout=2)
# close() ends the connection of a pending request, but keeps its TLS layer, so that nothing is sent as plain text.
with Ids(secured, "snowflake", ca_file=ca_file, timeout=60) as ids:
    ids.mint(1)
    under_way = ids._http._addresses[0].idle.pop()
    ids.close()
    try:
        under_way.sock.sock.sendall(b"secret")
        raise AssertionError("the connection is open")
    except OSError:
        assert under_way.sock.sock._sslobj is not None, "the request would be sent as plain text"
    under_way.end()

# The client does not retry before the time that a busy service has requested. The retry then succeeds.
asked_at = []


class Busy(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked_at.append(time.monotonic())
        is_busy = len(asked_at) == 1
        body = b'{"type":"/problems/overloaded","detail":"full","retry_after_ms":700}' if is_busy else b'{"ids":["1","2"]}'
        self.send_response(503 if is_busy else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


busy = http.server.HTTPServer(("127.0.0.1", 0), Busy)
threading.Thread(target=busy.serve_forever, daemon=True).start()
with Ids(f"http://127.0.0.1:{busy.server_port}", "snowflake") as ids:
    assert ids.mint(2) == ["1", "2"] and len(asked_at) == 2 and asked_at[1] - asked_at[0] >= 0.7, asked_at
busy.shutdown()

# While one address is down and the other one is busy, the client requests fewer ids at once.
counts = []


class BusyForMany(Busy):
    def do_POST(self):
        counts.append(int(self.path.split("count=")[1]))
        count = counts[-1]
        rows = {"format": "snowflake", "count": count, "rows": [{"first": "7", "step": "1", "count": count}]}
        body = json.dumps({"type": "/problems/overloaded", "retry_after_ms": 0} if count > 1024 else rows).encode()
        self.send_response(503 if count > 1024 else 200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


busy = http.server.HTTPServer(("127.0.0.1", 0), BusyForMany)
threading.Thread(target=busy.serve_forever, daemon=True).start()
with socket.create_server(("127.0.0.1", 0)) as free:
    down = f"http://127.0.0.1:{free.getsockname()[1]}"
with Ids([down, f"http://127.0.0.1:{busy.server_port}"], "snowflake", prefetch_count=10_000) as ids:
    assert ids.next() == 7 and counts == [10_000, 1024], counts
busy.shutdown()

# After a 503 for one kind of request, the client still sends other requests to the same address.
paths = []


class PartlyUnable(Busy):
    def do_POST(self):
        paths.append(self.path)
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answers = {
            "/numbers/acme-2026": (503, {"type": "/problems/numbers-held"}),
            "/ledgers/aa77f99c/events": (503, {"type": "/problems/clock-behind", "retry_after_ms": 20_000}),
            "/ledgers/importing/events": (409, {"type": "/problems/ledger-importing"}),
            "/ledgers/slow/events": (408 if paths.count(self.path) == 1 else 200, {"ids": ["1"]}),
        }
        status, answer = answers.get(self.path, (200, {"ids": ["1"]}))
        body = json.dumps(answer).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


partly = http.server.HTTPServer(("127.0.0.1", 0), PartlyUnable)
threading.Thread(target=partly.serve_forever, daemon=True).start()
with Ids(f"http://127.0.0.1:{partly.server_port}", "snowflake") as ids:
    assert ids.append("slow", [{}]) == ["1"] and len(paths) == 2, paths
    for act, slug in (
        (lambda: ids.number("acme-2026", "order-1"), "numbers-held"),
        (lambda: ids.append("aa77f99c", [{}]), "clock-behind"),
        (lambda: ids.append("importing", [{}]), "ledger-importing"),
    ):
        try:
            act()
            raise AssertionError("it is not refused")
        except Unavailable as error:
            assert error.slug == slug, error
        assert ids.mint(1) == ["1"]
# The client retries none of the three requests. A held series and an import wait for an operator, and the other response asks for
# a wait that is longer than the timeout.
assert len(paths) == 8, paths
# One address is down, and the other one refuses this request with a 503. The client must report the
# 503, and must use that address for the next call.
with Ids([down, f"http://127.0.0.1:{partly.server_port}"], "snowflake", timeout=60) as ids:
    try:
        ids.number("acme-2026", "order-1")
        raise AssertionError("it is not refused")
    except Unavailable as error:
        assert (error.status, error.slug, len(paths)) == (503, "numbers-held", 9), (error, paths)
    assert ids.mint(1) == ["1"]
partly.shutdown()


# The timeout of 1 s covers a whole call. The service takes 0.45 s to describe the format and 0.45 s
# for each id. The slower of two concurrent calls needs 1.35 s, so it must fail.
class Slow(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        threading.Event().wait(0.45)
        body = b'{"ids":["1"]}' if self.command == "POST" else b"{}"
        self.send_response(200 if self.command == "POST" else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


slow = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Slow)
slow.handle_error = lambda *_: None  # The client has closed the connection.
threading.Thread(target=slow.serve_forever, daemon=True).start()
late = []


def take_late(take):
    try:
        take()
    except Unavailable as error:
        late.append(error)


async def take_two_in_tasks(ids):
    taken = await asyncio.gather(ids.anext_text(), ids.anext_text(), return_exceptions=True)
    late.extend(one for one in taken if isinstance(one, Unavailable))


slow_settings = {"timeout": 1, "prefetch_count": 1, "prefetch_count_max": 1}
with Ids(f"http://127.0.0.1:{slow.server_port}", "snowflake", **slow_settings) as ids:
    threads = [threading.Thread(target=take_late, args=(ids.next_text,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert late, "both ids came within 1 s"
late.clear()
with Ids(f"http://127.0.0.1:{slow.server_port}", "snowflake", **slow_settings) as ids:
    asyncio.run(take_two_in_tasks(ids))
    assert late, "both ids came within 1 s"
slow.shutdown()


async def take_with_busy_executor(ids):
    """The threads of the executor wait, so that none of them can request the description of the format."""
    loop, ended = asyncio.get_running_loop(), threading.Event()
    loop.set_default_executor(concurrent.futures.ThreadPoolExecutor(1))
    waiting = loop.run_in_executor(None, ended.wait, 60)
    try:
        await ids.anext_text()
        raise AssertionError("the executor was not busy")
    except Unavailable:
        assert not waiting.done(), "the call waited for the executor"
    finally:
        ended.set()


with Ids(url, "snowflake", token=token, timeout=0.2) as ids:
    asyncio.run(take_with_busy_executor(ids))

closed = Ids(url, "snowflake", token=token)
closed.next()
closed.close()
for act in (closed.next, closed.next_text, lambda: closed.mint(1)):
    try:
        act()
        raise AssertionError("it is closed")
    except Closed as error:
        assert "closed" in str(error)
SECRET = "hunter2"
for wrong in (
    {"prefetch_count": 0},
    {"prefetch_count": 20_000},
    {"prefetch_validity": 0},
    {"timeout": float("nan")},
    {"urls": []},
    {"urls": ["ftp://x"]},
    {"urls": [f"http://user:{SECRET}@x"]},
    {"urls": [f"ftp://user:{SECRET}@x:port"]},
    {"token": " \n"},
    {"token": f"{SECRET}\r\nx: y"},
    {"token": f"{SECRET}\u00e9"},
):
    try:
        Ids(**{"urls": url, "format": "snowflake", **wrong})
        raise AssertionError(wrong)
    except ValueError as error:
        assert SECRET not in str(error) and error.__context__ is None or "port" in str(wrong), error
with Ids(url, "snowflake", token=f" {token}\n") as ids:
    assert ids.next() > 0
print("done")
