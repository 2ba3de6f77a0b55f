"""What every changing part of the API needs besides an open database."""

from __future__ import annotations

from collections.abc import Iterable

from ..core import cursors
from ..core.queue import Queue
from .opened import Opened


class Changing(Opened):
    """An open database with the queue of notices and wakes of this process."""

    def _prepare(self) -> None:
        self._queue = Queue()

    def ensure_writable(self) -> None:
        """Raise now what the next change would raise: BusyError, RefusedError; nothing is written."""
        with self._database.writing():
            pass

    def _push(self, raised: Iterable[cursors.Raised]) -> None:
        for item in raised:
            self._queue.push(item.cursor, item.delivery)
