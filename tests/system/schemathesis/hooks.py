"""What schemathesis cannot find in openapi.yaml: names that are known, what callers accept, what no schema can say."""

import json
import pathlib
import zlib

import schemathesis
from schemathesis.core.failures import Failure

# A schema-valid request may get a 422 with one of these reasons. Which encodings, types, prefixes and domains there are, how many
# ids at once, and from when to when its times go depends on the format; and that `count` is given twice, or `external` beside `after`,
# shows only where both are looked at. A reason is of bytes, and of no control characters. No schema knows how many days a month has, or that two numbers differ.
# Anything else that is refused though it is valid stays a failure.
BEYOND_SCHEMAS = {
    "/problems/invalid-parameter": {
        "count", "encoding", "type", "prefix", "domain", "repeated_parameter", "format", "after", "id",
        "from", "to", "bad_timestamp", "before_epoch", "no_time", "time_not_leading", "not_before", "outside", "within_one_tick", "ledger_mismatch",
        "checksum_mismatch", "external", "reason", "first",
        # Only brief results are read as a column.
        "column",
    },
    # Where an event stands in its chain, which days there are, and which numbers a double changes.
    "/problems/invalid-event": {
        "not_monotonic", "out_of_range", "timestamp_mismatch", "ledger_mismatch", "checksum_mismatch",
        "bad_timestamp", "before_epoch", "number_not_interoperable",
    },
    "/problems/idempotency-conflict": {"idempotency_key"},
    # Which formats have rows.
    "/problems/not-acceptable": {"rows"},
    "/problems/invalid-report": {
        "bad_timestamp", "before_epoch", "overflow", "out_of_range", "same_object", "another_id",
    },
}

# The media types of a Conjunction Data Message, and one in each.
MESSAGES = pathlib.Path(__file__).parents[2] / "cdm"
MESSAGE = {
    "text/plain": (MESSAGES / "one.kvn").read_text(),
    "application/xml": (MESSAGES / "one.xml").read_text(),
    "text/xml": (MESSAGES / "several.xml").read_text(),
    "text/csv": (MESSAGES / "cdm_public.csv").read_text(),
}

# Names that mean something to the service. Made-up ones alone would nearly all end at the first that is unknown.
KNOWN = {
    "format": ["conjunction-v1", "payment", "flax", "siq", "snowflake", "twitter", "conjunction", "uuid7"],
    "encoding": ["decimal", "hex_padded"],
    "type": ["user", "message"],
    "ledger": ["aa77f99c"],
    "after": ["0005cd7556b05092aecc815daa77f99c"],
    "series": ["acme-2026"],
    "n": [str(number) for number in range(1, 1_001)],
}

# The first two events of the ledger that is known, and what is no event.
EVENTS = [
    '{"event":"Ledger Created","entities":{"ledger":"testing⑆preview"},"timestamp":"2021-10-03T16:32:12.816530Z",'
    '"meta":{"actor":"matt"},"data":{"name":"My Ledger","description":"This ledger is for my example events."},'
    '"eventId":"0005cd7556b05092aecc815daa77f99c"}',
    '{"event":"Item Ordered","entities":{"patron":["Harold_Cho"]},"timestamp":"2021-11-16T03:30:47.430415Z",'
    '"data":{"menuItem":"Bean Burrito","toppings":["chiles","salsa verde"],"spicy":true,"peppers":5},'
    '"meta":{"actor":"register-2","commandId":"e33692e9-3e73-4028-8962-2753ddae2a0f","correlationId":"22341"},'
    '"eventId":"0005d0df8d1e990f5bdc365aaa77f99c"}',
    "{}",
]


# The event of that ledger. Not among the names above, since other addresses have an `id` too.
KNOWN_ID = KNOWN["after"][0]


def drawn(value):
    """A number that goes with the value: the same in each run."""
    return zlib.crc32(repr(value).encode("utf-8", "surrogatepass"))


@schemathesis.deserializer("application/octet-stream")
def octets(context, response):
    return response.content.hex()


@schemathesis.serializer("application/x-ndjson")
def json_lines(context, value):
    """The lines of a text as JSON strings if they are no events, and something else for what is no text."""
    if isinstance(value, str) and value:
        return "\n".join(line if line in EVENTS else json.dumps(line) for line in value.split("\n")).encode()
    if context.case.operation.path == "/ledgers/{ledger}/verify":
        # Any line there is an event or none, and both are answered; what is refused is no line at all.
        return b""
    return json.dumps(value if value == "" else [value]).encode()


@schemathesis.serializer("application/xml", "text/xml", "text/csv")
def xml(context, value):
    """A text as it is: the schema of a message is only that it is one."""
    return (value if isinstance(value, str) else json.dumps(value)).encode()


@schemathesis.deserializer("application/xml", "text/xml", "text/csv")
def xml_text(context, response):
    return response.text


@schemathesis.hook
def before_call(context, case, kwargs):
    """Asks for one of the media types of the 200, or for none, as the case decides: the same one in each run."""
    if case.operation.path == "/numbers/{series}/close" and case.path_parameters.get("series") in KNOWN["series"]:
        # A closed series gives no more numbers, and other requests want some.
        case.path_parameters["series"] = "acme-2025"
    described = case.operation.schema.raw_schema["paths"][case.operation.path].get(case.operation.method, {})
    answer = described.get("responses", {}).get("200", {})
    if "$ref" in answer:
        answer = case.operation.schema.raw_schema["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    # Messages come back as they were sent and in no other way; XML and CSV are nothing else.
    accepted = ["*/*", *(media for media in answer.get("content", {}) if not media.endswith(("/xml", "/csv")))]
    number = drawn((case.path_parameters, case.query, case.headers.get("X-Request-Id")))
    case.headers["Accept"] = accepted[number % len(accepted)]
    # Reports one by one are told of in JSON alone.
    if {"return", "partial"} & (case.query or {}).keys():
        case.headers["Accept"] = "*/*"


@schemathesis.hook
def map_case(context, case):
    """Lets most of the valid requests lead somewhere, and half of the orders make sense."""
    if not case.meta.generation.mode.is_positive:
        return case
    for parameters in (case.path_parameters, case.query):
        for name in KNOWN.keys() & parameters.keys():
            number = drawn(parameters[name])
            if number % 10:
                parameters[name] = KNOWN[name][number // 10 % len(KNOWN[name])]
    if case.operation.definition.raw.get("operationId") == "verifyLedger" and isinstance(case.body, str):
        number = drawn(case.body)
        if number % 4:
            case.body = "\n".join(EVENTS[at] for at in range(3) if number >> at + 2 & 1) or EVENTS[0]
    if case.operation.path.startswith("/conjunctions") and drawn(case.query) % 4:
        case.query.pop("format", None)
        case.query.pop("after", None)
    if case.operation.path == "/numbers/{series}" and drawn(case.query) % 4:
        # Most known names are no numbers, and a series begins once.
        case.query.pop("after", None)
        case.query.pop("first", None)
    if case.operation.path == "/numbers/{series}/resume" and drawn(case.query) % 4:
        # No restore has happened, so that a series cannot be resumed at a made-up number.
        case.path_parameters["series"] = "*"
        case.query.pop("from", None)
    if case.operation.path.startswith("/encode") and drawn(case.query) % 4:
        # An instant at which a tick of every format begins; most drawn texts are no instants.
        case.query = {"time": "2026-11-21T03:36:01Z"}
    map_ledgers(case, case.operation.definition.raw.get("operationId"))
    operation = case.operation.definition.raw.get("operationId")
    if operation == "report" and drawn(case.query) % 2:
        if case.media_type in MESSAGE:
            case.body = MESSAGE[case.media_type]
        if "return" in case.query:
            case.query.pop("partial", None)
    if operation == "mint" and drawn(case.query) % 2:
        if case.path_parameters["format"] != "siq":
            case.query.pop("type", None)
            case.query.pop("domain", None)
        if isinstance(case.body, dict):
            case.query.pop("count", None)
    return case


def map_ledgers(case, operation):
    """Events get their time and their id from the service, most of them, and orders go to a ledger with a key."""
    number = drawn((case.body, case.path_parameters))
    if operation == "showLedgerId" and number % 4:
        case.path_parameters["id"] = KNOWN_ID
    if operation == "listLedgers" and case.query.get("after") == KNOWN_ID:
        case.query["after"] = KNOWN["ledger"][0]
    is_order = operation == "append"
    if is_order and case.query.get("import") == "more":
        # From then on the ledger would take nothing but further parts.
        case.query["import"] = "last"
    if not number % 8 or not (is_order or operation == "createLedger"):
        return
    case.headers["Idempotency-Key"] = f"key-{number}"
    for event in case.body["events"] if is_order else [case.body]:
        event.pop("timestamp", None)
        event.pop("eventId", None)
    if is_order:
        case.query = {}
        case.path_parameters["ledger"] = KNOWN["ledger"][0]
        case.body.pop("ledger", None)
        case.body.pop("expected_previous", None)


@schemathesis.check
def the_media_type_is_the_accepted_one(context, response, case):
    """An answer other than a problem is of the type that was asked for."""
    accepted = response.request.headers.get("Accept", "*/*")
    given = response.headers.get("content-type", [""])[0].partition(";")[0]
    # What is not sent again has no type, and a file of the page has its own.
    has_one_type = response.status_code == 304 or case.operation.path.startswith("/page/")
    if accepted not in ("*/*", given) and given != "application/problem+json" and not has_one_type:
        title = "Another media type than asked for"
        raise Failure(operation=case.operation.label, title=title, message=f"{given}, not {accepted}")


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops what is no failure: a 422 that no schema can foresee, and a format whose ids of the moment are taken."""
    if type(failure).__name__ == "JsonSchemaError" and is_column(case, response):
        return False
    if response.headers.get("content-type", [""])[0] != "application/problem+json":
        return True
    problem = response.json()
    if type(failure).__name__ == "RejectedPositiveData":
        is_beyond = problem.get("reason") in BEYOND_SCHEMAS.get(problem["type"], ())
        is_about_messages = is_text_without_message(problem, case) or is_return_of_nothing(problem, case)
        is_of_another = is_whole_float(problem, case.body) or is_body_of_another_rule(problem, case)
        is_elsewhere = is_ledger_of_another_address(problem, case) or is_field_of_another_format(problem, case)
        return not (is_beyond or is_of_another or is_elsewhere or is_about_messages or is_without_key(problem, case))
    if type(failure).__name__ == "ServerError":
        return problem["type"] != "/problems/sequence-exhausted"
    return True


def is_column(case, response):
    """With `column=true` the answer is an object, which is described in words: an array or an object has no type in many languages."""
    is_asked = str((case.query or {}).get("column")).lower() == "true"
    return is_asked and response.status_code == 200 and set(response.json()) == {"column", "rows"}


def is_ledger_of_another_address(problem, case):
    """No schema says that the ledger of a body is the one of the address."""
    is_told = problem["type"] == "/problems/invalid-event" and problem.get("reason") == "ledger"
    return is_told and case.body.get("ledger", "") != case.path_parameters.get("ledger")


def is_field_of_another_format(problem, case):
    """Which fields an id has, and how far each goes, depends on its format."""
    return problem["type"] == "/problems/invalid-parameter" and case.operation.path.startswith("/encode")


def is_whole_float(problem, body):
    """To a schema 3.0 is an integer; here integers are written as digits."""
    return problem.get("reason") in ("json_value", "report_form", "wrong_type") and has_float(body)


def is_without_key(problem, case):
    """Whether a key is required depends on the format, and on whether a first event has its time."""
    return problem["type"] == "/problems/idempotency-key-required" and "Idempotency-Key" not in case.headers


def has_float(value):
    if isinstance(value, dict):
        return any(map(has_float, value.values()))
    return any(map(has_float, value)) if isinstance(value, list) else isinstance(value, float)


def is_body_of_another_rule(problem, case):
    """One path mints by count, and what it takes of a format that is made of reports or of events is described elsewhere."""
    return (case.path_parameters or {}).get("format") in ("conjunction", "evently")


def is_text_without_message(problem, case):
    """To a schema every text may be a message; and only a grouped format has any use for one."""
    refused = ("/problems/invalid-report", "/problems/unsupported-media-type", "/problems/malformed-request")
    return case.media_type in MESSAGE and problem["type"] in refused


def is_return_of_nothing(problem, case):
    """What can be given back, told of each report, or imported depends on the format, and on the kind of JSON in the body."""
    asked = {"return", "noted", "partial", "import"} & (case.query or {}).keys()
    return bool(asked) and problem.get("reason") in ("return", "partial", "noted", "unknown_parameter")
