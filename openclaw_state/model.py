"""The frozen values that cross a layer.

Times are epoch milliseconds; a sequence is a number of the log, 0 means "none yet".
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple, NoReturn

NOTIFYING_KINDS = ("human_direct_message", "upstream_missing", "goal_changed")
KINDS = (
    "created",
    *NOTIFYING_KINDS,
    "child_spawned",
    "run_completed",
    "run_failed",
    "compacted",
    "adopted",
)
# What a follower does when retention overtook its position.
ON_GAP = ("fail", "snapshot", "skip")
ACTORS = ("human", "agent", "system")
OUTCOMES = ("error", "timeout", "cancelled")


class Event(NamedTuple):
    """One row of the signal log (contract, signal-log section 4)."""

    sequence: int
    session_key: str
    agent_id: str
    kind: str
    actor_type: str
    occurred_at: int
    summary: str
    session_id: str | None = None
    actor_id: str | None = None
    run_id: str | None = None
    dedupe_key: str | None = None
    payload_json: str | None = None

    @property
    def payload(self) -> dict[str, Any] | None:
        """The payload when it parses to a JSON object, else None."""
        if not self.payload_json:
            return None
        try:
            value = json.loads(self.payload_json, parse_float=_finite, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    def view(self) -> dict[str, Any]:
        """The whole event as OpenClaw returns it to callers (contract section 6)."""
        view: dict[str, Any] = {"sequence": self.sequence, "sessionKey": self.session_key}
        if self.session_id:
            view["sessionId"] = self.session_id
        view |= {"agentId": self.agent_id, "kind": self.kind, "actorType": self.actor_type}
        if self.actor_id:
            view["actorId"] = self.actor_id
        if self.run_id:
            view["runId"] = self.run_id
        view |= {"occurredAt": self.occurred_at, "summary": self.summary}
        if (payload := self.payload) is not None:
            view["payload"] = payload
        return view

    def change(self) -> dict[str, Any]:
        """The event as `session_status` shows it to agents (contract section 13)."""
        view: dict[str, Any] = {
            "sequence": self.sequence,
            "kind": self.kind,
            "actorType": self.actor_type,
            "occurredAt": self.occurred_at,
            "summary": self.summary,
        }
        if self.actor_id:
            view["actorId"] = self.actor_id
        if self.run_id:
            view["runId"] = self.run_id
        if shown := _shown_payload(self.payload or {}):
            view["payload"] = shown
        return view


def _finite(text: str) -> float | None:
    """A number past every float is null when OpenClaw writes it out again."""
    number = float(text)
    return number if math.isfinite(number) else None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")


def _shown_payload(payload: dict[str, Any]) -> dict[str, Any]:
    shown: dict[str, Any] = {}
    if payload.get("outcome") in OUTCOMES:
        shown["outcome"] = payload["outcome"]
    if isinstance(payload.get("channel"), str):
        shown["channel"] = payload["channel"]
    turns = payload.get("turns")
    if isinstance(turns, int | float) and not isinstance(turns, bool) and turns > 0 and turns % 1 == 0:
        shown["turns"] = int(turns)
    return shown


class Head(NamedTuple):
    """A session's state version under one agent; it outlives its events."""

    session_key: str
    agent_id: str
    version: int
    watermark: int
    updated_at: int


class Changes(NamedTuple):
    """The answer of changesSince (contract section 13)."""

    events: tuple[Event, ...]
    truncated: bool
    earliest_available: int
    history_gap: bool

    def view(self) -> dict[str, Any]:
        """`stateChanges` as `session_status` renders it."""
        return {
            "events": [event.change() for event in self.events],
            "truncated": self.truncated,
            "earliestAvailableSequence": self.earliest_available,
            "historyGap": self.history_gap,
        }


class SessionRow(NamedTuple):
    """One line of `list`: a head with what the log still holds of it."""

    session_key: str
    agent_id: str
    version: int
    watermark: int
    events: int
    oldest: int | None
    watchers: int
    pending: int
    last: Event | None
    updated_at: int


class Cursor(NamedTuple):
    """One watch: how far a watcher has seen, been notified of, and is behind a target.

    pending means material > seen, reopening means material > notified (contract section 7).
    """

    watcher: str
    target: str
    seen: int
    notified: int
    material: int
    provenance: str
    updated_at: int
    store_path: str | None = None

    @property
    def pending(self) -> bool:
        return self.material > self.seen

    @property
    def reopening(self) -> bool:
        return self.material > self.notified

    @property
    def ambient(self) -> bool:
        return self.provenance == "ambient-group"


class Delivery(NamedTuple):
    """Would a gateway hand a notice to this watcher? `ok` None is "cannot be known"."""

    ok: bool | None
    reason: str
    detail: str = ""


class CursorReport(NamedTuple):
    """A cursor with what the log and the surroundings say about it.

    lag counts retained notifying events after `seen`; head is the target's newest version;
    orphaned None means that the session stores could not answer; expires_at is when
    retention removes the cursor if nothing touches it.
    """

    cursor: Cursor
    head: int
    lag: int
    orphaned: bool | None
    delivery: Delivery
    expires_at: int

    @property
    def state(self) -> str:
        if self.orphaned:
            return "orphaned"
        if self.cursor.reopening and self.cursor.pending:
            return "reopening"
        return "pending" if self.cursor.pending else "quiet"


class Notice(NamedTuple):
    """One pending stale-state notice of a watcher about a target.

    since is the version to reconcile from; kind and pending_since describe the event that
    opened it (None once pruned); wake is `immediate` or `next-turn`, with the reason.
    """

    watcher: str
    target: str
    text: str
    context_key: str
    since: int
    head: int
    kind: str | None
    pending_since: int | None
    wake: str
    wake_reason: str
    delivery: Delivery
    reconcile: tuple[str, ...]

    @property
    def identity(self) -> tuple[str, str, int]:
        """(watcher, target, seen): the same as long as the notice stays pending."""
        return self.watcher, self.target, self.since


class Behind(NamedTuple):
    """A pending notice and its watcher's lag (as in CursorReport)."""

    notice: Notice
    lag: int


class Glance(NamedTuple):
    """The newest of a log as one moment shows it, no longer than a screen.

    lags holds, by session key, the greatest lag of a session's watchers; the totals count also
    what was left out, newest is the log's newest sequence.
    """

    sessions: tuple[SessionRow, ...] = ()
    total_sessions: int = 0
    lags: Mapping[str, int] = {}
    behind: tuple[Behind, ...] = ()
    total_pending: int = 0
    events: tuple[Event, ...] = ()
    newest: int = 0


class Limits(NamedTuple):
    """Retention limits: age in milliseconds, and how many rows stay."""

    max_age_ms: int = 2_592_000_000
    max_rows: int = 50_000


class Link(NamedTuple):
    """A session adopted from another program's catalog (contract section 15)."""

    session_key: str
    agent_id: str
    catalog_id: str
    host_id: str
    thread_id: str
    upstream_kind: str
    upstream_ref: Any
    marker: Any
    created_at: int
    updated_at: int
    last_scanned_at: int | None = None

    @property
    def source(self) -> str:
        """What is followed, in one word: a file, else the thread."""
        path = self.upstream_ref.get("filePath") if isinstance(self.upstream_ref, dict) else None
        return path if isinstance(path, str) and path else self.thread_id
