"""What the panes of the live board tell of a session, a pending notice and an event."""

from __future__ import annotations

from collections.abc import Mapping

from ..model import ACTORS, Behind, Event, SessionRow
from ..timespec import DAY_MS, format_clock, format_day, format_duration
from .fit import safe
from .panes import Cell, Column

_SECOND, _MINUTE, _HOUR = 1_000, 60_000, 3_600_000
# An age is told to the second as long as that may matter to somebody.
_EXACT_MS = 10 * _MINUTE

SESSIONS = (
    Column("SESSION", 0, least=20, middle=True),
    Column("VERSION", 1, right=True),
    Column("CHANGED", 4),
    Column("BEHIND", 2, right=True),
    Column("LAG", 3, right=True),
    Column("LAST", 5, least=12),
    Column("ACTOR", 6, extra=True),
    Column("EVENTS", 7, right=True, extra=True),
    Column("AGENT", 8, least=8, extra=True),
)
BEHIND = (
    Column("WATCHER", 0, least=14, middle=True),
    Column("TARGET", 1, least=14, middle=True),
    Column("AGE", 2),
    Column("WAKE", 3),
    Column("LAG", 4, right=True),
    Column("SINCE", 5, right=True, extra=True),
    Column("HEAD", 6, right=True, extra=True),
    Column("KIND", 7, least=12, extra=True),
    Column("DELIVERY", 8, extra=True),
)
EVENTS = (
    Column("SEQUENCE", 0, right=True),
    Column("TIME", 4),
    Column("KIND", 1, least=12),
    Column("ACTOR", 2),
    Column("SESSION", 3, least=16, middle=True),
    Column("SUMMARY", 5, least=16),
)
OWN_EVENTS = (
    Column("SEQUENCE", 0, right=True),
    Column("TIME", 3),
    Column("KIND", 1, least=12),
    Column("ACTOR", 2),
    Column("SUMMARY", 4, least=12),
    Column("WHO", 6, least=12, middle=True),
    Column("RUN", 5, least=12, middle=True),
)


def session_cells(
    row: SessionRow, lags: Mapping[str, int], now: int, columns: int, *, utc: bool
) -> list[Cell]:
    """One session: how far it has come, who is behind, and what happened last."""
    state = "pending" if row.pending else ""
    return [
        Cell(safe(row.session_key, columns)),
        Cell(str(row.version)),
        Cell(when(row.updated_at, now, utc=utc)),
        Cell(f"{row.pending}/{row.watchers}" if row.watchers else "-", state),
        Cell(str(lags.get(row.session_key, 0)) if row.watchers else "-", state),
        Cell(safe(row.last.kind, columns) if row.last else "-"),
        _actor(row.last, columns) if row.last else Cell("-"),
        Cell(str(row.events)),
        Cell(safe(row.agent_id, columns)),
    ]


def behind_cells(one: Behind, now: int, columns: int) -> list[Cell]:
    """One pending notice: who waits, since when, and how the watcher will hear of it."""
    notice = one.notice
    told = "-" if notice.pending_since is None else age(now - notice.pending_since)
    return [
        Cell(safe(notice.watcher, columns)),
        Cell(safe(notice.target, columns)),
        Cell(told, "pending"),
        Cell(notice.wake),
        Cell(str(one.lag)),
        Cell(str(notice.since)),
        Cell(str(notice.head)),
        Cell(safe(notice.kind or "-", columns)),
        Cell(notice.delivery.reason, "" if notice.delivery.ok else "pending"),
    ]


def event_cells(event: Event, now: int, columns: int, *, utc: bool) -> list[Cell]:
    """One event of any session."""
    return [
        Cell(str(event.sequence)),
        Cell(when(event.occurred_at, now, utc=utc)),
        Cell(safe(event.kind, columns)),
        _actor(event, columns),
        Cell(safe(event.session_key, columns)),
        Cell(safe(event.summary, columns)),
    ]


def own_event_cells(event: Event, now: int, columns: int, *, utc: bool) -> list[Cell]:
    """One event of the session that is open: its key is known, who and which run tell more."""
    sequence, time, kind, actor, _, summary = event_cells(event, now, columns, utc=utc)
    who = Cell(safe(event.actor_id or "-", columns))
    return [sequence, time, kind, actor, summary, who, Cell(safe(event.run_id or "-", columns))]


def _actor(event: Event, columns: int) -> Cell:
    role = event.actor_type if event.actor_type in ACTORS else ""
    return Cell(safe(event.actor_type, min(columns, 12)), role)


def when(instant: int, now: int, *, utc: bool) -> str:
    """A clock time for the last 24 hours, else the day."""
    recent = 0 <= now - instant < DAY_MS
    return format_clock(instant, utc=utc) if recent else format_day(instant, utc=utc)


def until_older_clock(instant: int, now: int) -> int | None:
    """Milliseconds until `when` says something else of the same instant; None for never."""
    if instant > now:
        return instant - now
    left = instant + DAY_MS - now
    return left if left > 0 else None


def age(duration: int) -> str:
    """`36 s`, `1 m 36 s`; minutes from ten minutes on, so that a long wait does not flicker."""
    duration = max(0, duration)
    return format_duration(duration - duration % _unit(duration))


def until_older(duration: int) -> int:
    """Milliseconds until `age` says something else."""
    if duration < 0:
        return _SECOND - duration
    unit = _unit(duration)
    return unit - duration % unit


def _unit(duration: int) -> int:
    if duration < _EXACT_MS:
        return _SECOND
    return _MINUTE if duration < DAY_MS else _HOUR
