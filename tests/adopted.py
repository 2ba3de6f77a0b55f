"""Sessions adopted from Claude Code: their transcripts, and links that lead there."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

from openclaw_state import SignalLog
from tests.support import PARENT

ADOPTED = "agent:main:adopted"
WHEN = "2027-01-15T07:30:00.000Z"  # half an hour before the tests' clock


def person(text: str, **more: Any) -> dict[str, Any]:
    """A row that a person wrote."""
    return {
        "type": "user",
        "message": {"role": "user", "content": text},
        "timestamp": WHEN,
        **more,
    }


def line(row: Any) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


class Transcript:
    """A transcript that grows."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(line(person("before it was adopted")))

    def add(self, *rows: Any) -> None:
        self.write(b"".join(line(row) for row in rows))

    def write(self, data: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(data)

    @property
    def size(self) -> int:
        return self.path.stat().st_size


def adopt(
    log: SignalLog, path: Path, key: str = ADOPTED, *, watcher: str | None = PARENT, **link: Any
) -> None:
    """Link a session to a transcript as it stands, and watch it."""
    if watcher is not None:
        log.watch(watcher, key)
    given = {
        "catalog_id": "claude",
        "host_id": "gateway:local",
        "thread_id": "thread-1",
        "upstream_kind": "claude-cli",
        "upstream_ref": {"filePath": str(path)},
        "marker": {"offset": path.stat().st_size if path.exists() else 0},
        **link,
    }
    log.upsert_link(key, **given)


def adopt_blocked(log: SignalLog, path: Path, key: str = PARENT) -> None:
    """Link a session, which nobody need watch, to a session file of Pi whose first row is no JSON."""
    path.write_text("no JSON\n", "utf-8")
    pi = {"catalog_id": "pi", "host_id": "gateway", "upstream_kind": "pi-cli", "marker": {"offset": 0}}
    adopt(log, path, key, watcher=None, **pi)


class AgentStore:
    """The database of an agent, as far as the monitor looks at it."""

    def __init__(self, root: Path, agent: str = "main") -> None:
        self.path = root / "agents" / agent / "agent" / "openclaw-agent.sqlite"
        self.path.parent.mkdir(parents=True)
        with closing(sqlite3.connect(self.path)) as connection:
            connection.executescript(_STORE)

    def add_session(self, key: str, session_id: str = "sid-1", *, status: str = "done", **entry: Any) -> None:
        self._run(
            "INSERT OR REPLACE INTO session_nodes VALUES (?, ?, ?, 1, ?)",
            (key, session_id, json.dumps(entry), status),
        )

    def send(self, text: str, session_id: str = "sid-1") -> None:
        """A message that the session itself sends."""
        event = json.dumps({"type": "message", "message": {"role": "user", "content": text}})
        with closing(sqlite3.connect(self.path)) as connection, connection:
            (seq,) = connection.execute("SELECT coalesce(max(seq), 0) + 1 FROM transcript_events").fetchone()
            connection.execute(
                "INSERT INTO transcript_events VALUES (?, ?, ?, NULL, NULL, NULL)", (session_id, seq, event)
            )
            connection.execute(
                "INSERT INTO session_transcript_active_events VALUES (?, ?, ?, ?, 1)",
                (session_id, seq, seq, seq),
            )
            connection.execute(
                "INSERT OR REPLACE INTO session_transcript_index_state VALUES (?, ?, 0)", (session_id, seq)
            )

    def _run(self, sql: str, values: Any) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(sql, values)


_STORE = """
CREATE TABLE session_nodes (session_key TEXT PRIMARY KEY, current_session_id TEXT, entry_json TEXT,
  entry_valid INTEGER, status TEXT) STRICT;
CREATE TABLE transcript_events (session_id TEXT, seq INTEGER, event_json TEXT, event_zstd BLOB,
  event_utf8_bytes INTEGER, navigation_json TEXT) STRICT;
CREATE TABLE session_transcript_active_events (session_id TEXT, active_position INTEGER, event_seq INTEGER,
  message_position INTEGER, context_eligible INTEGER) STRICT;
CREATE TABLE transcript_event_identities (session_id TEXT, seq INTEGER, event_id TEXT,
  event_type TEXT) STRICT;
CREATE TABLE session_transcript_index_state (session_id TEXT PRIMARY KEY, indexed_seq INTEGER,
  needs_rebuild INTEGER) STRICT;
CREATE TABLE session_transcript_cold_archives (session_id TEXT) STRICT;
"""
