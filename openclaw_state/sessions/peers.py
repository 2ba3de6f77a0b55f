"""The key of a chat: direct messages by scope and identity, groups by id.

Contract, sessions sections 1.2, 1.3 and step 6 of route in 1.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ..core import keys
from ..core.javascript import trim
from ..core.jsontext import own_keys
from ..errors import ConfigurationError
from .agents import main_session
from .document import Document, section, text_of
from .kinds import CHAT_KINDS

DM_SCOPES = ("main", "per-peer", "per-channel-peer", "per-account-channel-peer")
GROUP_SCOPES = ("per-group", "main")
# Where ids are case-sensitive.
_KEPT_IDS = {("signal", "group"), ("matrix", "group"), ("matrix", "channel")}


class Peer(NamedTuple):
    """Whom a message is exchanged with: kind `direct`, `group`, `channel` or a channel's own word."""

    kind: str
    id: str | int


class LinkedIdentity(NamedTuple):
    """The name that `session.identityLinks` gives to a sender, and by which entry."""

    name: str
    canonical: str
    matched: str


def peer_kind(kind: Any) -> str:
    """A known kind in its one spelling; an unknown one exactly as it is."""
    return CHAT_KINDS.get(trim(kind).lower(), kind) if isinstance(kind, str) else "direct"


def check_scope(scope: Any, allowed: tuple[str, ...], path: str) -> str:
    """Raises ConfigurationError for a scope that OpenClaw does not know."""
    if scope not in allowed:
        raise ConfigurationError(f"{path} is {scope!r}", hint=f"it is one of {', '.join(allowed)}")
    return str(scope)


def linked_identity(channel: str, peer_id: str, config: Document) -> LinkedIdentity | None:
    """The first canonical name that lists a sender, in the order of a JavaScript object."""
    links = section(config, "session", "identityLinks")
    wanted = {trim(peer_id).lower()}
    if channel := trim(channel).lower():
        wanted.add(f"{channel}:{trim(peer_id).lower()}")
    for canonical in own_keys(links):
        listed = links[canonical]
        if not trim(canonical) or not isinstance(listed, list):
            continue
        for one in listed:
            if text_of(one).lower() in wanted and text_of(one):
                return LinkedIdentity(trim(canonical).lower(), canonical, text_of(one))
    return None


def direct_key(agent_id: str, channel: str, account_id: str, name: str, dm_scope: str) -> str:
    """The key of a direct chat in a scope other than `main`; name is the peer or its identity."""
    channel = trim(channel).lower() or "unknown"
    where = {
        "per-peer": [],
        "per-channel-peer": [channel],
        "per-account-channel-peer": [channel, keys.normalize_account_id(account_id)],
    }[dm_scope]
    return keys.qualify(agent_id, ":".join([*where, "direct", name]))


def group_key(agent_id: str, channel: str, peer: Peer) -> str:
    """The key of a group, a channel, or any other kind that is not a direct chat."""
    channel = trim(channel).lower() or "unknown"
    peer_id = text_of(peer.id) or "unknown"
    kept = (channel, peer.kind) in _KEPT_IDS
    return keys.qualify(agent_id, f"{channel}:{peer.kind}:{peer_id if kept else peer_id.lower()}")


def peer_key(
    agent_id: str,
    channel: str,
    peer_id: str | int,
    *,
    kind: str = "direct",
    account_id: str = "",
    dm_scope: str = "main",
    config: Document | None = None,
) -> str:
    """The key of a chat without bindings: OpenClaw's main key, and groups apart.

    A blank direct peer gives the main key. Raises ConfigurationError for an unknown dm_scope.
    """
    agent = keys.normalize_agent_id(agent_id)
    check_scope(dm_scope, DM_SCOPES, "dmScope")
    peer = Peer(kind, text_of(peer_id))
    if kind != "direct":
        return group_key(agent, channel, peer)
    if dm_scope == "main" or not peer.id:
        return main_session(agent, {})
    linked = linked_identity(channel, str(peer.id), config or {})
    return direct_key(agent, channel, account_id, linked.name if linked else str(peer.id).lower(), dm_scope)
