"""Prints every document of the manifests that are named, as one list of JSON."""

import json
import sys

import yaml

documents = []
for path in sys.argv[1:]:
    with open(path, encoding="utf-8") as manifest:
        documents += yaml.safe_load_all(manifest)
json.dump(documents, sys.stdout)
