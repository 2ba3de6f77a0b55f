"""From a message to its session key, with the rule that decided each part.

Contract, sessions section 1.4, route.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core import keys
from ..errors import AgentSelectionError, ConfigurationError
from .agents import MAIN, Owner, is_global, main_key, main_session, owner, roster
from .bindings import Binding, Origin, winning_binding
from .document import Document, first_given, member, text_of
from .naming import canonical_key
from .peers import (
    DM_SCOPES,
    GROUP_SCOPES,
    check_scope,
    direct_key,
    group_key,
    linked_identity,
)


class Decision(NamedTuple):
    """One part of a route: what it is, its value, and the configuration or rule that set it."""

    part: str
    value: str
    rule: str


class Route(NamedTuple):
    """Where a message goes (contract, sessions section 1.4).

    last_route_policy is `main` or `session`; matched_by is the tier of the winning binding, or
    `default`; stored_key is the row of the store, `global` for main sessions in global scope;
    decisions tell why, part by part.
    """

    agent_id: str
    channel: str
    account_id: str
    dm_scope: str
    group_scope: str
    session_key: str
    main_session_key: str
    last_route_policy: str
    matched_by: str
    stored_key: str
    decisions: tuple[Decision, ...]


def session_key(origin: Origin, config: Document, *, dm_scope: str | None = None) -> Route:
    """The session key of a message, by the configuration of openclaw.json.

    dm_scope is a channel's own, which a binding overrides and which overrides `session.dmScope`.
    Raises AgentSelectionError when no agent, or one that is not configured, is meant, and
    ConfigurationError for an empty roster or an unknown scope.
    """
    origin = origin.cleaned()
    won = winning_binding(origin, config)
    tier, binding = won or ("default", None)
    agent = _agent(binding, tier, config)
    direct = _scope("dmScope", binding, dm_scope, config, DM_SCOPES)
    group = _scope("groupScope", binding, None, config, GROUP_SCOPES)
    main = main_session(agent.value, config)
    key, by_peer = _key(origin, agent.value, direct, group, config)
    stored = canonical_key(key, config, agent_id=agent.value)
    return Route(
        agent_id=agent.value,
        channel=origin.channel,
        account_id=origin.account_id,
        dm_scope=direct.value,
        group_scope=group.value,
        session_key=key,
        main_session_key=main,
        last_route_policy="main" if key == main else "session",
        matched_by=tier,
        stored_key=stored,
        decisions=(agent, *by_peer, *_by_main_key(key, main, config), _by_scope(stored, config)),
    )


def _agent(binding: Binding | None, tier: str, config: Document) -> Decision:
    known = roster(config)
    if binding is None or not binding.agent_id:
        if known == []:
            raise ConfigurationError("no agent is configured: the roster is empty")
        found: Owner = owner(config)
        rule = found.rule if binding is None else f"{_path(binding)} names no agent; {found.rule}"
    else:
        found = Owner(keys.normalize_agent_id(binding.agent_id), "")
        rule = f"{_path(binding)} ({tier})"
    if binding and known is not None and found.agent_id not in (MAIN, *known):
        raise AgentSelectionError(
            f"{_path(binding)} names the agent {found.agent_id!r}, which is not configured",
            hint=f"configured are {', '.join(known) or 'none'}",
        )
    return Decision("agent", found.agent_id, rule)


def _path(binding: Binding) -> str:
    return f"bindings[{binding.number}]"


def _scope(
    name: str, binding: Binding | None, given: str | None, config: Document, allowed: tuple[str, ...]
) -> Decision:
    """The binding's scope, else the caller's, else the configured one, else the default."""
    own = member(binding.session, name) if binding else None
    configured = member(config, "session", name)
    if binding and own is not None:
        rule = f"{_path(binding)}.session.{name}"
    elif given is not None:
        rule = "the channel's own"
    else:
        rule = f"session.{name}" if configured is not None else "default"
    scope = first_given(own, given, configured, allowed[0])
    return Decision(name, check_scope(scope, allowed, rule), rule)


def _key(
    origin: Origin, agent: str, direct: Decision, group: Decision, config: Document
) -> tuple[str, list[Decision]]:
    main = main_session(agent, config)
    peer = origin.peer
    if peer is None:
        return main, [Decision("peer", "", "no peer: the main session")]
    if peer.kind != "direct":
        key = main if group.value == "main" else group_key(agent, origin.channel, peer)
        return key, [group]
    if direct.value == "main":
        return main, [direct]
    peer_id = text_of(peer.id) or "unknown"
    linked = linked_identity(origin.channel, peer_id, config)
    name = linked.name if linked else peer_id.lower()
    rule = (
        f"session.identityLinks[{linked.canonical!r}] lists {linked.matched}"
        if linked
        else "the sender's id"
        if peer.id
        else "the sender has no id"
    )
    key = direct_key(agent, origin.channel, origin.account_id, name, direct.value)
    return key, [direct, Decision("peer", name, rule)]


def _by_main_key(key: str, main: str, config: Document) -> list[Decision]:
    if key != main:
        return []
    configured = text_of(member(config, "session", "mainKey"))
    return [Decision("mainKey", main_key(config), "session.mainKey" if configured else "default")]


def _by_scope(stored: str, config: Document) -> Decision:
    scope = "global" if is_global(config) else "per-sender"
    rule = "session.scope" if member(config, "session", "scope") is not None else "default"
    return Decision("scope", scope, f"{rule}: stored as {stored}")
