"""Recording one event by the gateway's rules (contract, signal-log sections 5 and 6)."""

from __future__ import annotations

import math
import sqlite3
from typing import Any, NamedTuple

from ..errors import UsageError
from ..model import NOTIFYING_KINDS, Event
from . import watches
from .cursors import Raised
from .javascript import is_falsy
from .jsontext import json_text
from .schema import EVENT_COLUMNS
from .shape import Shape
from .surroundings import Surroundings

CLAMP_MS = 86_400_000


class Draft(NamedTuple):
    """An event before it is stored; `occurred_at` is epoch ms, anything not a finite number is "now"."""

    session_key: str
    agent_id: str
    kind: str
    actor_type: str
    summary: str
    session_id: str | None = None
    actor_id: str | None = None
    run_id: str | None = None
    dedupe_key: str | None = None
    payload: Any = None
    occurred_at: Any = None
    watchers: tuple[str, ...] = ()


class Appended(NamedTuple):
    """The stored event (None when an empty dedupe key hid it), and the cursors it raised."""

    event: Event | None
    duplicate: bool
    raised: tuple[Raised, ...] = ()


def append(
    connection: sqlite3.Connection,
    shape: Shape,
    surroundings: Surroundings,
    draft: Draft,
    *,
    now: int,
    strict: bool = False,
) -> Appended:
    """Store one event, move its head and its watchers' cursors; runs inside a write transaction.

    A known dedupe key returns the event that holds it and burns one sequence number. A
    fractional time is floored, unless strict asks for OpenClaw's failure.
    Raises UsageError when JSON or the database refuses a value.
    """
    occurred_at = clamp(draft.occurred_at, now, strict=strict)
    payload = _payload_text(draft.payload)
    cursor = connection.execute(
        "INSERT INTO session_state_events (dedupe_key, session_key, session_id, agent_id, kind, actor_type,"
        " actor_id, run_id, occurred_at, summary, payload_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        " ON CONFLICT (dedupe_key) DO NOTHING",
        (
            draft.dedupe_key,
            draft.session_key,
            draft.session_id,
            draft.agent_id,
            draft.kind,
            draft.actor_type,
            draft.actor_id,
            draft.run_id,
            occurred_at,
            draft.summary,
            payload,
        ),
    )
    if not cursor.rowcount:
        return Appended(holder(connection, draft.dedupe_key), duplicate=True)
    sequence = cursor.lastrowid or 0
    connection.execute(
        "INSERT INTO session_state_heads (session_key, agent_id, last_sequence, updated_at)"
        " VALUES (?, ?, ?, ?) ON CONFLICT (session_key, agent_id) DO UPDATE"
        " SET last_sequence = excluded.last_sequence, updated_at = excluded.updated_at",
        (draft.session_key, draft.agent_id, sequence, now),
    )
    event = Event(
        sequence,
        draft.session_key,
        draft.agent_id,
        draft.kind,
        draft.actor_type,
        int(occurred_at),
        draft.summary,
        draft.session_id,
        draft.actor_id,
        draft.run_id,
        draft.dedupe_key,
        payload,
    )
    named = watches.named_watchers(draft.watchers)
    if draft.kind == "child_spawned":
        watches.seed_spawn(
            connection,
            shape,
            surroundings,
            target=draft.session_key,
            sequence=sequence,
            watchers=named,
            now=now,
        )
    elif draft.kind in NOTIFYING_KINDS:
        raised = watches.freeze(
            connection,
            shape,
            surroundings,
            target=draft.session_key,
            sequence=sequence,
            actor_id=draft.actor_id,
            watchers=named,
            now=now,
        )
        return Appended(event, duplicate=False, raised=tuple(raised))
    return Appended(event, duplicate=False)


def clamp(occurred_at: Any, now: int, *, strict: bool = False) -> int | float:
    """Keep a time within the last 24 hours; absent, textual and non-finite times are now."""
    if isinstance(occurred_at, bool) or not isinstance(occurred_at, int | float):
        return now
    if isinstance(occurred_at, float) and not math.isfinite(occurred_at):
        return now
    kept = min(max(occurred_at, now - CLAMP_MS), now)
    return kept if strict and kept != int(kept) else math.floor(kept)


def _payload_text(payload: Any) -> str | None:
    if is_falsy(payload):
        return None
    try:
        return json_text(payload)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(f"the payload cannot be written as JSON: {error}") from error


def holder(connection: sqlite3.Connection, dedupe_key: str | None) -> Event | None:
    """The event that has a dedupe key."""
    if not dedupe_key:
        return None
    row = connection.execute(
        f"SELECT {EVENT_COLUMNS} FROM session_state_events WHERE dedupe_key = ?", (dedupe_key,)
    ).fetchone()
    return Event(*row) if row else None
