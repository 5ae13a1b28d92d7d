"""Uses the client that OpenAPI Generator makes from openapi-3.0.yaml: client.py URL LEDGER CHAIN. PYTHONPATH has the client."""

import sys
from pathlib import Path

import ids

url, known, chain = sys.argv[1], sys.argv[2], Path(sys.argv[3])


def step(name, ok, seen=None):
    if not ok:
        sys.exit(f"failed: {name}: {seen}")
    print("step:", name)


client = ids.ApiClient(ids.Configuration(host=url))
minting, ledgers = ids.IdsApi(client), ids.LedgersApi(client)
conjunctions, formats, operation = ids.ConjunctionsApi(client), ids.FormatsApi(client), ids.OperationApi(client)

one = minting.mint("snowflake")
step("an id without a body", len(one.ids) == 1, one)
three = minting.mint("snowflake", mint_request=ids.MintRequest(count=3))
step("ids with a body", len(three.ids) == 3, three)
many = minting.mint("payment", count=1000)
step("a batch", many.count == 1000 == len(many.ids), many.count)
typed = minting.mint("typeid", type="user")
step("an id of a type", len(typed.ids) == 1 and typed.ids[0].startswith("user_"), typed)
read = minting.decode(one.ids[0], format="snowflake")
step("a decode", read.matches[0].canonical == one.ids[0], read)
bulk = minting.decode_many(three.ids)
step("decodes", [reading.format for reading in bulk] == ["snowflake"] * 3, bulk)
ledger = ledgers.create_ledger(ids.Event(event="Opened", entities={}), idempotency_key="create")
step("a ledger", ledger.events == 1, ledger)
order = ids.AppendRequest(events=[ids.Event(event="Ordered", entities={"order": ["1"]})])
first = ledgers.append_with_http_info(ledger.ledger, order, idempotency_key="append")
step("an append", len(first.data.ids) == 1, first)
again = ledgers.append_with_http_info(ledger.ledger, order, idempotency_key="append")
step("its replay", again.data.ids == first.data.ids, again)
step("told apart by status", (first.status_code, again.status_code) == (201, 200), (first, again))
checked = ledgers.verify_ledger(known, chain.read_bytes())
step("a chain checked", checked.valid and checked.events > 1, checked)
report = ids.Report(tca="2024-02-01T00:00:00Z", primary=25544, secondary=48274)
reports = conjunctions.report([report])
step("a report", reports.ids == ["zwwqlzz-pjjmxmd-lkpvwq"], reports)
report.tca, report.conjunction_event_id = "2024-02-01T01:00:00Z", reports.ids[0]
moved = conjunctions.report([report], noted="keep")
step("a report that moved by an hour", moved.details[0].tca_delta_us == 3_600_000_000, moved)
wrong = ids.Report(tca="2024-02-01T00:00:00Z", primary=25544, secondary=25544)
some = conjunctions.report([wrong, report], partial=True)
step("reports, one of them wrong", some.ids[0] is None and some.details[0].problem.status == 422, some)
try:
    refusal = minting.mint("siq", type="unknown")
except ids.ApiException as exception:
    refusal = exception
step("a refusal", getattr(refusal, "status", None) == 422, refusal)
problem = refusal.data
is_typed = isinstance(problem, ids.Problem) and problem.reason == "type"
step("its problem", is_typed and problem.type == "/problems/invalid-parameter", problem)
page = operation.explain_problem(ids.Slug(problem.type.removeprefix("/problems/")))
step("the page of its slug", page.status == 422 and page.safe_action, page)
listed = formats.list_formats().formats
step("formats", any(format.name == "snowflake" for format in listed), listed)
