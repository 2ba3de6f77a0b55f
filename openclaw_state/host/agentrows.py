"""Reading one agent's session store: rows of whatever release wrote it (contract, sessions section 4).

What a store holds is probed, its version is not trusted alone. A store that cannot be read raises;
a row that cannot be read is told beside the others.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from typing import Any, NamedTuple

from ..core.failures import translated
from ..core.opening import connect
from ..errors import BadDatabaseError, NewerSchemaError

KNOWN_SCHEMA = 23
_TABLES = (
    "schema_meta",
    "session_nodes",
    "session_entries",
    "session_participants",
    "transcript_events",
    "session_windows",
)
_OWNER = ("owner_actor_type", "owner_actor_id", "owner_assigned_by_type", "owner_assigned_by_id")
_IN_NODES = ("session_key", "current_session_id", "entry_json", "updated_at")
_IN_ENTRIES = ("session_key", "session_id", "entry_json", "updated_at")


class StoreShape(NamedTuple):
    """What was found in an agent database: versions as it names them, tables with their columns."""

    schema_version: int
    app_version: str | None
    agent_id: str | None
    tables: Mapping[str, frozenset[str]]

    @property
    def has_sessions(self) -> bool:
        return self._holds("session_nodes", _IN_NODES) or self._holds("session_entries", _IN_ENTRIES)

    @property
    def has_validity(self) -> bool:
        return self._holds("session_nodes", ("entry_valid",))

    @property
    def has_owner(self) -> bool:
        return self._holds("session_nodes", (*_OWNER, "owner_assigned_at"))

    @property
    def has_participants(self) -> bool:
        return self._holds(
            "session_participants", ("session_key", "identity_namespace", "actor_id", "first_prompted_at")
        )

    @property
    def has_transcripts(self) -> bool:
        return self._holds("transcript_events", ("session_id", "seq", "event_json", "created_at"))

    @property
    def remark(self) -> str | None:
        """What is to be said of a schema that is not the known one; None for that."""
        if self.schema_version == KNOWN_SCHEMA:
            return None
        if self.schema_version > KNOWN_SCHEMA:
            return f"{self.version} is newer than the known {KNOWN_SCHEMA}; read with care"
        lacks = [
            what
            for what, has in (
                ("session_nodes", "session_nodes" in self.tables),
                ("entry_valid", self.has_validity),
                ("owners", self.has_owner),
                ("participants", self.has_participants),
            )
            if not has
        ]
        return f"{self.version} is older than the known {KNOWN_SCHEMA}" + (
            f"; it has no {', '.join(lacks)}" if lacks else ""
        )

    @property
    def version(self) -> str:
        return f"schema {self.schema_version} of OpenClaw {self.app_version or '(unnamed)'}"

    def _holds(self, table: str, columns: Collection[str]) -> bool:
        return self.tables.get(table, frozenset()) >= set(columns)


class StoreRow(NamedTuple):
    """One session of a store.

    entry is its `entry_json`, or the wanted members of it; header the first row of its
    transcript, looked up only where the entry does not say when the session started;
    transcript_bytes None where nobody asked.
    """

    key: str
    session_id: str
    entry: dict[str, Any]
    owner: dict[str, Any] | None = None
    participants: tuple[dict[str, Any], ...] = ()
    header: dict[str, Any] | None = None
    transcript_bytes: int | None = None


class InvalidRow(NamedTuple):
    """A row that OpenClaw would refuse to read, and with it the whole store."""

    key: str
    reason: str


class StoreContents(NamedTuple):
    """Everything in a store, as one moment shows it."""

    shape: StoreShape
    rows: list[StoreRow]
    invalid: list[InvalidRow]


def open_store(path: str) -> sqlite3.Connection:
    """A read-only connection to an agent database.

    Raises NoDatabaseError, BadDatabaseError, AccessError, BusyError or ConfigurationError.
    """
    connection, _ = connect(path)
    # Before SQLite 3.43 a CHECK of the transcript rows needs it.
    connection.create_function("octet_length", 1, _octet_length, deterministic=True)
    return connection


def _octet_length(value: Any) -> int | None:
    if value is None:
        return None
    return len(value if isinstance(value, bytes) else str(value).encode("utf-8", "surrogatepass"))


def read_store(
    path: str, *, wanted: Collection[str] | None = None, key: str | None = None, sizes: bool = False
) -> StoreContents:
    """The sessions of a store, in one short read transaction.

    wanted are the members of an entry that stay (all by default), key chooses one session, sizes
    adds the bytes of the transcripts. Raises as `open_store`, BadDatabaseError or
    NewerSchemaError where no session table is known.
    """
    with translated(path), closing(open_store(path)) as connection:
        connection.execute("BEGIN")
        shape = probe_store(connection)
        _require_sessions(shape, path)
        rows, invalid = [], []
        participants = _participants(connection, shape, key)
        weights = _transcript_bytes(connection, shape) if sizes else None
        for row in _select(connection, shape, key):
            found = _read_row(row, wanted)
            if isinstance(found, InvalidRow):
                invalid.append(found)
                continue
            if found.entry.get("sessionStartedAt") is None and shape.has_transcripts:
                found = found._replace(header=_header(connection, found.session_id))
            rows.append(
                found._replace(
                    participants=participants.get(found.key, ()),
                    transcript_bytes=None if weights is None else weights.get(found.session_id, 0),
                )
            )
        return StoreContents(shape, rows, invalid)


def probe_store(connection: sqlite3.Connection) -> StoreShape:
    """Look at the versions and tables of an open store."""
    tables: dict[str, set[str]] = {}
    for table, column in connection.execute(
        "SELECT t.name, c.name FROM sqlite_schema AS t, pragma_table_info(t.name) AS c"
        f" WHERE t.type = 'table' AND t.name IN ({', '.join('?' * len(_TABLES))})",
        _TABLES,
    ):
        tables.setdefault(table, set()).add(column)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    meta: tuple[int, str | None, str | None] = (0, None, None)
    if {"schema_version", "app_version", "agent_id"} <= tables.get("schema_meta", set()):
        meta = (
            connection.execute(
                "SELECT schema_version, app_version, agent_id FROM schema_meta WHERE meta_key = 'primary'"
            ).fetchone()
            or meta
        )
    frozen = {name: frozenset(columns) for name, columns in tables.items()}
    return StoreShape(max(version, meta[0]), meta[1], meta[2], frozen)


def _require_sessions(shape: StoreShape, path: str) -> None:
    if shape.has_sessions:
        return
    kind = NewerSchemaError if shape.schema_version > KNOWN_SCHEMA else BadDatabaseError
    raise kind(
        f"{shape.version} has no session table that this tool knows ({path}; known: {KNOWN_SCHEMA})",
        hint="upgrade openclaw-state"
        if kind is NewerSchemaError
        else "openclaw doctor --fix brings an old store up to date, with the gateway stopped",
    )


def _select(connection: sqlite3.Connection, shape: StoreShape, key: str | None) -> Iterator[tuple[Any, ...]]:
    """Key, session id, entry, validity and owner of every row that is not dead."""
    if shape.tables.get("session_nodes", frozenset()) >= set(_IN_NODES):
        valid = "entry_valid" if shape.has_validity else "1"
        owner = (
            ", ".join((*_OWNER, "owner_assigned_at")) if shape.has_owner else "NULL, NULL, NULL, NULL, NULL"
        )
        alive = "entry_valid <> -1" if shape.has_validity else "entry_json <> '{}'"
        table, columns = "session_nodes", f"session_key, current_session_id, entry_json, {valid}, {owner}"
    else:
        alive, table = "entry_json <> '{}'", "session_entries"
        columns = "session_key, session_id, entry_json, 1, NULL, NULL, NULL, NULL, NULL"
    only = "" if key is None else " AND session_key = ?"
    return connection.execute(
        f"SELECT {columns} FROM {table} WHERE {alive}{only}", () if key is None else (key,)
    )


def _read_row(row: tuple[Any, ...], wanted: Collection[str] | None) -> StoreRow | InvalidRow:
    key, session_id, text, valid, *owner = row
    if valid != 1:
        return InvalidRow(key, "it is marked as not valid")
    try:
        entry = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        return InvalidRow(key, "its entry is not JSON")
    if not isinstance(entry, dict):
        return InvalidRow(key, "its entry is no object")
    if entry.get("sessionId") is not None and entry["sessionId"] != session_id:
        return InvalidRow(key, "its entry names another session than its column")
    if wanted is not None:
        entry = {name: value for name, value in entry.items() if name in wanted}
    return StoreRow(key, session_id, entry, _owner(*owner))


def _owner(kind: str | None, actor: str | None, by_kind: str | None, by: str | None, at: Any) -> Any:
    if kind is None:
        return None
    owner: dict[str, Any] = {"actor": {"type": kind, "id": actor}}
    if by_kind is not None:
        owner["assignedBy"] = {"type": by_kind, "id": by}
    if at is not None:
        owner["assignedAt"] = at
    return owner


def _participants(
    connection: sqlite3.Connection, shape: StoreShape, key: str | None
) -> dict[str, tuple[dict[str, Any], ...]]:
    """Who has prompted each session, the first to do so first."""
    if not shape.has_participants:
        return {}
    only = "" if key is None else " WHERE session_key = ?"
    found: dict[str, list[dict[str, Any]]] = {}
    for session_key, namespace, actor in connection.execute(
        f"SELECT session_key, identity_namespace, actor_id FROM session_participants{only}"
        " ORDER BY first_prompted_at, actor_id, identity_namespace",
        () if key is None else (key,),
    ):
        found.setdefault(session_key, []).append({"identity": _namespace(namespace) | {"id": actor}})
    return {session_key: tuple(listed) for session_key, listed in found.items()}


def _namespace(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return value if isinstance(value, dict) else {}


def _header(connection: sqlite3.Connection, session_id: str) -> dict[str, Any] | None:
    row = connection.execute(
        "SELECT event_json FROM transcript_events WHERE session_id = ? ORDER BY seq LIMIT 1", (session_id,)
    ).fetchone()
    return (_namespace(row[0]) or None) if row and isinstance(row[0], str) else None


def _transcript_bytes(connection: sqlite3.Connection, shape: StoreShape) -> dict[str, int]:
    """Session id -> stored bytes of its transcript, compressed rows as they are."""
    if not shape.has_transcripts:
        return {}
    packed = "coalesce(length(event_zstd), 0)" if "event_zstd" in shape.tables["transcript_events"] else "0"
    return dict(
        connection.execute(
            f"SELECT session_id, sum(coalesce(length(CAST(event_json AS BLOB)), 0) + {packed})"
            " FROM transcript_events GROUP BY session_id"
        ).fetchall()
    )
