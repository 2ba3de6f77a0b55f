"""The JSON lines of followers: rows, records about the reading, and the failure that ended it."""

from __future__ import annotations

import pytest

from tests.cli.harness import Cli, check_document, check_row

KEY = "agent:main:work"


@pytest.fixture
def log(cli: Cli) -> Cli:
    for _ in range(3):
        cli("record", KEY, "--kind", "goal_changed", "-q")
    return cli


def test_heartbeats_are_records_and_a_passed_timeout_is_the_last_line(log: Cli) -> None:
    lines = log(
        "tail",
        "-f",
        "--since",
        2,
        "--heartbeat",
        "5ms",
        "--timeout",
        "500ms",
        "--format",
        "jsonl",
        status=124,
    ).rows
    check_row("tail", lines[0])
    for record in lines[1:-1]:
        check_row("tail", record, kind="record")
    assert lines[1] == {"type": "heartbeat", "at": log.now, "newestSequence": 3}
    check_document(lines[-1])
    assert lines[-1]["error"]["code"] == "timed_out"


def test_a_gap_is_a_record_before_what_is_left(log: Cli) -> None:
    log("prune", "--max-rows", 1, "-y", "-q")
    words = ("tail", "-f", "--since", 1, "--count", 1, "--on-gap", "snapshot", "--format", "jsonl")
    gap, event = log(*words).rows
    check_row("tail", gap, kind="record")
    check_row("tail", event)
    assert (gap["type"], gap["sessionKey"], gap["prunedMaxSequence"], event["sequence"]) == ("gap", KEY, 2, 3)


def test_a_gap_that_ends_the_reading_names_the_same_members(log: Cli) -> None:
    log("prune", "--max-rows", 1, "-y", "-q")
    error = log.json("tail", "-f", "--since", 1, status=3)["error"]
    gap = {"sessionKey": KEY, "agentId": "main", "prunedMaxSequence": 2, "stateVersion": 3}
    assert (error["code"], error["position"], error["gaps"]) == ("history_gap", 1, [gap])


def test_a_command_that_fails_names_its_event(log: Cli) -> None:
    error = log.json("tail", "-f", "--since", 1, "--exec", "exit 4", status=69)["error"]
    assert (error["code"], error["sequence"]) == ("command_failed", 2)


def test_a_command_that_fails_names_its_notice(log: Cli) -> None:
    watcher = "agent:main:main"
    log("cursors", "add", watcher, KEY, "-q")
    log("record", KEY, "--kind", "goal_changed", "--actor", "human", "-q")
    error = log.json("notices", "-f", "--exec", "exit 4", status=69)["error"]
    assert (error["code"], error["watcher"], error["target"]) == ("command_failed", watcher, KEY)
