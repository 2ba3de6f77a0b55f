"""The painter: only what differs reaches the terminal, in its colours and its encoding."""

from __future__ import annotations

import pytest

from openclaw_state.report.board import Size
from openclaw_state.report.live import STYLES, Painter
from openclaw_state.report.panes import Span

SIZE = Size(40, 3)
LINES = [(Span("SESSION", "head"),), (Span("one "), Span("human", "human")), ()]


def test_the_first_frame_is_whole_and_the_same_lines_again_are_nothing() -> None:
    painter = Painter(color=True, encoding="utf-8")
    first = painter.frame(LINES, SIZE)
    assert first.startswith("\x1b[H\x1b[2J\x1b[1;1H\x1b[1mSESSION\x1b[0m\x1b[K\x1b[2;1H")
    assert painter.frame(LINES, SIZE) == ""


def test_only_a_line_that_differs_is_drawn() -> None:
    painter = Painter(color=True, encoding="utf-8")
    painter.frame(LINES, SIZE)
    assert painter.frame([LINES[0], (Span("two"),), ()], SIZE) == "\x1b[2;1Htwo\x1b[K"
    assert painter.frame([LINES[0], (), ()], SIZE) == "\x1b[2;1H\x1b[K"


def test_another_size_or_a_terminal_that_forgot_gets_everything() -> None:
    painter = Painter(color=True, encoding="utf-8")
    first = painter.frame(LINES, SIZE)
    assert painter.frame(LINES, Size(50, 3)) == first
    painter.forget()
    assert painter.frame(LINES, Size(50, 3)) == first


def test_without_colour_there_is_not_one_attribute() -> None:
    painter = Painter(color=False, encoding="utf-8")
    lines = [tuple(Span(role, role) for role in STYLES)]
    assert painter.frame(lines, SIZE) == "\x1b[H\x1b[2J\x1b[1;1H" + "".join(STYLES) + "\x1b[K"


@pytest.mark.parametrize("encoding", ["ascii", "iso-8859-1", "no such encoding"])
def test_what_the_terminal_cannot_encode_moves_nothing(encoding: str) -> None:
    painter = Painter(color=False, encoding=encoding)
    drawn = painter.frame([(Span("─ 日本 e\u0301… │ ·"),)], SIZE)
    assert drawn.endswith("\x1b[1;1H- ???? e~ | ,\x1b[K")


def test_markup_and_emoji_names_of_rich_are_ordinary_text() -> None:
    painter = Painter(color=True, encoding="utf-8")
    drawn = painter.frame([(Span("[bold]x[/] :smile: 42 'a' http://x"),)], Size(80, 1))
    assert drawn.endswith("\x1b[1;1H[bold]x[/] :smile: 42 'a' http://x\x1b[K")


def test_a_long_line_is_drawn_as_it_is() -> None:
    painter = Painter(color=True, encoding="utf-8")
    assert painter.frame([(Span("x" * 300),)], Size(300, 1)).count("x") == 300
    assert painter.frame([(Span("日" * 150),)], Size(300, 1)).count("日") == 150
