"""Tables, blocks, colours and counts, as plain lines."""

from __future__ import annotations

import pytest

from openclaw_state.report.escape import escape, width
from openclaw_state.report.text import Column, Palette, plural, table, use_color

PLAIN = Palette(enabled=False)
COLOURED = Palette(enabled=True)
COLUMNS = [Column("WATCHER"), Column("SEEN", right=True), Column("STATE")]
ROWS = [["agent:main:main", 12, "pending"], ["agent:work", 7, None]]


def test_words_stand_left_numbers_right_and_nothing_is_a_dash() -> None:
    assert list(table(COLUMNS, ROWS, width=None, palette=PLAIN)) == [
        "WATCHER          SEEN  STATE",
        "agent:main:main    12  pending",
        "agent:work          7  -",
    ]


def test_a_table_exactly_as_wide_as_the_terminal_stays_a_table() -> None:
    fits = list(table(COLUMNS, ROWS, width=30, palette=PLAIN))
    assert fits == list(table(COLUMNS, ROWS, width=None, palette=PLAIN))


def test_one_column_less_makes_a_block_of_each_row() -> None:
    assert list(table(COLUMNS, ROWS, width=29, palette=PLAIN)) == [
        "WATCHER  agent:main:main",
        "SEEN     12",
        "STATE    pending",
        "",
        "WATCHER  agent:work",
        "SEEN     7",
        "STATE    -",
    ]


def test_an_empty_cell_leaves_no_spaces_at_the_end_of_its_line() -> None:
    assert list(table(COLUMNS, [["", 1, ""]], width=10, palette=PLAIN)) == ["WATCHER", "SEEN     1", "STATE"]
    assert list(table(COLUMNS, [["", 1, ""]], width=None, palette=PLAIN))[1] == "            1"


def test_a_pipe_never_cuts_and_never_folds() -> None:
    long = "x" * 5_000
    assert list(table([Column("A"), Column("B")], [[long, long]], width=None, palette=PLAIN))[1] == (
        f"{long}  {long}"
    )


def test_a_table_without_rows_is_its_heads() -> None:
    assert list(table(COLUMNS, [], width=None, palette=PLAIN)) == ["WATCHER  SEEN  STATE"]


def test_rows_may_be_a_stream() -> None:
    rows = ([f"row {number}"] for number in range(3))
    assert list(table([Column("A")], rows, width=None, palette=PLAIN)) == ["A", "row 0", "row 1", "row 2"]


@pytest.mark.parametrize("terminal", [None, 10])
def test_colours_change_no_column(terminal: int | None) -> None:
    coloured = list(table(COLUMNS, ROWS, width=terminal, palette=COLOURED))
    assert coloured[0].startswith("\x1b[1mWATCHER")
    plain = [line.replace("\x1b[1m", "").replace("\x1b[0m", "") for line in coloured]
    assert plain == list(table(COLUMNS, ROWS, width=terminal, palette=PLAIN))


def test_a_hostile_cell_is_escaped_and_measured_as_it_is_shown() -> None:
    rows = [["a\x1b[2Jb\nc", 1], ["plain", 22]]
    assert list(table([Column("NAME"), Column("N", right=True)], rows, width=None, palette=PLAIN)) == [
        "NAME" + " " * 11 + "N",
        r"a\x1b[2Jb\nc" + " " * 3 + "1",
        "plain" + " " * 9 + "22",
    ]


def test_columns_line_up_beside_wide_and_combining_characters() -> None:
    rows = [["日本語", 1], ["ที่นี่", 2], ["abcdef", 3]]
    lines = list(table([Column("NAME"), Column("N", right=True)], rows, width=None, palette=PLAIN))
    assert lines == ["NAME    N", "日本語  1", "ที่นี่      2", "abcdef  3"]


@pytest.mark.parametrize(
    ("text", "columns"),
    [
        ("", 0),
        ("plain", 5),
        ("caf\u00e9", 4),
        ("cafe\u0301", 4),
        ("\u65e5\u672c", 4),
        ("\uff21", 2),
        ("\U0001f980", 2),
        ("\u2764\ufe0f", 1),
        ("\u0e44\u0e17\u0e22\u0e17\u0e35\u0e48", 4),
        ("\ud55c", 2),
        ("\u1112\u1161\u11ab", 2),
    ],
    ids=ascii,
)
def test_width_counts_the_columns_of_a_terminal(text: str, columns: int) -> None:
    assert width(text) == columns


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x00\x1b\x7f", r"\x00\x1b\x7f"),
        ("a\tb\nc\rd", r"a\tb\nc\rd"),
        ("\x80\x9b\x9f", r"\x80\x9b\x9f"),
        ("\u202a\u202e\u2066\u2069", r"\u202a\u202e\u2066\u2069"),
        ("\u200e\u200f\u061c", r"\u200e\u200f\u061c"),
        ("\u2028\u2029", r"\u2028\u2029"),
        ("\u200b\u200d\ufeff", r"\u200b\u200d\ufeff"),
        ("\ud800\udfff", r"\ud800\udfff"),
        ("\U000e0041", r"\U000e0041"),
        ("C:\\new", "C:\\new"),
        ("Grüße, 日本 \U0001f980", "Grüße, 日本 \U0001f980"),
    ],
    ids=ascii,
)
def test_what_does_not_print_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert escape(text) == shown


@pytest.mark.parametrize(
    ("mode", "isatty", "environ", "coloured"),
    [
        ("always", False, {"NO_COLOR": "1", "TERM": "dumb"}, True),
        ("never", True, {"FORCE_COLOR": "1"}, False),
        ("auto", True, {}, True),
        ("auto", False, {}, False),
        ("auto", True, {"TERM": "dumb"}, False),
        ("auto", False, {"FORCE_COLOR": "1", "TERM": "dumb"}, True),
        ("auto", True, {"NO_COLOR": "1", "FORCE_COLOR": "1"}, False),
        ("auto", True, {"NO_COLOR": ""}, True),
    ],
)
def test_who_decides_about_colours(mode: str, isatty: bool, environ: dict[str, str], coloured: bool) -> None:
    assert use_color(mode, isatty=isatty, environ=environ) is coloured


@pytest.mark.parametrize("kind", ["human", "agent", "system", "something new"])
def test_a_palette_without_colours_returns_text_as_it_is(kind: str) -> None:
    assert PLAIN.actor(kind, "who") == PLAIN.head("who") == PLAIN.dim("who") == PLAIN.warn("who") == "who"
    painted = COLOURED.actor(kind, "who")
    assert (painted[:2], painted[-7:]) == ("\x1b[", "who\x1b[0m")


def test_one_is_singular_and_everything_else_plural() -> None:
    assert [plural(count, "watch", "watches") for count in (0, 1, 2)] == ["0 watches", "1 watch", "2 watches"]
    assert plural(3, "event") == "3 events"
