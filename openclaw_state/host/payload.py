"""JSON that OpenClaw left in lock files and leases, read by the rules of its own language.

Every number is a float, so that 5.0 is the integer 5; a boolean is no number (contract, agent-loop
section 12).
"""

from __future__ import annotations

import json
from typing import Any, NoReturn


def read_object(text: str) -> dict[str, Any] | None:
    """The JSON object that the text is; None when it is anything else."""
    try:
        value = json.loads(text, parse_int=float, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def as_text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def as_number(value: Any) -> float | None:
    return value if isinstance(value, float) else None


def as_integer(value: Any) -> int | None:
    return int(value) if isinstance(value, float) and value.is_integer() else None


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is not JSON")
