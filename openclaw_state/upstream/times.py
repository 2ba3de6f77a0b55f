"""Time strings as OpenClaw takes them: the part of JavaScript's Date.parse that transcripts use.

Four forms; the first whose shape fits decides, and a value out of range is then unusable
(contract, upstream section 6.2).
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from functools import lru_cache

_DAY_MS = 86_400_000
_LIMIT_MS = 8_640_000_000_000_000
_EPOCH = datetime(1970, 1, 1)
_EPOCH_UTC = _EPOCH.replace(tzinfo=UTC)
_MS = timedelta(milliseconds=1)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")

_FLAGS = re.ASCII | re.IGNORECASE
# Every third letter of 2026-07-13T10:00:00.000Z, the form that nearly every row has.
_USUAL = "--T::."
_ISO = re.compile(
    r"(\d{4}|[+-]\d{6})(?:-(\d\d)(?:-(\d\d))?)?"
    r"(?:T(\d\d):(\d\d)(?::(\d\d)(?:\.(\d+))?)?(Z|[+-]\d\d:?\d\d)?)?",
    _FLAGS,
)
_NUMBER = re.compile(r"\d{1,6}", _FLAGS)
_CLOCK = r"(?: +(\d\d?):(\d\d?)(?::(\d\d?)(?:\.(\d{1,9}))?)?(?: ?(Z|UTC|GMT|[+-]\d\d:?\d\d))?)?"
_NUMERIC = re.compile(rf"(\d{{1,6}})([-/])(\d\d?)\2(\d{{1,6}}){_CLOCK}", _FLAGS)
_NAMED = re.compile(
    r"(?:(?:sun|mon|tue|wed|thu|fri|sat),? )?"
    rf"(?:(\d\d?) ([a-z]{{3,9}})|([a-z]{{3,9}}) (\d\d?),?) (\d{{4}}){_CLOCK}",
    _FLAGS,
)


def parse_time(text: str) -> int | None:
    """A time in epoch ms, in local time where the text names no zone; None when it is unusable."""
    if len(text) == 24 and text[4:20:3] == _USUAL and text[23] == "Z":
        try:
            since = datetime.fromisoformat(text) - _EPOCH_UTC
            return since.days * _DAY_MS + since.seconds * 1000 + since.microseconds // 1000
        except ValueError:
            pass
    if match := _ISO.fullmatch(text):
        return _iso(match)
    if _NUMBER.fullmatch(text):
        number = int(text)
        if number in range(1, 13):
            return _instant(2001, number, 1, _MIDNIGHT)
        return None if number in range(13, 32) else _instant(_full_year(number), 1, 1, _MIDNIGHT)
    if match := _NUMERIC.fullmatch(text):
        first, middle, last = int(match[1]), int(match[3]), int(match[4])
        year, month, day = (last, first, middle) if first in range(1, 32) else (first, middle, last)
        return _instant(_full_year(year), month, day, match.groups()[4:])
    if match := _NAMED.fullmatch(text):
        name = (match[2] or match[3])[:3].lower()
        if name in _MONTHS:
            day = int(match[1] or match[4])
            return _instant(_full_year(int(match[5])), _MONTHS.index(name) + 1, day, match.groups()[5:])
    return None


# hour, minute, second, fraction, zone; None where the text has none.
_Clock = tuple[str | None, ...]
_MIDNIGHT: _Clock = (None,) * 5


def _iso(match: re.Match[str]) -> int | None:
    year, month, day, *clock = match.groups()
    if year == "-000000":
        return None
    if clock[0] is None:
        clock = [None, None, None, None, "Z"]
    return _instant(int(year), int(month or 1), int(day or 1), tuple(clock))


def _full_year(year: int) -> int:
    return year + 2000 if year < 50 else year + 1900 if year < 100 else year


def _instant(year: int, month: int, day: int, clock: _Clock) -> int | None:
    hour, minute, second = (int(part or 0) for part in clock[:3])
    milliseconds = int((clock[3] or "")[:3].ljust(3, "0"))
    if not (1 <= month <= 12 and 1 <= day <= 31 and minute <= 59 and second <= 59):
        return None
    if hour > 24 or (hour == 24 and (minute or second or milliseconds)):
        return None
    within = ((hour * 60 + minute) * 60 + second) * 1000 + milliseconds
    local = (_days(year, month) + day - 1) * _DAY_MS + within
    offset = _local_offset(local) if clock[4] is None else _zone_offset(clock[4])
    if offset is None:
        return None
    instant = local - offset
    return instant if abs(instant) <= _LIMIT_MS else None


def _zone_offset(zone: str) -> int | None:
    """Milliseconds east of UTC; None for a zone out of range."""
    if zone.isalpha():
        return 0
    hours, minutes = int(zone[1:3]), int(zone[-2:])
    if hours > 23 or minutes > 59:
        return None
    return (hours * 60 + minutes) * 60_000 * (-1 if zone[0] == "-" else 1)


def _local_offset(local_ms: int) -> int:
    """The offset of the process's time zone; where the clocks change, the one before the change."""
    try:
        offset = (_EPOCH + timedelta(milliseconds=local_ms)).astimezone().utcoffset()
    except (OverflowError, ValueError, OSError):
        return 0
    return offset // _MS if offset else 0


@lru_cache(maxsize=64)
def _days(year: int, month: int) -> int:
    """Days from 1970-01-01 to the first of a month, of any year of the Gregorian calendar."""
    # A cycle of 400 years repeats exactly, and one of them is in the library's range.
    cycles, rest = divmod(year, 400)
    return (datetime(2000 + rest, month, 1) - _EPOCH).days + (cycles - 5) * 146_097
