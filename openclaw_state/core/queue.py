"""The queue of notices in the memory of one process, as a gateway has it.

Watermarks live in the database, queued lines do not (contract, signal-log section 8).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from ..model import Cursor, Delivery
from ..results import QueuedLine, Wake
from . import keys
from .notices import PREFIX, context_key, notice_text, wake_of

QUEUE_LIMIT = 20
COALESCE_MS = 20_000


class Queue:
    """The lines that wait for each watcher's next turn in this process, and the wakes asked for."""

    def __init__(self) -> None:
        self._lines: dict[str, list[QueuedLine]] = {}
        self._wakes: dict[Wake, None] = {}
        self._lock = threading.Lock()

    def push(self, cursor: Cursor, delivery: Delivery) -> None:
        """Queue the line of a pending cursor and ask for its wake.

        An undeliverable line is dropped; the wake is asked for all the same, not current.
        """
        line = QueuedLine(
            notice_text(cursor.target, cursor.seen),
            context_key(cursor.target),
            cursor.store_path,
            cursor.watcher,
        )
        with self._lock:
            if delivery.ok is not False:
                self._add(line, replaces=cursor.ambient)
            if wake_of(cursor)[0] == "immediate":
                reason = PREFIX + cursor.target
                current = delivery.ok is not False
                self._wakes[Wake(cursor.watcher, reason, "immediate", COALESCE_MS, current)] = None

    def _add(self, line: QueuedLine, *, replaces: bool) -> None:
        lines = self._lines.setdefault(keys.fold(line.watcher), [])
        same_target = [other for other in lines if other.context_key == line.context_key]
        if any(other.text == line.text for other in same_target):
            return
        if replaces and same_target:
            lines[lines.index(same_target[0])] = line
            return
        lines.append(line)
        del lines[:-QUEUE_LIMIT]

    def peek(self, watcher: str) -> list[QueuedLine]:
        """The lines waiting for a watcher, oldest first."""
        with self._lock:
            return list(self._lines.get(keys.fold(watcher), ()))

    def consume(self, watcher: str) -> list[QueuedLine]:
        """Take the lines of a watcher out of the queue."""
        with self._lock:
            return self._lines.pop(keys.fold(watcher), [])

    def settle(self, watcher: str, context_keys: Collection[str]) -> None:
        """Drop the lines of targets that the watcher has acknowledged by another way."""
        with self._lock:
            lines = self._lines.get(keys.fold(watcher), [])
            lines[:] = [line for line in lines if line.context_key not in context_keys]

    def retire(self, deliverable: Callable[[QueuedLine], bool]) -> None:
        """Drop the lines that a new store configuration no longer delivers."""
        with self._lock:
            kept = {key: [line for line in lines if deliverable(line)] for key, lines in self._lines.items()}
            self._lines = {key: lines for key, lines in kept.items() if lines}

    def watchers(self) -> list[str]:
        """The folded keys that have lines waiting."""
        with self._lock:
            return sorted(key for key, lines in self._lines.items() if lines)

    def take_wakes(self) -> list[Wake]:
        """The wakes asked for since the last call, each once."""
        with self._lock:
            wakes, self._wakes = self._wakes, {}
            return list(wakes)
