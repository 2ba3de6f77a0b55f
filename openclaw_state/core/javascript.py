"""The few rules of OpenClaw's own language that its stored text depends on."""

from __future__ import annotations

import json
import math
from typing import Any

_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)


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
