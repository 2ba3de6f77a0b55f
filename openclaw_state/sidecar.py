"""The tool's own small database, in the user's state directory: what it must remember itself.

Nothing of it is ever stored in OpenClaw's files. It keeps the positions of readers, the prune
ledger (who pruned what and when, so that a history gap can be explained), the streaks of
missing checks, which a monitor that is run from cron would else begin anew each time, and
hashes of what the sessions of the tool's own file sent themselves, never the texts.
"""

from __future__ import annotations

import getpass
import json
import os
import socket
import sqlite3
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import platformdirs
import sqlite_utils

from .errors import StorageError
from .results import Pruned, Streak, StreakKey

FILE = "sidecar.sqlite"
KEPT_PRUNES = 1_000
_OWN = "database = ? AND session_key = ? AND agent_id = ?"


@dataclass(frozen=True, slots=True)
class LedgerEntry:
    """One retention run of this tool: at is epoch ms, by is user@host."""

    at: int
    by: str
    command: str
    events: int
    cursors: int
    max_age_ms: int
    max_rows: int


def sidecar_path() -> str:
    """Where the sidecar stands."""
    return os.path.join(platformdirs.user_state_dir("openclaw-state", appauthor=False), FILE)


class Sidecar:
    """The sidecar of this user; created private when something is first stored."""

    def __init__(self, path: str | None = None) -> None:
        self.path = path or sidecar_path()

    def add_prune(self, database: str, pruned: Pruned, *, at: int, command: str, max_age_ms: int) -> None:
        """Remember a retention run on a database. Raises StorageError."""
        row: dict[str, Any] = {
            "database": os.path.realpath(database),
            "at": at,
            "by": _who(),
            "command": command,
            "events": pruned.events,
            "cursors": pruned.cursors_expired,
            "max_age_ms": max_age_ms,
            "max_rows": pruned.max_rows,
        }
        with self.stored("written") as store, store.conn:
            store.table("prunes").insert(row, pk="id")
            store.execute("DELETE FROM prunes WHERE id <= (SELECT max(id) FROM prunes) - ?", [KEPT_PRUNES])

    def prunes(self, database: str, *, most: int = 5) -> list[LedgerEntry]:
        """The latest retention runs on a database, newest first; empty when none is known."""
        if not os.path.exists(self.path):
            return []
        with self.stored("read") as store:
            rows = store.table("prunes").rows_where(
                "database = ?", [os.path.realpath(database)], order_by="id desc", limit=most
            )
            return [_entry(row) for row in rows]

    def position(self, database: str, command: str, name: str) -> Any:
        """What a command saved under a name for a database; None when nothing was. Raises StorageError."""
        if not os.path.exists(self.path):
            return None
        with self.stored("read") as store:
            rows = store.execute(
                "SELECT value FROM positions WHERE database = ? AND command = ? AND name = ?",
                [os.path.realpath(database), command, name],
            ).fetchall()
        try:
            return json.loads(rows[0][0]) if rows else None
        except ValueError as error:
            raise StorageError(f"{self.path} holds a broken position {name!r}: {error}") from error

    def save_position(self, database: str, command: str, name: str, value: Any) -> None:
        """Store a value that JSON can hold under a name, instead of the last. Raises StorageError."""
        row = {
            "database": os.path.realpath(database),
            "command": command,
            "name": name,
            "value": json.dumps(value),
        }
        with self.stored("written") as store, store.conn:
            store.table("positions").upsert(row, pk=("database", "command", "name"))

    def streaks(self, database: str) -> Streaks:
        """The streaks of missing checks on a database. Raises StorageError."""
        return Streaks(self, os.path.realpath(database), self._saved_streaks(os.path.realpath(database)))

    def own_texts(self, database: str, session_key: str, agent_id: str) -> list[str]:
        """The digests of a session's newest own texts, oldest first. Raises StorageError."""
        if not os.path.exists(self.path):
            return []
        with self.stored("read") as store:
            rows = store.execute(
                f"SELECT digest FROM own_texts WHERE {_OWN} ORDER BY id",
                [os.path.realpath(database), session_key, agent_id],
            ).fetchall()
        return [digest for (digest,) in rows]

    def add_own_text(self, database: str, session_key: str, agent_id: str, digest: str, *, most: int) -> int:
        """Keep the digest of one more own text, and so many of the newest in all; how many are kept.

        Raises StorageError.
        """
        session = [os.path.realpath(database), session_key, agent_id]
        with self.stored("written") as store, store.conn:
            store.execute(
                "INSERT INTO own_texts (database, session_key, agent_id, digest) VALUES (?, ?, ?, ?)",
                [*session, digest],
            )
            store.execute(
                f"DELETE FROM own_texts WHERE {_OWN} AND id NOT IN"
                f" (SELECT id FROM own_texts WHERE {_OWN} ORDER BY id DESC LIMIT ?)",
                [*session, *session, most],
            )
            count: int = store.execute(f"SELECT count(*) FROM own_texts WHERE {_OWN}", session).fetchone()[0]
        return count

    def _saved_streaks(self, database: str) -> dict[StreakKey, Streak]:
        if not os.path.exists(self.path):
            return {}
        with self.stored("read") as store:
            rows = store.execute(
                "SELECT session_key, agent_id, source_key, misses, link_updated_at, counted_at"
                " FROM streaks WHERE database = ?",
                [database],
            ).fetchall()
        return {StreakKey(*row[:3]): Streak(*row[3:]) for row in rows}

    @contextmanager
    def stored(self, done: str) -> Iterator[sqlite_utils.Database]:
        """The open sidecar; what fails within the block says what could not be done."""
        try:
            store = self._open()
            try:
                yield store
            finally:
                store.close()
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"{self.path} could not be {done}: {error}") from error

    def _open(self) -> sqlite_utils.Database:
        os.makedirs(os.path.dirname(self.path), mode=0o700, exist_ok=True)
        os.close(os.open(self.path, os.O_CREAT | os.O_RDWR, 0o600))
        store = sqlite_utils.Database(self.path, execute_plugins=False)
        store.execute("PRAGMA busy_timeout = 5000")
        store.table("prunes").create(
            {
                "id": int,
                "database": str,
                "at": int,
                "by": str,
                "command": str,
                "events": int,
                "cursors": int,
                "max_age_ms": int,
                "max_rows": int,
            },
            pk="id",
            if_not_exists=True,
        )
        store.table("positions").create(
            {"database": str, "command": str, "name": str, "value": str},
            pk=("database", "command", "name"),
            if_not_exists=True,
        )
        key = {"database": str, "session_key": str, "agent_id": str, "source_key": str}
        store.table("streaks").create(
            {**key, "misses": int, "link_updated_at": int, "counted_at": int},
            pk=tuple(key),
            if_not_exists=True,
        )
        store.table("own_texts").create(
            {"id": int, "database": str, "session_key": str, "agent_id": str, "digest": str},
            pk="id",
            if_not_exists=True,
        )
        return store


class Streaks(MutableMapping[StreakKey, Streak]):
    """The streaks of one database, each change written down at once.

    A change that cannot be written holds for this object alone, and failure tells why: what a
    tick finds otherwise must not be lost with it.
    """

    def __init__(self, sidecar: Sidecar, database: str, found: dict[StreakKey, Streak]) -> None:
        self._sidecar = sidecar
        self._database = database
        self._found = found
        self.failure: StorageError | None = None

    def __getitem__(self, key: StreakKey) -> Streak:
        return self._found[key]

    def __iter__(self) -> Iterator[StreakKey]:
        return iter(self._found)

    def __len__(self) -> int:
        return len(self._found)

    def __setitem__(self, key: StreakKey, streak: Streak) -> None:
        self._found[key] = streak
        self._write(
            "INSERT OR REPLACE INTO streaks (database, session_key, agent_id, source_key, misses,"
            " link_updated_at, counted_at) VALUES (?, ?, ?, ?, ?, ?, ?)",
            *key,
            *streak,
        )

    def __delitem__(self, key: StreakKey) -> None:
        del self._found[key]
        self._write(
            "DELETE FROM streaks WHERE database = ? AND session_key = ? AND agent_id = ? AND source_key = ?",
            *key,
        )

    def _write(self, sql: str, *values: str | int) -> None:
        try:
            with self._sidecar.stored("written") as store, store.conn:
                store.execute(sql, [self._database, *values])
        except StorageError as error:
            self.failure = error


def _entry(row: Mapping[str, Any]) -> LedgerEntry:
    return LedgerEntry(**{name: row[name] for name in LedgerEntry.__dataclass_fields__})


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
