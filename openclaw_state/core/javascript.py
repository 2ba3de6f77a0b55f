"""The few rules of OpenClaw's own language that its stored text depends on."""

from __future__ import annotations

import math
import re
from typing import Any, TypeGuard

from ..timespec import SAFE_MAX

# The least integer that rounds to no finite double.
_INFINITE = 2**1024 - 2**970

_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_SPACES = re.compile(f"[{_SPACE}]+")
# Where str.split() has another idea of white space.
_DISPUTED = "\x1c\x1d\x1e\x1f\x85\ufeff"

_DECIMAL = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_RADIX = r"0(?:[xX][0-9a-fA-F]+|[oO][0-7]+|[bB][01]+)"


def trim(text: str) -> str:
    """Strip what JavaScript calls white space, and nothing else."""
    return text.strip(_SPACE)


def collapse(text: str) -> str:
    """Trim, and make every run of JavaScript's white space one blank."""
    # None of the disputed ones is printable; most texts of one line are.
    if not text.isprintable() and any(one in text for one in _DISPUTED):
        return _SPACES.sub(" ", trim(text))
    return " ".join(text.split())


def is_falsy(value: Any) -> bool:
    """null, false, 0, NaN and the empty string; empty objects and lists are not."""
    if isinstance(value, float) and math.isnan(value):
        return True
    return value is None or (isinstance(value, str | int | float) and not value)


def is_finite(value: Any) -> TypeGuard[float]:
    """A number that is neither NaN nor infinite; a boolean is no number."""
    if isinstance(value, int):
        return not isinstance(value, bool) and abs(value) < _INFINITE
    return isinstance(value, float) and math.isfinite(value)


def safe_count(value: Any) -> int | None:
    """The value as a non-negative safe integer, `2.0` included; None for anything else."""
    if is_finite(value) and 0 <= value <= SAFE_MAX and value == int(value):
        return int(value)
    return None


def code_units(text: str) -> bytes:
    """The UTF-16 code units of a text, in an order that compares as JavaScript compares."""
    return text.encode("utf-16-be", "surrogatepass")


def number_text(value: float) -> str:
    """A number as JavaScript prints it: 1.0 as 1, 1e-7 as 1e-7, 1e16 with all its digits."""
    try:
        number = float(value)
    except OverflowError:
        number = math.inf if value > 0 else -math.inf
    if not math.isfinite(number):
        return "NaN" if math.isnan(number) else "Infinity" if number > 0 else "-Infinity"
    if number.is_integer() and abs(number) <= SAFE_MAX:
        return str(int(number))
    sign = "-" if number < 0 else ""
    mantissa, _, exponent = repr(abs(number)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    point = len(whole) + int(exponent or 0)
    digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(digits)
    return sign + _placed(digits.rstrip("0"), point)


def _placed(digits: str, point: int) -> str:
    """The digits with the decimal point after `point` of them, by the rules of Number::toString."""
    if len(digits) <= point <= 21:
        return digits.ljust(point, "0")
    if 0 < point <= 21:
        return f"{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"0.{'0' * -point}{digits}"
    rest = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{digits[0]}{rest}e{point - 1:+d}"


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
