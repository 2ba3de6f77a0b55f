"""Which sessions of the tool's own file `forget --older-than` takes: maintenance over state versions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ..errors import RefusedError
from ..log.reading import Reading
from ..model import SessionRow
from ..report.escape import escape
from ..sessions.limits import MaintenancePolicy
from ..sessions.maintenance import KEEP, PlannedRow, plan_maintenance
from ..sessions.protection import StoredSession
from ..timespec import SAFE_MAX


class Doomed(NamedTuple):
    """The sessions to forget with what took them, and how many a rule keeps though they are old."""

    rows: tuple[tuple[SessionRow, PlannedRow], ...]
    protected: int


def choose_old(
    log: Reading,
    now: int,
    *,
    older_than_ms: int | None,
    synthetic_only: bool,
    max_sessions: int | None,
    agent_id: str | None,
) -> Doomed:
    """By age, then the least recently changed of what is beyond max_sessions.

    The classes and protections are those of session maintenance (contract, sessions 6.2 and 6.3);
    a log has nothing to archive, so what would be archived is forgotten. Raises RefusedError for
    a database that a gateway keeps.
    """
    if not log.embedded:
        raise RefusedError(
            "a gateway's own database forgets a session when the gateway removes it",
            hint="openclaw-state sessions cleanup plans that; forget KEY removes one session's log",
        )
    rows = sorted(log.sessions(agent_id=agent_id), key=lambda row: (row.session_key.encode(), row.agent_id))
    policy = MaintenancePolicy(
        prune_after_ms=SAFE_MAX if older_than_ms is None else older_than_ms,
        archive_dashboard_after_ms=None,
        max_entries=max(len(rows), 1) if max_sessions is None else max_sessions,
        # Whatever a person opened counts as recent, and is kept.
        preserve_recent_ms=SAFE_MAX if synthetic_only else None,
    )
    stored = [StoredSession(row.session_key, {"updatedAt": row.updated_at}) for row in rows]
    planned = list(zip(rows, plan_maintenance(stored, policy, now).rows, strict=True))
    kept = sum(row.protected and row.reason != "recent" for _, row in planned)
    return Doomed(tuple(pair for pair in planned if pair[1].action != KEEP), kept)


def doomed_lines(doomed: Doomed, verb: str) -> Iterator[str]:
    """One line for each session: what took it."""
    for row, planned in doomed.rows:
        yield f"{verb} {escape(row.session_key)}  ({planned.kind}: {planned.reason})"
