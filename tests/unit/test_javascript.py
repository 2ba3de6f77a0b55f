"""The rules of OpenClaw's language that its stored values depend on."""

from __future__ import annotations

import math
from typing import Any

import pytest

from openclaw_state.core import javascript, jsontext


@pytest.mark.parametrize(
    ("value", "number"),
    [
        (5, 5),
        (2.5, 2.5),
        (True, 1),
        ("", 0),
        (" 12 ", 12),
        ("-1.5e2", -150),
        (".5", 0.5),
        ("5.", 5),
        ("0x1F", 31),
        ("0b11", 3),
    ],
)
def test_arithmetic_converts(value: Any, number: float) -> None:
    assert javascript.to_number(value) == number


@pytest.mark.parametrize("value", [None, "12m", "1_000", "0x", "\u0661", "nan", {}, [5]])
def test_arithmetic_makes_nothing_of_other_values(value: Any) -> None:
    assert math.isnan(javascript.to_number(value))


def test_only_finite_numbers_are_numbers() -> None:
    assert all(map(javascript.is_finite, (0, -1, 2.5)))
    assert not any(map(javascript.is_finite, (True, None, "1", math.nan, math.inf)))


def test_an_object_lists_array_indices_first() -> None:
    names = ["b", "10", "01", "9", "4294967295", "4294967294", "a", "0", "-1", "1.5"]
    assert jsontext.own_keys(names) == [
        "0",
        "9",
        "10",
        "4294967294",
        "b",
        "01",
        "4294967295",
        "a",
        "-1",
        "1.5",
    ]
