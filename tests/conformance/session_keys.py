"""Driver for the suite `session-keys` (contract, sessions section 10.1)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from openclaw_state import Origin, Peer, canonical_key, parse_key, session_key
from openclaw_state.core import keys
from openclaw_state.errors import AgentSelectionError, StateError
from openclaw_state.sessions import agents, naming, peers

from .compare import difference

ROUTE = {
    "agentId": "agent_id",
    "channel": "channel",
    "accountId": "account_id",
    "dmScope": "dm_scope",
    "groupScope": "group_scope",
    "sessionKey": "session_key",
    "mainSessionKey": "main_session_key",
    "lastRoutePolicy": "last_route_policy",
    "matchedBy": "matched_by",
}
CLASSES = {
    "kind": "kind",
    "chatType": "chat_type",
    "shape": "shape",
    "isCron": "is_cron",
    "isCronRun": "is_cron_run",
    "isSubagent": "is_subagent",
    "isAcp": "is_acp",
    "subagentDepth": "subagent_depth",
    "incognito": "incognito",
}


def cases(document: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    for case in document["cases"]:
        yield case["id"], partial(_check, case)


def _check(case: dict[str, Any]) -> str | None:
    given = {name: value for name, value in case["input"].items() if value is not None}
    answer: dict[str, Any]
    try:
        answer = {"result": OPS[case["op"]](given, case.get("config") or {})}
    except AgentSelectionError:
        answer = {"error": "AgentSelectionRequiredError"}
    except StateError:
        answer = {"error": "Error"}
    return difference(case["expect"], answer, "answer")


def _route(given: dict[str, Any], config: dict[str, Any]) -> Any:
    origin = Origin(
        channel=given.get("channel", ""),
        account_id=given.get("accountId", ""),
        peer=_peer(given.get("peer")),
        parent_peer=_peer(given.get("parentPeer")),
        guild_id=given.get("guildId", ""),
        team_id=given.get("teamId", ""),
        member_role_ids=tuple(given.get("memberRoleIds", ())),
    )
    route = session_key(origin, config)
    return {name: getattr(route, field) for name, field in ROUTE.items()}


def _peer(given: dict[str, Any] | None) -> Peer | None:
    return Peer(given.get("kind", "direct"), given.get("id", "")) if given else None


def _peer_key(given: dict[str, Any], config: dict[str, Any]) -> Any:
    return peers.peer_key(
        given["agentId"],
        given["channel"],
        given["peerId"],
        kind=given.get("peerKind", "direct"),
        account_id=given.get("accountId", ""),
        dm_scope=given.get("dmScope", "main"),
        config=config,
    )


def _telegram(given: dict[str, Any], config: dict[str, Any]) -> Any:
    thread = given.get("thread")
    if isinstance(thread, dict):
        return naming.telegram_group_peer(given["chatId"], thread.get("id"), thread["scope"])
    return naming.telegram_group_peer(given["chatId"], thread)


def _parse(given: dict[str, Any], config: dict[str, Any]) -> Any:
    parsed = parse_key(given["sessionKey"])
    return None if parsed.agent_id is None else {"agentId": parsed.agent_id, "rest": parsed.rest}


def _classify(given: dict[str, Any], config: dict[str, Any]) -> Any:
    parsed = parse_key(given["sessionKey"], given.get("entry"))
    route, cron = parsed.delivery_route, parsed.cron_scope
    return {name: getattr(parsed, field) for name, field in CLASSES.items()} | {
        "thread": _given(baseSessionKey=parsed.thread.base_key, threadId=parsed.thread.thread_id),
        "cronScope": _given(baseSessionKey=cron.base_key, runId=cron.run_id),
        "deliveryRoute": route
        and _given(
            channel=route.channel,
            accountId=route.account_id,
            peerKind=route.peer_kind,
            peerId=route.peer_id,
            threadId=route.thread_id,
        ),
    }


def _given(**members: Any) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def _hook(given: dict[str, Any], config: dict[str, Any]) -> Any:
    value = naming.hook_key(
        config,
        source=given["source"],
        generated_id=given["generatedId"],
        session_key=given.get("sessionKey"),
    )
    return {"ok": False} if value is None else {"ok": True, "value": value}


OPS: dict[str, Callable[[dict[str, Any], dict[str, Any]], Any]] = {
    "route": _route,
    "peerKey": _peer_key,
    "thread": lambda given, _: {"sessionKey": naming.thread_key(given["baseSessionKey"], given["threadId"])},
    "telegramGroupPeer": _telegram,
    "storeKey": lambda given, config: canonical_key(
        given["sessionKey"], config, agent_id=given.get("storeAgentId")
    ),
    "normalizeStoreKey": lambda given, _: keys.fold(given["sessionKey"]),
    "parseAgentKey": _parse,
    "classify": _classify,
    "cron": lambda given, config: naming.cron_key(given["sessionKey"], given["agentId"], config),
    "hook": _hook,
    "explicit": lambda given, _: naming.explicit_key(given["sessionId"], given["agentId"]),
    "mainAlias": lambda given, config: agents.main_alias(given["sessionKey"], given["agentId"], config),
    "runtimePolicyKey": lambda given, config: naming.runtime_policy_key(
        given["sessionKey"], given["agentId"], given["ctx"], config
    ),
}
