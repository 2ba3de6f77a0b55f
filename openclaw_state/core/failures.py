"""What the operating system and SQLite report, as the errors of this tool."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager

from ..errors import (
    AccessError,
    BadDatabaseError,
    BusyError,
    NoDatabaseError,
    StateError,
    StorageError,
    UsageError,
)


@contextmanager
def translated(path: str) -> Iterator[None]:
    """Turn SQLite's errors into ours; anything unknown passes as it is."""
    try:
        yield
    except Exception as error:
        if known := known_as(error, path):
            raise known from error
        raise


def known_as(error: BaseException, path: str) -> StateError | None:
    """What an error of SQLite, or of a value that it cannot hold, is here; None for any other."""
    if isinstance(error, sqlite3.Error):
        return _from_sqlite(error, path)
    if isinstance(error, UnicodeEncodeError | OverflowError):
        return UsageError(f"the database does not accept this value: {error}")
    return None


def from_os(error: OSError, path: str) -> StateError:
    """The error for a file that could not be opened or made."""
    if isinstance(error, PermissionError):
        return AccessError(f"{path} cannot be opened: permission denied", hint="check its owner and mode")
    return StorageError(f"{path} cannot be opened: {error.strerror}")


def _from_sqlite(error: sqlite3.Error, path: str) -> StateError | None:
    code = getattr(error, "sqlite_errorcode", 0)
    if code == sqlite3.SQLITE_IOERR_SHORT_READ:
        return BadDatabaseError(f"{path} is truncated", hint="restore it from a backup; nothing was changed")
    if code == sqlite3.SQLITE_READONLY_ROLLBACK:
        return AccessError(
            f"{path} was left in the middle of a write, which must be rolled back first",
            hint="the next change does that, or the gateway when it opens the file",
        )
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return BusyError(
                f"{path} is locked by another process",
                hint="try again; a write can wait longer with --lock-wait",
            )
        case sqlite3.SQLITE_NOTADB:
            return BadDatabaseError(f"{path} is not an SQLite database")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_FORMAT:
            return BadDatabaseError(
                f"{path} is damaged or truncated: {error}",
                hint="restore it from a backup; nothing was changed",
            )
        case sqlite3.SQLITE_CANTOPEN if not os.path.exists(path):
            return NoDatabaseError(f"there is no database at {path}")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM | sqlite3.SQLITE_AUTH:
            return AccessError(
                f"{path} cannot be opened: {error}", hint="check its owner and mode, and its folder's"
            )
        case sqlite3.SQLITE_FULL:
            return StorageError(f"there is no space left for {path}", hint="free some space, then try again")
        case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_NOLFS:
            return StorageError(f"the disk failed under {path}: {error}", hint="see the system's own log")
        case sqlite3.SQLITE_CONSTRAINT | sqlite3.SQLITE_MISMATCH | sqlite3.SQLITE_TOOBIG:
            return UsageError(f"the database does not accept this value: {error}")
        case _:
            return None
