"""Writes 200 documents of each kind with conjunction reports: KVN and XML with the PyPI package ccsds-ndm, CSV with
Python's csv module, and JSON with its json module. Prints a line of JSON for each document: the kind, the text, and either
the reports in it or the line and the name of its only wrong value.

Usage: write_cdms.py KVN_FILE, where KVN_FILE is a message that serves as the template."""

import copy
import csv
import io
import json
import random
import sys
from datetime import datetime, timedelta
from pathlib import Path

from ccsds_ndm.mapping import NDMFileFormats
from ccsds_ndm.ndm_io import NdmIo

COUNT = 200
# Every tenth document has a wrong value.
WRONG = {"tca": "2024-02-30T12:00:00.000", "designator": "UNKNOWN"}

PUBLIC = [
    "CDM_ID", "CREATED", "EMERGENCY_REPORTABLE", "TCA", "MIN_RNG", "PC", "SAT_1_ID", "SAT_1_NAME", "SAT1_OBJECT_TYPE",
    "SAT1_RCS", "SAT_1_EXCL_VOL", "SAT_2_ID", "SAT_2_NAME", "SAT2_OBJECT_TYPE", "SAT2_RCS", "SAT_2_EXCL_VOL",
]
SOCRATES = [
    "NORAD_CAT_ID_1", "OBJECT_NAME_1", "DSE_1", "NORAD_CAT_ID_2", "OBJECT_NAME_2", "DSE_2", "TCA", "TCA_RANGE",
    "TCA_RELATIVE_SPEED", "MAX_PROB", "DILUTION",
]
NAMES = ["ISS (ZARYA)", 'DEBRIS "B"', "A, B; C", "é\n2024-02-01", "", "X | Y\tZ"]

chance = random.Random(58)
template = NdmIo().from_path(Path(sys.argv[1]))


def report():
    tca = datetime(2024, 1, 1) + timedelta(microseconds=chance.randrange(10**14))
    primary, secondary = chance.sample(range(1, 4_194_304), 2)
    return {"tca": tca.strftime("%Y-%m-%dT%H:%M:%S.%f"), "primary": primary, "secondary": secondary}


def printed(kind, text, reports, wrong):
    print(json.dumps({"kind": kind, "text": text, "reports": reports, "wrong": wrong}))


def message(kind, data_format, fault):
    """Prints a message of CCSDS 508.0."""
    made, good = copy.deepcopy(template), report()
    tca = WRONG["tca"] if fault == "tca" else good["tca"]
    made.body.relative_metadata_data.tca = tca
    for segment, role in zip(made.body.segment, ["primary", "secondary"]):
        segment.metadata.object_designator = str(good[role])
    if fault == "designator":
        made.body.segment[1].metadata.object_designator = WRONG["designator"]
    text = NdmIo().to_string(made, data_format)
    wrong = None
    if fault:
        number = next(at for at, line in enumerate(text.splitlines(), 1) if WRONG[fault] in line)
        wrong = {"line": number, "name": {"tca": "TCA", "designator": "OBJECT_DESIGNATOR"}[fault]}
    printed(kind, text, [good], wrong)


def table(kind, columns, names, fault):
    """Prints CSV with one to five messages, in a random dialect."""
    out = io.StringIO(newline="")
    end = chance.choice(["\n", "\r\n"])
    quoting = chance.choice([csv.QUOTE_ALL, csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
    writer = csv.writer(out, delimiter=chance.choice(",;\t|"), quoting=quoting, lineterminator=end)
    order = chance.sample(columns, len(columns)) if chance.random() < 0.3 else columns
    writer.writerow(order)
    reports, wrong = [report() for _ in range(chance.randint(1, 5))], None
    for at, good in enumerate(reports):
        tca, designator = good["tca"].replace("T", chance.choice("T ")), good["secondary"]
        if fault and at == len(reports) - 1:
            line = out.getvalue().count("\n") + 1
            wrong = {"line": line, "name": {"tca": "TCA", "designator": names[1]}[fault]}
            tca = WRONG["tca"] if fault == "tca" else tca
            designator = WRONG["designator"] if fault == "designator" else designator
        values = {name: chance.choice([0.5, "Y", *NAMES]) for name in columns}
        values |= {"TCA": tca, names[0]: good["primary"], names[1]: designator}
        writer.writerow([values[name] for name in order])
    printed(kind, out.getvalue(), reports, wrong)


def rows(fault):
    """Prints JSON of space-track.org with one to five rows, with or without its envelope."""
    names = chance.choice([
        ["SAT_1_ID", "SAT_2_ID"], ["SAT1_OBJECT_DESIGNATOR", "SAT2_OBJECT_DESIGNATOR"], ["SAT1_ID", "SAT2_ID"],
        ["OBJECT1_OBJECT_DESIGNATOR", "OBJECT2_OBJECT_DESIGNATOR"],
    ])
    reports = [report() for _ in range(chance.randint(1, 5))]
    made = [
        {"CDM_ID": "1", "TCA": good["tca"].replace("T", chance.choice("T ")), names[0]: str(good["primary"]),
         names[1]: chance.choice([str, int])(good["secondary"]), "NAME": chance.choice(NAMES)}
        for good in reports
    ]
    if fault:
        name = {"tca": "TCA", "designator": names[1]}[fault]
        made[-1][name] = WRONG[fault]
    made = chance.choice([made, {"data": made, "request_metadata": {"Total": len(made)}}])
    text = json.dumps(made, indent=chance.choice([None, 2]), ensure_ascii=chance.choice([True, False]))
    wrong = None
    if fault:
        number = next(at for at, line in enumerate(text.split("\n"), 1) if WRONG[fault] in line)
        wrong = {"line": number, "name": name}
    printed("json", text, reports, wrong)


for number in range(COUNT):
    fault = chance.choice(["tca", "designator"]) if number % 10 == 0 else None
    message("kvn", NDMFileFormats.KVN, fault)
    message("xml", NDMFileFormats.XML, fault)
    table("csv", PUBLIC, ["SAT_1_ID", "SAT_2_ID"], fault)
    table("socrates", SOCRATES, ["NORAD_CAT_ID_1", "NORAD_CAT_ID_2"], fault)
    rows(fault)
