"""Cutting and padding: exactly so many columns, whatever the text is made of."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_state.report.escape import width
from openclaw_state.report.fit import MOST_MARKS, cut, ending, fit, safe

TEXTS = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from(
            "ab:é\u0301\u0300\u0e35\u0e48日本\uff21\U0001f980\u1112\u1161\u11ab\u202e\x1b\n\ufe0f"
        ),
    ),
    max_size=60,
)
COLUMNS = st.integers(0, 40)


@given(TEXTS, COLUMNS, st.booleans(), st.booleans())
def test_a_cell_has_exactly_its_columns(text: str, columns: int, right: bool, middle: bool) -> None:
    cell = fit(safe(text, columns), columns, right=right, middle=middle)
    assert width(cell) == columns
    assert cell.isprintable()


@given(TEXTS, COLUMNS, st.booleans())
def test_what_is_cut_shows_it_and_what_fits_is_whole(text: str, columns: int, middle: bool) -> None:
    shown = safe(text, 200)
    found = cut(shown, columns, middle=middle)
    assert width(found) <= columns
    if width(shown) <= columns:
        assert found == shown
    elif columns:
        assert "…" in found


@pytest.mark.parametrize(
    ("text", "columns", "end", "middle"),
    [
        ("agent:main:main", 15, "agent:main:main", "agent:main:main"),
        ("agent:main:main", 9, "agent:ma…", "agen…main"),
        ("日本語日本語", 6, "日本… ", "日…語 "),
        ("日本語日本語", 7, "日本語…", "日…語  "),
        ("cafe\u0301 latte\u0301", 5, "cafe\u0301…", "ca…te\u0301"),
        ("abc", 1, "…", "…"),
        ("abc", 0, "", ""),
        ("", 3, "   ", "   "),
    ],
)
def test_cutting_at_the_end_and_in_the_middle(text: str, columns: int, end: str, middle: str) -> None:
    assert fit(text, columns) == end
    assert fit(text, columns, middle=True) == middle


def test_what_is_typed_shows_its_end() -> None:
    assert ending("agent", 5) == "agent"
    assert ending("agent:main", 5) == "…main"
    assert ending("日本語e\u0301", 4) == "…語e\u0301"


def test_a_mark_stays_on_its_character_and_a_pile_of_them_is_cut_down() -> None:
    assert cut("e\u0301e\u0301e\u0301", 2) == "e\u0301…"
    assert safe("x" + "\u0301" * 1000 + "y", 10) == "x" + "\u0301" * MOST_MARKS + "y"


def test_a_huge_text_costs_no_more_than_what_is_shown() -> None:
    text = safe("begin" + "x" * 10_000_000 + "end", 20)
    assert len(text) < 1_000
    assert fit(text, 20, middle=True) == "beginxxxxx…xxxxxxend"
    assert fit(text, 8) == "beginxx…"


def test_escapes_are_made_before_anything_is_measured() -> None:
    assert fit(safe("\x1b[2J\u202e", 20), 20) == r"\x1b[2J\u202e       "
