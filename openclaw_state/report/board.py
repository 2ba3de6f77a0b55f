"""The live board as lines of text: what was read, and what the person wants to see, on one screen."""

from __future__ import annotations

from typing import NamedTuple

from ..model import Glance, SessionRow
from . import tables
from .escape import width
from .fit import cut, ending, fit, safe
from .panes import Line, Pane, Span, draw_pane
from .text import plural

# From here on events stand beside the sessions instead of below them.
WIDE = 160
# From so many rows on there is room for empty lines between panes.
_AIRY = 17
_BESIDE = Span(" │ ", "dim")
_FOOT = 3
# A gateway's reason is shown from so much room on.
_ENOUGH = ": no lock"

KEYS = (("q", "quit"), ("p", "pause"), ("↑↓", "select"), ("Enter", "events"), ("/", "filter"), ("?", "help"))
OPENED_KEYS = (("q", "quit"), ("p", "pause"), ("↑↓", "scroll"), ("Esc", "back"), ("?", "help"))
HELP = (
    ("q", "quit"),
    ("p", "pause: nothing moves until p is pressed again"),
    ("↑ ↓", "select a session; in its events, scroll"),
    ("PgUp PgDn", "the same by half a screen; Home, End: the ends"),
    ("Enter", "the events of the selected session, and back"),
    ("/", "only sessions whose key contains what is typed"),
    ("Esc", "back; then drop the filter, then the selection"),
    ("", ""),
    ("BEHIND", "watchers with a pending notice, of all watchers"),
    ("LAG", "notifying events that the watcher has not seen"),
    ("SINCE", "the version from which the watcher reconciles"),
    ("WAKE", "immediate, or with the watcher's next turn"),
)


class Size(NamedTuple):
    columns: int
    rows: int


class View(NamedTuple):
    """What the person has chosen to see.

    selected is (session key, agent), row its place in the list; opened is a session whose
    events fill the board, scrolled up by so many; typing tells that keys go to the filter, keyed
    that there are keys at all.
    """

    selected: tuple[str, str] | None = None
    row: int = 0
    opened: tuple[str, str] | None = None
    scroll: int = 0
    filter: str = ""
    typing: bool = False
    paused: bool = False
    helping: bool = False
    keyed: bool = True


class Place(NamedTuple):
    """Which database this is, and what is known of its gateway, of troubles with reading, and of
    the upstream monitor where it runs beside."""

    path: str
    via: str
    gateway: str = "none"
    detail: str = ""
    trouble: str | None = None
    waiting: bool = False
    monitor: str = ""


class Scene(NamedTuple):
    """What one look found; now is epoch ms."""

    glance: Glance
    place: Place
    now: int
    utc: bool = False


def draw(scene: Scene, view: View, size: Size) -> list[Line]:
    """The lines of the whole screen, from top to bottom, none wider than it."""
    foot = [
        _rule(scene, view, size.columns),
        _place(scene.place, size.columns),
        _keys(view, size.columns),
    ]
    foot = foot[-max(1, min(_FOOT, size.rows - 3)) :]
    room = Size(size.columns, max(0, size.rows - len(foot)))
    body = _body(scene, view, room)[: room.rows]
    body += [()] * (room.rows - len(body))
    return [_clipped(line, size.columns) for line in [*body, *foot]][: size.rows]


def _body(scene: Scene, view: View, room: Size) -> list[Line]:
    if view.helping:
        wide = max(width(name) for name, _ in HELP)
        return [(Span("  "), Span(fit(name, wide), "head"), Span("  " + text)) for name, text in HELP]
    if scene.place.waiting:
        return [
            (Span("  waiting for the tool's own database", "pending"),),
            (Span("  record, run and cursors add create it", "dim"),),
        ]
    if view.opened is not None:
        return _opened(scene, view, room)
    if not scene.glance.sessions and not scene.glance.events:
        if scene.place.trouble:
            return []
        nothing = "no session's key contains that" if view.filter else "no session has a version yet"
        return [(Span("  " + nothing, "dim"),)]
    return _beside(scene, view, room) if room.columns >= WIDE else _stacked(scene, view, room)


def _stacked(scene: Scene, view: View, room: Size) -> list[Line]:
    """Sessions, what is pending, and events, one below the other."""
    gap = int(room.rows >= _AIRY)
    behind = _behind(scene, room.columns, max(2, room.rows // 4 - 1))
    rest = room.rows - len(behind) - gap * (2 if behind else 1)
    least_events = min(1 + len(scene.glance.events), rest // 2)
    sessions = draw_pane(_sessions(scene, view, room.columns, rest - least_events - 1), room.columns, rest)
    lines = sessions + [()] * gap
    if behind:
        lines += behind + [()] * gap
    return lines + _events(scene, room.columns, room.rows - len(lines))


def _beside(scene: Scene, view: View, room: Size) -> list[Line]:
    """Sessions and what is pending on the left, events on the right."""
    left = (room.columns - width(_BESIDE.text)) // 2
    right = room.columns - width(_BESIDE.text) - left
    behind = _behind(scene, left, max(2, room.rows // 3 - 1))
    rest = room.rows - len(behind) - 1
    lines = draw_pane(_sessions(scene, view, left, rest - 1), left, rest)
    if behind:
        lines += [()] * (rest + 1 - len(lines)) + behind
    events = _events(scene, right, room.rows)
    lines += [()] * (room.rows - len(lines))
    events += [()] * (room.rows - len(events))
    return [
        (*_clipped(one, left, pad=True), _BESIDE, *other) for one, other in zip(lines, events, strict=True)
    ]


def _sessions(scene: Scene, view: View, columns: int, rows: int) -> Pane:
    """So many sessions around the selected one."""
    found = scene.glance.sessions
    rows = max(rows, 0)
    first = max(0, min(view.row - rows // 2, len(found) - rows)) if view.selected else 0
    shown = found[first : first + rows]
    return Pane(
        tables.SESSIONS,
        [tables.session_cells(row, scene.glance.lags, scene.now, columns, utc=scene.utc) for row in shown],
        view.row - first if view.selected else None,
    )


def _behind(scene: Scene, columns: int, most: int) -> list[Line]:
    found = scene.glance.behind[:most]
    if not found:
        return []
    rows = [tables.behind_cells(one, scene.now, columns) for one in found]
    return draw_pane(Pane(tables.BEHIND, rows), columns, 1 + most)


def _events(scene: Scene, columns: int, rows: int) -> list[Line]:
    found = scene.glance.events[-max(rows - 1, 0) :] if rows > 1 else ()
    cells = [tables.event_cells(event, scene.now, columns, utc=scene.utc) for event in found]
    return draw_pane(Pane(tables.EVENTS, cells), columns, rows)


def _opened(scene: Scene, view: View, room: Size) -> list[Line]:
    """One session: a line about it, then its events."""
    rows = {(row.session_key, row.agent_id): row for row in scene.glance.sessions}
    row = rows.get(view.opened) if view.opened else None
    key = view.opened[0] if view.opened else ""
    about = [] if row is None else _about(row)
    told = "   " + ", ".join(about)
    head = cut(safe(key, room.columns), max(20, room.columns - 2 - width(told)), middle=True)
    end = len(scene.glance.events) - view.scroll
    found = scene.glance.events[max(0, end - max(room.rows - 2, 0)) : max(end, 0)]
    cells = [tables.own_event_cells(event, scene.now, room.columns, utc=scene.utc) for event in found]
    pane = draw_pane(Pane(tables.OWN_EVENTS, cells), room.columns, room.rows - 1)
    return [(Span("  "), Span(head, "head"), Span(told)), *pane]


def _about(row: SessionRow) -> list[str]:
    """What is known of a session, the most important first."""
    behind = f"{row.pending} of {plural(row.watchers, 'watcher')} behind" if row.watchers else "not watched"
    retained = [] if row.oldest is None else [f"retained from {row.oldest}"]
    return [f"version {row.version}", behind, plural(row.events, "event"), *retained]


def _rule(scene: Scene, view: View, columns: int) -> Line:
    """A thin line with what the person has switched on, and with the counts."""
    glance = scene.glance
    parts: list[Span] = []
    if view.paused:
        parts.append(Span("paused", "pending"))
    if view.filter and not view.typing:
        parts.append(Span(f"filter {cut(safe(view.filter, 16), 16)}", "pending"))
    if not scene.place.waiting:
        pending = f"{plural(glance.total_pending, 'notice')} pending"
        parts += [
            Span(plural(glance.total_sessions, "session")),
            Span(pending, "pending" if glance.total_pending else ""),
            Span(f"newest {glance.newest}"),
        ]
    if scene.place.monitor:
        parts.append(Span(safe(scene.place.monitor, columns)))
    spans = [Span("─", "dim")]
    for number, part in enumerate(parts):
        spans += [Span(" · " if number else " "), part]
    used = sum(width(span.text) for span in spans) + 1
    return (*spans, Span(" " if parts else "─"), Span("─" * max(0, columns - used), "dim"))


def _place(place: Place, columns: int) -> Line:
    """Which database, and its gateway: the path gives way first, then the gateway's reason."""
    state, role = (place.trouble, "pending") if place.trouble else (f"gateway {place.gateway}", place.gateway)
    detail = "" if place.trouble else safe(place.detail, columns)
    whole = f"{state}: {detail}" if detail else state
    where = f"{safe(place.path, columns)} ({place.via})"
    where = cut(where, max(0, columns - 3 - width(state)), middle=True)
    left = max(0, columns - 3 - width(where))
    said = cut(whole if left > width(state) + len(_ENOUGH) else state, left)
    return (Span(where), Span("   "), Span(said, role))


def _keys(view: View, columns: int) -> Line:
    if view.typing:
        typed = ending(safe(view.filter, columns), max(8, columns - 30))
        return (Span("/", "head"), Span(typed), Span("_"), Span("   Enter keep  Esc drop", "dim"))
    if not view.keyed:
        return (
            Span("Ctrl-C", "head"),
            Span(" quit; standard input is no terminal, so there are no keys", "dim"),
        )
    if view.helping:
        return (Span("any key", "head"), Span(" back", "dim"))
    spans: list[Span] = []
    for key, meaning in KEYS if view.opened is None else OPENED_KEYS:
        spans += [Span("  " if spans else ""), Span(key, "head"), Span(f" {meaning}", "dim")]
    return tuple(spans)


def _clipped(line: Line, columns: int, *, pad: bool = False) -> Line:
    """A line no wider than the screen; padded, exactly as wide."""
    spans: list[Span] = []
    left = columns
    for span in line:
        text = cut(span.text, left)
        left -= width(text)
        spans.append(Span(text, span.role))
    if pad and left > 0:
        spans.append(Span(" " * left))
    return tuple(spans)


def until_change(scene: Scene) -> int | None:
    """Milliseconds until time alone changes a text of this scene; None for never."""
    ages = [scene.now - one.notice.pending_since for one in scene.glance.behind if one.notice.pending_since]
    waits: list[int | None] = [tables.until_older(age) for age in ages]
    waits += [tables.until_older_clock(row.updated_at, scene.now) for row in scene.glance.sessions]
    waits += [tables.until_older_clock(event.occurred_at, scene.now) for event in scene.glance.events]
    return min((wait for wait in waits if wait is not None), default=None)
