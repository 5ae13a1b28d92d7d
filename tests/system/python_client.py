"""Uses the client that openapi-python-client makes from openapi.yaml: python_client.py FOLDER_OF_THE_CLIENT URL CHAIN."""

import io
import json
import sys
from pathlib import Path

folder, url, chain = Path(sys.argv[1]), sys.argv[2], Path(sys.argv[3])
sys.path.insert(0, str(folder.parent))

from ids_client import AuthenticatedClient, Client  # noqa: E402
from ids_client.api.conjunctions import report  # noqa: E402
from ids_client.api.formats import list_formats  # noqa: E402
from ids_client.api.ids import decode, decode_many, mint  # noqa: E402
from ids_client.api.ledgers import append, create_ledger, list_ledger_ids, verify_ledger  # noqa: E402
from ids_client.models import AppendRequest, Event, MintRequest, Problem, Report  # noqa: E402
from ids_client.types import File  # noqa: E402

client = Client(base_url=url)

# Mint without a body, with a body, and with a parameter `count`. All ids must differ.
ids = []
for body, count in [({}, 1), ({"body": MintRequest(count=3)}, 3), ({"count": 2}, 2)]:
    answer = mint.sync("snowflake", client=client, **body)
    assert answer.format_ == "snowflake" and answer.count == count == len(answer.ids), answer
    ids += answer.ids
assert len(set(ids)) == len(ids) == 6, ids

# A service that requires no token ignores the header with a token.
assert mint.sync("payment", client=AuthenticatedClient(base_url=url, token="unknown")).count == 1

# Decode the ids one by one, and then all in one request.
for id_ in ids:
    match = decode.sync(id_, client=client, format_="snowflake").matches[0]
    assert (match.format_, match.canonical, match.plausible) == ("snowflake", id_, True), match
assert len(decode_many.sync(client=client, body=ids)) == len(ids)
assert any(format_.name == "snowflake" for format_ in list_formats.sync(client=client).formats)

# The client returns a refusal as a `Problem` with a reason.
refused = mint.sync("snowflake", client=client, body=MintRequest(count=0))
assert isinstance(refused, Problem) and refused.status == 422 and refused.reason == "count", refused

# Report a conjunction.
of_two = Report.from_dict({"tca": "2024-02-01T00:00:00Z", "primary": 25544, "secondary": 48274})
reported = report.sync(client=client, body=[of_two])
assert reported.ids == ["zwwqlzz-pjjmxmd-lkpvwq"] and reported.details[0].created is True, reported

# Create a ledger, append to it, repeat the append (which appends nothing more), and verify a chain.
lines = chain.read_text("utf-8").splitlines()
ledger = create_ledger.sync(client=client, body=Event.from_dict(json.loads(lines[0])))
assert ledger.events == 1, ledger
event = Event.from_dict({"event": "Item Ordered", "entities": {"order": ["1"]}})
order = AppendRequest(events=[event], expected_previous=ledger.head)
first = append.sync_detailed(ledger.ledger, client=client, body=order, idempotency_key="order-1")
again = append.sync_detailed(ledger.ledger, client=client, body=order, idempotency_key="order-1")
assert (first.status_code, again.status_code) == (201, 200), (first, again)
assert first.parsed.ids == again.parsed.ids and len(list_ledger_ids.sync(ledger.ledger, client=client).ids) == 2
checked = verify_ledger.sync(ledger.ledger, client=client, body=File(payload=io.BytesIO(chain.read_bytes())))
assert checked.valid and checked.events == len(lines), checked
print("done")
