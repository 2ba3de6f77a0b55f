"""Streaks of missing checks: how often in a row a link's source was not there.

OpenClaw keeps them in memory; whoever runs the monitor may keep them across runs (contract,
upstream sections 3.1 and 15).
"""

from __future__ import annotations

from collections.abc import Iterable, MutableMapping
from typing import NamedTuple

from ..model import Link
from .links import source_key

LIMIT = 3


class StreakKey(NamedTuple):
    """What a streak belongs to: a link and its source."""

    session_key: str
    agent_id: str
    source_key: str


class Streak(NamedTuple):
    """How many checks in a row missed, and the updated_at of the link they looked at."""

    misses: int
    link_updated_at: int


# Where streaks are kept: a dict, or a store that writes every change down.
Streaks = MutableMapping[StreakKey, Streak]


def key_of(link: Link) -> StreakKey:
    return StreakKey(link.session_key, link.agent_id, source_key(link))


def keep_only(streaks: Streaks, links: Iterable[Link]) -> set[tuple[str, str]]:
    """Drop the streaks of links that are not among these; returns which links have one."""
    known = {(key.session_key, key.agent_id) for key in streaks}
    if not known:
        return set()
    listed = {key_of(link) for link in links if (link.session_key, link.agent_id) in known}
    for key in set(streaks) - listed:
        del streaks[key]
    return {(key.session_key, key.agent_id) for key in streaks}


def next_count(streaks: Streaks, link: Link) -> int:
    """The streak that one more miss makes; a link that was touched starts anew."""
    before = streaks.get(key_of(link))
    counted = before.misses if before and before.link_updated_at == link.updated_at else 0
    return min(LIMIT, counted + 1)


def store(streaks: Streaks, link: Link, count: int) -> None:
    streaks[key_of(link)] = Streak(count, link.updated_at)


def drop(streaks: Streaks, link: Link) -> None:
    # Most links have none, and naming a source costs more than looking.
    if streaks:
        streaks.pop(key_of(link), None)
