"""record: what it fills in, what it refuses, and what it says about notices."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.cli.conftest import OTHER, StateDir
from tests.cli.harness import Cli
from tests.support import CHILD, DAY, PARENT, T, query, triples


def event_of(cli: Cli, *argv: object) -> dict[str, object]:
    """The event that a `record` on the child stored."""
    event: dict[str, object] = cli.json("record", CHILD, *argv)["event"]
    return event


@pytest.mark.parametrize(
    ("argv", "filled"),
    [
        (
            ("human_direct_message", "--payload", '{"channel":"telegram"}'),
            {
                "actorType": "human",
                "summary": "human message via telegram",
                "payload": {"channel": "telegram"},
            },
        ),
        (
            ("human_direct_message",),
            {"actorType": "human", "summary": "human message via unknown"},
        ),
        (("goal_changed",), {"actorType": "system", "summary": "goal updated"}),
        (
            ("created", "--actor", "human:42", "--session-id", "s-1"),
            {
                "actorType": "human",
                "actorId": "42",
                "sessionId": "s-1",
                "summary": "session created",
                "dedupeKey": f"created:main:{CHILD}:s-1",
            },
        ),
        (
            ("child_spawned", "--actor", f"agent:{PARENT}", "--run", "r-1"),
            {
                "actorType": "agent",
                "actorId": PARENT,
                "runId": "r-1",
                "summary": "child session spawned",
                "dedupeKey": "child-spawned:r-1",
            },
        ),
        (
            ("run_completed", "--run", "r-1"),
            {
                "actorType": "system",
                "runId": "r-1",
                "summary": "child run completed",
                "dedupeKey": "run-terminal:r-1",
            },
        ),
        (
            ("run_failed", "--run", "r-1"),
            {
                "actorType": "system",
                "runId": "r-1",
                "summary": "child run failed",
                "payload": {"outcome": "error"},
                "dedupeKey": "run-terminal:r-1",
            },
        ),
        (
            ("run_failed", "--run", "r-1", "--outcome", "timeout"),
            {
                "actorType": "system",
                "runId": "r-1",
                "summary": "child run timed out",
                "payload": {"outcome": "timeout"},
                "dedupeKey": "run-terminal:r-1",
            },
        ),
        (("compacted",), {"actorType": "system", "summary": "session compacted"}),
        (
            ("adopted", "--payload", '{"catalogId":"codex"}'),
            {
                "actorType": "human",
                "summary": "adopted from codex",
                "payload": {"catalogId": "codex", "hostId": "local"},
                "dedupeKey": f"adopted:{CHILD}",
            },
        ),
        (
            ("upstream_missing", "--payload", '{"channel":"codex"}'),
            {
                "actorType": "system",
                "summary": "upstream missing via codex",
                "payload": {"channel": "codex"},
            },
        ),
    ],
    ids=lambda value: " ".join(value[:1]) if isinstance(value, tuple) else None,
)
def test_a_known_kind_fills_in_what_was_not_given(
    cli: Cli, argv: tuple[str, ...], filled: dict[str, object]
) -> None:
    always = {"sequence": 1, "sessionKey": CHILD, "agentId": "main", "kind": argv[0], "occurredAt": T}
    assert event_of(cli, "--kind", *argv) == always | filled


def test_what_is_given_wins(cli: Cli) -> None:
    event = event_of(
        cli,
        *("--kind", "goal_changed", "--actor", "agent:a:b:c", "--summary", "other words", "--run", "r"),
        *("--session-id", "s", "--dedupe-key", "d", "--at", "2027-01-15T07:00:00Z"),
    )
    assert event == {
        "sequence": 1,
        "sessionKey": CHILD,
        "sessionId": "s",
        "agentId": "main",
        "kind": "goal_changed",
        "actorType": "agent",
        "actorId": "a:b:c",
        "runId": "r",
        "occurredAt": T - 3_600_000,
        "summary": "other words",
        "dedupeKey": "d",
    }


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("child_spawned", "--run", "r-1"), "needs its requester as actor"),
        (("child_spawned", "--actor", f"agent:{PARENT}"), "needs a run id"),
        (("run_completed",), "needs a run id"),
        (("created", "--session-id", "s"), "needs its creator as actor"),
        (("adopted",), "needs catalogId in its payload"),
        (("goal_changed", "--outcome", "error"), "only run_failed has an outcome"),
        (("run_failed", "--run", "r", "--outcome", "boredom"), "an outcome is one of"),
        (("goal_changed", "--summary", "two\nlines"), "one line of at most 200 characters"),
        (("goal_changed", "--summary", "two\u2028lines"), "one line of at most 200 characters"),
        (("goal_changed", "--summary", "x" * 201), "one line of at most 200 characters"),
        (("gaol_changed",), "is no kind of event"),
        (("goal_changed", "--actor", "robot:7"), "is no actor"),
        (("goal_changed", "--agent", "work"), "contradicts the key"),
        (("goal_changed", "--watcher", "main"), "cannot be a watcher"),
    ],
    ids=lambda value: " ".join(value)[:40] if isinstance(value, tuple) else None,
)
def test_what_cannot_be_an_event_is_usage_and_creates_nothing(
    cli: Cli, tmp_path: Path, argv: tuple[str, ...], words: str
) -> None:
    done = cli("record", CHILD, "--kind", *argv, "--json", status=2)
    assert words in done.error["message"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "key", ["agent:main:a\0b", "agent:main:\x1b[2J", "agent:main:a\nb", "agent:main:\x85"]
)
def test_a_key_with_control_characters_is_refused(cli: Cli, tmp_path: Path, key: str) -> None:
    done = cli("record", key, "--kind", "goal_changed", status=2)
    assert "contains control characters" in done.err
    assert list(tmp_path.iterdir()) == []


def test_options_allow_what_openclaw_does_not_know(cli: Cli) -> None:
    event = event_of(cli, "--kind", "renamed", "--actor", "robot", "--allow-unknown")
    assert (event["kind"], event["actorType"], event["summary"]) == ("renamed", "robot", "renamed")
    long = "line\n" * 100
    event = event_of(cli, "--kind", "goal_changed", "--summary", long, "--allow-multiline")
    assert event["summary"] == long


def test_payload_keys_that_are_not_metadata_are_warned_of(cli: Cli) -> None:
    argv = ["record", CHILD, "--kind", "goal_changed", "--payload", '{"channel":"x","text":"hello"}']
    (warning,) = cli.json(*argv)["warnings"]
    assert "payload key 'text' is not metadata" in warning
    assert f"warning: {warning}\n" in cli(*argv).err


def test_a_time_outside_the_last_day_is_moved_and_said(cli: Cli) -> None:
    document = cli.json("record", CHILD, "--kind", "compacted", "--at", "3d")
    assert document["event"]["occurredAt"] == T - DAY
    assert "moved" in document["warnings"][0]


def test_a_bare_key_is_recorded_under_the_agent_that_is_named(cli: Cli) -> None:
    assert (
        cli.json("record", "global", "--kind", "compacted", "--agent", "work")["event"]["agentId"] == "work"
    )
    assert "names no agent" in cli("record", "global", "--kind", "compacted", status=2).err


def test_notices_that_open_are_shown_with_the_exact_line(cli: Cli) -> None:
    argv = ["record", CHILD, "--kind", "goal_changed", "--watcher", PARENT, "--watcher", OTHER]
    opened = cli.json(*argv)["notices"]
    assert [notice["watcher"] for notice in opened] == [PARENT, OTHER]
    line = (
        f'Session "{CHILD}" changed (other actor). Reconcile before acting:'
        f' session_status sessionKey "{CHILD}" changesSince 0.'
    )
    assert {notice["text"] for notice in opened} == {line}
    assert opened[0]["reconcile"] == ["openclaw-state", "status", CHILD, "--since", "0"]
    assert cli.json(*argv)["notices"] == [], "open already"
    cli("notices", PARENT, "--ack")
    cli("notices", PARENT, "--ack")
    shown = cli(*argv).out
    assert shown.splitlines()[1] == line.replace("changesSince 0", "changesSince 2")


def test_who_did_it_hears_nothing_of_it(cli: Cli) -> None:
    argv = ["record", CHILD, "--kind", "goal_changed", "--actor", f"agent:{PARENT}", "--watcher", PARENT]
    assert cli.json(*argv)["notices"] == []
    assert triples(cli.path) == {}


def test_a_duplicate_returns_the_stored_event_and_moves_nothing(cli: Cli) -> None:
    argv = ["record", CHILD, "--kind", "goal_changed", "--dedupe-key", "once", "--watcher", PARENT]
    first = cli.json(*argv, "--summary", "first")
    before = triples(cli.path)
    again = cli.json(*argv, "--summary", "second")
    assert (first["recorded"], first["duplicate"]) == (True, False)
    assert (again["recorded"], again["duplicate"]) == (False, True)
    assert again["event"] == first["event"]
    assert triples(cli.path) == before
    assert "already recorded under that dedupe key" in cli(*argv).out


def test_only_if_watched_records_nothing_for_nobody(cli: Cli, log: SignalLog) -> None:
    argv = ["record", CHILD, "--kind", "goal_changed", "--only-if-watched"]
    document = cli.json(*argv)
    assert (document["recorded"], document["event"]) == (False, None)
    assert cli(*argv).out == "nothing recorded: nobody watches the session\n"
    log.watch(PARENT, CHILD)
    assert cli.json(*argv)["recorded"] is True


def test_best_effort_turns_failures_into_a_warning(cli: Cli, tmp_path: Path) -> None:
    argv = ["record", CHILD, "--kind", "goal_changed", "--db", tmp_path]
    cli(*argv, status=65)
    document = cli.json(*argv, "--best-effort")
    assert (document["recorded"], document["database"]) == (False, None)
    assert document["warnings"][0].startswith("not recorded: ")
    cli(*argv[:2], "--kind", "gaol", "--best-effort", status=2)


def test_the_first_change_creates_a_private_file(cli: Cli) -> None:
    cli("record", CHILD, "--kind", "compacted")
    assert (cli.path.stat().st_mode & 0o777, cli.path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_nothing_is_created_inside_an_openclaw_directory(cli: Cli, tmp_path: Path) -> None:
    root = tmp_path / "openclaw"
    root.mkdir()
    cli("record", CHILD, "--kind", "compacted", "--state-dir", root, status=66)
    assert list(root.iterdir()) == []


def test_in_a_state_directory_a_new_watch_names_its_store(cli: Cli, state_dir: StateDir) -> None:
    argv = ["record", CHILD, "--kind", "goal_changed", "--watcher", PARENT]
    (notice,) = cli.json(*argv, path=state_dir.path)["notices"]
    assert (notice["deliverable"], notice["delivery"]) == (True, "yes")
    store = str(state_dir.root / "agents" / "main" / "agent" / "openclaw-agent.sqlite")
    assert query(state_dir.path, "SELECT watcher_store_path FROM session_watch_cursors") == [(store,)]


def test_beside_a_live_gateway_the_delay_is_said(cli: Cli, state_dir: StateDir) -> None:
    state_dir.start_gateway()
    argv = ["record", CHILD, "--kind", "goal_changed", "--watcher", PARENT]
    assert "a live gateway hears of this" in cli.json(*argv, path=state_dir.path)["warnings"][0]


def test_the_stored_payload_is_compact_json(cli: Cli) -> None:
    cli("record", CHILD, "--kind", "goal_changed", "--payload", '{ "channel" : "é" }')
    ((stored,),) = query(cli.path, "SELECT payload_json FROM session_state_events")
    assert stored == '{"channel":"é"}'
    assert json.loads(stored) == {"channel": "é"}
