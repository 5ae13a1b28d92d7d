"""Runs the statements that come on standard input in a DuckDB in memory, and prints what each SELECT found, a line a row."""

import sys

import duckdb

connection = duckdb.connect()
for statement in connection.extract_statements(sys.stdin.read()):
    found = connection.execute(statement)
    if statement.query.lstrip().upper().startswith("SELECT"):
        for row in found.fetchall():
            print("|".join(str(value) for value in row))
