"""Transcript files, read one window a check.

A check looks at no more than 1 MiB behind the marker, up to the last line feed in it, so that
a row of any length costs no memory (contract, upstream section 6, steps 2 to 5).
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ..results import Verdict
from .findings import QUIET, Missing, Silence

WINDOW = 1_048_576

_SURROGATE = re.compile("[\ud800-\udfff]")


class Window(NamedTuple):
    """Whole rows of a transcript: the bytes up to `end`, and the file's mtime in ms."""

    data: bytes
    end: int
    mtime_ms: float

    def rows(self) -> Iterator[bytes]:
        """Every row without its line feed."""
        start = 0
        while start < self.end:
            stop = self.data.index(b"\n", start)
            yield self.data[start:stop]
            start = stop + 1

    def rows_with(self, *needles: bytes) -> Iterator[bytes]:
        """The rows that contain one of some byte strings, without looking into the others."""
        return self._rows_with_one(*needles) if len(needles) == 1 else self._rows_with_any(needles)

    def _rows_with_any(self, needles: Sequence[bytes]) -> Iterator[bytes]:
        data, end = self.data, self.end
        found = [data.find(needle, 0, end) for needle in needles]
        while True:
            nearest = min((at for at in found if at >= 0), default=-1)
            if nearest < 0:
                return
            stop = data.index(b"\n", nearest)
            yield data[data.rfind(b"\n", 0, nearest) + 1 : stop]
            found = [
                at if at < 0 or at > stop else data.find(needle, stop, end)
                for at, needle in zip(found, needles, strict=True)
            ]

    def _rows_with_one(self, needle: bytes) -> Iterator[bytes]:
        data, end = self.data, self.end
        at = data.find(needle, 0, end)
        while at >= 0:
            stop = data.index(b"\n", at)
            yield data[data.rfind(b"\n", 0, at) + 1 : stop]
            at = data.find(needle, stop, end)


def peek(path: str, offset: int) -> Silence | Missing | None:
    """The answer when it is plain without opening the file; None when something may have moved."""
    try:
        status = os.stat(_encoded(path))
    except (OSError, ValueError) as error:
        return _refused(error)
    return QUIET if stat.S_ISREG(status.st_mode) and status.st_size <= offset else None


def size_of(path: str) -> int | None:
    """The size of a transcript; None where no regular file can be looked at."""
    try:
        status = os.stat(_encoded(path))
    except (OSError, ValueError):
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def read_window(path: str, offset: int, *, size: int = WINDOW) -> Window | Silence | Missing:
    """The next window of a transcript, or why there is none.

    Truncation and replacement are not missing, and the marker stays. Never blocks on a pipe.
    """
    if (plain := peek(path, offset)) is not None:
        return plain
    try:
        file = os.open(_encoded(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except (OSError, ValueError) as error:
        return _refused(error)
    try:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode):
            return Missing()
        if status.st_size <= offset:
            return QUIET
        data = _read(file, offset, min(status.st_size - offset, size))
    except OSError as error:
        return _refused(error)
    finally:
        os.close(file)
    end = data.rfind(b"\n") + 1
    if end:
        return Window(data, end, mtime_ms(status.st_mtime_ns))
    if len(data) < size:
        return Silence(Verdict.WAITING, f"the row at offset {offset} has no end yet")
    return Silence(Verdict.BLOCKED, f"at offset {offset}: the row there is longer than {size} bytes")


class Row(NamedTuple):
    """One row of a transcript: where it begins, its length in bytes, and whether its line feed is there."""

    offset: int
    length: int
    ended: bool


def measure_row(path: str, offset: int) -> Row:
    """How long the row at an offset is, its line feed included, read a window at a time.

    Raises OSError, ValueError for a path that cannot be one.
    """
    file = os.open(_encoded(path), os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        length = 0
        while data := os.pread(file, WINDOW, offset + length):
            if (end := data.find(b"\n")) >= 0:
                return Row(offset, length + end + 1, ended=True)
            length += len(data)
        return Row(offset, length, ended=False)
    finally:
        os.close(file)


def mtime_ms(nanoseconds: int) -> float:
    """A file time in ms, in the doubles that OpenClaw computes it with."""
    return nanoseconds // 10**9 * 1000 + nanoseconds % 10**9 / 1e6


def _read(file: int, offset: int, size: int) -> bytes:
    data = os.pread(file, size, offset)
    while len(data) < size and (more := os.pread(file, size - len(data), offset + len(data))):
        data += more
    return data


def _encoded(path: str) -> bytes:
    """The bytes of a path as OpenClaw passes them on: UTF-8, half surrogate pairs replaced."""
    try:
        encoded = path.encode()
    except UnicodeEncodeError:
        encoded = _SURROGATE.sub("\ufffd", path).encode()
    if b"\0" in encoded:
        raise ValueError("the path contains a NUL character")
    return encoded


def _refused(error: OSError | ValueError) -> Silence | Missing:
    if isinstance(error, FileNotFoundError):
        return Missing()
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return Silence(Verdict.UNREADABLE, reason)
