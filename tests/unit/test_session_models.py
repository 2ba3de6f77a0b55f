"""Model, runtime and context limit of a listed session, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_state.sessions.listing import Defaults, Listed, listed_row, reply_route
from openclaw_state.sessions.models import AcpRow, ContextLimit, ModelRef, Runtime

NOW = 1_800_000_000_000
PROVIDERS = {
    "mock": {
        "models": [
            {"id": "m1", "contextWindow": 128_000},
            {"id": "m2", "contextWindow": 9, "contextTokens": 5},
        ]
    },
    "Other": {"agentRuntime": {"id": "pi"}, "models": [{"id": "m3", "agentRuntime": {"id": "acme"}}]},
}
CONFIG: dict[str, Any] = {
    "agents": {"defaults": {"model": {"primary": "Mock/m1"}}, "entries": {"Work": {"model": "solo@key"}}},
    "models": {"providers": PROVIDERS},
}


def one(entry: dict[str, Any], key: str = "agent:main:main", agent: str = "main", **more: Any) -> Listed:
    return Listed(key, entry, agent, **more)


def ref(entry: dict[str, Any], agent: str = "main", config: dict[str, Any] | None = None) -> ModelRef:
    return Defaults(CONFIG if config is None else config).models(one(entry, agent=agent)).ref


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({}, ("mock", "m1")),
        ({"providerOverride": "x"}, ("mock", "m1")),
        ({"modelOverride": "big"}, ("mock", "big")),
        ({"modelOverride": "Acme/Big@key"}, ("acme", "Big@key")),
        ({"modelOverride": "acme/Big", "providerOverride": "Acme"}, ("acme", "Big")),
        ({"modelOverride": "b/Big", "providerOverride": "Acme"}, ("acme", "b/Big")),
        ({"model": "a/b", "modelProvider": "Px"}, ("Px", "a/b")),
        ({"model": "Px/b"}, ("px", "b")),
        ({"model": "b"}, ("mock", "b")),
        ({"model": "b", "modelOverride": "c"}, ("mock", "c")),
        ({"model": "m3", "modelProvider": "Claude-CLI"}, ("Other", "m3")),
        ({"model": "acme/x", "modelProvider": "claude-cli"}, ("acme", "x")),
        ({"model": "opus", "modelProvider": "claude-cli"}, ("mock", "opus")),
    ],
)
def test_the_model_is_an_override_then_the_last_run_then_the_default(
    entry: dict[str, Any], shown: tuple[str, str]
) -> None:
    assert ref(entry) == shown


def test_an_agent_may_have_a_default_of_its_own() -> None:
    assert ref({}, "work") == ("openai", "solo@key")
    assert ref({}, "work", {"agents": {"list": [{"id": "Work", "model": "a/b"}]}}) == ("a", "b")
    assert ref({}, config={}) == ("openai", "gpt-6-astra")


def runtime(entry: dict[str, Any], config: dict[str, Any] | None = None) -> Runtime:
    return Defaults(CONFIG if config is None else config).models(one(entry)).runtime


@pytest.mark.parametrize(
    ("entry", "shown"),
    [
        ({}, ("auto", "implicit")),
        ({"agentHarnessId": "Pi"}, ("openclaw", "session")),
        ({"agentHarnessId": "auto"}, ("auto", "implicit")),
        ({"agentHarnessId": "a", "agentRuntimeOverride": "codex-app-server"}, ("codex", "session")),
        (
            {"agentHarnessId": "a", "agentRuntimeOverride": "b", "modelSelectionLocked": True},
            ("a", "session"),
        ),
        (
            {
                "agentHarnessId": "a",
                "agentRuntimeOverride": "b",
                "modelSelectionLocked": True,
                "pluginOwnerId": "p",
            },
            ("b", "session"),
        ),
        ({"model": "m3", "modelProvider": "other"}, ("acme", "model")),
        ({"model": "zz", "modelProvider": "OTHER"}, ("openclaw", "provider")),
        ({"model": "m", "modelProvider": "openai"}, ("codex", "implicit")),
    ],
)
def test_the_runtime_is_the_sessions_then_the_configured_one(
    entry: dict[str, Any], shown: tuple[str, str]
) -> None:
    assert runtime(entry) == shown


def test_openai_behind_another_address_is_run_by_openclaw() -> None:
    own = {"models": {"providers": {"openai": {"baseUrl": "http://127.0.0.1/v1"}}}}
    assert runtime({}, own) == ("openclaw", "implicit")


def limit(entry: dict[str, Any], config: dict[str, Any] | None = None) -> ContextLimit:
    return Defaults(CONFIG if config is None else config).models(one(entry)).limit


def ran(tokens: int, source: str, **more: Any) -> dict[str, Any]:
    """An entry of a run whose runtime told its limit."""
    return {
        "model": "m1",
        "modelProvider": "mock",
        "agentHarnessId": "x",
        "contextTokens": tokens,
        "contextTokensSource": source,
        **more,
    }


@pytest.mark.parametrize(
    ("entry", "tokens"),
    [
        ({}, 128_000),
        ({"model": "m2", "modelProvider": "mock"}, 5),
        ({"model": "m1", "modelProvider": "elsewhere"}, 128_000),
        (ran(7, "runtime"), 7),
        (ran(500_000, "runtime"), 128_000),
        (ran(7, "resolved"), 128_000),
        (ran(7, "resolved-v1"), 128_000),
        (ran(7, "resolved-v1", model="new"), 7),
        (ran(7, "resolved", modelSelectionLocked=True), 7),
        (ran(7, "runtime", agentHarnessId="pi"), 128_000),
    ],
)
def test_the_limit_is_configured_or_told_by_the_runtime(entry: dict[str, Any], tokens: int) -> None:
    assert limit(entry).tokens == tokens


def test_a_limit_that_no_file_tells_says_so() -> None:
    assert limit({}, {}) == (200_000, "default")


def test_an_acp_session_shows_its_agent_and_backend() -> None:
    key = "agent:main:acp:33333333-3333-4333-8333-333333333333"
    row = listed_row(one({"acp": {"agent": "codex", "backend": "b"}}, key), Defaults({}), NOW)
    assert (row["modelProvider"], row["model"], row["acpRuntime"]) == ("acpx", "codex-acp", True)
    assert row["agentRuntime"] == {"id": "b", "source": "session-key"}
    known = listed_row(one({}, key, acp=AcpRow("claude", "acpx")), Defaults({}), NOW)
    assert (known["model"], known["acpRuntime"]) == ("claude-acp", True)


def test_a_row_without_times_or_tokens_has_nulls_and_leaves_out_the_rest() -> None:
    row = listed_row(one({"updatedAt": 0, "totalTokens": -1, "totalTokensFresh": True}), Defaults({}), NOW)
    assert (row["updatedAt"], row["ageMs"], row["totalTokens"], row["totalTokensFresh"]) == (
        0,
        None,
        None,
        False,
    )
    assert "label" not in row
    assert "forkedFromParent" not in row
    assert listed_row(one({}), Defaults({}), NOW)["updatedAt"] is None


def test_a_direct_chat_in_the_main_session_names_the_key_of_its_policy() -> None:
    delivery = {"kind": "external", "origin": {"provider": "telegram", "from": "telegram:7:topic:3"}}
    row = listed_row(one({"chatType": "direct", "delivery": delivery}), Defaults({}), NOW)
    assert row["runtimePolicySessionKey"] == "agent:main:telegram:default:direct:7"


def test_a_reply_route_falls_back_to_the_context() -> None:
    route = reply_route({"delivery": {"kind": "external", "context": {"channel": "slack", "threadId": 1.5}}})
    assert (route.channel, route.thread_id, route.source) == ("slack", "1.5", "delivery.context")
    assert reply_route({}).source == "no delivery recorded"
