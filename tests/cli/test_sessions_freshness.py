"""sessions freshness: the answer with its reasons, from a store or from a policy alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.cli.agents import Agents
from tests.cli.harness import Cli
from tests.support import PARENT, T

HOUR = 3_600_000
MINUTE = 60_000


@pytest.fixture
def agents(cli: Cli, tmp_path: Path) -> Agents:
    return Agents(cli, tmp_path / "openclaw")


def by_policy(cli: Cli, policy: Any, *argv: str, tz: str = "UTC") -> Any:
    return cli.json("sessions", "freshness", "--policy", json.dumps(policy), "--tz", tz, *argv)


def test_an_unset_reset_is_nightly_by_the_rules_of_july_and_never_by_the_present_ones(
    agents: Agents,
) -> None:
    agents.add({PARENT: {"sessionStartedAt": T, "lastInteractionAt": T}})
    july = agents.json("sessions", "freshness", PARENT, "--rules", "2026.7", "--at", "2027-01-15T09:00")
    assert (july["rules"]["set"], july["policy"]["mode"], july["policy"]["atHour"]) == ("2026.7", "daily", 4)
    assert july["expiresBy"] == "daily"
    now = agents.json("sessions", "freshness", PARENT)
    assert (now["rules"]["set"], now["verdict"], now["expiresAt"]) == ("2026.9", "no reset", None)
    assert now["rules"]["reason"] == "the agent database was written by 2026.9.6"
    for rules in ("2026.7", "2026.9"):
        assert f"rules       {rules} (" in agents("sessions", "freshness", PARENT, "--rules", rules).out


@pytest.mark.parametrize("rules", ["2026.7", "2026.9"])
def test_a_reset_with_only_an_hour_is_daily_in_both_rule_sets(agents: Agents, rules: str) -> None:
    agents.configure(session={"reset": {"atHour": 6}})
    agents.add({PARENT: {"sessionStartedAt": T}})
    found = agents.json("sessions", "freshness", PARENT, "--rules", rules)
    assert (found["policy"]["mode"], found["policy"]["atHour"]) == ("daily", 6)
    assert found["policy"]["atHourSource"] == "session.reset.atHour"


def test_an_update_of_the_row_is_no_interaction(agents: Agents) -> None:
    agents.configure(session={"reset": {"mode": "idle", "idleMinutes": 120}})
    rows = {
        "agent:main:told": {"sessionStartedAt": T - 9 * HOUR, "lastInteractionAt": T - 3 * HOUR},
        "agent:main:untold": {"sessionStartedAt": T - 3 * HOUR},
    }
    agents.add(rows)
    told = agents.json("sessions", "freshness", "agent:main:told")
    assert (told["fresh"], told["staleReason"], told["idleExpiresAt"]) == (False, "idle", T - HOUR)
    assert told["compared"]["last"] == {"at": T - 3 * HOUR, "source": "lastInteractionAt"}
    untold = agents.json("sessions", "freshness", "agent:main:untold")
    assert (untold["fresh"], untold["compared"]["last"]["source"]) == (False, "sessionStartedAt")


def test_a_boundary_resets_with_the_next_message_and_says_so(cli: Cli) -> None:
    times = ("--started", "2026-11-30T03:59", "--last", "2026-11-30T04:05")
    found = by_policy(cli, {"atHour": 4}, *times, "--at", "2026-11-30T04:06")
    assert (found["fresh"], found["staleReason"]) == (False, "daily")
    assert "with the next message" in found["rollover"]
    argv = ("sessions", "freshness", "--policy", '{"atHour": 4}', "--tz", "UTC", *times)
    stale = cli(*argv, "--at", "2026-11-30T04:06").out
    assert "boundary    2026-11-30 04:00:00 UTC" in stale
    assert "compared    start 2026-11-30 03:59:00 UTC (from sessionStartedAt)" in stale
    assert "the next message starts it over; nothing happens before that message" in stale
    before = cli(*argv, "--at", "2026-11-30T03:59:30").out
    assert "expires     2026-11-30 04:00:00 UTC (daily), if nothing happens" in before


def test_an_hour_that_the_clock_skips_or_repeats_is_one_boundary(cli: Cli) -> None:
    new_york, policy = "America/New_York", {"atHour": 2}
    spring = ("--started", "2026-03-07T02:30", "--at", "2026-03-08T01:00")
    assert by_policy(cli, policy, *spring, tz=new_york)["fresh"] is True
    skipped = by_policy(cli, policy, *spring, tz=new_york)["expiresAt"]
    assert (
        skipped
        == by_policy(cli, policy, "--started", "2026-03-08T07:00Z", tz="UTC")["compared"]["start"]["at"]
    )
    autumn = {"atHour": 1}
    first, second = "2026-11-01T05:00Z", "2026-11-01T06:00Z"
    at_second = by_policy(cli, autumn, "--started", "2026-11-01T05:30Z", "--at", second, tz=new_york)
    at_first = by_policy(cli, autumn, "--started", "2026-11-01T05:30Z", "--at", first, tz=new_york)
    assert at_second["dailyResetAt"] == at_first["dailyResetAt"] == at_first["at"]
    assert at_second["fresh"] is True


@pytest.mark.parametrize(
    ("entry", "verdict", "fresh"),
    [
        ({"modelSelectionLocked": True, "updatedAt": 0}, "model locked", True),
        (
            {"modelProvider": "claude-cli", "cliSessionBindings": {"claude-cli": {"sessionId": "n"}}},
            "provider owned",
            True,
        ),
        ({"updatedAt": 0}, "reset pending", False),
        ({}, "no reset", True),
    ],
)
def test_exemptions_and_the_marker_of_a_pending_reset(
    agents: Agents, entry: dict[str, Any], verdict: str, fresh: bool
) -> None:
    agents.add({PARENT: entry})
    found = agents.json("sessions", "freshness", PARENT)
    assert (found["verdict"], found["fresh"]) == (verdict, fresh)
    assert found["because"] in agents("sessions", "freshness", PARENT).out


def test_a_channels_block_replaces_the_general_one_and_what_it_replaces_is_said(agents: Agents) -> None:
    key = "agent:main:telegram:direct:5"
    reset = {"reset": {"atHour": 3}, "resetByChannel": {"telegram": {"mode": "idle", "idleMinutes": 10}}}
    agents.configure(session=reset)
    agents.add({key: {"sessionStartedAt": T - HOUR, "lastInteractionAt": T - MINUTE}})
    found = agents.json("sessions", "freshness", key)
    assert found["policy"]["blocks"] == ["session.resetByChannel.telegram"]
    assert [one["path"] for one in found["policy"]["ignored"]] == ["session.reset"]
    assert (found["expiresBy"], found["expiresAt"]) == ("idle", T + 9 * MINUTE + 1)
    assert agents.json("sessions", "freshness", key, "--at", "2027-01-15T09:00")["fresh"] is False


def test_a_start_that_only_the_transcript_tells_is_named_so(agents: Agents) -> None:
    from tests.support import change

    agents.configure(session={"reset": {}})
    agents.add({PARENT: {}})
    header = json.dumps({"type": "session", "id": f"id of {PARENT}", "timestamp": T - HOUR})
    change(agents.store(), f"INSERT INTO transcript_events VALUES ('id of {PARENT}', 0, '{header}', {T})")
    found = agents.json("sessions", "freshness", PARENT)
    assert found["sessionStartedAt"] == {"at": T - HOUR, "source": "transcript header"}


def test_the_zone_of_the_boundary_is_named(agents: Agents) -> None:
    agents.add({PARENT: {}})
    assert agents.json("sessions", "freshness", PARENT)["timeZone"] == {"name": "UTC", "via": "TZ"}
    named = agents.json("sessions", "freshness", PARENT, "--tz", "Europe/Madrid")["timeZone"]
    assert named == {"name": "Europe/Madrid", "via": "--tz"}


def test_a_session_that_is_not_there_is_not_found(agents: Agents) -> None:
    agents.add({PARENT: {}})
    assert agents("sessions", "freshness", "agent:main:none", "--json", status=4).error["code"] == "not_found"
    assert agents("sessions", "freshness", "agent:work:main", status=66).out == ""
    error = agents("sessions", "freshness", "MAIN", "--json", status=4).error
    assert error["hint"] == f"OpenClaw keeps it as {PARENT}"


def test_a_store_that_was_never_imported_is_judged_by_its_own_rules(agents: Agents) -> None:
    folder = agents.root / "agents" / "main" / "sessions"
    folder.mkdir(parents=True)
    (folder / "sessions.json").write_text(json.dumps({PARENT: {"sessionId": "a", "updatedAt": T}}))
    found = agents.json("sessions", "freshness", PARENT)
    assert (found["rules"]["set"], found["policy"]["mode"]) == ("2026.7", "daily")
    assert "openclaw doctor --fix" in found["warnings"][0]


@pytest.mark.parametrize(
    "argv",
    [
        (),
        (PARENT, "--started", "1h"),
        ("--policy", "{}"),
        ("--policy", "{", "--started", "1h"),
        ("--policy", "[]", "--started", "1h"),
        ("--policy", "{}", "--started", "1h", "--tz", "Nowhere/Else"),
        ("--policy", "{}", "--started", "12"),
        ("--policy", "{}", "--started", "1h", "--rules", "2025.1"),
        (PARENT, "--rules", "2026"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_judged_is_usage(cli: Cli, argv: tuple[str, ...]) -> None:
    assert cli("sessions", "freshness", *argv, "--json", status=2).error["code"] == "usage"
