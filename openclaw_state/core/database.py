"""Opening the database, for reading or for change, so that no gateway is ever harmed.

Readers cannot write by construction; writers change rows only, in short immediate
transactions behind the supervision guard (design section 2; contract, signal-log 2 and 3).
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from urllib.parse import quote

from ..errors import (
    AccessError,
    BadDatabaseError,
    BusyError,
    ConfigurationError,
    NewerSchemaError,
    NoDatabaseError,
    RefusedError,
    StateError,
    StorageError,
    UsageError,
)
from . import schema
from .javascript import trim

DEFAULT_LOCK_WAIT_MS = 5_000
_HEADER_SIZE = 100
_MAGIC = b"SQLite format 3\0"
_SUPERVISION = "gateway.supervision"
_CONTENT_VERSION = "state.schema.contentVersion"

_STAMP = "(SELECT schema_version FROM pragma_schema_version), (SELECT user_version FROM pragma_user_version)"
_STAMP_ONLY = f"SELECT {_STAMP}"
_GUARD = f"SELECT {_STAMP}, (SELECT value_json FROM config_machine_state WHERE state_key = '{_SUPERVISION}')"


@dataclass(frozen=True, slots=True)
class Shape:
    """What a connection found in the file: columns are probed, versions are not trusted.

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
        self._opened: list[sqlite3.Connection] = []
        self._identity: tuple[int, int] | None = None
        self.immutable = False
        with translated(path):
            self.shape = self._probe(self._connection())

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """A read transaction: one snapshot, never a write."""
        with translated(self.path):
            self._check_identity()
            connection = self._connection()
            connection.execute("BEGIN")
            try:
                self._check_stamp(connection, connection.execute(_STAMP_ONLY).fetchone())
                yield connection
            finally:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """A BEGIN IMMEDIATE transaction behind the guard; commits on leaving, rolls back on error.

        Raises BusyError when the lock is not had within the wait, RefusedError when an
        external supervisor owns the file.
        """
        if not self.writable:
            raise UsageError("this signal log was opened for reading only", hint="open it with change=True")
        with translated(self.path):
            self._check_identity()
            connection = self._connection()
            connection.execute("BEGIN IMMEDIATE")
            try:
                self._guard(connection)
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def close(self) -> None:
        """Close the connections of every thread."""
        opened, self._opened = self._opened, []
        for connection in opened:
            connection.close()
        self._local = threading.local()

    def _connection(self) -> sqlite3.Connection:
        connection: sqlite3.Connection | None = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
            self._local.connection = connection
            self._opened.append(connection)
        return connection

    def _connect(self) -> sqlite3.Connection:
        connection, self.immutable = connect(
            self.path, writable=self.writable, lock_wait_ms=self._lock_wait_ms
        )
        if self._identity is None:
            self._identity = _identity(self.path)
        return connection

    def _check_identity(self) -> None:
        if _identity(self.path) != self._identity:
            raise NoDatabaseError(
                f"{self.path} was replaced by another file while it was open",
                hint="run the command again to read the new file",
            )

    def _check_stamp(self, connection: sqlite3.Connection, stamp: tuple[int, int]) -> None:
        if stamp != self.shape.stamp:
            self.shape = self._probe(connection)

    def _guard(self, connection: sqlite3.Connection) -> None:
        machine_state = self.shape.has_machine_state
        row = connection.execute(_GUARD if machine_state else _STAMP_ONLY).fetchone()
        self._check_stamp(connection, row[:2])
        supervision = row[2] if machine_state else None
        if supervision is not None and trim(self._environ.get("OPENCLAW_SUPERVISOR_MODE", "")) != "external":
            raise RefusedError(
                f"an external supervisor owns this database ({_manager(supervision)})",
                hint="run under that supervisor, with OPENCLAW_SUPERVISOR_MODE=external",
            )

    def _probe(self, connection: sqlite3.Connection) -> Shape:
        shape = probe(connection, self.path)
        if shape.warning and self.writable:
            raise NewerSchemaError(
                f"{self.path} has schema version {shape.version}, newer than the {schema.KNOWN_VERSION}"
                " this release may change",
                hint="upgrade openclaw-state; reading still works",
            )
        return shape


def connect(
    path: str, *, writable: bool = False, lock_wait_ms: int = DEFAULT_LOCK_WAIT_MS
) -> tuple[sqlite3.Connection, bool]:
    """Open one existing database file; the flag tells whether it had to be opened immutable.

    Raises NoDatabaseError, BadDatabaseError, AccessError or ConfigurationError.
    """
    require_strict_tables()
    wal = _inspect(path)
    immutable = False
    if writable:
        _require_writable(path)
    else:
        immutable = wal and _only_immutable(path)
    mode = "rw" if writable else "ro&immutable=1" if immutable else "ro"
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode={mode}",
        uri=True,
        timeout=lock_wait_ms / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    connection.execute("PRAGMA trusted_schema = OFF")
    if not writable:
        connection.execute("PRAGMA query_only = ON")
    elif wal:
        connection.execute("PRAGMA synchronous = NORMAL")
    return connection, immutable


def probe(connection: sqlite3.Connection, path: str) -> Shape:
    """Look at the tables and versions of an open file.

    Raises BadDatabaseError when the signal log is not in it, NewerSchemaError when a newer
    release changed its tables.
    """
    stamp = connection.execute(_STAMP_ONLY).fetchone()
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
    except ValueError:
        return 0
    return value if isinstance(value, int) else 0


def _manager(supervision: str) -> str:
    try:
        return str(json.loads(supervision)["managerId"])
    except (ValueError, KeyError, TypeError):
        return "the gateway.supervision row cannot be read"


def require_strict_tables(version: tuple[int, ...] | None = None) -> None:
    """Raise ConfigurationError unless this SQLite can read STRICT tables (3.37)."""
    version = sqlite3.sqlite_version_info if version is None else version
    if version < (3, 37):
        raise ConfigurationError(
            f"SQLite {'.'.join(map(str, version))} cannot read OpenClaw's STRICT tables",
            hint="use a Python built against SQLite 3.37 or newer",
        )


def create_embedded(path: str) -> None:
    """Create the tool's own file: mode 0600 in a directory of mode 0700, WAL, user_version 0.

    An existing signal log is left as it is. Raises AccessError or StorageError.
    """
    with translated(path):
        try:
            os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise _from_os(error, path) from error
        connection = sqlite3.connect(path, timeout=DEFAULT_LOCK_WAIT_MS / 1000, isolation_level=None)
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("BEGIN IMMEDIATE")
            for statement in schema.STATEMENTS:
                connection.execute(statement)
            connection.execute("COMMIT")
        finally:
            connection.close()


def _inspect(path: str) -> bool:
    """Refuse what is not a readable, whole SQLite file; True when it is in WAL mode."""
    if "\0" in path:
        raise UsageError("a database path cannot contain a NUL character")
    try:
        with open(path, "rb") as file:
            header = file.read(_HEADER_SIZE)
            size = os.fstat(file.fileno()).st_size
    except FileNotFoundError:
        raise NoDatabaseError(f"there is no database at {path}") from None
    except IsADirectoryError:
        raise BadDatabaseError(f"{path} is a directory, not a database") from None
    except OSError as error:
        raise _from_os(error, path) from error
    if not header and not _exists(path + "-wal"):
        raise BadDatabaseError(f"{path} is an empty file, not a database")
    if header and not header.startswith(_MAGIC):
        raise BadDatabaseError(f"{path} is not an SQLite database")
    wal = header[18:19] == b"\x02"
    if not (wal and _exists(path + "-wal")) and size < _expected_size(header):
        raise BadDatabaseError(
            f"{path} is truncated: {size} of {_expected_size(header)} bytes", hint="restore it from a backup"
        )
    return wal


def _expected_size(header: bytes) -> int:
    if len(header) < _HEADER_SIZE:
        return len(header) + 1 if header else 0
    page_size = int.from_bytes(header[16:18], "big")
    return (65_536 if page_size == 1 else page_size) * int.from_bytes(header[28:32], "big")


def _only_immutable(path: str) -> bool:
    """A WAL file can be read without its side files only when nothing can be missing from it."""
    directory = os.path.dirname(path) or "."
    wal, shm = path + "-wal", path + "-shm"
    for side in (wal, shm):
        if _exists(side) and not os.access(side, os.R_OK):
            raise AccessError(
                f"{side} cannot be read, and without it the newest rows would be missing",
                hint="run as the user that owns the gateway",
            )
    if os.access(directory, os.W_OK):
        return False
    if _exists(wal) and not _exists(shm):
        raise AccessError(
            f"{path} has a write-ahead log, which cannot be read while {directory} is not writable",
            hint="run as the user that owns the gateway, or read a copy of the file with its -wal",
        )
    return not _exists(wal)


def _require_writable(path: str) -> None:
    directory = os.path.dirname(path) or "."
    for what in (path, directory):
        if not os.access(what, os.W_OK):
            raise AccessError(f"{what} is not writable", hint="run as the user that owns the gateway")


def _identity(path: str) -> tuple[int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino


_exists = os.path.exists


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into ours; anything unknown passes as it is."""
    try:
        yield
    except sqlite3.Error as error:
        known = _from_sqlite(error, path)
        if known is None:
            raise
        raise known from error


def _from_sqlite(error: sqlite3.Error, path: str) -> StateError | None:
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return BadDatabaseError(f"{path} is truncated", hint="restore it from a backup; nothing was changed")
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return BusyError(
                f"{path} is locked by another process", hint="try again, or wait with --lock-wait"
            )
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB | sqlite3.SQLITE_FORMAT:
            return BadDatabaseError(f"{path} is damaged: {error}", hint="restore it from a backup")
        case sqlite3.SQLITE_CANTOPEN if not _exists(path):
            return NoDatabaseError(f"there is no database at {path}")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return AccessError(
                f"{path} cannot be opened: {error}", hint="check its owner and mode, and its folder's"
            )
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_FULL | sqlite3.SQLITE_NOLFS:
            return StorageError(
                f"the disk refused to store {path}: {error}", hint="free some space, then try again"
            )
        case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISMATCH | sqlite3.SQLITE_TOOBIG:
            return UsageError(f"the database does not accept this value: {error}")
        case _:
            return None


def _from_os(error: OSError, path: str) -> StateError:
    if isinstance(error, PermissionError):
        return AccessError(f"{path} cannot be opened: permission denied", hint="check its owner and mode")
    return StorageError(f"{path} cannot be opened: {error.strerror}")
