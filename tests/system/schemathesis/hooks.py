"""Gives schemathesis what openapi.yaml lacks: names that the service knows, Accept headers, and rules that no schema can express."""

import json
import pathlib
import zlib

import schemathesis
from schemathesis.core.failures import Failure

# A request that matches the schema may still get a 422 with one of these reasons, because no schema can express every rule. For
# example, the valid encodings, types, prefixes, domains, counts and times depend on the format. Other rules compare two parameters,
# such as `external` and `after`. No schema knows how many days a month has. Any other refusal of such a request is a failure.
BEYOND_SCHEMAS = {
    "/problems/invalid-parameter": {
        "count", "encoding", "type", "prefix", "domain", "repeated_parameter", "format", "after", "id",
        "from", "to", "bad_timestamp", "before_epoch", "no_time", "time_not_leading", "not_before", "outside", "within_one_tick", "ledger_mismatch",
        "checksum_mismatch", "external", "reason", "first",
        # `column` requires `detail=brief`.
        "column",
    },
    # No schema can express the position of an event in its chain, the days that exist, or the
    # numbers that a double holds exactly.
    "/problems/invalid-event": {
        "not_monotonic", "out_of_range", "timestamp_mismatch", "ledger_mismatch", "checksum_mismatch",
        "bad_timestamp", "before_epoch", "number_not_interoperable",
    },
    "/problems/idempotency-conflict": {"idempotency_key"},
    # Ids of some formats cannot be returned as rows.
    "/problems/not-acceptable": {"rows"},
    "/problems/invalid-report": {
        "bad_timestamp", "before_epoch", "overflow", "out_of_range", "same_object", "another_id",
    },
}

# A Conjunction Data Message in each of its media types.
MESSAGES = pathlib.Path(__file__).parents[2] / "cdm"
MESSAGE = {
    "text/plain": (MESSAGES / "one.kvn").read_text(),
    "application/xml": (MESSAGES / "one.xml").read_text(),
    "text/xml": (MESSAGES / "several.xml").read_text(),
    "text/csv": (MESSAGES / "cdm_public.csv").read_text(),
}

# Names that the service knows. With random names alone, nearly every request would be refused because of an unknown name.
KNOWN = {
    "format": ["conjunction-v1", "payment", "flax", "siq", "snowflake", "twitter", "conjunction", "uuid7"],
    "encoding": ["decimal", "hex_padded"],
    "type": ["user", "message"],
    "ledger": ["aa77f99c"],
    "after": ["0005cd7556b05092aecc815daa77f99c"],
    "series": ["acme-2026"],
    "n": [str(number) for number in range(1, 1_001)],
}

# The first two events of the known ledger, and an object that is not an event.
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


# The first event of that ledger. It is not in `KNOWN`, because other routes have a parameter `id`, too.
KNOWN_ID = KNOWN["after"][0]


def drawn(value):
    """Returns a number that depends only on the value, so that every run makes the same choices."""
    return zlib.crc32(repr(value).encode("utf-8", "surrogatepass"))


@schemathesis.deserializer("application/octet-stream")
def octets(context, response):
    return response.content.hex()


@schemathesis.serializer("application/x-ndjson")
def json_lines(context, value):
    """Encodes a text line by line: events as they are, other lines as JSON strings. Other values give a body without such lines."""
    if isinstance(value, str) and value:
        return "\n".join(line if line in EVENTS else json.dumps(line) for line in value.split("\n")).encode()
    if context.case.operation.path == "/ledgers/{ledger}/verify":
        # This route accepts every line, whether it is an event or not. It refuses only a body without lines.
        return b""
    return json.dumps(value if value == "" else [value]).encode()


@schemathesis.serializer("application/xml", "text/xml", "text/csv")
def xml(context, value):
    """Sends a text unchanged, because the schema of a message only requires a text."""
    return (value if isinstance(value, str) else json.dumps(value)).encode()


@schemathesis.deserializer("application/xml", "text/xml", "text/csv")
def xml_text(context, response):
    return response.text


@schemathesis.hook
def before_call(context, case, kwargs):
    """Sets the Accept header to any type or to a media type of the 200 response. The choice depends only on the case."""
    if case.operation.path == "/numbers/{series}/close" and case.path_parameters.get("series") in KNOWN["series"]:
        # Close another series, because a closed series gives no more numbers and other requests need some.
        case.path_parameters["series"] = "acme-2025"
    described = case.operation.schema.raw_schema["paths"][case.operation.path].get(case.operation.method, {})
    answer = described.get("responses", {}).get("200", {})
    if "$ref" in answer:
        answer = case.operation.schema.raw_schema["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    # Leave out XML and CSV, because only messages have these types, and a message is returned only in the type in which it was sent.
    accepted = ["*/*", *(media for media in answer.get("content", {}) if not media.endswith(("/xml", "/csv")))]
    number = drawn((case.path_parameters, case.query, case.headers.get("X-Request-Id")))
    case.headers["Accept"] = accepted[number % len(accepted)]
    # With these parameters, the response has only one possible media type.
    if {"return", "partial"} & (case.query or {}).keys():
        case.headers["Accept"] = "*/*"


@schemathesis.hook
def map_case(context, case):
    """Changes valid requests so that more of them succeed: inserts known names, and removes parameters that do not fit."""
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
        # Remove `after`, whose known value is an event and not a number, and `first`, which is
        # accepted only before a series begins.
        case.query.pop("after", None)
        case.query.pop("first", None)
    if case.operation.path == "/numbers/{series}/resume" and drawn(case.query) % 4:
        # No restore has happened, so the service would refuse to resume a series at a random number.
        case.path_parameters["series"] = "*"
        case.query.pop("from", None)
    if case.operation.path.startswith("/encode") and drawn(case.query) % 4:
        # Use an instant at which a tick of every format begins, because most generated texts are not instants.
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
    """Removes most times and ids of events, so that the service assigns them. Sends most appends to the known ledger with a key."""
    number = drawn((case.body, case.path_parameters))
    if operation == "showLedgerId" and number % 4:
        case.path_parameters["id"] = KNOWN_ID
    if operation == "listLedgers" and case.query.get("after") == KNOWN_ID:
        case.query["after"] = KNOWN["ledger"][0]
    is_order = operation == "append"
    if is_order and case.query.get("import") == "more":
        # After `import=more`, the ledger would accept only further parts of the import.
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
    """Checks that every response except a problem has the requested media type."""
    accepted = response.request.headers.get("Accept", "*/*")
    given = response.headers.get("content-type", [""])[0].partition(";")[0]
    # A 304 has no media type, and each file of the page has a fixed one.
    has_one_type = response.status_code == 304 or case.operation.path.startswith("/page/")
    if accepted not in ("*/*", given) and given != "application/problem+json" and not has_one_type:
        title = "Another media type than asked for"
        raise Failure(operation=case.operation.label, title=title, message=f"{given}, not {accepted}")


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops expected results: a 422 that no schema can predict, and a format that has no ids left, or no reserved time, at the moment."""
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
        return problem["type"] not in ("/problems/sequence-exhausted", "/problems/horizon-reached")
    return True


def is_column(case, response):
    """Returns True for the object that `column=true` gives. The schema omits it, because many languages lack a type for both."""
    is_asked = str((case.query or {}).get("column")).lower() == "true"
    return is_asked and response.status_code == 200 and set(response.json()) == {"column", "rows"}


def is_ledger_of_another_address(problem, case):
    """Returns True if the body names another ledger than the path. No schema can compare the two."""
    is_told = problem["type"] == "/problems/invalid-event" and problem.get("reason") == "ledger"
    return is_told and case.body.get("ledger", "") != case.path_parameters.get("ledger")


def is_field_of_another_format(problem, case):
    """Returns True if a field does not fit the format. The fields of an id and their bounds depend on the format."""
    return problem["type"] == "/problems/invalid-parameter" and case.operation.path.startswith("/encode")


def is_whole_float(problem, body):
    """Returns True for an integer such as 3.0. A schema accepts it, but the service accepts only integers written as digits."""
    return problem.get("reason") in ("json_value", "report_form", "wrong_type") and has_float(body)


def is_without_key(problem, case):
    """Returns True if a required key is missing. The need depends on the format, and on whether a first event has a time."""
    return problem["type"] == "/problems/idempotency-key-required" and "Idempotency-Key" not in case.headers


def has_float(value):
    if isinstance(value, dict):
        return any(map(has_float, value.values()))
    return any(map(has_float, value)) if isinstance(value, list) else isinstance(value, float)


def is_body_of_another_rule(problem, case):
    """Returns True for a format of reports or of events. The schema of the path describes only minting by count."""
    return (case.path_parameters or {}).get("format") in ("conjunction", "evently")


def is_text_without_message(problem, case):
    """Returns True if a text is not a message, or the format accepts none. A schema cannot express this."""
    refused = ("/problems/invalid-report", "/problems/unsupported-media-type", "/problems/malformed-request")
    return case.media_type in MESSAGE and problem["type"] in refused


def is_return_of_nothing(problem, case):
    """Returns True for a parameter that is not allowed here. This depends on the format, and on the kind of JSON in the body."""
    asked = {"return", "noted", "partial", "import"} & (case.query or {}).keys()
    return bool(asked) and problem.get("reason") in ("return", "partial", "noted", "unknown_parameter")
