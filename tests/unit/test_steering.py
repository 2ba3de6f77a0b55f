"""Keys: what a terminal sends, and what each does to the view."""

from __future__ import annotations

import pytest

from openclaw_state.cli.keys import finished, parse
from openclaw_state.cli.steering import MOST_ROWS, press, settle
from openclaw_state.model import Glance, SessionRow
from openclaw_state.report.board import Size, View
from tests.support import T

SIZE = Size(100, 30)


def row(name: str) -> SessionRow:
    return SessionRow(name, "main", 1, 0, 1, 1, 0, 0, None, T)


GLANCE = Glance(sessions=tuple(map(row, "abcdefgh")))


def after(view: View, *keys: str, glance: Glance = GLANCE) -> View:
    for key in keys:
        found = press(view, key, glance, SIZE)
        assert found is not None
        view = found
    return view


@pytest.mark.parametrize(
    ("sent", "keys"),
    [
        ("q", ["q"]),
        ("p/?", ["p", "/", "?"]),
        ("\x1b[A\x1b[B", ["up", "down"]),
        ("\x1bOA\x1bOB", ["up", "down"]),
        ("\x1b[1~\x1b[4~\x1b[H\x1bOF", ["home", "end", "home", "end"]),
        ("\x1b[5~\x1b[6~", ["page up", "page down"]),
        ("\r\n", ["enter", "enter"]),
        ("\x7f\b\x15", ["backspace", "backspace", "erase"]),
        ("\x1b\x1b[A", ["escape", "up"]),
        ("\x1b\x1b", ["escape"]),
        ("\x1bq", ["escape", "q"]),
        ("日é", ["日", "é"]),
        ("\x1b[1;5A\x1b[200~\x1b[<0;1;1M\x00\x01\u202e", []),
    ],
    ids=ascii,
)
def test_what_a_terminal_sends_is_read_as_keys(sent: str, keys: list[str]) -> None:
    found, rest = parse(sent)
    assert found == keys
    assert rest == ("\x1b" if sent == "\x1b\x1b" else "")


@pytest.mark.parametrize("beginning", ["\x1b", "\x1b[", "\x1bO", "\x1b[1;"], ids=ascii)
def test_the_beginning_of_a_sequence_waits_for_its_end(beginning: str) -> None:
    assert parse("q" + beginning) == (["q"], beginning)
    assert finished(beginning) == (["escape"] if beginning == "\x1b" else [])


def test_q_quits_except_where_text_is_typed() -> None:
    assert press(View(), "q", GLANCE, SIZE) is None
    assert press(View(opened=("a", "main")), "q", GLANCE, SIZE) is None
    assert after(View(), "/", "q").filter == "q"
    assert after(View(), "?", "q") == View()


def test_pause_goes_on_and_off() -> None:
    assert after(View(), "p").paused
    assert not after(View(), "p", "p").paused


def test_arrows_select_and_stop_at_the_ends() -> None:
    assert after(View(), "down").selected == ("a", "main")
    assert after(View(), "down", "down", "down").selected == ("c", "main")
    assert after(View(), "down", "up", "up").row == 0
    last = settle(after(View(), "end"), GLANCE, SIZE)
    assert last.selected == ("h", "main")
    assert after(last, "down").row == 7
    assert after(last, "home").row == 0
    assert after(View(), "down", "page down").row == 7
    assert after(View(), "down", glance=Glance()).selected is None


def test_the_mark_follows_its_session_when_others_change() -> None:
    view = after(View(), "down", "down")
    moved = Glance(sessions=tuple(map(row, "hgfedcba")))
    assert settle(view, moved, SIZE) == view._replace(row=6)
    assert settle(view, Glance(sessions=(row("z"),)), SIZE).selected == ("z", "main")
    assert settle(view, Glance(), SIZE).selected is None
    assert settle(View(), moved, SIZE) == View()


def test_enter_opens_the_selected_session_or_the_first() -> None:
    assert after(View(), "enter").opened == ("a", "main")
    opened = after(View(), "down", "down", "enter")
    assert opened.opened == ("b", "main")
    for key in ("enter", "escape", "left"):
        assert after(opened, key) == after(View(), "down", "down")


def test_an_opened_session_scrolls_within_what_there_is() -> None:
    opened = after(View(), "enter", "up", "up")
    assert opened.scroll == 2
    assert after(opened, "down", "down", "down").scroll == 0
    assert after(opened, "home").scroll == MOST_ROWS
    assert after(opened, "home", "end").scroll == 0
    assert settle(opened, Glance(), SIZE).scroll == 0


def test_a_filter_is_typed_corrected_kept_and_dropped() -> None:
    typed = after(View(), "down", "/", "w", "x", "backspace", "日")
    assert (typed.filter, typed.typing, typed.selected) == ("w日", True, None)
    kept = after(typed, "enter")
    assert (kept.filter, kept.typing) == ("w日", False)
    assert after(typed, "escape") == View()
    assert after(kept, "escape") == View()
    assert after(kept, "/", "erase", "enter") == View()
    assert after(View(), "/", "up", "page down").filter == ""
    assert len(after(View(), "/", *"x" * 1_000).filter) == 200


def test_escape_drops_the_selection_last() -> None:
    view = after(View(), "/", "a", "enter", "down")
    assert after(view, "escape").filter == ""
    assert after(view, "escape", "escape") == View()
