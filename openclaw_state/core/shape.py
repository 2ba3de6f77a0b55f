"""What a database file holds: its columns are probed, its version is not trusted alone."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from typing import NamedTuple

from ..errors import BadDatabaseError, NewerSchemaError
from . import schema

# One read tells whether anything about the schema changed since it was probed.
STAMP = "(SELECT schema_version FROM pragma_schema_version), (SELECT user_version FROM pragma_user_version)"
_CONTENT_VERSION = "state.schema.contentVersion"


class Shape(NamedTuple):
    """What was found in the file.

    version is the effective schema version; embedded is True for a file that only this tool
    wrote (user_version 0, no schema_meta); has_store_path tells whether cursors carry
    `watcher_store_path`, which decides between two sets of watch rules (contract section 17).
    """

    version: int
    embedded: bool
    has_store_path: bool
    has_machine_state: bool
    stamp: tuple[int, int]
    warning: str | None = None


def probe(connection: sqlite3.Connection, path: str) -> Shape:
    """Look at the tables and versions of an open file.

    Raises BadDatabaseError when the signal log is not in it, NewerSchemaError when a newer
    release changed its tables.
    """
    stamp = connection.execute(f"SELECT {STAMP}").fetchone()
    wanted = [*schema.COLUMNS, "schema_meta", "config_machine_state"]
    found: dict[str, set[str]] = {}
    for table, column in connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c"
        f" WHERE t.type = 'table' AND t.name IN ({', '.join('?' * len(wanted))})",
        wanted,
    ):
        found.setdefault(table, set()).add(column)
    machine_state = {"state_key", "value_json"} <= found.get("config_machine_state", set())
    version = max(stamp[1], _content_version(connection) if machine_state else 0)
    newer = version > schema.KNOWN_VERSION
    _require_columns(path, found, version, newer)
    return Shape(
        version=version,
        embedded=version == schema.EMBEDDED_VERSION and "schema_meta" not in found,
        has_store_path=schema.STORE_COLUMN in found[schema.CURSORS],
        has_machine_state=machine_state,
        stamp=stamp,
        warning=f"schema version {version} is newer than the known {schema.KNOWN_VERSION}; read with care"
        if newer
        else None,
    )


def _require_columns(path: str, found: Mapping[str, set[str]], version: int, newer: bool) -> None:
    for table, columns in schema.COLUMNS.items():
        missing = [name for name in columns.split() if name not in found.get(table, ())]
        if not missing:
            continue
        lack = f"column {missing[0]} of table {table}" if table in found else f"table {table}"
        if newer:
            raise NewerSchemaError(
                f"{path} was written by a newer OpenClaw (schema version {version}) and lacks {lack}",
                hint="upgrade openclaw-state",
            )
        raise BadDatabaseError(
            f"{path} holds no signal log: {lack} is missing",
            hint="OpenClaw keeps it in state/openclaw.sqlite since 2026.7.2-beta.5; check the path",
        )


def _content_version(connection: sqlite3.Connection) -> int:
    row = connection.execute(
        "SELECT value_json FROM config_machine_state WHERE state_key = ?", (_CONTENT_VERSION,)
    ).fetchone()
    try:
        value = json.loads(row[0]) if row else 0
    except (ValueError, TypeError, RecursionError):
        return 0
    return value if isinstance(value, int) else 0
