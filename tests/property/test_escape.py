"""Whatever a database holds, a terminal only sees what prints, and machines read the same value back."""

from __future__ import annotations

import json
import re

from hypothesis import example, given
from hypothesis import strategies as st

from openclaw_state.report.escape import escape, width
from openclaw_state.report.jsonout import dumps, tsv
from openclaw_state.report.text import Column, Palette, table

HOSTILE = "\x00\t\n\r\x1b\x7f\x80\x9b\u061c\u200b\u200e\u2028\u202e\u2066\ufeff\ud800\U000e0041\\"
NOT_RAW_IN_JSON = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}

# Lone surrogates too: they reach us from command lines and file names that are not UTF-8.
anything = st.text(st.characters(exclude_categories=()) | st.sampled_from(HOSTILE))
scalars = st.text(st.characters() | st.sampled_from(HOSTILE.replace("\ud800", "")))
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(scalars, inner, max_size=3),
    max_leaves=8,
)


@given(anything)
@example(HOSTILE)
def test_escaped_text_prints_as_itself_and_needs_no_second_escape(text: str) -> None:
    shown = escape(text)
    assert shown.isprintable()
    assert escape(shown) == shown


@given(anything)
def test_text_that_prints_is_shown_as_it_is(text: str) -> None:
    clean = "".join(filter(str.isprintable, text))
    assert escape(clean) == clean


@given(anything, anything)
def test_neither_escapes_nor_columns_depend_on_the_neighbours(left: str, right: str) -> None:
    assert escape(left + right) == escape(left) + escape(right)
    assert width(left + right) == width(left) + width(right)


@given(values)
def test_json_is_exact_and_holds_no_raw_control_character(value: object) -> None:
    text = dumps(value)
    assert not NOT_RAW_IN_JSON.search(text)
    assert json.loads(text) == value


@given(anything)
@example(HOSTILE)
def test_json_of_broken_text_is_still_ours_to_write(text: str) -> None:
    written = dumps({text: text})
    assert not NOT_RAW_IN_JSON.search(written)
    assert written.encode("utf-8").decode("utf-8") == written


@given(anything)
@example(HOSTILE)
@example(r"\x1b and \n, written with a backslash")
def test_a_tsv_cell_stays_one_cell_and_can_be_read_back(text: str) -> None:
    head, line = tsv([{"a": text, "b": 1}], ["a", "b"])
    assert head == "a\tb\n"
    cell, after = line.removesuffix("\n").split("\t")
    assert (unescape(cell), after) == (text, "1")


def unescape(cell: str) -> str:
    return re.sub(
        r"\\(?:x(..)|u(.{4})|U(.{8})|([tnr\\]))",
        lambda found: ESCAPES[found[4]] if found[4] else chr(int(found[1] or found[2] or found[3], 16)),
        cell,
    )


@given(st.lists(st.tuples(anything, st.none() | st.integers()), max_size=5), st.none() | st.integers(0, 40))
def test_a_table_is_lines_that_print_and_end_without_spaces(
    rows: list[tuple[str, int | None]], terminal: int | None
) -> None:
    columns = [Column("NAME"), Column("COUNT", right=True)]
    lines = list(table(columns, rows, width=terminal, palette=Palette(enabled=False)))
    assert all(line.isprintable() and line == line.rstrip() for line in lines)
    if lines and lines[0].endswith("  COUNT"):
        assert {width(line) for line in lines} == {width(lines[0])}
        assert terminal is None or width(lines[0]) <= terminal
