"""What schemathesis cannot find in openapi.yaml: what a caller accepts, and what no schema can say."""

import zlib

import schemathesis
from schemathesis.core.failures import Failure

# A schema-valid request may get a 422 with one of these reasons. Which spellings, types and domains there are, and how
# many ids at once, depends on the format; and that `count` is given twice shows only in address and body together.
# Anything else that is refused though it is valid stays a failure.
BEYOND_SCHEMAS = {"count", "encoding", "type", "domain", "repeated_parameter"}


@schemathesis.deserializer("application/octet-stream")
def octets(context, response):
    return response.content.hex()


@schemathesis.hook
def before_call(context, case, kwargs):
    """Asks for one of the media types of the 200, or for none, as the case decides: the same one in each run."""
    described = case.operation.schema.raw_schema["paths"][case.operation.path].get(case.operation.method, {})
    answer = described.get("responses", {}).get("200", {})
    if "$ref" in answer:
        answer = case.operation.schema.raw_schema["components"]["responses"][answer["$ref"].rpartition("/")[2]]
    accepted = ["*/*", *answer.get("content", {})]
    drawn_by = repr((dict(case.path_parameters or {}), dict(case.query or {}), case.headers.get("X-Request-Id")))
    drawn = zlib.crc32(drawn_by.encode("utf-8", "surrogatepass"))
    case.headers["Accept"] = accepted[drawn % len(accepted)]


@schemathesis.check
def the_media_type_is_the_accepted_one(context, response, case):
    """An answer other than a problem is of the type that was asked for."""
    accepted = response.request.headers.get("Accept", "*/*")
    given = response.headers.get("content-type", [""])[0].partition(";")[0]
    if accepted not in ("*/*", given) and given != "application/problem+json":
        title = "Another media type than asked for"
        raise Failure(operation=case.operation.label, title=title, message=f"{given}, not {accepted}")


@schemathesis.hook
def filter_failure(context, failure, case, response):
    """Drops what is no failure: a 422 that no schema can foresee, and a format whose ids of the moment are taken."""
    if response.headers.get("content-type", [""])[0] != "application/problem+json":
        return True
    problem = response.json()
    if type(failure).__name__ == "RejectedPositiveData":
        is_invalid = problem["type"] == "/problems/invalid-parameter"
        return not (is_invalid and (problem["reason"] in BEYOND_SCHEMAS or is_whole_float(problem, case.body)))
    if type(failure).__name__ == "ServerError":
        return problem["type"] != "/problems/sequence-exhausted"
    return True


def is_whole_float(problem, body):
    """To a schema 3.0 is an integer; here integers are written as digits."""
    return problem["reason"] == "json_value" and isinstance(body, dict) and isinstance(body.get("count"), float)
