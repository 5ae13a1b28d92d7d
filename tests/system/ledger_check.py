"""Checks a chain of Evently events, one per line on standard input, without any code of idmint.

Prints `ok EVENTS HEAD`, or `error INDEX REASON` and exits with 1. The option `--after ID` names the event before the first line.
Follows only the definition of the id, with its own CRC-32C table and its own canonical JSON. Needs only the standard library.
"""

import json
import math
import re
import sys
from datetime import datetime, timedelta, timezone
from decimal import Decimal

MEMBERS = ("event", "entities", "meta", "data", "timestamp", "eventId")
TIMESTAMP = re.compile(r"([0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,6}))?Z", re.ASCII)
EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


class Broken(Exception):
    """The error for an invalid event. The argument is the reason."""


def table():
    entries = []
    for number in range(256):
        for _ in range(8):
            number = number >> 1 ^ (0x82F63B78 if number & 1 else 0)
        entries.append(number)
    return entries


TABLE = table()


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc = crc >> 8 ^ TABLE[(crc ^ byte) & 0xFF]
    return crc ^ 0xFFFFFFFF


class Number:
    """A number as its canonical text."""

    def __init__(self, text):
        self.text = text


def number(value):
    """Returns the shortest decimal text of the double, in the notation of ECMAScript."""
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).as_tuple()
    digits = "".join(map(str, digits))
    exponent += len(digits)  # The value is 0.DIGITS times ten to the power of `exponent`.
    digits = digits.rstrip("0")
    if 0 < exponent <= 21:
        text = digits[:exponent].ljust(exponent, "0") + ("." + digits[exponent:] if len(digits) > exponent else "")
    elif -6 < exponent <= 0:
        text = "0." + "0" * -exponent + digits
    else:
        point = "." if len(digits) > 1 else ""
        text = f"{digits[0]}{point}{digits[1:]}e{'+' if exponent > 0 else '-'}{abs(exponent - 1)}"
    return "-" * sign + text


def read_float(token):
    value = float(token)
    if not math.isfinite(value):
        raise Broken("number_not_interoperable")
    return Number(number(value))


def read_int(token):
    try:
        printed = number(float(token))
    except OverflowError:
        printed = None
    if printed != token and token != "-0":
        raise Broken("number_not_interoperable")
    return Number(printed)


def read_object(pairs):
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Broken("duplicate_key")
    return members


def read_constant(name):
    raise Broken("invalid_json")


def escaped(match):
    character = match[0]
    short = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
    return short.get(character) or f"\\u{ord(character):04x}"


def canonical(value):
    if isinstance(value, dict):
        # Python sorts strings by code point, which is the required order.
        return "{" + ",".join(canonical(key) + ":" + canonical(value[key]) for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, str):
        return '"' + re.sub(r'["\\\x00-\x1f]', escaped, value) + '"'
    if isinstance(value, Number):
        return value.text
    return {None: "null", True: "true", False: "false"}[value]


def read_event(line):
    try:
        event = json.loads(
            line.decode("utf-8"),
            object_pairs_hook=read_object, parse_float=read_float, parse_int=read_int, parse_constant=read_constant,
        )
        canonical(event).encode("utf-8")  # Lone surrogates cannot be encoded.
    except (ValueError, RecursionError):
        raise Broken("invalid_json") from None
    if not isinstance(event, dict):
        raise Broken("wrong_type")
    return event


def read_id(event):
    text = event.get("eventId")
    if text is None:
        raise Broken("missing_field" if "eventId" not in event else "wrong_type")
    if not isinstance(text, str):
        raise Broken("wrong_type")
    if len(text) != 32:
        raise Broken("wrong_length")
    if not re.fullmatch("[0-9A-Fa-f]{32}", text):
        raise Broken("bad_alphabet")
    if text != text.lower():
        raise Broken("non_canonical")
    if text[0] > "7":
        raise Broken("out_of_range")
    if int(text[31], 16) & 3:
        raise Broken("bad_version")
    return text


def check_shape(event):
    if event.keys() - set(MEMBERS):
        raise Broken("unknown_field")
    kinds = {"event": str, "entities": dict, "timestamp": str}
    if kinds.keys() - event.keys():
        raise Broken("missing_field")
    if not all(isinstance(event[name], kind) for name, kind in kinds.items()):
        raise Broken("wrong_type")
    if not isinstance(event.get("meta"), (dict, type(None))):
        raise Broken("wrong_type")


def read_micros(text):
    match = TIMESTAMP.fullmatch(text)
    try:
        time = datetime.strptime(match[1], "%Y-%m-%dT%H:%M:%S").replace(tzinfo=timezone.utc)
    except (TypeError, ValueError):
        raise Broken("bad_timestamp") from None
    micros = (time - EPOCH) // timedelta(microseconds=1) + int((match[2] or "").ljust(6, "0"))
    if micros < 0:
        raise Broken("before_epoch")
    return micros


def check(line, ledger, previous):
    """Returns the ledger and the id of the event. Raises `Broken` if the event is invalid."""
    event = read_event(line)
    event_id = read_id(event)
    check_shape(event)
    time = f"{read_micros(event['timestamp']):016x}"
    parts = [event["event"], canonical(event["entities"]), canonical(event.get("meta")), canonical(event.get("data"))]
    message = "".join(parts) + time
    begun = f"{crc32c(message.encode('utf-8')) & 0xFFFFFFFC:08x}"
    ledger = ledger or begun
    if event_id[24:] != ledger or previous is None and begun != ledger:
        raise Broken("ledger_mismatch")
    if event_id[:16] != time:
        raise Broken("timestamp_mismatch")
    if previous is not None and time <= previous[:16]:
        raise Broken("not_monotonic")
    previous = previous or time + "00000000" + ledger
    checksum = crc32c((message + ledger + previous).encode("utf-8"))
    if event_id != f"{time}{checksum:08x}{ledger}":
        raise Broken("checksum_mismatch")
    return ledger, event_id


def main():
    head = sys.argv[2] if sys.argv[1:2] == ["--after"] else None
    ledger = head and head[24:]
    events = 0
    for line in sys.stdin.buffer:
        try:
            ledger, head = check(line.rstrip(b"\n"), ledger, head)
        except Broken as broken:
            print(f"error {events} {broken}")
            return 1
        events += 1
    print(f"ok {events} {head}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
