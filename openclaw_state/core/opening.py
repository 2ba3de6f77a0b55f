"""Opening a database file for reading or for change, and making the tool's own.

SQLite alone opens the file: a descriptor of ours, once closed, would drop every lock that this
process holds on it (POSIX), and another process would then remove the log under our writers.
"""

from __future__ import annotations

import os
import sqlite3
import stat
import threading
from contextlib import closing, suppress
from functools import partial
from urllib.parse import quote

from ..errors import AccessError, BadDatabaseError, ConfigurationError, NoDatabaseError, UsageError
from . import schema
from .failures import from_os, translated

DEFAULT_LOCK_WAIT_MS = 5_000
# SQLite counts the wait in an int; more than that would be no wait at all.
_LONGEST_WAIT_MS = 2**31 - 1
_SMALLEST_PAGE = 512
# Retention touches a page of every session; with the usual 2 MB each would be written several times.
_WRITER_CACHE_KIB = -16_384
_OWNER = "run as the user that owns the gateway"


def connect(
    path: str,
    *,
    writable: bool = False,
    immutable: bool = False,
    lock_wait_ms: int = DEFAULT_LOCK_WAIT_MS,
) -> tuple[sqlite3.Connection, bool]:
    """Open one existing database file; the flag tells whether it was, or had to be, opened immutable.

    Raises NoDatabaseError, BadDatabaseError, AccessError, BusyError or ConfigurationError.
    """
    require_strict_tables()
    _require_file(path)
    if writable:
        _require_writable(path)
    with translated(path):
        if writable:
            return _open(path, "rw", lock_wait_ms), False
        if not immutable:
            try:
                return _open(path, "ro", lock_wait_ms), False
            except sqlite3.OperationalError as error:
                if not (_is_refusal(error) and _may_be_immutable(path)):
                    raise
        return _open(path, "ro&immutable=1", lock_wait_ms), True


def _open(path: str, mode: str, lock_wait_ms: int) -> sqlite3.Connection:
    connection = sqlite3.connect(
        f"file:{quote(path)}?mode={mode}",
        uri=True,
        timeout=min(lock_wait_ms, _LONGEST_WAIT_MS) / 1000,
        isolation_level=None,
        check_same_thread=False,
    )
    try:
        connection.text_factory = _text
        connection.execute("PRAGMA trusted_schema = OFF")
        journal = connection.execute("PRAGMA journal_mode").fetchone()[0]
        if mode != "rw":
            connection.execute("PRAGMA query_only = ON")
        else:
            connection.execute(f"PRAGMA cache_size = {_WRITER_CACHE_KIB}")
            if journal == "wal":
                connection.execute("PRAGMA synchronous = NORMAL")
    except sqlite3.Error:
        connection.close()
        raise
    return connection


# Text that is not UTF-8 is shown as far as it can be, as OpenClaw does; one bad row hides no other.
_text = partial(str, encoding="utf-8", errors="replace")


def _require_name(path: str) -> None:
    if "\0" in path:
        raise UsageError("a database path cannot contain a NUL character")


def _require_file(path: str) -> None:
    _require_name(path)
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        raise NoDatabaseError(f"there is no database at {path}") from None
    except OSError as error:
        raise from_os(error, path) from error
    if stat.S_ISDIR(status.st_mode):
        raise BadDatabaseError(f"{path} is a directory, not a database")
    if not stat.S_ISREG(status.st_mode):
        raise BadDatabaseError(f"{path} is not an ordinary file")
    if not os.access(path, os.R_OK):
        if not os.path.exists(path):
            raise NoDatabaseError(f"there is no database at {path}")
        raise AccessError(f"{path} cannot be opened: permission denied", hint="check its owner and mode")
    if not status.st_size and not os.path.exists(path + "-wal"):
        raise BadDatabaseError(f"{path} is an empty file, not a database")
    if status.st_size % _SMALLEST_PAGE:
        raise BadDatabaseError(f"{path} is not an SQLite database, or was cut off at {status.st_size} bytes")


def _require_writable(path: str) -> None:
    for what in (path, os.path.dirname(os.path.realpath(path))):
        if not os.access(what, os.W_OK):
            raise AccessError(f"{what} is not writable", hint=_OWNER)


def _is_refusal(error: sqlite3.Error) -> bool:
    return error.sqlite_errorcode & 0xFF in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_READONLY)


def _may_be_immutable(path: str) -> bool:
    """Without its side files a WAL database may be read only when nothing can be missing from it."""
    path = os.path.realpath(path)
    directory = os.path.dirname(path)
    for side in (path + "-wal", path + "-shm"):
        if os.path.exists(side) and not os.access(side, os.R_OK):
            raise AccessError(
                f"{side} cannot be read, and without it the newest rows would be missing", hint=_OWNER
            )
    if os.access(directory, os.W_OK):
        return False
    if os.path.exists(path + "-wal"):
        raise AccessError(
            f"{path} has a write-ahead log, which cannot be read while {directory} is not writable",
            hint=f"{_OWNER}, or read a copy of the file with its -wal",
        )
    return True


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

    It appears complete or not at all where the file system has hard links. A file without
    tables, such as an interrupted creation leaves, is filled; a signal log is left as it is.
    Raises AccessError, StorageError, UsageError or ConfigurationError.
    """
    require_strict_tables()
    _require_name(path)
    try:
        os.makedirs(os.path.dirname(path) or ".", mode=0o700, exist_ok=True)
        if os.path.exists(path) or not _placed_whole(path):
            _fill(path)
    except OSError as error:
        raise from_os(error, path) from error


def _placed_whole(path: str) -> bool:
    """Make the file under another name and link it into place; False where links cannot be made."""
    unfinished = f"{path}.{os.getpid()}-{threading.get_ident()}.new"
    _claim(unfinished)
    try:
        _fill(unfinished)
        os.link(unfinished, path)
    except FileExistsError:
        return True
    except OSError:
        with suppress(FileExistsError):
            _claim(path)
        return False
    finally:
        os.unlink(unfinished)
    return True


def _claim(path: str) -> None:
    """Create a private file that is not there yet."""
    os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))


def _fill(path: str) -> None:
    with (
        translated(path),
        closing(
            sqlite3.connect(path, timeout=DEFAULT_LOCK_WAIT_MS / 1000, isolation_level=None)
        ) as connection,
    ):
        connection.execute("PRAGMA auto_vacuum = INCREMENTAL")
        connection.execute("BEGIN IMMEDIATE")
        for statement in schema.STATEMENTS:
            connection.execute(statement)
        connection.execute("COMMIT")
        connection.execute("PRAGMA journal_mode = WAL")


def is_blank(path: str) -> bool:
    """Is nothing there, or a database without a single table, such as an interrupted creation leaves?"""
    try:
        if os.path.isfile(path) and not os.path.getsize(path):
            return True
        with closing(connect(path)[0]) as connection:
            return bool(connection.execute("SELECT count(*) FROM sqlite_schema").fetchone() == (0,))
    except (FileNotFoundError, NoDatabaseError):
        return True
    except (OSError, BadDatabaseError, sqlite3.Error):
        return False
