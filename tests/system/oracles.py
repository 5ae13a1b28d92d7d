"""Compares the service with id libraries of other authors: oracles.py URL PROGRAM COUNT. See oracles.rs.

The service reads COUNT ids of each library and format, and the library reads COUNT ids of the service. The ids have random fields,
and are divided among the encodings of the format. Prints a line for each encoding: the library, the format, the encoding, the number
of ids that the service read, the number that the library read, and the number of differences for each.
"""

import base64
import functools
import http.client
import importlib.machinery
import json
import random
import subprocess
import sys
import time
import types
import typing
import urllib.parse
import uuid
import warnings
from datetime import datetime, timedelta

import bson
import flax_id.flax_id
import hashids
import sqids
import typing_extensions
import ulid
import uuid6


def prepare_suou():
    """Makes only suou's id modules importable. Its other modules need Python 3.12 and packages that are not installed."""
    if not hasattr(typing, "override"):
        typing.override = typing_extensions.override
    package = types.ModuleType("suou")
    package.__path__ = importlib.machinery.PathFinder.find_spec("suou").submodule_search_locations
    without_ids = types.ModuleType("suou.classtools")
    without_ids.MISSING = object()
    sys.modules.update({"suou": package, "suou.classtools": without_ids})


prepare_suou()

from suou.codecs import CROCKFORD_TO_B32, b32ldecode, b64decode  # noqa: E402
from suou.iding import Siq, SiqGen, SiqType, make_domain_hash  # noqa: E402
from suou.snowflake import Snowflake, SnowflakeGen  # noqa: E402

CHUNK = 10_000
DOMAIN = "example.com"
MILLI, SECOND = 10**6, 10**9
# The epochs of the formats, in nanoseconds since 1970.
SINCE_2015, SINCE_2024 = 1_420_070_400 * SECOND, 1_704_067_200 * SECOND
SINCE_1582 = -12_219_292_800 * SECOND
# The service writes no instants from the year 10000 on.
YEAR_10000 = 253_402_300_800


def below(draw, limit):
    """Draws a number below `limit`. One in a hundred is 0, and one in a hundred is `limit - 1`."""
    end = draw.random()
    return 0 if end < 0.01 else limit - 1 if end > 0.99 else draw.randrange(limit)


def from_cb32(text, width):
    """Reads Crockford's base 32 with suou's table of letters, because suou's own functions for reading it always raise TypeError."""
    base32 = text.translate(CROCKFORD_TO_B32).rjust(-(-width * 8 // 5), "A")
    return int.from_bytes(base64.b32decode(base32 + "=" * (-len(base32) % 8)), "big")


class SnowflakeOracle:
    """Packs the fields with suou. Writes the number with suou, or with the functions in `spelling` for Hashids and Sqids."""

    library = "suou"
    spellings = {
        # `str` would give `Snowflake(…)`.
        "decimal": ("{:d}".format, Snowflake),
        "hex": (Snowflake.to_hex, lambda text: Snowflake(text, 16)),
        "hex_padded": (lambda number: number.to_hex().zfill(16), Snowflake.from_hex),
        "base64": (Snowflake.to_base64, Snowflake.from_base64),
        "b32l": (Snowflake.to_b32l, Snowflake.from_b32l),
        "cb32": (Snowflake.to_cb32, lambda text: from_cb32(text, 8)),
    }

    def __init__(self, encoding, format="snowflake", library="suou", spelling=None, time_bits=42):
        self.library, self.format, self.encoding = library, format, encoding
        self.order = f"{format}?encoding={encoding}"
        self.spell, self.number = spelling or self.spellings[encoding]
        self.time_bits = time_bits

    def make(self, draw):
        ticks, worker, shard, sequence = (below(draw, 1 << bits) for bits in (self.time_bits, 5, 5, 12))
        told = SnowflakeGen(0, worker, 1)
        told.cur_timestamp, told.last_gen_ts, told.shard_id, told.counter = (lambda: ticks), ticks, shard, sequence
        return self.spell(Snowflake(next(told.generate()))), *self.parts(ticks, worker, shard, sequence)

    def read(self, text):
        number = self.number(text)
        return self.parts(number >> 22, number >> 17 & 31, number >> 12 & 31, number & 4095)

    @staticmethod
    def parts(ticks, worker, shard, sequence):
        fields = [f"time={ticks:d}", f"worker={worker:d}", f"shard={shard:d}", f"sequence={sequence:d}"]
        return SINCE_2015 + int(ticks) * MILLI, fields


def of_hashids(theirs, format):
    return SnowflakeOracle("hashids", format, "hashids", (theirs.encode, lambda text: theirs.decode(text)[0]))


class Lettered:
    """Hashids with letters only, in groups of 6, 6 and 5. The library itself has no groups."""

    def __init__(self):
        self.theirs = hashids.Hashids(alphabet="abcdefghijklmnopqrstuvwxyz", min_length=17)

    def encode(self, number):
        text = self.theirs.encode(number)
        return "-".join([text[:6], text[6:12], text[12:]])

    def decode(self, text):
        return self.theirs.decode(text.replace("-", ""))


def of_sqids(theirs):
    """Limits the time to 41 bits, because Sqids cannot write numbers of 64 bits."""
    spelling = (lambda number: theirs.encode([number]), lambda text: theirs.decode(text)[0])
    return SnowflakeOracle("sqids", "snowflake", "sqids", spelling, time_bits=41)


class SiqOracle:
    """Uses suou to pack the fields, hash the domain, and write and read the number."""

    library, format = "suou", "siq"
    spellings = {
        "did": (Siq.to_did, Siq.from_did),
        "crockford": (Siq.to_cb32, lambda text: Siq(from_cb32(text, 15))),
        "base64": (Siq.to_base64, lambda text: Siq.from_bytes(b64decode(text))),
        "b32l": (Siq.to_b32l, lambda text: Siq.from_bytes(b32ldecode(text))),
        "hex_padded": (lambda number: number.to_hex().zfill(28), lambda text: Siq(text, 16)),
        "hex": (Siq.to_hex, lambda text: Siq(text, 16)),
        "decimal": ("{:d}".format, Siq),
    }

    def __init__(self, kind, encoding):
        self.kind, self.encoding = kind, encoding
        name = "many_to_many" if kind is SiqType.MANYTOMANY else kind.name.lower()
        self.order = f"siq?type={name}&encoding={encoding}"
        self.spell, self.number = self.spellings[encoding]

    def make(self, draw):
        domain = f"{draw.getrandbits(40):x}.example"
        # Up to 53 bits of time, the float that `timestamp` returns is exact.
        ticks, shard, serial = (below(draw, 1 << bits) for bits in (53, 8, 16 - self.kind.n_bits))
        told = SiqGen(domain)
        told._test_cur_ts = told.last_gen_ts = ticks
        told.shard_id, told.counters = shard, {self.kind: serial}
        number = Siq(told.generate_one(self.kind))
        return self.spell(number), *self.parts(number, make_domain_hash(domain), serial)

    def read(self, text):
        number = self.number(text)
        serial = number % (1 << 16) >> self.kind.n_bits
        # suou cannot read the type, and reads the domain with a wrong modulus. Check that both are the requested ones.
        assert self.kind.prepend(serial) % (1 << 16) == number % (1 << 16), (text, self.kind)
        assert number >> 16 & 0xffffffff == make_domain_hash(DOMAIN), text
        return self.parts(number, make_domain_hash(DOMAIN), serial)

    def parts(self, number, domain, serial):
        ticks = int(number.timestamp() * 65536)
        fields = [f"time={ticks}", f"shard={number.shard_id():d}", f"domain={domain}", f"serial={serial:d}"]
        fields.append(f"qualifier={self.kind.value % (1 << self.kind.n_bits)}")
        # A tick begins at its first whole nanosecond, and the service reports whole microseconds.
        first = -(-ticks * SECOND // 65536)
        return first - first % 1000, fields


class PaymentOracle:
    """Implements ADR 13 independently. In base 36: six digits for seconds since 2024, one for the worker, two for a counter."""

    library, format, encoding, order = "adr13", "payment", "base36", "payment?encoding=base36"
    digits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"

    def make(self, draw):
        values = [below(draw, 36**width) for width in (6, 1, 2)]
        text = "".join(self.spell(value, width) for value, width in zip(values, (6, 1, 2)))
        return text, *self.parts(*values)

    def spell(self, value, width):
        return (self.spell(value // 36, width - 1) if width > 1 else "") + self.digits[value % 36]

    def read(self, text):
        return self.parts(*(functools.reduce(lambda all, digit: all * 36 + self.digits.index(digit), part, 0)
                            for part in (text[:6], text[6:7], text[7:])))

    @staticmethod
    def parts(ticks, worker, sequence):
        return SINCE_2024 + ticks * SECOND, [f"time={ticks}", f"worker={worker}", f"sequence={sequence}"]


class FlaxOracle:
    """python-flax-id can only write numbers. `read` looks up the letters in the alphabet of the library."""

    library, format, encoding, order = "python-flax-id", "flax", "base64_lex", "flax?encoding=base64_lex"

    def make(self, draw):
        ticks, drawn = below(draw, 1 << flax_id.flax_id.TIMESTAMP_BITS), below(draw, 1 << flax_id.flax_id.RANDOM_BITS)
        text = flax_id.flax_id.base64_lex_encode((ticks << flax_id.flax_id.RANDOM_BITS) + drawn)
        return text, *self.parts(ticks, drawn)

    def read(self, text):
        number = functools.reduce(lambda all, letter: all * 64 + flax_id.flax_id.BASE64_ALPHABET.index(letter), text, 0)
        assert flax_id.flax_id.base64_lex_encode(number) == text
        return self.parts(*divmod(number, 1 << flax_id.flax_id.RANDOM_BITS))

    @staticmethod
    def parts(ticks, drawn):
        return SINCE_2015 + ticks * MILLI, [f"time={ticks}", f"random={drawn}"]


class UlidOracle:
    library, format, encoding, order = "python-ulid", "ulid", "crockford", "ulid?encoding=crockford"

    def make(self, draw):
        millis, drawn = below(draw, YEAR_10000 * 1000), below(draw, 1 << 80)
        text = str(ulid.ULID.from_bytes(millis.to_bytes(6, "big") + drawn.to_bytes(10, "big")))
        return text, *self.parts(millis, drawn)

    def read(self, text):
        read = ulid.ULID.from_str(text)
        return self.parts(read.milliseconds, int.from_bytes(read.bytes[6:], "big"))

    @staticmethod
    def parts(millis, drawn):
        return millis * MILLI, [f"time={millis}", f"random={drawn}"]


class Uuid7Oracle:
    library, format, encoding, order = "uuid6", "uuid7", "uuid", "uuid7?encoding=uuid"

    def make(self, draw):
        millis, high, low = below(draw, YEAR_10000 * 1000), below(draw, 1 << 12), below(draw, 1 << 62)
        # The library overwrites the version and the variant, so these bits can have any value.
        number = millis << 80 | draw.getrandbits(4) << 76 | high << 64 | draw.getrandbits(2) << 62 | low
        return str(uuid6.UUID(int=number, version=7)), *self.parts(millis, high, low)

    def read(self, text):
        read = uuid6.UUID(text)
        assert (read.version, read.variant) == (7, uuid.RFC_4122), text
        return self.parts(read.time, read.int >> 64 & 0xfff, read.int & (1 << 62) - 1)

    @staticmethod
    def parts(millis, high, low):
        return millis * MILLI, [f"time={millis}", "version=7", f"random_a={high}", "variant=2", f"random_b={low}"]


class OldUuidOracle:
    """UUIDs of version 1, or of version 6 converted from version 1. The service does not mint them: see `Service.write`."""

    encoding, order = "uuid", None

    def __init__(self, version):
        self.version, self.format = version, f"uuid{version}"
        self.library = "uuid6" if version == 6 else "python"

    def make(self, draw):
        ticks, sequence, node = (below(draw, 1 << bits) for bits in (60, 14, 48))
        fields = (ticks & 0xffffffff, ticks >> 32 & 0xffff, ticks >> 48, sequence >> 8, sequence & 0xff, node)
        made = uuid.UUID(fields=fields, version=1)
        made = uuid6.uuid1_to_uuid6(made) if self.version == 6 else made
        return str(made), *self.parts(ticks, sequence, node)

    def read(self, text):
        read = uuid6.UUID(text) if self.version == 6 else uuid.UUID(text)
        assert (read.version, read.variant) == (self.version, uuid.RFC_4122), text
        return self.parts(read.time, read.clock_seq, read.node)

    def parts(self, ticks, sequence, node):
        fields = [f"time={ticks}", f"version={self.version}", "variant=2", f"clock_sequence={sequence}", f"node={node}"]
        return SINCE_1582 + ticks * 100, fields


class ObjectIdOracle:
    library, format, encoding, order = "pymongo", "objectid", "hex_padded", None

    def make(self, draw):
        seconds, process, counter = (below(draw, 1 << bits) for bits in (32, 40, 24))
        packed = seconds.to_bytes(4, "big") + process.to_bytes(5, "big") + counter.to_bytes(3, "big")
        return str(bson.ObjectId(packed)), *self.parts(seconds, process, counter)

    def read(self, text):
        read = bson.ObjectId(text)
        packed = read.binary
        seconds = int(read.generation_time.timestamp())
        return self.parts(seconds, int.from_bytes(packed[4:9], "big"), int.from_bytes(packed[9:], "big"))

    @staticmethod
    def parts(seconds, process, counter):
        return seconds * SECOND, [f"time={seconds}", f"process={process}", f"counter={counter}"]


class Service:
    def __init__(self, url, program):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc)
        self.program = program

    def post(self, target, body=""):
        self.connection.request("POST", target, body, {"accept": "text/plain", "content-type": "text/plain"})
        answer = self.connection.getresponse()
        return answer.status, answer.read().decode()

    def decode(self, oracle, texts):
        """Decodes texts. Yields the text, format, encoding, time and fields of each, as the service returns them."""
        query = urllib.parse.urlencode({"format": oracle.format, "encoding": oracle.encoding})
        status, told = self.post(f"/decode?{query}", "".join(f"{text}\n" for text in texts))
        assert status == 200, told
        for line in told.splitlines():
            text, format, encoding, instant, *fields = line.split("\t")
            # A random id may look as if it had the byte order of another library. The service then adds a note.
            fields = [field for field in fields if not field.startswith("note=")]
            yield (text, format, encoding, nanos(instant) if instant != "-" else None, fields)

    def mint(self, oracle, count):
        if oracle.order is None:
            return self.write(oracle, count)
        while True:
            status, told = self.post(f"/ids/{oracle.order}&count={count}")
            if status == 200:
                return told.splitlines()
            # A worker has only 1 296 payment ids per second, so retry.
            assert status == 503, told
            time.sleep(0.05)

    def write(self, oracle, count):
        """Writes ids of a format that cannot be minted. They include the least and the greatest value of each field."""
        vectors = ["--vectors", "--count", str(count), "--seed", str(random.getrandbits(32))]
        printed = subprocess.run([self.program, "encode", oracle.format, *vectors], check=True, capture_output=True).stdout
        return [vector["encodings"][oracle.encoding] for vector in json.loads(printed)["valid"]][-count:]


@functools.lru_cache(maxsize=1 << 16)
def seconds_of(text):
    return (datetime.fromisoformat(text) - datetime(1970, 1, 1)) // timedelta(seconds=1)


def nanos(instant):
    whole, _, fraction = instant.removesuffix("Z").partition(".")
    return seconds_of(whole) * SECOND + int(fraction.ljust(9, "0"))


def differences(oracle, expected, told):
    """Returns the number of differences, and prints the first one."""
    differing = [pair for pair in zip(expected, told, strict=True) if pair[0] != pair[1]]
    if differing:
        print(oracle.library, oracle.format, oracle.encoding, *differing[0], sep="\n  ", file=sys.stderr)
    return len(differing)


def compare(oracle, service, count):
    draw = random.Random(f"{oracle.library} {oracle.format} {oracle.encoding}")
    read = minted = differ_read = differ_minted = 0
    while read < count:
        made = [oracle.make(draw) for _ in range(min(CHUNK, count - read))]
        expected = [(text, oracle.format, oracle.encoding, instant, fields) for text, instant, fields in made]
        differ_read += differences(oracle, expected, service.decode(oracle, [text for text, *_ in made]))
        read += len(made)
    while minted < count:
        texts = service.mint(oracle, min(1_000 if oracle.format == "payment" else CHUNK, count - minted))
        expected = [(text, oracle.format, oracle.encoding, *oracle.read(text)) for text in texts]
        differ_minted += differences(oracle, expected, service.decode(oracle, texts))
        minted += len(texts)
    print(oracle.library, oracle.format, oracle.encoding, read, minted, differ_read, differ_minted, flush=True)


def main(url, program, count):
    # The settings of the format `salted` in the configuration.
    salted = hashids.Hashids(salt="pepper and more", min_length=16)
    spellings = list(SiqOracle.spellings)
    groups = [
        [SnowflakeOracle(encoding) for encoding in SnowflakeOracle.spellings],
        # Every type and every encoding occurs.
        [SiqOracle(kind, spellings[at % len(spellings)]) for at, kind in enumerate(SiqType)],
        [of_hashids(hashids.Hashids(), "snowflake")], [of_hashids(salted, "salted")],
        [of_hashids(Lettered(), "lettered")], [of_sqids(sqids.Sqids())],
        [PaymentOracle()], [FlaxOracle()], [UlidOracle()], [Uuid7Oracle()], [OldUuidOracle(1)], [OldUuidOracle(6)],
        [ObjectIdOracle()],
    ]
    # Ignore suou's warning that a base64 text has 9 bytes instead of 8.
    warnings.simplefilter("ignore", BytesWarning)
    service = Service(url, program)
    for oracles in groups:
        for oracle in oracles:
            compare(oracle, service, -(-count // len(oracles)))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]))
