"""What is wrong, or surprising, with the sessions of an agent: people in one session, and leftovers.

Nothing is repaired or merged here: each finding has a stable code, a severity and what to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from ..core import keys
from ..core.javascript import trim
from ..core.jsontext import own_keys
from .document import Document, items, member, section, text_of
from .peers import DM_SCOPES, linked_identity
from .protection import contradiction, is_direct_chat

SEVERITIES = ("error", "warning", "info")
MEND = "stop the gateway, then: openclaw doctor --fix"


class Finding(NamedTuple):
    """One thing that somebody should look at; agent_id None where it is no agent's own."""

    code: str
    severity: str
    agent_id: str | None
    session_keys: tuple[str, ...]
    message: str
    fix: str


class Sender(NamedTuple):
    """Somebody who wrote to a session: a peer of a channel."""

    channel: str
    account_id: str
    peer_id: str


class Inspected(NamedTuple):
    """A session as far as findings need it; senders are those of direct messages alone."""

    key: str
    entry: Document
    senders: tuple[Sender, ...] = ()


def session_findings(agent_id: str, rows: Iterable[Inspected], config: Document) -> Iterator[Finding]:
    """Everything that the rows of one agent's store show."""
    inspected = list(rows)
    for row in inspected:
        yield from _senders(agent_id, row, config)
        if reason := contradiction(row.entry):
            yield Finding(
                "running_with_end",
                "warning",
                agent_id,
                (row.key,),
                f"{row.key}: {reason}",
                "reset the session in OpenClaw if it stays busy; OpenClaw's cleanup keeps it until then",
            )
    yield from _case_duplicates(agent_id, (row.key for row in inspected))
    yield from _scope_leftovers(agent_id, (row.key for row in inspected), config)


def _senders(agent_id: str, row: Inspected, config: Document) -> Iterator[Finding]:
    """Several people in one session of direct messages; identity links make one person of some."""
    by_case: dict[tuple[str, str], set[str]] = {}
    people: dict[str, Sender] = {}
    for sender in row.senders:
        channel = trim(sender.channel).lower()
        by_case.setdefault((channel, sender.peer_id.lower()), set()).add(sender.peer_id)
        linked = linked_identity(channel, sender.peer_id, config)
        people.setdefault(linked.name if linked else f"{channel}:{sender.peer_id.lower()}", sender)
    for (channel, _), spelled in by_case.items():
        if len(spelled) > 1:
            yield Finding(
                "dm_case_collision",
                "error",
                agent_id,
                (row.key,),
                f"{row.key}: senders of {channel} that differ only in case share it:"
                f" {', '.join(sorted(spelled))}",
                "check whether they are one person; OpenClaw folds the case of a sender's id",
            )
    if len(people) < 2:
        return
    named = ", ".join(sorted(people))
    if _dm_scopes(config) == {"main"}:
        yield Finding(
            "dm_scope_main",
            "warning",
            agent_id,
            (row.key,),
            f"{row.key}: {len(people)} people share one context, because session.dmScope is main: {named}",
            "set session.dmScope to per-channel-peer, if they should not read each other's",
        )
    else:
        yield Finding(
            "dm_shared_session",
            "error",
            agent_id,
            (row.key,),
            f"{row.key}: the direct messages of {len(people)} people are in it: {named}",
            "openclaw-state sessions route shows where each belongs; reset the session to part them",
        )


def _dm_scopes(config: Document) -> set[str]:
    """The scope in force, and those of bindings."""
    bound = (member(binding, "session", "dmScope") for binding in items(config, "bindings"))
    scope = text_of(member(config, "session", "dmScope"))
    return {scope or DM_SCOPES[0], *filter(None, map(text_of, bound))}


def _case_duplicates(agent_id: str, session_keys: Iterable[str]) -> Iterator[Finding]:
    alike: dict[str, list[str]] = {}
    for key in session_keys:
        alike.setdefault(key.lower(), []).append(key)
    for same in alike.values():
        if len(same) < 2:
            continue
        own = all(keys.fold(key) == key for key in same)
        yield Finding(
            "case_duplicate",
            "warning" if own else "error",
            agent_id,
            tuple(sorted(same)),
            f"keys that differ only in case: {', '.join(sorted(same))}",
            "these ids keep their case, so they may well be two chats; compare them" if own else MEND,
        )


def _scope_leftovers(agent_id: str, session_keys: Iterable[str], config: Document) -> Iterator[Finding]:
    """Rows of direct chats that no message reaches any more, because another scope made them."""
    scopes = _dm_scopes(config)
    left = sorted(
        key for key in session_keys if is_direct_chat(key, agent_id) and _scope_of(key) not in scopes
    )
    if not left:
        return
    scope = text_of(member(config, "session", "dmScope")) or DM_SCOPES[0]
    yield Finding(
        "dm_scope_leftover",
        "info",
        agent_id,
        tuple(left),
        f"{len(left)} direct chats are left from another dmScope than {scope}: {', '.join(left[:3])}"
        + (f" and {len(left) - 3} more" if len(left) > 3 else ""),
        "openclaw-state sessions cleanup --fix-dm-scope plans to retire them"
        if scope == DM_SCOPES[0]
        else "archive those that nobody needs; cleanup retires them only while dmScope is main",
    )


def _scope_of(key: str) -> str:
    """The scope whose keys have this form: one, two or three parts before the peer."""
    return DM_SCOPES[1 + keys.body(key).split(":").index("direct")]


def link_findings(config: Document) -> Iterator[Finding]:
    """Identity links that make one person of senders who may be several."""
    links = section(config, "session", "identityLinks")
    names: dict[str, list[str]] = {}
    for canonical in own_keys(links):
        listed = [text_of(one).lower() for one in items(links, canonical) if text_of(one)]
        for one in dict.fromkeys(listed):
            names.setdefault(one, []).append(canonical)
        by_channel: dict[str, list[str]] = {}
        for one in dict.fromkeys(listed):
            by_channel.setdefault(one.partition(":")[0] if ":" in one else "any channel", []).append(one)
        for channel, several in by_channel.items():
            if len(several) > 1:
                yield Finding(
                    "identity_link_merges",
                    "warning",
                    None,
                    (),
                    f"session.identityLinks[{canonical!r}] makes one person of {len(several)} senders"
                    f" of {channel}: {', '.join(several)}",
                    "take out those that are somebody else: they share a session in every dmScope",
                )
    for one, several in names.items():
        if len(several) > 1:
            yield Finding(
                "identity_link_ambiguous",
                "warning",
                None,
                (),
                f"{one} is listed under several identity links ({', '.join(several)}); {several[0]} counts",
                "leave it in one of them",
            )


def head_findings(
    versions: Mapping[tuple[str, str], int], known: Mapping[str, frozenset[str]]
) -> Iterator[Finding]:
    """Sessions of the log whose agent's store was read and has no such row; known is agent -> keys."""
    gone: dict[str, list[str]] = {}
    for key, agent in versions:
        if agent in known and keys.fold(key) not in known[agent]:
            gone.setdefault(agent, []).append(key)
    for agent, left in sorted(gone.items()):
        yield Finding(
            "head_without_session",
            "info",
            agent,
            tuple(sorted(left)),
            f"agent {agent}: {len(left)} sessions have a state version, and no row in the store",
            "openclaw-state forget KEY deletes what the log keeps of a session that is gone for good",
        )
