"""What keys do to the live board: a view before, a view after."""

from __future__ import annotations

from ..model import Glance
from ..report.board import Size, View

# Scrolling leads no further back than this; the filter finds what lies behind.
MOST_ROWS = 500
_MOST_TYPED = 200
_STEPS = {"up": -1, "down": 1}


def press(view: View, key: str, glance: Glance, size: Size) -> View | None:
    """The view after a key; None to quit."""
    if view.helping:
        return view._replace(helping=False)
    if view.typing:
        return _typed(view, key)
    match key:
        case "q":
            return None
        case "p":
            return view._replace(paused=not view.paused)
        case "?":
            return view._replace(helping=True)
    return _scrolled(view, key, size) if view.opened else _moved(view, key, glance, size)


def _typed(view: View, key: str) -> View:
    match key:
        case "enter":
            return view._replace(typing=False)
        case "escape":
            return _filtered(view._replace(typing=False), "")
        case "backspace":
            return _filtered(view, view.filter[:-1])
        case "erase":
            return _filtered(view, "")
    return _filtered(view, view.filter + key) if len(key) == 1 and len(view.filter) < _MOST_TYPED else view


def _filtered(view: View, text: str) -> View:
    return view if text == view.filter else view._replace(filter=text, selected=None, row=0)


def _scrolled(view: View, key: str, size: Size) -> View:
    """The events of one session: up is back in time."""
    if key in ("escape", "enter", "left"):
        return view._replace(opened=None, scroll=0)
    if key == "home":
        return view._replace(scroll=MOST_ROWS)
    if key == "end":
        return view._replace(scroll=0)
    return view._replace(scroll=min(MOST_ROWS, max(0, view.scroll - _step(key, size))))


def _moved(view: View, key: str, glance: Glance, size: Size) -> View:
    match key:
        case "/":
            return view._replace(typing=True)
        case "escape":
            return _filtered(view, "") if view.filter else view._replace(selected=None, row=0)
        case "enter" | "right":
            chosen = view if view.selected else _selected(view, 0, glance)
            return chosen._replace(opened=chosen.selected, scroll=0)
        case "home":
            return _selected(view, 0, glance)
        case "end":
            # The last of more sessions than were read: settle finds it after the next look.
            return view._replace(selected=("", ""), row=MOST_ROWS)
    step = _step(key, size)
    if not step:
        return view
    return _selected(view, view.row + step if view.selected else 0, glance)


def _step(key: str, size: Size) -> int:
    page = max(1, size.rows // 2)
    return {**_STEPS, "page up": -page, "page down": page}.get(key, 0)


def _selected(view: View, row: int, glance: Glance) -> View:
    if not glance.sessions:
        return view._replace(selected=None, row=0)
    row = max(0, min(row, len(glance.sessions) - 1))
    found = glance.sessions[row]
    return view._replace(selected=(found.session_key, found.agent_id), row=row)


def settle(view: View, glance: Glance, size: Size) -> View:
    """The view after a new look: the selected session keeps its mark wherever it stands now."""
    if view.opened:
        view = view._replace(scroll=min(view.scroll, max(0, len(glance.events) - (size.rows - 5))))
    if view.selected is None:
        return view
    for row, session in enumerate(glance.sessions):
        if (session.session_key, session.agent_id) == view.selected:
            return view._replace(row=row)
    return view if view.opened else _selected(view, view.row, glance)
