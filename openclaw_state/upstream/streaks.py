"""Streaks of missing checks: how often in a row a link's source was not there.

OpenClaw keeps them in memory; whoever runs the monitor may keep them across runs (contract,
upstream sections 3.1 and 15).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, MutableMapping
from typing import NamedTuple

from ..model import Link
from ..results import Streak, StreakKey
from .links import source_key

LIMIT = 3


class Policy(NamedTuple):
    """When streaks change; by default as in OpenClaw, where each tick comes a minute after the last.

    spacing_ms: a miss counts only so long after the last one that did; lasting: a listing that
    failed leaves streaks alone.
    """

    spacing_ms: int = 0
    lasting: bool = False


# For streaks that outlive the process: runs may follow each other closely, or fail at once.
ACROSS_RUNS = Policy(spacing_ms=45_000, lasting=True)

# Where streaks are kept: a dict, or a store that writes every change down.
Streaks = MutableMapping[StreakKey, Streak]


def key_of(link: Link) -> StreakKey:
    return StreakKey(link.session_key, link.agent_id, source_key(link))


def keep_only(
    streaks: Streaks, links: Iterable[Link], *, of: Collection[str] | None = None
) -> set[tuple[str, str]]:
    """Drop the streaks of links that are not among these; returns which links have one.

    of: look only at streaks of these sessions.
    """
    known = {(key.session_key, key.agent_id) for key in streaks}
    if not known:
        return set()
    listed = {key_of(link) for link in links if (link.session_key, link.agent_id) in known}
    for key in set(streaks) - listed:
        if of is None or key.session_key in of:
            del streaks[key]
    return {(key.session_key, key.agent_id) for key in streaks}


def current(streaks: Mapping[StreakKey, Streak], link: Link) -> Streak | None:
    """The streak of a link as it is; one of a link that was touched since is over."""
    found = streaks.get(key_of(link))
    return found if found and found.link_updated_at == link.updated_at else None


def is_too_soon(streak: Streak, now: int, policy: Policy) -> bool:
    """Is one more miss still the same look? A clock that went back does not stop the counting."""
    return 0 <= now - streak.counted_at < policy.spacing_ms


def store(streaks: Streaks, link: Link, count: int, *, now: int) -> None:
    streaks[key_of(link)] = Streak(count, link.updated_at, now)


def drop(streaks: Streaks, link: Link) -> None:
    # Most links have none, and naming a source costs more than looking.
    if streaks:
        streaks.pop(key_of(link), None)
