"""Notices: the exact line, its context key, and what is pending (contract, signal-log section 8)."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Iterator

from ..model import Cursor, Delivery, Notice
from . import keys
from .cursors import Raised, newest_version

PREFIX = "session-state:"


def notice_text(target: str, since: int) -> str:
    """The one line that a watcher reads; the target key stands in it as it is."""
    return (
        f'Session "{target}" changed (other actor). Reconcile before acting:'
        f' session_status sessionKey "{target}" changesSince {since}.'
    )


def context_key(target: str) -> str:
    """The key under which a queued line names its target."""
    return PREFIX + target.encode("utf-8", "surrogatepass").hex()


def decode_context_key(text: str) -> str | None:
    """The target that a context key names; None for keys that are not of this kind."""
    encoded = text.removeprefix(PREFIX)
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
