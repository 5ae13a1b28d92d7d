"""Texts that people paste, and what the page must then show: (kind, pasted text, heading, further texts)."""

import random

SNOWFLAKE = "1573542478315782144"
NEXT = "1573542478315782145"
PAYMENT = "1I9ZC1000"
UUID4 = "3b241101-e2bb-4255-8caf-4136c566a962"
UUID7 = "0190163d-8694-739b-aea5-966c26f8ad90"
ULID = "01ARZ3NDEKTSV4RRFFQ69G5FAV"
OBJECT_ID = "507f1f77bcf86cd799439011"
TYPEID = "user_01h455vb4pex5vsknk084sn02q"
DISCORD = "175928847299117063"
UUIDS = [UUID4, "f81d4fae-7dec-41d0-8765-00a0c91e6bf6", "9b2e7c60-1f4a-4d83-a6b5-0c3f8e92d174", "c5d1a08e-63b7-4f29-91ea-7b40d2f6c853"]
CHANCE = random.Random(1)
ULIDS = ["01ARZ3" + "".join(CHANCE.choices("0123456789ABCDEFGHJKMNPQRSTVWXYZ", k=20)) for _ in range(20)]
ULIDS.sort()
ULIDS[3], ULIDS[4] = ULIDS[4], ULIDS[3]
# The quotes in rows 7 and 13 do not begin quoted cells.
LOOSE_QUOTES = ["id\tnote", *(UUID4[:-2] + f"{at:02}\t" + ('"so' if at in (6, 12) else "x") for at in range(20))]
ONE = "The only id in"

PASTES = [
    ("an id", SNOWFLAKE, "snowflake", ["2026-11-21 03:36:01.836 UTC", "Ambiguous", "which shard it belongs to", "its place in the tick"]),
    ("an id", DISCORD, "snowflake", ["2016-04-30 11:18:25.796 UTC", "twitter"]),
    ("an id", PAYMENT, "payment", ["2026-11-21 03:36:01 UTC", "No other format reads it"]),
    ("an id", UUID7, "uuid7", ["2024-06-14 10:14:09.300 UTC", "Strong evidence", "a part of the millisecond, or by chance: 0x39b"]),
    ("an id", UUID4, "uuid4", ["It carries no time", "Strong evidence"]),
    ("an id", ULID, "ulid", ["2016-07-30 23:54:10.259 UTC", "Good evidence"]),
    ("an id", OBJECT_ID, "objectid", ["2012-10-17 21:13:27 UTC", "a counter of its generator"]),
    ("an id", "74738ff5-5367-5958-9aee-98fffdcd1876", "uuid5", ["a checksum or hash: 0x"]),
    ("an id", "9m4e2mr0ui3e8a215n4g", "xid", ["which process it belongs to", "a counter of its generator"]),
    ("an id", "c232ab00-9414-11ec-b3c8-9f6bdeced846", "uuid1", ["a counter of its generator"]),
    ("an id", TYPEID, "typeid", []),
    ("an id with blanks around it", f"  \t{UUID7} \n", "uuid7", []),
    ("a quoted id", f'"{ULID}"', "ulid", ["Not as written"]),
    ("a quoted id", f"'{SNOWFLAKE}',", "snowflake", ["Not as written"]),
    ("a constructor", f'ObjectId("{OBJECT_ID}")', "objectid", []),
    ("a constructor", f"UUID('{UUID4}')", "uuid4", []),
    ("a constructor", f'{{"$oid": "{OBJECT_ID}"}}', "objectid", []),
    ("a URN", f"urn:uuid:{UUID7}", "uuid7", []),
    ("braces", "{" + UUID4.upper() + "}", "uuid4", []),
    ("hexadecimal digits", "0x15d6588c0b000000", "snowflake", []),
    ("the wrong case", PAYMENT.lower(), "payment", ["Not as written"]),
    ("JSON in a line", f'{{"id": "{SNOWFLAKE}", "name": "anna", "age": 31}}', "snowflake", [ONE]),
    ("JSON in a line", f'{{"id":{SNOWFLAKE},"parent":{NEXT}}}', "2 ids", []),
    ("JSON in a line", f'["{ULID}","{UUID7}"]', "2 ids", ["ulid", "uuid7"]),
    ("JSON in many lines", f'{{\n  "_id": {{\n    "$oid": "{OBJECT_ID}"\n  }},\n  "total": 12.5\n}}', "objectid", [ONE]),
    ("JSON in many lines", f'[\n  {{"id": "{SNOWFLAKE}", "n": 1}},\n  {{"id": "{NEXT}", "n": 2}}\n]', "2 ids", []),
    ("JSON lines", f'{{"id":"{UUID7}","a":1}}\n{{"id":"{UUID7[:-1]}1","a":2}}\n', "2 ids", ["uuid7"]),
    ("JSON in a string", f'"{{\\"id\\":\\"{UUID7}\\"}}"', "uuid7", [ONE]),
    ("ids with a comma between them", f"{SNOWFLAKE},{NEXT}", "2 ids", ["snowflake"]),
    ("ids with a comma between them", f"{ULID}, {UUID7}; {PAYMENT}", "3 ids", []),
    ("a name and an id", f"order_id={PAYMENT}", "payment", [ONE]),
    ("a name and an id", f"userId: {UUID4}", "uuid4", [ONE]),
    ("a URL", f"https://example.com/orders/{PAYMENT}?tab=items#top", "payment", [ONE]),
    ("a URL", f"https://cdn.example.com/img/{SNOWFLAKE}.png", "snowflake", [ONE]),
    ("a log line", f"2026-11-21T03:36:01.123Z INFO [http-3] order={PAYMENT} user=anna 200 12.5ms", "payment", [ONE]),
    ("a log line", f'10.0.0.7 - - [21/Nov/2026:03:36:01 +0000] "GET /users/{UUID7} HTTP/1.1" 200 512', "uuid7", [ONE]),
    ("log lines", f"2026-11-21 03:36:01,123 INFO order={PAYMENT} ok\n2026-11-21 03:36:02,007 WARN order=1I9ZC2000 slow\n2026-11-21 03:36:03,911 INFO nothing", "2 ids", ["payment"]),
    ("a column", "\n".join([*UUIDS, UUIDS[0]]), "5 ids", ["uuid4 (uuid), certain", "Duplicates\n1 row: line 5 repeats line 1", "No ids\nnone"]),
    ("a column with an id in two spellings", f"{UUID4.upper()}\n{UUID4}\nhello\nhello", "2 ids", ["Duplicates\n2 rows: line 2 repeats line 1, line 4 repeats line 3"]),
    ("a column with a line that is none", "\n".join([*ULIDS, "n/a"]), "20 ids", ["ulid (crockford), certain", "No ids\n1 row: line 21", "Out of order\n1 row: line 5 is earlier than line 4"]),
    ("a column with a repeated id below its predecessor", "\n".join([*ULIDS[5:], ULIDS[7]]), "16 ids", ["Duplicates\n1 row: line 16 repeats line 3", "Out of order\n1 row: line 16 is earlier than line 15", "repeats line 3, earlier than line 15"]),
    ("a column with an id of another format", "\n".join([*ULIDS, PAYMENT]), "21 ids", ["ulid (crockford), certain", "Other formats\npayment: 1 row, line 21", "No ids\nnone", "not an id of ulid"]),
    ("ids of two formats", f"{PAYMENT}\n{ULID}", "2 ids of 2 formats: payment (line 1), ulid (line 2)", ["Formats\npayment: 1 row, line 1\nulid: 1 row, line 2", "No ids\nnone"]),
    ("ids of two formats", f"{ULID}\n{PAYMENT}", "2 ids of 2 formats: ulid (line 1), payment (line 2)", []),
    ("ids of two formats", "\n".join([SNOWFLAKE, *UUIDS[:2], "hello"]), "3 ids of 2 formats: uuid4 (lines 2, 3), probably snowflake (line 1)", ["No ids\n1 row: line 4"]),
    ("ids of two formats", "\n".join([*UUIDS, *ULIDS]), "24 ids of 2 formats: ulid (20), uuid4 (4)", ["ulid: 20 rows, lines 5, 6, 7, 8, 9 …"]),
    ("numbers that two formats read", f"{SNOWFLAKE}\n{DISCORD}", "2 ids", ["unknown: several formats", "May be\nsnowflake"]),
    ("CSV with commas", f'id,name\n{SNOWFLAKE},"Smith, Anna"\n{NEXT},Bob\n', "2 ids", ["Column", "snowflake"]),
    ("CSV with semicolons", f"name;id\nAnna;{ULID}\nBob;{ULID[:-1]}W\n", "2 ids", ["Column", "ulid"]),
    ("tabs from a spreadsheet", f"id\tname\n{UUID7}\tAnna\n{UUID7[:-1]}1\tBob", "2 ids", ["Column", "uuid7"]),
    ("tabs around empty cells", f"id\tparent\tdeleted_at\n{UUID7}\t\t\n{UUID7[:-1]}1\t{UUID7}\t", "2 ids", ["Column\nid\nparent\ndeleted_at", "No ids\nnone", "Duplicates\nnone"]),
    ("tabs around empty cells", f"\tid\tparent\n1\t{UUID7}\t\n2\t{UUID7[:-1]}1\t{UUID7}", "2 ids", ["Column\ncolumn 1\nid\nparent", "Duplicates\nnone"]),
    ("tabs before each row", f"\t{UUID7}, Anna\n\t{UUID7[:-1]}1, Bob", "2 ids", ["Column\ncolumn 1\ncolumn 2"]),
    ("tabs and quotes that are never closed", "\n".join(LOOSE_QUOTES), "20 ids", ["No ids\nnone", "Duplicates\nnone"]),
    ("tabs and quotes that are never closed", "\n".join(LOOSE_QUOTES[:10]), "9 ids", ["No ids\nnone"]),
    ("a table without a heading", f"{ULID}\tAnna\n01BX5ZZKBKACTAV9WEVGEMMVRZ\tBob\n{ULID}\tCy", "3 ids", ["Column\ncolumn 1", "line 3 repeats line 1"]),
    ("a table with a heading of 20 letters", f"transactionReference,id\nabc,{UUIDS[0]}\ndef,{UUIDS[1]}", "2 ids", ["Column\ntransactionReference\nid", "No ids\nnone"]),
    ("a table with two columns of ids", "tenant_id,id\n" + "\n".join(f"{UUID4},{UUID4[:-2]}{at}" for at in range(10, 40)), "30 ids", ["Column\ntenant_id\nid", "Duplicates\nnone"]),
    ("a table with two columns of ids", f"order,customer\n{UUIDS[0]},{UUIDS[1]}", "1 id", ["Column\norder\ncustomer"]),
    ("a table with one id", f"id,name\n{ULID},Anna", "ulid", ["The only id in its column."]),
    ("a table of psql", f"  id   | name\n-------+------\n {PAYMENT} | Anna\n 1I9ZC2000 | Bob\n(2 rows)\n", "2 ids", ["payment"]),
    ("SQL", f"SELECT * FROM t WHERE id IN ('{UUID4}',\n  '{UUID7}');", "2 ids", ["uuid4", "uuid7"]),
    ("a list with commas", f"{SNOWFLAKE},\n{NEXT},\n1573542478315782146", "3 ids", []),
    ("an id between marks", f"order “{PAYMENT}” is late", "payment", [ONE]),
    ("an id between marks", f"*{PAYMENT}* is late", "payment", [ONE]),
    ("an id between marks", f"订单：{PAYMENT}，失败", "payment", [ONE]),
    ("JSON with an escape before the id", f'{{"m":"failed\\n{PAYMENT}"}}', "payment", [ONE]),
    ("a path with a backslash before the id", f"open C:\\orders\\{TYPEID.replace('user', 'ticket')} failed", "typeid", [ONE, "ticket_"]),
    ("an email", f"Hello,\n\nmy order is {PAYMENT}. It has not come yet!\n\nAnna", "payment", [ONE]),
    ("a rounded number", "1573542478315782100", "snowflake", ["Damaged?", "Copy the id again"]),
    ("a spreadsheet's number", "1.57354E+18", "No id", ["Damaged?", "as text"]),
    ("a day", "2026-11-28", "Ids of this day: choose a format", ["payment", "uuid7", "id of 2026-11-28 in UTC"]),
    ("a day", "2026-11-28T23:30-05:00", "Ids of this day: choose a format", ["id of 2026-11-29 in UTC"]),
    ("a day", "2092-12-23", "Ids of this day: choose a format", ["payment"]),
    ("a day", "Yesterday", "Ids of this day: choose a format", ["in UTC"]),
    ("a day that does not exist", "2026-02-30", "No id of a format", []),
    ("the name of a format", "Payment", "payment is a format", ["Payment id: seconds since 2024", "Ids of yesterday", "Ids of today"]),
    ("the name of a format without time", "uuid4", "uuid4 is a format", ["About uuid4"]),
    ("a word", "hello-world-1", "No id of a format", []),
    ("a phone number", "+49 30 901820", "No id of a format", []),
]
