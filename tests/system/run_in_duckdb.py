"""Runs SQL statements from standard input in a DuckDB database in memory. Prints each row that a SELECT returns as a line."""

import sys

import duckdb

connection = duckdb.connect()
for statement in connection.extract_statements(sys.stdin.read()):
    found = connection.execute(statement)
    if statement.query.lstrip().upper().startswith("SELECT"):
        for row in found.fetchall():
            print("|".join(str(value) for value in row))
