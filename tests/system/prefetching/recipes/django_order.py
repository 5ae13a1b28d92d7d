"""Runs the recipe in `recipe.py`. A single row and each row of a batch must get their own ids."""

import django
from django.conf import settings
from django.db import connection
from django.db.migrations.writer import MigrationWriter

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}})
django.setup()

import recipe  # noqa: E402 - Django can define models only after its settings.

with connection.schema_editor() as editor:
    editor.create_model(recipe.Order)
recipe.order([f"item {place}" for place in range(1000)])
ids = list(recipe.Order.objects.values_list("id", flat=True))
assert len(set(ids)) == 1001 and min(ids) > 2**60, ids[:3]
assert MigrationWriter.serialize(recipe.next_id)[0] == "recipe.next_id"
recipe.ids.close()
print("done")
