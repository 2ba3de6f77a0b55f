"""Canonical keys, keys that no chat names, and what a key says by itself."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_state import canonical_key, parse_key
from openclaw_state.errors import AgentSelectionError, ConfigurationError, UsageError
from openclaw_state.sessions import kinds, naming, peers

TWO_AGENTS = {"agents": {"entries": {"a": {}, "b": {}}}}
HOME = {"session": {"mainKey": " Home "}}


@pytest.mark.parametrize(
    ("key", "config", "agent", "stored"),
    [
        ("  ", TWO_AGENTS, None, ""),
        (" GLOBAL ", TWO_AGENTS, None, "global"),
        ("Unknown", TWO_AGENTS, None, "unknown"),
        ("MAIN", {}, None, "agent:main:main"),
        ("home", HOME, None, "agent:main:home"),
        ("agent:Main:main", HOME, None, "agent:main:home"),
        ("agent:work:main", HOME, None, "agent:work:home"),
        ("agent:work:main", {"session": {"scope": "global"}}, None, "global"),
        ("main", {**TWO_AGENTS, "session": {"scope": "global"}}, None, "global"),
        ("Foo", TWO_AGENTS, "B", "agent:b:foo"),
        ("Agent:A:Foo", TWO_AGENTS, None, "agent:a:foo"),
        ("agent:main:main", TWO_AGENTS, "b", "agent:b:main"),
        ("agent:main:other", TWO_AGENTS, "b", "agent:main:other"),
        ("Agent:X", {}, None, "agent:x"),
        ("Agent:Main:Signal:Group:AbC", {}, None, "agent:main:signal:group:AbC"),
    ],
)
def test_a_store_has_one_spelling_for_a_key(
    key: str, config: dict[str, Any], agent: str | None, stored: str
) -> None:
    assert canonical_key(key, config, agent_id=agent) == stored


@pytest.mark.parametrize("key", ["foo", "main", "agent:x", "agent:main:main"])
def test_a_key_that_nobody_owns_has_no_spelling(key: str) -> None:
    with pytest.raises(AgentSelectionError):
        canonical_key(key, TWO_AGENTS)


@pytest.mark.parametrize(
    ("key", "stored"),
    [
        ("", "agent:work:home"),
        ("MAIN", "agent:work:home"),
        ("home", "agent:work:home"),
        ("agent:main:main", "agent:work:home"),
        ("Agent: Other :X", "agent:other:x"),
        ("AGENT:x", "agent:x"),
        ("Job", "agent:work:job"),
    ],
)
def test_a_cron_jobs_key_is_qualified_by_its_agent(key: str, stored: str) -> None:
    assert naming.cron_key(key, "Work", HOME) == stored


@pytest.mark.parametrize(
    ("hooks", "source", "key", "stored"),
    [
        ({}, "request", None, "hook:1"),
        ({}, "request", "hook:x", None),
        ({}, "mapping-templated", "hook:x", None),
        ({}, "mapping-static", " Hook:X ", "Hook:X"),
        ({"allowRequestSessionKey": True}, "mapping-templated", "x", "x"),
        ({"allowedSessionKeyPrefixes": ["ext:"]}, "mapping-static", "x", None),
        ({"allowedSessionKeyPrefixes": ["ext:"]}, "request", None, None),
        ({"allowedSessionKeyPrefixes": [" ", ""]}, "request", None, "hook:1"),
        ({"allowedSessionKeyPrefixes": ["ext:"], "defaultSessionKey": " d "}, "request", " ", "d"),
    ],
)
def test_a_hook_may_use_the_keys_it_is_allowed(
    hooks: dict[str, Any], source: str, key: str | None, stored: str | None
) -> None:
    assert naming.hook_key({"hooks": hooks}, source=source, generated_id="1", session_key=key) == stored


def test_a_hook_has_a_known_source() -> None:
    with pytest.raises(UsageError, match="no source of a hook"):
        naming.hook_key({}, source="cron", generated_id="1")


def test_threads_and_topics_hang_on_their_base() -> None:
    assert naming.thread_key("agent:main:x", " AbC ") == "agent:main:x:thread:abc"
    assert naming.thread_key("agent:main:x", " ") == "agent:main:x"
    assert naming.telegram_group_peer(-5, 7, "direct-messages") == "-5:direct-topic:7"
    assert naming.telegram_group_peer(-5, 7, "none") == "-5"
    assert naming.explicit_key(" AbC ", "Main") == "agent:main:explicit:AbC"


def test_a_peer_without_bindings_has_a_key_too() -> None:
    assert peers.peer_key("A", "telegram", " ", dm_scope="per-peer") == "agent:a:main"
    assert peers.peer_key("A", "telegram", 5, dm_scope="per-channel-peer") == "agent:a:telegram:direct:5"
    assert peers.peer_key("A", "telegram", "", kind="group") == "agent:a:telegram:group:unknown"
    with pytest.raises(ConfigurationError, match="dmScope is 'x'"):
        peers.peer_key("a", "telegram", "5", dm_scope="x")


DIRECT = {"ChatType": "direct", "Provider": "Telegram", "SenderId": 7}


@pytest.mark.parametrize(
    ("key", "context", "policy_key"),
    [
        ("Main", DIRECT, "agent:main:telegram:default:direct:7"),
        ("agent:main:main", DIRECT | {"AccountId": "B"}, "agent:main:telegram:b:direct:7"),
        ("agent:main:x", DIRECT, "agent:main:x"),
        ("main", DIRECT | {"ChatType": "group"}, "main"),
        ("main", DIRECT | {"OriginatingChannel": ""}, "main"),
        ("main", DIRECT | {"NativeDirectUserId": " "}, "main"),
        ("main", {"ChatType": "direct", "Surface": "x", "To": "y"}, "agent:main:x:default:direct:y"),
    ],
)
def test_policies_judge_a_direct_message_in_main_by_its_sender(
    key: str, context: dict[str, Any], policy_key: str
) -> None:
    assert naming.runtime_policy_key(key, "main", context, {}) == policy_key


def test_policies_refuse_keys_that_are_malformed_or_another_agents() -> None:
    with pytest.raises(UsageError, match="malformed"):
        naming.runtime_policy_key("agent:main:", "main", DIRECT, {})
    with pytest.raises(AgentSelectionError, match="not of the agent 'main'"):
        naming.runtime_policy_key("agent:work:main", "main", DIRECT, {})


@pytest.mark.parametrize(
    ("key", "shape"),
    [(" ", "missing"), ("Agent:a:b", "agent"), ("agent:a", "malformed_agent"), ("global", "legacy_or_alias")],
)
def test_a_key_has_a_shape(key: str, shape: str) -> None:
    assert parse_key(key).shape == shape


@pytest.mark.parametrize(
    ("key", "entry", "kind"),
    [
        ("global", {"spawnedBy": "x"}, "global"),
        ("agent:a:cron:j", {"spawnedBy": "x"}, "cron"),
        ("agent:a:x:group:1", {"spawnedBy": "x"}, "spawn-child"),
        ("agent:a:x:group:1", {"spawnedBy": ""}, "group"),
        ("agent:a:x", {"chatType": "channel"}, "group"),
        ("agent:a:x", {"chatType": "thread"}, "direct"),
        ("agent:a:x", None, "direct"),
    ],
)
def test_a_listing_shows_a_kind(key: str, entry: dict[str, Any] | None, kind: str) -> None:
    assert parse_key(key, entry).kind == kind


@pytest.mark.parametrize(
    ("key", "chat"),
    [
        ("agent:a:dm:1", "direct"),
        ("agent:a:telegram:acct:dm:1", "direct"),
        ("group:5", "group"),
        ("channel:direct:5", "channel"),
        ("whatsapp:123@g.us", "group"),
        ("x:123@g.us", "unknown"),
        ("Discord:acct:guild-1:channel-2", "channel"),
        ("discord:a:b:guild-1:channel-2", "unknown"),
        ("agent:x", "unknown"),
        ("agent:a:direct:direct:5", "unknown"),
        ("agent:a:main", "unknown"),
        ("agent:a:x:group:", "unknown"),
    ],
)
def test_a_key_tells_its_chat_type(key: str, chat: str) -> None:
    assert parse_key(key).chat_type == chat


def test_a_thread_is_split_off_at_its_last_marker() -> None:
    parsed = parse_key(" Agent:A:Slack:Channel:C1:Thread:1:THREAD: X ")
    assert parsed.thread == kinds.Thread("Agent:A:Slack:Channel:C1:Thread:1", "X")
    assert parsed.delivery_route == kinds.DeliveryRoute("slack", None, "channel", "c1:thread:1", "X")
    assert parse_key("x:thread: ").thread == kinds.Thread("x", None)


@pytest.mark.parametrize(
    "key", ["telegram:direct:1", "agent:a:agent:b:direct:1", "agent:a:x: :direct:1", "agent:a:x:direct: "]
)
def test_some_keys_name_no_conversation(key: str) -> None:
    assert parse_key(key).delivery_route is None


@pytest.mark.parametrize(
    ("key", "depth", "is_acp"),
    [
        ("agent:a:subagent:1:subagent:2", 2, False),
        ("subagent:subagent:1", 2, False),
        ("agent:a:xsubagent:1", 0, False),
        ("ACP:1", 0, True),
    ],
)
def test_children_are_counted_where_a_part_begins(key: str, depth: int, is_acp: bool) -> None:
    parsed = parse_key(key)
    assert (parsed.subagent_depth, parsed.is_subagent, parsed.is_acp) == (depth, depth > 0, is_acp)


def test_a_cron_run_is_cut_off_only_when_nothing_follows_it() -> None:
    run, more = parse_key("agent:a:cron:J:run:R"), parse_key("agent:a:cron:j:run:r:x")
    assert (run.is_cron_run, run.cron_scope) == (True, kinds.CronScope("agent:a:cron:J", "R"))
    assert (more.is_cron_run, more.cron_scope.run_id) == (True, None)


@pytest.mark.parametrize(
    ("key", "incognito"),
    [
        ("Agent:A:Dashboard:Incognito-1", True),
        ("agent:a:subagent:incognito-1", True),
        ("agent:a:explicit:incognito-1", False),
        ("agent:a:dashboard:incognito-1:x", False),
        ("agent:a:dashboard:1", False),
    ],
)
def test_incognito_sessions_are_known_by_their_key(key: str, incognito: bool) -> None:
    assert parse_key(key).incognito is incognito


@pytest.mark.parametrize(
    ("key", "given", "found"),
    [
        ("agent:a:main", {}, "direct"),
        ("agent:a:main", {"is_group": True}, "group"),
        ("agent:a:X:Group:1", {}, "group"),
        ("agent:a:x:group:1", {"message_thread_id": ""}, "thread"),
        ("agent:a:x:group:1", {"parent_session_key": " "}, "group"),
        ("agent:a:x:group:1", {"parent_session_key": "p"}, "thread"),
        ("agent:a:x:group:1:thread:2", {}, "thread"),
        ("agent:a:telegram:group:-1:topic:5", {}, "group"),
    ],
)
def test_the_reset_type_comes_from_the_message_and_the_key(
    key: str, given: dict[str, Any], found: str
) -> None:
    assert kinds.reset_type(key, **given) == found
