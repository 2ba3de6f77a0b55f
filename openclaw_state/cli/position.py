"""Where a reader of the log stopped: a named position in the sidecar, or a file of its own."""

from __future__ import annotations

import os
import shlex
import stat
from contextlib import suppress
from typing import Protocol

from ..core.failures import from_os
from ..errors import StateError, StorageError, UsageError
from ..timespec import whole_number
from .options import Call

_MOST_BYTES = 4096


class Position(Protocol):
    """A saved sequence and how to go on from it."""

    resume: str

    def load(self) -> int | None:
        """The sequence, None where nothing was saved yet."""

    def save(self, sequence: int) -> None:
        """Store it. Raises StorageError or AccessError."""


def chosen_position(call: Call, name: str | None, file: str | None) -> Position | None:
    """The position that the options name. Raises UsageError when both do."""
    if name is not None and file is not None:
        raise UsageError("--position and --position-file contradict each other")
    if file is not None:
        return PositionFile(file)
    return None if name is None else NamedPosition(call.location().path, name)


class NamedPosition:
    """A position in the sidecar, under a name and the path of the database."""

    def __init__(self, database: str, name: str) -> None:
        from ..sidecar import Sidecar

        self._sidecar = Sidecar()
        self._key = (database, "tail", name)
        self.resume = f"--position {shlex.quote(name)}"

    def load(self) -> int | None:
        found = self._sidecar.position(*self._key)
        if found is None:
            return None
        if type(found) is not int or found < 0:
            raise StorageError(f"{self._sidecar.path} holds no sequence under {self._key[2]!r}")
        return found

    def save(self, sequence: int) -> None:
        self._sidecar.save_position(*self._key, sequence)


class PositionFile:
    """A file that holds the sequence alone; it is replaced as a whole."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        self.resume = f"--position-file {shlex.quote(path)}"

    def load(self) -> int | None:
        """Raises UsageError for a file that holds anything but a sequence."""
        try:
            if not stat.S_ISREG(os.stat(self._path).st_mode):
                raise UsageError(f"{self._path} is not a file, so it cannot be a position file")
            with open(self._path, "rb") as file:
                content = file.read(_MOST_BYTES)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise from_os(error, self._path) from error
        text = content.decode("ascii", "replace").strip()
        sequence = whole_number(text)
        if sequence is None:
            what = f"holds {text[:20]!r}, not a sequence" if text else "is empty"
            raise UsageError(
                f"{self._path} {what}", hint="remove it to start at the head, or write a sequence"
            )
        return sequence

    def save(self, sequence: int) -> None:
        unfinished = f"{self._path}.{os.getpid()}.new"
        try:
            descriptor = os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
            try:
                with open(descriptor, "w", encoding="ascii") as file:
                    file.write(f"{sequence}\n")
                    file.flush()
                    os.fsync(descriptor)
                os.replace(unfinished, self._path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(unfinished)
                raise
        except OSError as error:
            raise _unsaved(error, self._path) from error


def _unsaved(error: OSError, path: str) -> StateError:
    known = from_os(error, path)
    return type(known)(f"{path} could not be written: {error.strerror}", hint=known.hint)
