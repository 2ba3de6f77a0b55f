"""The JSON shapes of the values that commands show (man page openclaw-state.5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..model import CursorReport, Delivery, Event, Notice, SessionRow

if TYPE_CHECKING:
    from ..results import Forgotten, Pruned

EVENT_FIELDS = (
    "sequence",
    "sessionKey",
    "sessionId",
    "agentId",
    "kind",
    "actorType",
    "actorId",
    "runId",
    "occurredAt",
    "summary",
    "payload",
    "dedupeKey",
)
SESSION_FIELDS = (
    "sessionKey",
    "agentId",
    "stateVersion",
    "events",
    "oldestSequence",
    "prunedMaxSequence",
    "watchers",
    "pending",
    "updatedAt",
    "lastEvent",
)
CURSOR_FIELDS = (
    "watcher",
    "target",
    "lastSeenSequence",
    "notifiedSequence",
    "materialSequence",
    "headSequence",
    "lag",
    "state",
    "pending",
    "orphaned",
    "provenance",
    "deliverable",
    "delivery",
    "deliveryDetail",
    "watcherStorePath",
    "updatedAt",
    "expiresAt",
)
NOTICE_FIELDS = (
    "watcher",
    "target",
    "text",
    "sinceVersion",
    "headVersion",
    "kind",
    "pendingSince",
    "wake",
    "wakeReason",
    "deliverable",
    "delivery",
    "reconcile",
)
CHANGE_FIELDS = ("sequence", "kind", "actorType", "occurredAt", "summary", "actorId", "runId", "payload")

PRUNED_FIELDS = (
    "dryRun",
    "cutoff",
    "maxRows",
    "eventsByAge",
    "eventsByRows",
    "sessions",
    "cursorsExpired",
    "cursorsPending",
    "headsKept",
)
FORGOTTEN_FIELDS = ("dryRun", "sessionKey", "agentId", "events", "heads", "links", "cursors")


def event_view(event: Event) -> dict[str, Any]:
    """One event, whole."""
    view = event.view()
    if event.dedupe_key:
        view["dedupeKey"] = event.dedupe_key
    return view


def session_view(row: SessionRow) -> dict[str, Any]:
    """One session of `list`."""
    return {
        "sessionKey": row.session_key,
        "agentId": row.agent_id,
        "stateVersion": row.version,
        "events": row.events,
        "oldestSequence": row.oldest,
        "prunedMaxSequence": row.watermark,
        "watchers": row.watchers,
        "pending": row.pending,
        "updatedAt": row.updated_at,
        "lastEvent": event_view(row.last) if row.last else None,
    }


def cursor_view(report: CursorReport) -> dict[str, Any]:
    """One watch, with what is known about it."""
    cursor = report.cursor
    return {
        "watcher": cursor.watcher,
        "target": cursor.target,
        "lastSeenSequence": cursor.seen,
        "notifiedSequence": cursor.notified,
        "materialSequence": cursor.material,
        "headSequence": report.head,
        "lag": report.lag,
        "state": report.state,
        "pending": cursor.pending,
        "orphaned": report.orphaned,
        "provenance": cursor.provenance,
        **_delivery_view(report.delivery),
        "deliveryDetail": report.delivery.detail,
        "watcherStorePath": cursor.store_path,
        "updatedAt": cursor.updated_at,
        "expiresAt": report.expires_at,
    }


def notice_view(notice: Notice) -> dict[str, Any]:
    """One pending notice."""
    return {
        "watcher": notice.watcher,
        "target": notice.target,
        "text": notice.text,
        "sinceVersion": notice.since,
        "headVersion": notice.head,
        "kind": notice.kind,
        "pendingSince": notice.pending_since,
        "wake": notice.wake,
        "wakeReason": notice.wake_reason,
        **_delivery_view(notice.delivery),
        "reconcile": list(notice.reconcile),
    }


def _delivery_view(delivery: Delivery) -> dict[str, Any]:
    return {"deliverable": delivery.ok, "delivery": delivery.reason}


def pruned_view(pruned: Pruned) -> dict[str, Any]:
    """A retention run, planned or done."""
    return {
        "dryRun": not pruned.applied,
        "cutoff": pruned.cutoff,
        "maxRows": pruned.max_rows,
        "eventsByAge": pruned.events_by_age,
        "eventsByRows": pruned.events_by_rows,
        "sessions": pruned.sessions,
        "cursorsExpired": pruned.cursors_expired,
        "cursorsPending": pruned.cursors_pending,
        "headsKept": pruned.heads_kept,
    }


def forgotten_view(forgotten: Forgotten) -> dict[str, Any]:
    """What a session's end removes, planned or done."""
    return {
        "dryRun": not forgotten.applied,
        "sessionKey": forgotten.session_key,
        "agentId": forgotten.agent_id,
        "events": forgotten.events,
        "heads": forgotten.heads,
        "links": forgotten.links,
        "cursors": forgotten.cursors,
    }
