"""One session as `openclaw sessions --json` shows it (contract, sessions section 7.1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core import keys
from ..core.javascript import is_falsy, is_finite, trim
from ..errors import StateError
from .document import Document, first_given, member, section, text_of
from .kinds import delivery_route
from .models import (
    AcpRow,
    ContextLimit,
    ModelRef,
    Runtime,
    agent_runtime,
    context_limit,
    default_model,
    is_acp_key,
    listed_model,
)
from .naming import runtime_policy_key

_HEAD = ("sessionId", "spawnedBy", "spawnedWorkspaceDir", "spawnedCwd", "parentSessionKey")
_SPAWN = ("spawnDepth", "subagentRole", "subagentControlScope")
_STATE = ("sessionStartedAt", "lastInteractionAt", "label", "color", "status")
LEVELS = ("thinkingLevel", "verboseLevel", "traceLevel", "reasoningLevel", "elevatedLevel")
_RUN = ("systemSent", "abortedLastRun", *LEVELS)
_USE = ("responseUsage", "groupActivation", "inputTokens", "outputTokens")
_OVERRIDES = ("providerOverride", "modelOverride")
# Every member of an entry that a listing, or the judgement of freshness, looks at.
WANTED = frozenset(
    (
        *_HEAD, *_SPAWN, *_STATE, *_RUN, *_USE, *_OVERRIDES,
        "acp", "agentHarnessId", "agentRuntimeOverride", "archiveReason", "archivedAt", "chatType",
        "cliSessionBindings", "cliSessionIds", "contextTokens", "contextTokensSource", "createdActor",
        "delivery", "endedAt", "forkSource", "forkedFromParent", "lastActivityAt", "model",
        "modelProvider", "modelSelectionLocked", "pinnedAt", "pluginOwnerId", "startedAt", "totalTokens",
        "totalTokensFresh", "totalTokensVersion", "updatedAt", "visibility",
    )
)  # fmt: skip


class Listed(NamedTuple):
    """A session row with what else a listing knows of it; acp is its row of the shared database."""

    key: str
    entry: Document
    agent_id: str
    owner: Document | None = None
    participants: tuple[Document, ...] = ()
    acp: AcpRow | None = None


class Models(NamedTuple):
    """What answers for a session, and how much it may read at once."""

    ref: ModelRef
    runtime: Runtime
    limit: ContextLimit


# What of an entry decides about models: sessions that agree in it share the answer.
_DECIDING = (
    *_OVERRIDES, "model", "modelProvider", "agentHarnessId", "agentRuntimeOverride", "modelSelectionLocked",
    "pluginOwnerId", "contextTokens", "contextTokensSource",
)  # fmt: skip


class Defaults:
    """What the configuration gives sessions: worked out once for all that agree."""

    def __init__(self, config: Document) -> None:
        self.config = config
        self._models: dict[str, ModelRef] = {}
        self._known: dict[str, Models] = {}

    def models(self, one: Listed) -> Models:
        """Model, runtime and context limit of a row."""
        acp = acp_row(one)
        own = acp if acp is not None and is_acp_key(one.key) else None
        asked = repr((one.agent_id, own, *map(one.entry.get, _DECIDING)))
        if asked not in self._known:
            self._known[asked] = self._worked_out(one, own)
        return self._known[asked]

    def _worked_out(self, one: Listed, acp: AcpRow | None) -> Models:
        if one.agent_id not in self._models:
            self._models[one.agent_id] = default_model(one.agent_id, self.config)
        default = self._models[one.agent_id]
        ref = listed_model(one.entry, default, self.config, acp)
        runtime = agent_runtime(one.entry, ref, one.agent_id, self.config, acp)
        return Models(ref, runtime, context_limit(one.entry, ref, runtime, default, self.config))


def listed_row(one: Listed, defaults: Defaults, now: int) -> dict[str, Any]:
    """The row as OpenClaw prints it, in its order."""
    entry, models = one.entry, defaults.models(one)
    updated = entry.get("updatedAt")
    row: dict[str, Any] = {"key": one.key, "updatedAt": updated}
    row["ageMs"] = now - updated if is_finite(updated) and updated else None
    _copy(row, entry, _HEAD)
    if not is_falsy(entry.get("forkSource")) or entry.get("forkedFromParent") is True:
        row["forkedFromParent"] = True
    _copy(row, entry, (*_SPAWN, *_STATE))
    row["visibility"] = first_given(entry.get("visibility"), "shared")
    _copy(row, entry, ("createdActor",))
    if one.owner is not None:
        row["owner"] = one.owner
    if one.participants:
        row |= {"participants": list(one.participants), "participantCount": len(one.participants)}
    _copy(row, entry, (*_RUN, *_USE))
    total = entry.get("totalTokens")
    row["totalTokens"] = total if is_finite(total) and total >= 0 else None
    row["totalTokensFresh"] = (
        row["totalTokens"] is not None
        and entry.get("totalTokensFresh") is True
        and entry.get("totalTokensVersion") == 1
    )
    _copy(row, entry, ("totalTokensVersion",))
    row |= {"model": models.ref.model, "modelProvider": models.ref.provider}
    _copy(row, entry, _OVERRIDES)
    row |= {
        "contextTokens": models.limit.tokens,
        "agentId": one.agent_id,
        "acpRuntime": acp_row(one) is not None,
        "agentRuntime": models.runtime._asdict(),
        "kind": keys.list_kind(one.key, entry),
    }
    policy = _policy_key(one, defaults.config)
    if policy != one.key:
        row["runtimePolicySessionKey"] = policy
    return row


def _copy(row: dict[str, Any], entry: Document, names: tuple[str, ...]) -> None:
    for name in names:
        if name in entry:
            row[name] = entry[name]


def acp_row(one: Listed) -> AcpRow | None:
    """The agent that runs a session over ACP, by its entry or by the shared database."""
    own = one.entry.get("acp")
    if own is None:
        return one.acp
    agent = text_of(member(own, "agent")) or (one.acp.agent if one.acp else one.agent_id)
    return AcpRow(agent, text_of(member(own, "backend")) or (one.acp.backend if one.acp else "acpx"))


def is_internal(key: str) -> bool:
    """Sessions of OpenClaw's own machinery, which it never lists."""
    return keys.body(key).startswith("internal-session-effects:")


def channel_of(key: str, entry: Document) -> str | None:
    """The channel that a session's messages come from: by its key, else by its reply route."""
    named = delivery_route(key)
    return named.channel if named else reply_route(entry).channel


def _policy_key(one: Listed, config: Document) -> str:
    """The key whose policy counts for a direct chat that landed in another session."""
    delivery = section(one.entry, "delivery")
    origin, context = section(delivery, "origin"), section(delivery, "context")
    if text_of(first_given(origin.get("chatType"), one.entry.get("chatType"))) != "direct":
        return one.key
    channel = first_given(origin.get("provider"), context.get("channel"), origin.get("surface"))
    peer = first_given(
        origin.get("nativeDirectUserId"),
        _bare_peer(first_given(origin.get("to"), context.get("to")), channel),
        _bare_peer(origin.get("from"), channel),
    )
    account = first_given(origin.get("accountId"), context.get("accountId"))
    message = {"ChatType": "direct", "Provider": channel, "AccountId": account, "NativeDirectUserId": peer}
    given = {name: value for name, value in message.items() if value is not None}
    try:
        return runtime_policy_key(one.key, one.agent_id, given, config)
    except StateError:
        return one.key


def _bare_peer(address: Any, channel: Any) -> str | None:
    """An address without its leading channel and its trailing topic."""
    text = text_of(address)
    prefix = f"{text_of(channel)}:"
    if len(prefix) > 1 and text.lower().startswith(prefix.lower()):
        text = text[len(prefix) :]
    return trim(re.sub(r":topic:[^:]*$", "", text)) or None


class ReplyRoute(NamedTuple):
    """Where a session's answers go: kind is `external`, `internal` or `none`; source says by what."""

    kind: str
    channel: str | None
    account_id: str | None
    to: str | None
    thread_id: str | None
    source: str


def reply_route(entry: Document) -> ReplyRoute:
    """The route that a row records for its answers."""
    delivery = section(entry, "delivery")
    kind = text_of(delivery.get("kind")) or "none"
    route, context = section(delivery, "route"), section(delivery, "context")
    target = section(route, "target")
    found = {
        "channel": first_given(route.get("channel"), context.get("channel")),
        "account": first_given(route.get("accountId"), context.get("accountId")),
        "to": first_given(target.get("to"), context.get("to")),
        "thread": first_given(target.get("threadId"), route.get("threadId"), context.get("threadId")),
    }
    texts = {name: text_of(value) or None for name, value in found.items()}
    source = "delivery.route" if route else "delivery.context" if context else "delivery"
    if not isinstance(entry.get("delivery"), Mapping):
        source = "no delivery recorded"
    return ReplyRoute(kind, texts["channel"], texts["account"], texts["to"], texts["thread"], source)
