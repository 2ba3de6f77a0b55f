"""Notices: the exact line, its context key, what is pending, and the in-process queue.

The watermarks live in the database; the queue lives in the memory of one process, as in a
gateway (contract, signal-log section 8).
"""

from __future__ import annotations

import re
import sqlite3
import threading
from collections.abc import Callable, Collection, Iterable, Iterator

from ..model import Cursor, Delivery, Notice, QueuedLine, Wake
from . import keys
from .cursors import Raised, newest_version

QUEUE_LIMIT = 20
COALESCE_MS = 20_000
_PREFIX = "session-state:"


def notice_text(target: str, since: int) -> str:
    """The one line that a watcher reads; the target key stands in it as it is."""
    return (
        f'Session "{target}" changed (other actor). Reconcile before acting:'
        f' session_status sessionKey "{target}" changesSince {since}.'
    )


def context_key(target: str) -> str:
    """The key under which a queued line names its target."""
    return _PREFIX + target.encode("utf-8", "surrogatepass").hex()


def decode_context_key(text: str) -> str | None:
    """The target that a context key names; None for keys that are not of this kind."""
    encoded = text.removeprefix(_PREFIX)
    if encoded == text or not re.fullmatch("(?:[0-9a-f]{2})+", encoded):
        return None
    try:
        return bytes.fromhex(encoded).decode("utf-8")
    except UnicodeDecodeError:
        return None


def wake_of(cursor: Cursor) -> tuple[str, str]:
    """When the watcher hears of it, `immediate` or `next-turn`, and why."""
    if cursor.ambient:
        return "next-turn", "ambient group watch"
    if keys.is_subagent(cursor.watcher):
        return "next-turn", "sub-agent watcher"
    return "immediate", "explicit watch"


def build(cursor: Cursor, delivery: Delivery, *, head: int, kind: str | None, since: int | None) -> Notice:
    """The notice of a pending cursor; `since` is when it became pending, epoch ms."""
    wake, reason = wake_of(cursor)
    return Notice(
        watcher=cursor.watcher,
        target=cursor.target,
        text=notice_text(cursor.target, cursor.seen),
        context_key=context_key(cursor.target),
        since=cursor.seen,
        head=head,
        kind=kind,
        pending_since=since,
        wake=wake,
        wake_reason=reason,
        delivery=delivery,
        reconcile=("openclaw-state", "status", cursor.target, "--since", str(cursor.seen)),
    )


def describe(connection: sqlite3.Connection, raised: Iterable[Raised]) -> Iterator[Notice]:
    """Notices of pending cursors, with the event that opened each while it is still retained."""
    for item in raised:
        opening = connection.execute(
            "SELECT kind, occurred_at FROM session_state_events WHERE sequence = ? AND session_key = ?",
            (item.cursor.notified, item.cursor.target),
        ).fetchone()
        kind, since = opening or (None, None)
        head = newest_version(connection, item.cursor.target)
        yield build(item.cursor, item.delivery, head=head, kind=kind, since=since)


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
                reason = _PREFIX + cursor.target
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
