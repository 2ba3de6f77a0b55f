"""A state directory with agents' session stores as OpenClaw 2026.9.6 leaves them, made by tests."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support import T

HOUR = 3_600_000
_NODES = """
    CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL,
      entry_json TEXT NOT NULL, entry_valid INTEGER NOT NULL DEFAULT 0, updated_at INTEGER NOT NULL,
      status TEXT, owner_actor_type TEXT, owner_actor_id TEXT, owner_assigned_by_type TEXT,
      owner_assigned_by_id TEXT, owner_assigned_at INTEGER) STRICT
"""
_OLD_NODES = """
    CREATE TABLE session_nodes (session_key TEXT NOT NULL PRIMARY KEY, current_session_id TEXT NOT NULL,
      entry_json TEXT NOT NULL, updated_at INTEGER NOT NULL, status TEXT) STRICT
"""
_ENTRIES = """
    CREATE TABLE session_entries (session_key TEXT NOT NULL PRIMARY KEY, session_id TEXT NOT NULL,
      entry_json TEXT NOT NULL, updated_at INTEGER NOT NULL) STRICT
"""
_OTHERS = (
    "CREATE TABLE schema_meta (meta_key TEXT NOT NULL PRIMARY KEY, role TEXT NOT NULL, schema_version INTEGER"
    " NOT NULL, agent_id TEXT, app_version TEXT) STRICT",
    "CREATE TABLE session_participants (session_key TEXT NOT NULL, identity_namespace TEXT NOT NULL,"
    " actor_id TEXT NOT NULL, first_prompted_at INTEGER) STRICT",
    "CREATE TABLE transcript_events (session_id TEXT NOT NULL, seq INTEGER NOT NULL, event_json TEXT,"
    " created_at INTEGER NOT NULL, CHECK (octet_length(event_json) < 4194304)) STRICT",
)

_CONVERSATIONS = (
    "CREATE TABLE IF NOT EXISTS session_windows (session_id TEXT NOT NULL, session_key TEXT NOT NULL) STRICT",
    "CREATE TABLE IF NOT EXISTS session_conversations (session_id TEXT, conversation_id TEXT) STRICT",
    "CREATE TABLE IF NOT EXISTS conversations (conversation_id TEXT NOT NULL, channel TEXT NOT NULL,"
    " account_id TEXT NOT NULL, kind TEXT NOT NULL, peer_id TEXT NOT NULL) STRICT",
)


class AgentStore:
    """The session database of one agent; table is the shape of its release."""

    def __init__(
        self,
        root: Path,
        agent: str = "main",
        *,
        schema: int = 23,
        app: str = "2026.9.6",
        table: str = "session_nodes",
    ) -> None:
        self.agent = agent
        self.path = root / "agents" / agent / "agent" / "openclaw-agent.sqlite"
        self.path.parent.mkdir(parents=True)
        self._old = schema < 19
        nodes = {"session_nodes": _OLD_NODES if self._old else _NODES, "session_entries": _ENTRIES}
        with self._connection() as connection:
            connection.execute(f"PRAGMA user_version = {schema}")
            for statement in (*([nodes[table]] if table in nodes else []), *_OTHERS):
                connection.execute(statement)
            connection.execute(
                "INSERT INTO schema_meta VALUES ('primary', 'agent', ?, ?, ?)", (schema, agent, app)
            )
        self._table = table

    def _connection(self) -> closing[sqlite3.Connection]:
        connection = sqlite3.connect(self.path, isolation_level=None)
        connection.create_function("octet_length", 1, lambda text: len(text.encode()), deterministic=True)
        return closing(connection)

    def add(self, key: str, *, valid: int = 1, **entry: Any) -> str:
        """A session; updatedAt is T unless it is given. The key."""
        entry = {"sessionId": f"id of {key}", "updatedAt": T, **entry}
        return self.add_raw(key, entry["sessionId"], json.dumps(entry), valid=valid)

    def add_raw(self, key: str, session_id: str, text: str, *, valid: int = 1) -> str:
        names = ["session_key", "entry_json", "updated_at"]
        values: list[Any] = [key, text, T]
        names.append("session_id" if self._table == "session_entries" else "current_session_id")
        values.append(session_id)
        if self._table == "session_nodes" and not self._old:
            names.append("entry_valid")
            values.append(valid)
        places = ", ".join("?" * len(values))
        self.change(f"INSERT INTO {self._table} ({', '.join(names)}) VALUES ({places})", *values)
        return key

    def say(self, key: str, *rows: str) -> None:
        """Rows of a session's transcript."""
        for number, text in enumerate(rows):
            self.change("INSERT INTO transcript_events VALUES (?, ?, ?, ?)", f"id of {key}", number, text, T)

    def change(self, sql: str, *values: Any) -> None:
        with self._connection() as connection:
            connection.execute(sql, values)

    def converse(self, key: str, *senders: tuple[str, str]) -> None:
        """Direct conversations, (channel, peer), that led to a session."""
        for statement in _CONVERSATIONS:
            self.change(statement)
        self.change("INSERT INTO session_windows VALUES (?, ?)", f"id of {key}", key)
        for channel, peer in senders:
            name = f"{channel} {peer}"
            self.change(
                "INSERT INTO conversations VALUES (?, ?, 'default', 'direct', ?)", name, channel, peer
            )
            self.change("INSERT INTO session_conversations VALUES (?, ?)", f"id of {key}", name)
