"""Reads Conjunction Data Messages with the PyPI package ccsds-ndm, and prints a line of JSON for each file: all that
the package has read of it, so that two files can be compared, and the comments of the header apart."""

import dataclasses
import json
import sys
from pathlib import Path

from ccsds_ndm.ndm_io import NdmIo

for path in sys.argv[1:]:
    message = NdmIo().from_path(Path(path))
    comments = list(message.header.comment)
    message.header.comment = []
    print(json.dumps({"comments": comments, "rest": dataclasses.asdict(message)}, default=str, sort_keys=True))
