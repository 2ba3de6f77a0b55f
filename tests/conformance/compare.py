"""Comparing what was measured with what was answered."""

from __future__ import annotations

from typing import Any


def difference(expected: Any, actual: Any, where: str = "") -> str | None:
    """The first place where two JSON values differ, or None."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for key in expected.keys() | actual.keys():
            if key not in actual:
                return f"{where}.{key} is missing, expected {expected[key]!r}"
            if key not in expected:
                return f"{where}.{key} is {actual[key]!r}, expected to be absent"
            if found := difference(expected[key], actual[key], f"{where}.{key}"):
                return found
        return None
    if isinstance(expected, list) and isinstance(actual, list) and len(expected) == len(actual):
        pairs = enumerate(zip(expected, actual, strict=True))
        return next(filter(None, (difference(e, a, f"{where}[{i}]") for i, (e, a) in pairs)), None)
    same = type(expected) is type(actual) or not (isinstance(expected, bool) or isinstance(actual, bool))
    return None if same and expected == actual else f"{where} is {actual!r}, expected {expected!r}"
