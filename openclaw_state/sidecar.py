"""The tool's own small database, in the user's state directory: what it must remember itself.

Nothing of it is ever stored in OpenClaw's files. For now it keeps the prune ledger: who
pruned what and when, so that a history gap can be explained.
"""

from __future__ import annotations

import getpass
import os
import socket
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import platformdirs
import sqlite_utils

from .errors import StorageError
from .results import Pruned

FILE = "sidecar.sqlite"
KEPT_PRUNES = 1_000


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
        try:
            store = self._open()
            try:
                with store.conn:
                    ledger = store.table("prunes")
                    ledger.insert(row, pk="id")
                    store.execute(
                        "DELETE FROM prunes WHERE id <= (SELECT max(id) FROM prunes) - ?", [KEPT_PRUNES]
                    )
            finally:
                store.close()
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"{self.path} could not be written: {error}") from error

    def prunes(self, database: str, *, most: int = 5) -> list[LedgerEntry]:
        """The latest retention runs on a database, newest first; empty when none is known."""
        if not os.path.exists(self.path):
            return []
        try:
            store = self._open()
            try:
                rows = store.table("prunes").rows_where(
                    "database = ?", [os.path.realpath(database)], order_by="id desc", limit=most
                )
                return [_entry(row) for row in rows]
            finally:
                store.close()
        except (OSError, sqlite3.Error) as error:
            raise StorageError(f"{self.path} could not be read: {error}") from error

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
        return store


def _entry(row: Mapping[str, Any]) -> LedgerEntry:
    return LedgerEntry(**{name: row[name] for name in LedgerEntry.__dataclass_fields__})


def _who() -> str:
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{socket.gethostname()}"
