"""Lines of text for people: events, cursors, notices."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..model import KINDS, CursorReport, Event, Notice, SessionRow
from ..timespec import format_clock, format_duration, format_instant
from .escape import escape
from .text import Cell, Column, Palette, table

DAY_MS = 86_400_000
_KIND_WIDTH = max(map(len, KINDS))
_ACTOR_WIDTH = len("system")


class Style(NamedTuple):
    """How text is drawn: colours, the terminal's width, the clock and its zone."""

    palette: Palette
    width: int | None
    now: int
    utc: bool

    def when(self, instant: int) -> str:
        """A clock time for the last 24 hours, else date and time."""
        if 0 <= self.now - instant < DAY_MS:
            return format_clock(instant, utc=self.utc)
        return format_instant(instant, utc=self.utc)

    def ago(self, instant: int) -> str:
        return format_duration(max(0, self.now - instant))


def event_line(event: Event, style: Style, *, session: bool = True) -> str:
    """One event: sequence, time, kind, actor, session, summary."""
    actor = style.palette.actor(event.actor_type, escape(event.actor_type).ljust(_ACTOR_WIDTH))
    parts = [
        str(event.sequence).rjust(6),
        style.when(event.occurred_at),
        escape(event.kind).ljust(_KIND_WIDTH),
        actor,
    ]
    if session:
        parts.append(escape(event.session_key))
    return "  ".join([*parts, escape(event.summary)])


def session_table(rows: Iterable[SessionRow], style: Style) -> Iterator[str]:
    """The table of `list`."""
    columns = [
        Column("SESSION"),
        Column("AGENT"),
        Column("VERSION", right=True),
        Column("EVENTS", right=True),
        Column("OLDEST", right=True),
        Column("WATCHERS", right=True),
        Column("PENDING", right=True),
        Column("CHANGED"),
        Column("LAST"),
    ]
    cells = (
        [
            row.session_key,
            row.agent_id,
            row.version,
            row.events,
            row.oldest,
            row.watchers,
            row.pending,
            style.when(row.updated_at),
            row.last.kind if row.last else None,
        ]
        for row in rows
    )
    return table(columns, cells, width=style.width, palette=style.palette)


def cursor_table(reports: Iterable[CursorReport], style: Style) -> Iterator[str]:
    """The table of `cursors list`."""
    names = ("WATCHER", "TARGET")
    numbers = ("SEEN", "NOTIFIED", "MATERIAL", "HEAD", "LAG")
    words = ("STATE", "PROVENANCE", "DELIVERY", "EXPIRES")
    cells: Iterable[list[Cell]] = (
        [
            report.cursor.watcher,
            report.cursor.target,
            report.cursor.seen,
            report.cursor.notified,
            report.cursor.material,
            report.head,
            report.lag,
            report.state,
            report.cursor.provenance,
            report.delivery.reason,
            expiry(report, style.now),
        ]
        for report in reports
    )
    columns = [Column(head, right=head in numbers) for head in (*names, *numbers, *words)]
    return table(columns, cells, width=style.width, palette=style.palette)


def expiry(report: CursorReport, now: int) -> str:
    """The time left before retention removes a watch; a pending one that would be lost is marked."""
    left = report.expires_at - now
    mark = " !" if report.cursor.pending and left < DAY_MS else ""
    return ("due" if left < 0 else format_duration(left)) + mark


def watcher_line(report: CursorReport, notice: Notice | None, style: Style) -> str:
    """One watcher of a session, as `status` lists it."""
    cursor = report.cursor
    who = f"watched by {escape(cursor.watcher)}: "
    if not cursor.pending:
        return f"{who}quiet, seen {cursor.seen}"
    since = f" ({style.ago(notice.pending_since)})" if notice and notice.pending_since is not None else ""
    reopens = f", reopens at {cursor.material}" if cursor.reopening else ""
    return style.palette.warn(f"{who}notice pending since {cursor.seen}{since}{reopens}")


def notice_lines(notice: Notice, style: Style) -> Iterator[str]:
    """One pending notice: the exact line, then whom it waits for and how it will be heard."""
    yield escape(notice.text)
    age = f", pending for {style.ago(notice.pending_since)}" if notice.pending_since is not None else ""
    yield f"  for {escape(notice.watcher)}: wake {notice.wake} ({notice.wake_reason}){age}"
    if notice.delivery.ok is not True:
        yield style.palette.warn(f"  delivery: {notice.delivery.reason} ({escape(notice.delivery.detail)})")
