"""The start and the last interaction of a session: what is recorded, and what is judged.

Contract, sessions section 2: neither is ever taken from updatedAt while it is known itself,
because heartbeats and route changes write that too.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, tzinfo
from typing import Any, NamedTuple

from ..core.javascript import is_finite, trim
from .document import Document, member


class Moment(NamedTuple):
    """An instant (epoch ms) and where it was found; at is None where nothing is known."""

    at: int | None
    source: str


class JudgedMoment(NamedTuple):
    """The instant that a policy compares, and where it comes from; 0 where nothing is known."""

    at: int
    source: str


def recorded_start(entry: Document, header: Document | None = None, *, tz: tzinfo = UTC) -> Moment:
    """When the session started: by its entry, else by the first row of its transcript.

    tz reads a header whose text names no zone.
    """
    own = instant(entry.get("sessionStartedAt"))
    if own is not None:
        return Moment(own, "sessionStartedAt")
    at = _header_start(entry, header, tz) if header else None
    return Moment(at, "none" if at is None else "transcript header")


def recorded_interaction(entry: Document) -> Moment:
    at = instant(entry.get("lastInteractionAt"))
    return Moment(at, "none" if at is None else "lastInteractionAt")


def judged(
    start: Moment, interaction: Moment, updated_at: Any, now: int
) -> tuple[JudgedMoment, JudgedMoment]:
    """Start and last interaction as they are compared; an instant after now does not count."""
    updated = instant(updated_at)
    if updated is None or updated > now:
        fallback = JudgedMoment(0, "none")
    else:
        fallback = JudgedMoment(updated, "updatedAt")
    judged_start = _unless_future(start, now) or fallback
    return judged_start, _unless_future(interaction, now) or judged_start


def _unless_future(moment: Moment, now: int) -> JudgedMoment | None:
    at = moment.at
    return None if at is None or at > now else JudgedMoment(at, moment.source)


def is_reset_pending(updated_at: Any) -> bool:
    """Is this the marker that the next message starts over? Only the stored number 0 is."""
    return is_finite(updated_at) and updated_at == 0


def instant(value: Any) -> int | None:
    """A recorded time: a finite number of at least 0."""
    return math.floor(value) if is_finite(value) and value >= 0 else None


def _header_start(entry: Document, header: Document, tz: tzinfo) -> int | None:
    """Only a header of this very session counts."""
    named = header.get("id")
    blank = named is None or (isinstance(named, str) and not trim(named))
    if header.get("type") != "session" or not (blank or named == member(entry, "sessionId")):
        return None
    stamp = header.get("timestamp")
    return _parsed(stamp, tz) if isinstance(stamp, str) else instant(stamp)


def _parsed(text: str, tz: tzinfo) -> int | None:
    try:
        there = datetime.fromisoformat(trim(text))
        if there.tzinfo is None:
            # A date alone is midnight UTC in JavaScript, a time alone a local one.
            there = there.replace(tzinfo=tz if len(trim(text)) > len("2026-01-01") else UTC)
        return math.floor(there.timestamp() * 1000)
    except (ValueError, OverflowError):
        return None
