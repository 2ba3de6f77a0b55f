"""The few rules of OpenClaw's own language that its stored text depends on."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from typing import Any, TypeGuard

_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


_DECIMAL = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RADIX = r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)"
_ARRAY_INDEX = r"0|[1-9]\d{0,9}"
MAX_ARRAY_INDEX = 2**32 - 2

_COMPACT = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def trim(text: str) -> str:
    """Strip what JavaScript calls white space, and nothing else."""
    return text.strip(_SPACE)


def json_text(value: Any) -> str:
    """Compact JSON as JavaScript writes it: non-ASCII unescaped, 1.0 as 1, NaN as null."""
    text = _COMPACT.encode(_plain(value))
    if text.isascii():
        return text
    return "".join(f"\\u{ord(one):04x}" if "\ud800" <= one <= "\udfff" else one for one in text)


def is_falsy(value: Any) -> bool:
    """null, false, 0, NaN and the empty string; empty objects and lists are not."""
    if isinstance(value, float) and math.isnan(value):
        return True
    return value is None or (isinstance(value, str | int | float) and not value)


def is_number(value: Any) -> TypeGuard[int | float]:
    """A finite number; true and false are none."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def to_number(value: Any) -> int | float:
    """What arithmetic makes of a value: numeric text counts, blank text is 0; else NaN."""
    if isinstance(value, bool | int | float):
        return int(value) if isinstance(value, bool) else value
    if not isinstance(value, str):
        return math.nan
    text = trim(value)
    if not text:
        return 0
    if re.fullmatch(_RADIX, text, re.ASCII):
        return int(text, 0)
    return float(text) if re.fullmatch(_DECIMAL, text, re.ASCII) else math.nan


def own_keys(names: Iterable[str]) -> list[str]:
    """The order in which an object lists its keys: array indices first, ascending."""
    listed = list(names)
    numbers = [name for name in listed if _is_array_index(name)]
    return sorted(numbers, key=int) + [name for name in listed if not _is_array_index(name)]


def _is_array_index(name: str) -> bool:
    return bool(re.fullmatch(_ARRAY_INDEX, name, re.ASCII)) and int(name) <= MAX_ARRAY_INDEX


def _plain(value: Any) -> Any:
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value
