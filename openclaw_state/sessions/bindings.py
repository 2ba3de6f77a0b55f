"""Which binding of openclaw.json takes a message (contract, sessions section 1.4, route)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

from ..core import keys
from ..core.javascript import trim
from .document import Document, items, member, section, text_of
from .kinds import CHAT_KINDS
from .peers import Peer, peer_kind

ANY = "*"


class Origin(NamedTuple):
    """Where a message comes from, as a channel tells it.

    parent_peer is the group of a topic or thread; guild, team and roles are Discord's and
    Slack's.
    """

    channel: str
    account_id: str = ""
    peer: Peer | None = None
    parent_peer: Peer | None = None
    guild_id: str = ""
    team_id: str = ""
    member_role_ids: tuple[str, ...] = ()

    def cleaned(self) -> Origin:
        """The same with every part in its one spelling."""
        return Origin(
            channel=trim(self.channel).lower(),
            account_id=keys.normalize_account_id(self.account_id),
            peer=_cleaned(self.peer),
            parent_peer=_cleaned(self.parent_peer),
            guild_id=text_of(self.guild_id),
            team_id=text_of(self.team_id),
            member_role_ids=tuple(map(text_of, self.member_role_ids)),
        )


def _cleaned(peer: Peer | None) -> Peer | None:
    return peer and Peer(peer_kind(peer.kind), text_of(peer.id))


class Binding(NamedTuple):
    """One entry of `bindings` that speaks of the message's channel and account."""

    number: int
    agent_id: str
    session: Document
    any_account: bool
    peer: Peer | None
    guild_id: str
    team_id: str
    roles: frozenset[str]

    def admits(self, origin: Origin) -> bool:
        """Do the fields beside the peer hold?"""
        return (
            self.guild_id in ("", origin.guild_id)
            and self.team_id in ("", origin.team_id)
            and (not self.roles or not self.roles.isdisjoint(origin.member_role_ids))
        )

    def names(self, peer: Peer | None) -> bool:
        """Is this the peer of the binding? Ids are case-sensitive, groups and channels one kind."""
        return self._has(peer, peer.id) if peer else False

    def names_any(self, peer: Peer | None) -> bool:
        return self._has(peer, ANY) if peer else False

    def _has(self, peer: Peer, peer_id: str | int) -> bool:
        if self.peer is None or self.peer.id != peer_id:
            return False
        kinds = {self.peer.kind, peer.kind}
        return len(kinds) == 1 or kinds == {"group", "channel"}

    @property
    def is_general(self) -> bool:
        """Does it name no peer, guild or team?"""
        return not (self.peer or self.guild_id or self.team_id)


# The first tier that a binding's fields name is its only one, except that an exact peer is
# tried against the parent as well.
TIERS: tuple[tuple[str, Callable[[Binding, Origin], bool]], ...] = (
    ("binding.peer", lambda one, origin: one.names(origin.peer)),
    ("binding.peer.parent", lambda one, origin: one.names(origin.parent_peer)),
    ("binding.peer.wildcard", lambda one, origin: one.names_any(origin.peer)),
    ("binding.guild+roles", lambda one, _: not one.peer and bool(one.guild_id and one.roles)),
    ("binding.guild", lambda one, _: not one.peer and bool(one.guild_id) and not one.roles),
    ("binding.team", lambda one, _: not (one.peer or one.guild_id) and bool(one.team_id)),
    ("binding.account", lambda one, _: one.is_general and not one.any_account),
    ("binding.channel", lambda one, _: one.is_general and one.any_account),
)


def winning_binding(origin: Origin, config: Document) -> tuple[str, Binding] | None:
    """The tier and the binding that takes a cleaned origin; None when none does."""
    candidates = [one for one in _candidates(origin, config) if one.admits(origin)]
    for tier, holds in TIERS:
        for one in candidates:
            if holds(one, origin):
                return tier, one
    return None


def _candidates(origin: Origin, config: Document) -> Iterator[Binding]:
    for number, binding in enumerate(items(config, "bindings")):
        match = section(binding, "match")
        account = text_of(match.get("accountId"))
        if text_of(match.get("channel")).lower() != origin.channel:
            continue
        if account != ANY and keys.normalize_account_id(account) != origin.account_id:
            continue
        peer = _bound_peer(match)
        if peer is None and match.get("peer") is not None:
            continue
        yield Binding(
            number=number,
            agent_id=text_of(member(binding, "agentId")),
            session=section(binding, "session"),
            any_account=account == ANY,
            peer=peer,
            guild_id=text_of(match.get("guildId")),
            team_id=text_of(match.get("teamId")),
            roles=frozenset(filter(None, map(text_of, items(match, "roles")))),
        )


def _bound_peer(match: Document) -> Peer | None:
    """None also for a peer without a known kind or without an id, which makes a binding void."""
    kind = CHAT_KINDS.get(text_of(member(match, "peer", "kind")).lower())
    peer_id = text_of(member(match, "peer", "id"))
    return Peer(kind, peer_id) if kind and peer_id else None
