"""Linux's inotify through ctypes: which files of one directory changed, as soon as they do."""

from __future__ import annotations

import ctypes
import errno
import os
import struct

# linux/inotify.h; not IN_ATTRIB, because SQLite run by root sets the owner of each side file it opens
_MODIFY, _MOVED_FROM, _MOVED_TO = 0x2, 0x40, 0x80
_CREATE, _DELETE, _DELETE_SELF, _MOVE_SELF = 0x100, 0x200, 0x400, 0x800
_LOST = 0x2000 | 0x4000 | 0x8000  # unmounted, queue overflow, watch removed
_WATCHED = _MODIFY | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE | _DELETE_SELF | _MOVE_SELF
_EVENT = struct.Struct("iIII")
_BUFFER = 64 * 1024


class Inotify:
    """Watches one directory; the descriptor is readable when something happened in it."""

    def __init__(self, directory: str) -> None:
        """Raises OSError where the system has no inotify, or has no watch left to give."""
        library = ctypes.CDLL(None, use_errno=True)
        try:
            self._init, self._add = library.inotify_init1, library.inotify_add_watch
        except AttributeError:
            raise OSError(errno.ENOSYS, "this system has no inotify") from None
        self.descriptor = self._init(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            raise _last_error()
        if self._add(self.descriptor, os.fsencode(directory), _WATCHED) < 0:
            error = _last_error()
            self.close()
            raise error

    def drain(self) -> set[str] | None:
        """The names of the files that changed since the last call; None when some may be missing."""
        names: set[str] = set()
        lost = False
        while True:
            try:
                block = os.read(self.descriptor, _BUFFER)
            except BlockingIOError:
                return None if lost else names
            at = 0
            while at < len(block):
                _, mask, _, length = _EVENT.unpack_from(block, at)
                at += _EVENT.size
                lost = lost or bool(mask & (_LOST | _DELETE_SELF | _MOVE_SELF))
                names.add(os.fsdecode(block[at : at + length].rstrip(b"\0")))
                at += length

    def close(self) -> None:
        os.close(self.descriptor)


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
