"""JSON as JavaScript reads and writes it, also where the standard library gives up."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openclaw_state.core.javascript import collapse, number_text, safe_count
from openclaw_state.core.jsontext import json_or_none, json_text, json_value

DEEP = 5_000


def around(inner: str, depth: int = DEEP) -> str:
    """A value inside so many arrays and objects that only a loop can read it."""
    return '[{"a":' * depth + inner + "}]" * depth


def innermost(value: Any) -> Any:
    while isinstance(value, list) and len(value) == 1:
        value = value[0]["a"]
    return value


@pytest.mark.parametrize(
    "text",
    [
        "1",
        "-1.5e3",
        "true",
        "false",
        "null",
        '"a\\u00e9\\n\\ud83d\\ude00"',
        "[]",
        "{}",
        '[1,[],{},{"b":[2,"x"]},null]',
        ' { "a" : [ 1 , 2 ] , "b" : { } } ',
    ],
)
def test_what_the_library_reads_is_read_alike_in_any_depth(text: str) -> None:
    assert json_value(text) == json.loads(text)
    assert innermost(json_value(around(text))) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "[",
        "]",
        "[1",
        "[1,]",
        "[1 2]",
        '{"a"}',
        '{"a":1,}',
        "{1:2}",
        '{"a" 1}',
        "nul",
        "1 2",
        "01",
        "+1",
        ".5",
        "1.",
        "-",
        '"a',
        '"\t"',
        "'a'",
        "NaN",
        "Infinity",
        "-Infinity",
        "\ufeff1",
        "1\u00a0",
        "1\x00",
    ],
)
def test_what_json_parse_refuses_is_refused_in_any_depth(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        json_value(text)
    with pytest.raises(ValueError, match=r"."):
        json_value(around(text))
    assert json_or_none(text) is None


def test_integers_of_any_length_are_numbers() -> None:
    assert json_value("9" * 5_000) == math.inf
    assert json_value(f"[-{'9' * 5_000}, 1]") == [-math.inf, 1]
    assert json_value("1" + "0" * 300) == 10**300


def test_nesting_of_any_depth_is_read_and_written() -> None:
    text = "[" * 100_000 + "]" * 100_000
    assert json_text(json_value(text)) == text
    assert json_text(json_value(around('"x"'))) == around('"x"')


def test_the_last_of_repeated_keys_wins_at_the_place_of_the_first() -> None:
    assert json_text(json_value('{"b":1,"a":2,"b":3}')) == '{"b":3,"a":2}'


def test_keys_that_look_like_indexes_come_first_in_numeric_order() -> None:
    names = ["b", "10", "4294967295", "9", "01", "4294967294", "-1", "0"]
    written = json_text(dict.fromkeys(names, 0))
    assert [name for name, _ in json.loads(written, object_pairs_hook=list)] == [
        "0",
        "9",
        "10",
        "4294967294",
        "b",
        "4294967295",
        "01",
        "-1",
    ]


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-0.0, "0"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (0.1, "0.1"),
        (1e21, "1e+21"),
        (1e20, "100000000000000000000"),
        (123456789012345678901, "123456789012345680000"),
        (2**53 + 1, "9007199254740992"),
        (1e-6, "0.000001"),
        (1e-7, "1e-7"),
        (-1.25e-9, "-1.25e-9"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (5e-324, "5e-324"),
        (1234.5678, "1234.5678"),
        (10**400, "Infinity"),
        (-math.inf, "-Infinity"),
        (math.nan, "NaN"),
    ],
)
def test_numbers_are_printed_as_javascript_prints_them(number: float, text: str) -> None:
    assert number_text(number) == text


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_printed_number_is_the_same_number(number: float) -> None:
    assert float(number_text(number)) == number


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
)


@given(_JSON)
def test_what_is_written_is_read_again(value: Any) -> None:
    assert json_value(json_text(value)) == value
    assert json.loads(json_text(value)) == value


@pytest.mark.parametrize(
    ("value", "counted"),
    [
        (0, 0),
        (2.0, 2),
        (2**53 - 1, 2**53 - 1),
        (2**53, None),
        (-1, None),
        (1.5, None),
        (True, None),
        (False, None),
        (math.nan, None),
        (math.inf, None),
        (10**400, None),
        ("1", None),
        (None, None),
    ],
)
def test_a_count_is_a_safe_integer_that_is_not_negative(value: Any, counted: int | None) -> None:
    assert safe_count(value) == counted


@pytest.mark.parametrize(
    ("text", "collapsed"),
    [
        ("  a \t\r\n b  ", "a b"),
        ("\ufeffa\u00a0\u2003b\u3000", "a b"),
        ("a\ufeff\ufeffb", "a b"),
        ("\x85a\x85b", "\x85a\x85b"),
        ("a \x1c b\x1f", "a \x1c b\x1f"),
        ("a\u200bb\u180e", "a\u200bb\u180e"),
        ("", ""),
        (" \n ", ""),
    ],
)
def test_runs_of_javascripts_white_space_are_one_blank(text: str, collapsed: str) -> None:
    assert collapse(text) == collapsed
