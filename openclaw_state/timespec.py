"""Durations, instants and the --since/--until grammar; the clock is always a parameter."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from typing import NamedTuple

from .errors import UsageError

SAFE_MAX = 2**53 - 1
DAY_MS = 86_400_000

_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS, "w": 7 * DAY_MS}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|[smhdw])")
_DURATION = re.compile(rf"(?:{_PART.pattern})+")
_DATE = re.compile(
    r"\d{4}-\d{2}-\d{2}(?:[Tt ]\d{2}:\d{2}(?::\d{2}(?:\.\d{1,9})?)?(?:[Zz]|[+-]\d{2}:\d{2})?)?"
)
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d*)?")
_FORMS = "a version (12), a duration ago (24h), a date or RFC 3339 time, today, yesterday or now"


class Point(NamedTuple):
    """Where --since or --until stands: at a state version, or at an instant (epoch ms)."""

    text: str
    version: int | None = None
    instant: int | None = None


def whole_number(text: str) -> int | None:
    """The number that ASCII digits alone write, up to 2^53-1; None for any other text, of any length."""
    digits = text.lstrip("0") or text[:1]
    if not (text.isascii() and text.isdigit()) or len(digits) > len(str(SAFE_MAX)):
        return None
    number = int(digits)
    return number if number <= SAFE_MAX else None


def now_ms(environ: Mapping[str, str]) -> int:
    """The clock of every command: OPENCLAW_STATE_NOW (epoch ms), else the system's.

    Raises UsageError when that variable is not a whole number of milliseconds.
    """
    fixed = environ.get("OPENCLAW_STATE_NOW", "").strip()
    if not fixed:
        return time.time_ns() // 1_000_000
    now = whole_number(fixed)
    if now is None:
        raise UsageError(f"OPENCLAW_STATE_NOW is epoch milliseconds, not {fixed!r}")
    return now


def parse_duration(text: str) -> int:
    """Milliseconds of `250ms`, `15s`, `1h30m`, `1.5h`, `30d`, `2w`; plain 0 needs no unit.

    Raises UsageError for anything else.
    """
    wanted = text.strip()
    if wanted == "0":
        return 0
    if not wanted.isascii() or not re.fullmatch(_DURATION, wanted):
        hint = (
            f"give a unit: {wanted}s, {wanted}m, {wanted}h"
            if wanted.isdigit()
            else "for example 90s, 1h30m or 30d"
        )
        raise UsageError(f"{text!r} is not a duration", hint=hint)
    total = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, wanted))
    if total > SAFE_MAX:
        raise UsageError(f"the duration {text!r} is too long")
    return round(total)


def parse_point(text: str, *, now: int, utc: bool = False, versions: bool = True) -> Point:
    """A state version or an instant (design section 5).

    versions=False is for commands without versions. Raises UsageError for what is neither.
    """
    wanted = text.strip()
    if wanted.isdigit() or re.fullmatch(_NUMBER, wanted):
        if not versions:
            raise UsageError(
                f"{text!r} is a version, and a time is meant here", hint="for example 24h or 2026-11-30"
            )
        version = whole_number(wanted)
        if version is None:
            raise UsageError(f"{text!r} is not a version: a whole number from 0 to {SAFE_MAX}")
        return Point(text, version=version)
    if wanted.isascii() and re.fullmatch(_DURATION, wanted):
        return Point(text, instant=max(0, now - parse_duration(wanted)))
    if wanted in ("now", "today", "yesterday"):
        return Point(text, instant=now if wanted == "now" else _midnight(text, now, utc))
    if wanted.isascii() and re.fullmatch(_DATE, wanted):
        return Point(text, instant=_instant(wanted, utc))
    raise UsageError(f"{text!r} is not a point in the log", hint=f"give {_FORMS}")


def _midnight(text: str, now: int, utc: bool) -> int:
    """The beginning of `today` or `yesterday`."""
    from datetime import UTC, datetime, timedelta

    try:
        there = datetime.fromtimestamp(now / 1000, UTC if utc else None)
        day = there.replace(hour=0, minute=0, second=0, microsecond=0)
        return round((day - timedelta(days=int(text.strip() == "yesterday"))).timestamp() * 1000)
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{text!r} is no date that exists") from error


def _instant(text: str, utc: bool) -> int:
    from datetime import UTC, datetime

    try:
        there = datetime.fromisoformat(text.upper())
        if there.tzinfo is None and utc:
            there = there.replace(tzinfo=UTC)
        return max(0, round(there.timestamp() * 1000))
    except (ValueError, OverflowError, OSError) as error:
        raise UsageError(f"{text!r} is no date that exists") from error


def format_clock(instant: int, *, utc: bool) -> str:
    """The time of day, `12:03:05`."""
    return _format(instant, "%H:%M:%S", utc)


def format_instant(instant: int, *, utc: bool) -> str:
    """Date, time and zone, `2026-11-29 03:00 UTC`."""
    return _format(instant, "%Y-%m-%d %H:%M UTC" if utc else "%Y-%m-%d %H:%M %Z", utc)


def format_day(instant: int, *, utc: bool) -> str:
    """The date alone, `2026-11-29`."""
    return _format(instant, "%Y-%m-%d", utc)


def _format(instant: int, pattern: str, utc: bool) -> str:
    try:
        there = time.gmtime(instant // 1000) if utc else time.localtime(instant // 1000)
        return time.strftime(pattern, there)
    except (ValueError, OverflowError, OSError):
        return f"{instant} ms"


def format_duration(duration: int) -> str:
    """At most two units: `850 ms`, `1 m 36 s`, `4 d 3 h`."""
    if duration < 0:
        return "-" + format_duration(-duration)
    if 0 < duration < 1_000:
        return f"{duration} ms"
    left = duration
    parts: list[str] = []
    for unit in ("d", "h", "m", "s"):
        count, left = divmod(left, _UNITS[unit])
        if count or (unit == "s" and not parts):
            parts.append(f"{count} {unit}")
        elif parts:
            break
    return " ".join(parts[:2])
