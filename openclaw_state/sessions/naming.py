"""Keys of sessions that no chat names, and the one spelling under which a store keeps a key.

Contract, sessions section 1.4 (thread to runtimePolicyKey).
"""

from __future__ import annotations

from ..core import keys
from ..core.javascript import trim
from ..errors import AgentSelectionError, UsageError
from .agents import (
    MAIN,
    SENTINELS,
    is_global,
    is_main_alias,
    main_alias,
    main_key,
    main_session,
    owner,
    roster,
)
from .document import Document, first_given, items, member, section, text_of
from .peers import direct_key, linked_identity

HOOK_SOURCES = ("request", "mapping-static", "mapping-templated")
_CHANNEL_FIELDS = ("OriginatingChannel", "Provider", "Surface")
_PEER_FIELDS = (
    "NativeDirectUserId",
    "SenderId",
    "SenderE164",
    "SenderUsername",
    "OriginatingTo",
    "From",
    "To",
)


def canonical_key(key: str, config: Document, *, agent_id: str | None = None) -> str:
    """The key under which a store keeps a session (contract, sessions section 1.4, storeKey).

    agent_id is the agent of the store; without it a bare key belongs to the owner by the
    configuration. Raises AgentSelectionError when that is nobody.
    """
    trimmed = trim(key)
    if not trimmed:
        return ""
    if trimmed.lower() in SENTINELS:
        return trimmed.lower()
    if parsed := keys.parse(trimmed):
        return _canonical_agent_key(trimmed, *parsed, config, agent_id)
    if trimmed.lower() in (MAIN, main_key(config)):
        return "global" if is_global(config) else main_session(_store_agent(config, agent_id), config)
    agent, folded = _store_agent(config, agent_id), keys.fold(trimmed)
    return folded if folded.startswith("agent:") else keys.qualify(agent, folded)


def _canonical_agent_key(key: str, agent: str, rest: str, config: Document, agent_id: str | None) -> str:
    agent = keys.normalize_agent_id(agent)
    known = roster(config)
    is_legacy = agent == MAIN and rest.lower() in (MAIN, main_key(config))
    if is_legacy and known is not None and MAIN not in known:
        agent = _store_agent(config, agent_id)
        return main_alias(keys.qualify(agent, rest.lower()), agent, config)
    return main_alias(keys.fold(key), agent, config)


def _store_agent(config: Document, agent_id: str | None) -> str:
    return keys.normalize_agent_id(agent_id) if agent_id is not None else owner(config).agent_id


def cron_key(key: str, agent_id: str, config: Document) -> str:
    """The key of a cron job's session, from the key that the job names."""
    agent, trimmed = keys.normalize_agent_id(agent_id), trim(key)
    if trimmed.lower() in ("", MAIN):
        found = main_session(agent, config)
    elif parsed := keys.parse(trimmed):
        found = keys.qualify(*parsed)
    elif keys.is_malformed(trimmed):
        found = keys.fold(trimmed)
    else:
        found = keys.qualify(agent, keys.fold(trimmed))
    return main_alias(found, agent, config)


def hook_key(
    config: Document, *, source: str, generated_id: str, session_key: str | None = None
) -> str | None:
    """The key of a webhook's session; None when the hook may not use it.

    source is `request`, `mapping-static` or `mapping-templated`; generated_id is used where no
    key is given. Raises UsageError for another source.
    """
    if source not in HOOK_SOURCES:
        raise UsageError(f"{source!r} is no source of a hook", hint=f"one of {', '.join(HOOK_SOURCES)}")
    hooks = section(config, "hooks")
    if given := trim(session_key or ""):
        allowed = source == "mapping-static" or hooks.get("allowRequestSessionKey") is True
        return given if allowed and _has_allowed_prefix(given, hooks) else None
    if default := text_of(hooks.get("defaultSessionKey")):
        return default
    generated = f"hook:{generated_id}"
    return generated if _has_allowed_prefix(generated, hooks) else None


def _has_allowed_prefix(key: str, hooks: Document) -> bool:
    prefixes = [text_of(prefix).lower() for prefix in items(hooks, "allowedSessionKeyPrefixes")]
    prefixes = [prefix for prefix in prefixes if prefix]
    return not prefixes or key.lower().startswith(tuple(prefixes))


def explicit_key(session_id: str, agent_id: str) -> str:
    """The key of a session that was asked for by its id, whose case is kept."""
    return keys.qualify(keys.normalize_agent_id(agent_id), f"explicit:{trim(session_id)}")


def thread_key(base_key: str, thread_id: str | int) -> str:
    """The key of a thread; without an id the key of what it hangs on."""
    wanted = text_of(thread_id).lower()
    return f"{base_key}:thread:{wanted}" if wanted else base_key


def telegram_group_peer(chat_id: str | int, thread_id: int | str | None = None, scope: str = "forum") -> str:
    """The peer id of a Telegram group: its topic by scope `forum` or `direct-messages`."""
    chat = text_of(chat_id)
    word = {"forum": "topic", "direct-messages": "direct-topic"}.get(scope)
    if thread_id is None or word is None:
        return chat
    return f"{chat}:{word}:{text_of(thread_id)}"


def runtime_policy_key(key: str, agent_id: str, context: Document, config: Document) -> str:
    """The key by which sandbox and tool policy judge a direct message that landed in main.

    context holds the message's fields (ChatType, Provider, SenderId, ...). Raises UsageError
    for a malformed key and AgentSelectionError for the key of another agent.
    """
    agent, trimmed = keys.normalize_agent_id(agent_id), trim(key)
    if keys.is_malformed(trimmed):
        raise UsageError(f"the key {key!r} is malformed")
    if keys.agent_of(trimmed) not in (None, agent):
        raise AgentSelectionError(f"the key {key!r} is not of the agent {agent!r}")
    lowered = trimmed.lower()
    is_main = is_main_alias(lowered, agent, config) or (lowered == "global" and is_global(config))
    if not is_main or text_of(member(context, "ChatType")).lower() not in ("direct", "dm"):
        return trimmed
    channel = text_of(first_given(*(member(context, name) for name in _CHANNEL_FIELDS))).lower()
    peer = text_of(first_given(*(member(context, name) for name in _PEER_FIELDS)))
    if channel in ("", "webchat") or not peer:
        return trimmed
    linked = linked_identity(channel, peer, config)
    account = text_of(member(context, "AccountId"))
    name = linked.name if linked else peer.lower()
    return direct_key(agent, channel, account, name, "per-account-channel-peer")
