"""sessions route: the key of a message, the rule behind each part, and the key under other scopes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.harness import Cli


@pytest.fixture
def route(cli: Cli, tmp_path: Path) -> Any:
    """`sessions route` with a configuration of its own."""

    def ask(config: Any, *argv: str, **options: Any) -> Any:
        path = tmp_path / "openclaw.json"
        path.write_text(json.dumps(config), "utf-8")
        return cli.json("sessions", "route", *argv, "--config", path, **options)

    return ask


def test_it_works_without_openclaw(cli: Cli) -> None:
    found = cli.json("sessions", "route", "--channel", "telegram", "--dm", "123")
    assert found["configuration"] == {"path": None, "via": "defaults"}
    assert found["sessionKey"] == "agent:main:main"
    assert {one["value"]: one["sessionKey"] for one in found["scopes"]} == {
        "main": "agent:main:main",
        "per-peer": "agent:main:direct:123",
        "per-channel-peer": "agent:main:telegram:direct:123",
        "per-account-channel-peer": "agent:main:telegram:default:direct:123",
    }
    assert [one["value"] for one in found["scopes"] if one["effective"]] == ["main"]
    assert not cli.path.exists()


def test_every_part_names_the_rule_that_decided_it(route: Any) -> None:
    config = {
        "session": {"dmScope": "per-peer", "identityLinks": {"Ann": ["telegram:123"]}},
        "agents": {"entries": {"main": {}, "work": {}}},
        "bindings": [{"agentId": "work", "match": {"channel": "telegram", "accountId": "*"}}],
    }
    found = route(config, "--channel", "Telegram", "--dm", "123")
    assert found["sessionKey"] == "agent:work:direct:ann"
    rules = {one["part"]: one["rule"] for one in found["decisions"]}
    assert rules["agent"] == "bindings[0] (binding.channel)"
    assert rules["dmScope"] == "session.dmScope"
    assert "identityLinks['Ann']" in rules["peer"]


def test_the_other_scopes_show_what_a_binding_would_hide(route: Any) -> None:
    match = {"channel": "telegram", "accountId": "*"}
    config = {"bindings": [{"agentId": "main", "match": match, "session": {"dmScope": "per-peer"}}]}
    found = route(config, "--channel", "telegram", "--dm", "5")
    keys = {one["value"]: (one["sessionKey"], one["effective"]) for one in found["scopes"]}
    assert keys["per-peer"] == ("agent:main:direct:5", True)
    assert keys["main"] == ("agent:main:main", False)


@pytest.mark.parametrize(
    ("argv", "key"),
    [
        (("--channel", "telegram", "--group", "-5"), "agent:main:telegram:group:-5"),
        (("--channel", "telegram", "--group", "-5", "--thread", "7"), "agent:main:telegram:group:-5:topic:7"),
        (("--channel", "slack", "--room", "C1", "--thread", "1.2"), "agent:main:slack:channel:c1:thread:1.2"),
        (("--channel", "telegram", "--dm", "9", "--thread", "3"), "agent:main:main:thread:9:3"),
        (("--channel", "signal", "--group", "AbC="), "agent:main:signal:group:AbC="),
        (("--cron", "Nightly"), "agent:main:cron:nightly"),
        (("--cron", "nightly", "--agent", "work"), "agent:work:cron:nightly"),
        (("--hook", "77"), "agent:main:hook:77"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_groups_rooms_threads_jobs_and_hooks(cli: Cli, argv: tuple[str, ...], key: str) -> None:
    assert cli.json("sessions", "route", *argv)["sessionKey"] == key
    assert cli("sessions", "route", *argv).out.splitlines()[0] == key


def test_a_group_is_shown_under_both_group_scopes(cli: Cli) -> None:
    found = cli.json("sessions", "route", "--channel", "telegram", "--group", "-5")
    assert [(one["value"], one["sessionKey"]) for one in found["scopes"]] == [
        ("per-group", "agent:main:telegram:group:-5"),
        ("main", "agent:main:main"),
    ]


def test_a_hook_may_not_choose_a_key_that_the_configuration_forbids(route: Any) -> None:
    argv = ("--hook", "1", "--hook-key", "hook:mail")
    assert route({}, *argv, status=9)["error"]["code"] == "refused"
    assert route({"hooks": {"allowRequestSessionKey": True}}, *argv)["sessionKey"] == "agent:main:hook:mail"


def test_global_scope_says_where_the_main_session_is_stored(route: Any) -> None:
    found = route({"session": {"scope": "global"}}, "--channel", "telegram", "--dm", "1")
    assert (found["sessionKey"], found["route"]["storedKey"]) == ("agent:main:main", "global")


@pytest.mark.parametrize(
    "argv",
    [
        (),
        ("--dm", "1"),
        ("--channel", "telegram"),
        ("--channel", "telegram", "--dm", "1", "--group", "2"),
        ("--cron", "j", "--thread", "1"),
        ("--channel", "telegram", "--dm", "1", "--agent", "work"),
        ("--channel", "telegram", "--dm", "1", "--hook-key", "x"),
    ],
    ids=" ".join,
)
def test_what_names_no_message_is_usage(cli: Cli, argv: tuple[str, ...]) -> None:
    assert cli("sessions", "route", *argv, "--json", status=2).error["code"] == "usage"


def test_a_configuration_that_is_named_has_to_be_there(cli: Cli, tmp_path: Path) -> None:
    wanted = ("--channel", "telegram", "--dm", "1", "--config", tmp_path / "none.json")
    assert "none.json" in cli("sessions", "route", *wanted, status=78).err
