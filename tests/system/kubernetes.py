"""Prints all documents of the given manifests as one JSON list."""

import json
import sys

import yaml

documents = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as manifest:
        documents += yaml.safe_load_all(manifest)
json.dump(documents, sys.stdout)
