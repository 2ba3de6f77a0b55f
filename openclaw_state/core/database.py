"""One database file in use: a connection per thread, and transactions that harm no gateway.

Readers cannot write by construction; writers change rows only, in short immediate
transactions behind the supervision guard (design section 2; contract, signal-log 2 and 3).
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from ..errors import NewerSchemaError, NoDatabaseError, RefusedError, UsageError
from . import schema
from .failures import known_as, translated
from .javascript import trim
from .opening import DEFAULT_LOCK_WAIT_MS, connect
from .shape import STAMP, Shape, probe

_STAMP_ONLY = f"SELECT {STAMP}"
_UNGUARDED = f"SELECT {STAMP}, NULL"
_GUARD = (
    f"SELECT {STAMP}, (SELECT value_json FROM config_machine_state WHERE state_key = 'gateway.supervision')"
)


class _Held:
    """The connection of one thread, closed when the thread ends."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    def __del__(self) -> None:
        self.connection.close()


class Database:
    """One database file; connections are opened per thread and closed together."""

    def __init__(
        self,
        path: str,
        *,
        writable: bool = False,
        lock_wait_ms: int = DEFAULT_LOCK_WAIT_MS,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Raises NoDatabaseError, BadDatabaseError, NewerSchemaError, AccessError,
        ConfigurationError or BusyError when the file cannot be used."""
        self.path = path
        self.writable = writable
        self._lock_wait_ms = lock_wait_ms
        self._environ = os.environ if environ is None else environ
        self._local = threading.local()
        self._held: weakref.WeakSet[_Held] = weakref.WeakSet()
        self._identity: tuple[int, int] | None = None
        self.immutable = False
        # Was the file in WAL mode when it was last opened?
        self.has_log = False
        try:
            with translated(path):
                self.shape = self._probe(self._connection())
        except BaseException:
            self.close()
            raise

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A read transaction: one snapshot, never a write; within another one, the same snapshot."""
        connection = self._connection()
        if connection.in_transaction:
            yield connection
            return
        self.require_same_file()
        try:
            connection.execute("BEGIN")
            if connection.execute(_STAMP_ONLY).fetchone() != self.shape.stamp:
                self.shape = self._probe(connection)
            yield connection
        except Exception as error:
            if known := known_as(error, self.path):
                raise known from error
            raise
        finally:
            connection.rollback()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A BEGIN IMMEDIATE transaction behind the guard; commits on leaving, rolls back on error.

        Raises BusyError when the lock is not had within the wait, RefusedError when an
        external supervisor owns the file.
        """
        if not self.writable:
            raise UsageError("this signal log was opened for reading only", hint="open it with change=True")
        self.require_same_file()
        connection = self._connection()
        try:
            connection.execute("BEGIN IMMEDIATE")
            self._guard(connection)
            yield connection
            connection.execute("COMMIT")
        except BaseException as error:
            connection.rollback()
            if known := known_as(error, self.path):
                raise known from error
            raise

    def pragma(self, text: str) -> None:
        """Run a PRAGMA between two transactions."""
        with translated(self.path):
            self._connection().execute(f"PRAGMA {text}").fetchall()

    def data_version(self) -> int:
        """A number that differs on this connection once another one has committed."""
        with translated(self.path):
            return int(self._connection().execute("PRAGMA data_version").fetchone()[0])

    @property
    def connected(self) -> bool:
        """Does this thread hold a connection?"""
        return getattr(self._local, "held", None) is not None

    def release(self) -> None:
        """Close this thread's connection; the next use opens another."""
        held: _Held | None = getattr(self._local, "held", None)
        self._local.held = None
        if held is not None:
            held.connection.close()

    @contextmanager
    def glancing(self) -> Iterator[None]:
        """Within the block this thread reads the main file alone, without locks or side files.

        Only for a thread without a connection; the caller must see to it that the file was
        complete and did not change meanwhile.
        """
        self.require_same_file()
        with translated(self.path):
            self._local.held = _Held(connect(self.path, immutable=True)[0])
        try:
            yield
        finally:
            self.release()

    def close(self) -> None:
        """Close the connections of every thread."""
        for held in list(self._held):
            held.connection.close()
        self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        held: _Held | None = getattr(self._local, "held", None)
        if held is None:
            if self._identity is not None:
                self.require_same_file()
            connection, self.immutable = connect(
                self.path, writable=self.writable, lock_wait_ms=self._lock_wait_ms
            )
            self.has_log = connection.execute("PRAGMA journal_mode").fetchone()[0] == "wal"
            held = self._local.held = _Held(connection)
            self._held.add(held)
            if self._identity is None:
                self._identity = _identity(self.path)
        return held.connection

    def require_same_file(self) -> None:
        """Raise NoDatabaseError when the file is no longer the one that was opened."""
        if _identity(self.path) != self._identity:
            raise NoDatabaseError(
                f"{self.path} was removed or replaced while it was open",
                hint="run the command again to read the new file",
            )

    def _guard(self, connection: sqlite3.Connection) -> None:
        version, supervision = self._read_guard(connection)
        if version != self.shape.stamp:
            self.shape = self._probe(connection)
            _, supervision = self._read_guard(connection)
        if supervision is not None and trim(self._environ.get("OPENCLAW_SUPERVISOR_MODE", "")) != "external":
            raise RefusedError(
                f"an external supervisor owns this database ({_manager(supervision)})",
                hint="run under that supervisor, with OPENCLAW_SUPERVISOR_MODE=external",
            )

    def _read_guard(self, connection: sqlite3.Connection) -> tuple[tuple[int, int], str | None]:
        *stamp, supervision = connection.execute(
            _GUARD if self.shape.has_machine_state else _UNGUARDED
        ).fetchone()
        return (stamp[0], stamp[1]), supervision

    def _probe(self, connection: sqlite3.Connection) -> Shape:
        shape = probe(connection, self.path)
        if shape.warning and self.writable:
            raise NewerSchemaError(
                f"{self.path} has schema version {shape.version}, newer than the {schema.KNOWN_VERSION}"
                " this release may change",
                hint="upgrade openclaw-state; reading still works",
            )
        return shape


def _manager(supervision: str) -> str:
    try:
        return str(json.loads(supervision)["managerId"])
    except (ValueError, KeyError, TypeError, RecursionError):
        return "the gateway.supervision row cannot be read"


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino
