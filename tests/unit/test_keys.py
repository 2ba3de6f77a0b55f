"""Session keys: folding and parsing as OpenClaw does it, and who may watch."""

from __future__ import annotations

import pytest

from openclaw_state.core import keys
from openclaw_state.errors import UsageError


@pytest.mark.parametrize(
    ("key", "folded"),
    [
        ("AGENT:Main:Telegram:Direct:Bob", "agent:main:telegram:direct:bob"),
        ("  agent:main:x  ", "agent:main:x"),
        ("\ufeff\u00a0Main\u2028", "main"),
        ("", ""),
        (" \t", ""),
        ("agent:", "agent:"),
        ("AGENT:Main", "agent:main"),
        ("Stra\u00dfe", "stra\u00dfe"),
        ("\u0130", "i\u0307"),
        ("Telegram:X:SIGNAL:GROUP: AbC :Q", "telegram:x:signal:group:AbC:q"),
        ("Signal:Group:AbC", "signal:group:AbC"),
        ("agent:Main:Signal:Group:AbC:X:signal:group:DeF", "agent:main:signal:group:AbC:x:signal:group:DeF"),
        ("agent:main:signal:group:", "agent:main:signal:group:"),
        ("agent:main:nosignal:group:AbC", "agent:main:nosignal:group:abc"),
        ("Signal:Channel:AbC", "signal:channel:abc"),
        ("Signal:Direct:AbC", "signal:direct:abc"),
        ("Matrix:Channel:!Ab:Cd", "matrix:channel:!Ab:Cd"),
        ("MATRIX:Group:!Ab", "matrix:group:!Ab"),
        ("Matrix:Direct:!Ab", "matrix:direct:!ab"),
        ("Agent:Main:AGENT:Work:Matrix:Channel:!Ab:Cd", "agent:main:agent:work:matrix:channel:!Ab:Cd"),
        ("Agent:Main:::Matrix:Channel:!Ab", "agent:main:::matrix:channel:!Ab"),
        ("Agent:Main:X:Matrix:Channel:!Ab", "agent:main:x:matrix:channel:!ab"),
        (
            "agent:main:matrix:channel:!A:THREAD:$B:Thread:$C",
            "agent:main:matrix:channel:!A:THREAD:$B:thread:$C",
        ),
        ("matrix:channel:", "matrix:channel:"),
    ],
)
def test_a_key_is_folded_but_for_signal_groups_and_matrix_rooms(key: str, folded: str) -> None:
    assert keys.fold(key) == folded
    assert keys.fold(folded) == folded


@pytest.mark.parametrize(
    ("key", "parsed"),
    [
        ("agent:main:main", ("main", "main")),
        ("agent:main:telegram:direct:1", ("main", "telegram:direct:1")),
        ("AGENT:Work:X", ("work", "x")),
        (" agent: Work :x", ("work", "x")),
        ("agent:main:agent:x:y", ("main", "agent:x:y")),
        ("agent:main:signal:group:AbC", ("main", "signal:group:AbC")),
        ("agent:main:", None),
        ("agent:main::x", None),
        ("agent:x", None),
        ("agent: :x", None),
        ("agent::x", None),
        ("agents:main:x", None),
        ("main", None),
        ("global", None),
        ("", None),
    ],
)
def test_a_key_is_parsed_after_folding(key: str, parsed: tuple[str, str] | None) -> None:
    assert keys.parse(key) == parsed
    assert keys.is_agent_qualified(key) is (parsed is not None)


@pytest.mark.parametrize(
    ("text", "agent"),
    [
        ("main", "main"),
        (" Solo_Agent ", "solo_agent"),
        ("a b!c", "a-b-c"),
        ("--x--", "x"),
        ("a-", "a-"),
        ("_a", "_a"),
        ("***", "main"),
        ("", "main"),
        ("\u00e9t\u00e9", "t"),
        ("\u0661", "main"),
        ("a" * 70, "a" * 64),
        ("-" + "a" * 63 + "-b", "a" * 63 + "-"),
    ],
)
def test_an_agent_id_is_normalised(text: str, agent: str) -> None:
    assert keys.normalize_agent_id(text) == agent


@pytest.mark.parametrize(("text", "main"), [(None, "main"), ("", "main"), (" Home ", "home"), ("A:B", "a:b")])
def test_a_main_key_is_normalised(text: str | None, main: str) -> None:
    assert keys.normalize_main_key(text) == main


def test_a_key_belongs_to_its_own_agent_or_to_the_one_that_is_named() -> None:
    assert keys.agent_of("AGENT:Solo_Agent:x") == "solo_agent"
    assert keys.agent_of("global") is None
    assert keys.owner("global", "work") == "work"
    assert keys.owner("agent:work:main", "work") == "work"
    with pytest.raises(UsageError, match="names no agent"):
        keys.owner("global", None)
    with pytest.raises(UsageError, match="contradicts"):
        keys.owner("agent:work:main", "main")


@pytest.mark.parametrize(
    ("key", "is_subagent"),
    [
        ("agent:main:subagent:x", True),
        ("AGENT:Main:SubAgent:X", True),
        ("subagent:x", True),
        ("agent:main:x:subagent:y", False),
        ("agent:main:subagentx", False),
        ("agent:main:main", False),
    ],
)
def test_sub_agents_are_known_by_their_key(key: str, is_subagent: bool) -> None:
    assert keys.is_subagent(key) is is_subagent


@pytest.mark.parametrize(
    ("text", "account"),
    [
        ("Biz-Account", "biz-account"),
        ("T 01/\u00d1", "t-01"),
        ("", "default"),
        ("\u00d1", "default"),
        ("__proto__", "default"),
        ("Constructor", "default"),
        ("prototype", "default"),
        ("prototypes", "prototypes"),
    ],
)
def test_an_account_is_normalised(text: str, account: str) -> None:
    assert keys.normalize_account_id(text) == account


@pytest.mark.parametrize(
    ("key", "malformed"),
    [
        ("agent:main:x", False),
        ("main", False),
        ("agents:main", False),
        ("", False),
        ("agent:", True),
        ("AGENT:main", True),
        ("agent:main::x", True),
    ],
)
def test_a_key_that_only_begins_as_an_agents_is_malformed(key: str, malformed: bool) -> None:
    assert keys.is_malformed(key) is malformed
