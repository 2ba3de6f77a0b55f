"""The few rules of OpenClaw's own language that its stored text depends on."""

from __future__ import annotations

import json
import math
import re
from typing import Any

_SPACE = "\t\n\v\f\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_EDGES = re.compile(f"^[{_SPACE}]+|[{_SPACE}]+$")
_SURROGATE = re.compile("[\ud800-\udfff]")


def trim(text: str) -> str:
    """Strip what JavaScript calls white space, and nothing else."""
    return _EDGES.sub("", text)


def json_text(value: Any) -> str:
    """Compact JSON as JavaScript writes it: non-ASCII unescaped, 1.0 as 1, NaN as null."""
    text = json.dumps(_plain(value), ensure_ascii=False, separators=(",", ":"))
    return _SURROGATE.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


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
