"""Daily boundaries on the local calendar, over changes of the clock.

Contract, sessions section 3.5: a skipped hour counts with the offset before the change, a
repeated one the first time, which is what a datetime with fold 0 means.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

from ..errors import UsageError

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_DAY = timedelta(days=1)
# Samoa once left out a whole day; no zone leaves out more.
_DAYS_AROUND = 3


def zone(tz: str | tzinfo) -> tzinfo:
    """The time zone of that name. Raises UsageError when the system has none."""
    if isinstance(tz, tzinfo):
        return tz
    try:
        return ZoneInfo(tz)
    except (KeyError, ValueError, OSError) as error:
        raise UsageError(
            f"{tz!r} is no time zone of this system", hint="for example Europe/Madrid or UTC"
        ) from error


def last_boundary(hour: int, now: int, tz: tzinfo) -> int:
    """The latest local `hour` o'clock not after now (epoch ms)."""
    return max(at for at in _around(hour, now, tz) if at <= now)


def next_boundary(hour: int, now: int, tz: tzinfo) -> int:
    """The first local `hour` o'clock after now (epoch ms)."""
    return min(at for at in _around(hour, now, tz) if at > now)


def _around(hour: int, now: int, tz: tzinfo) -> list[int]:
    """Raises UsageError for an instant that no calendar reaches."""
    try:
        today = (_EPOCH + now * _MILLISECOND).astimezone(tz).date()
        return [_instant(today + days * _DAY, hour, tz) for days in range(-_DAYS_AROUND, _DAYS_AROUND + 1)]
    except OverflowError as error:
        raise UsageError(f"{now} ms is no time that a calendar reaches") from error


def _instant(day: date, hour: int, tz: tzinfo) -> int:
    return (datetime(day.year, day.month, day.day, hour, tzinfo=tz) - _EPOCH) // _MILLISECOND
