"""Reads Conjunction Data Messages with the PyPI package ccsds-ndm, and prints a line of JSON for each file.
The line has everything that the package has read. The comments of the header are separate, so that the rest can be compared."""

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
