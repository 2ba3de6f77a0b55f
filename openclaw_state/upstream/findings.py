"""What a check is asked and what it answers; every catalog speaks these words.

A check never touches the database: it gets probes and gives findings (contract, upstream
sections 3 and 6 to 10).
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from ..model import Link
from ..results import Echo, Verdict
from .links import KEEP


class Probe(NamedTuple):
    """One link to check, with the session's newest own texts, oldest first and normalised."""

    link: Link
    own_texts: tuple[str, ...] = ()
    session_id: str = ""


class Silence(NamedTuple):
    """No outcome, and why."""

    verdict: Verdict
    reason: str = ""


class Missing(NamedTuple):
    """The source is gone."""

    reason: str = "the source is gone"


class Activity(NamedTuple):
    """The source moved on: human turns, the next marker, and for turns when (epoch ms) and which.

    The monitor judges the values: a provider may hand over anything.
    """

    turns: Any
    next_marker: Any = KEEP
    occurred_at: Any = None
    dedupe_id: Any = None
    echoes: tuple[Echo, ...] = ()


Finding = Silence | Missing | Activity


class Outcome(NamedTuple):
    """A finding with the session it is about."""

    session_key: str
    finding: Finding


QUIET = Silence(Verdict.QUIET)


def unusable(what: str) -> Silence:
    """The link itself does not say what a check needs."""
    return Silence(Verdict.UNUSABLE, what)


def echo_of(text: str, own: tuple[str, ...]) -> Echo | None:
    """The newest own text that a normalised text repeats; None when a person wrote it."""
    return Echo(len(own) - own[::-1].index(text), len(own)) if text in own else None


def judged(texts: Iterable[tuple[str, float]], own: tuple[str, ...]) -> tuple[list[float], tuple[Echo, ...]]:
    """Tell people's messages from own echoes, given (normalised text, time) of each.

    Returns the times of the external ones and the echoes (contract, upstream section 4).
    """
    times: list[float] = []
    echoes: list[Echo] = []
    for text, time in texts:
        if (echo := echo_of(text, own)) is not None:
            echoes.append(echo)
        else:
            times.append(time)
    return times, tuple(echoes)


def latest(times: Iterable[float], *, strict: bool) -> float:
    """The latest of some times, not before 1970; whole unless strict keeps the fraction."""
    return whole(max(0, *times), strict=strict)


def whole(time: float, *, strict: bool) -> float:
    """A time without its fraction, which the log cannot store; strict keeps it."""
    return time if strict or not math.isfinite(time) else math.floor(time)
