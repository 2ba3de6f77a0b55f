"""status, version, list, tail: what they show, in text and in JSON."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.cli.conftest import OTHER, StateDir
from tests.cli.harness import Cli
from tests.support import CHILD, DAY, PARENT, Clock, T, goal, note

MINUTE = 60_000


def sequences(document: dict[str, object]) -> list[int]:
    """The numbers of the events of a `tail` or `status` document."""
    changes = document.get("stateChanges", document)
    return [event["sequence"] for event in changes["events"]]  # type: ignore[index]


class TestStatus:
    def test_without_a_key_it_is_an_overview(self, story: Cli) -> None:
        document = story.json("status")
        assert document["gateway"] is None
        assert (document["embedded"], document["sessions"], document["newestSequence"]) == (True, 2, 4)
        assert [event["sequence"] for event in document["latest"]] == [1, 2, 3, 4]
        assert [notice["watcher"] for notice in document["notices"]] == [PARENT]
        lines = story("status").out.splitlines()
        assert lines[0] == f"database  {story.path} (OPENCLAW_STATE_DB)"
        assert lines[2] == "log       2 sessions, newest sequence 4"
        assert lines[3].startswith("notices   1 pending")

    def test_the_overview_shows_the_ten_latest_changes(self, cli: Cli, log: SignalLog) -> None:
        for _ in range(15):
            goal(log)
        assert [event["sequence"] for event in cli.json("status")["latest"]] == list(range(6, 16))

    @pytest.mark.parametrize("alive", [True, False])
    def test_the_overview_tells_whether_a_gateway_runs(
        self, cli: Cli, state_dir: StateDir, alive: bool
    ) -> None:
        if alive:
            state_dir.start_gateway()
        gateway = cli.json("status", "--state-dir", state_dir.root)["gateway"]
        assert gateway["state"] == ("alive" if alive else "dead")

    def test_with_a_key_it_shows_version_and_watchers(self, story: Cli) -> None:
        document = story.json("status", CHILD)
        assert (document["agentId"], document["stateVersion"], document["oldestSequence"]) == ("main", 3, 1)
        assert [watch["watcher"] for watch in document["watchers"]] == [PARENT, OTHER]
        assert "stateChanges" not in document
        assert story("status", CHILD).out.splitlines() == [
            f"{CHILD}   version 3   retained from 1",
            f"watched by {PARENT}: notice pending since 1 (0 s), reopens at 3",
            f"watched by {OTHER}: quiet, seen 3",
        ]

    def test_since_shows_exactly_what_changed(self, story: Cli) -> None:
        document = story.json("status", CHILD, "--since", 1)
        assert document["stateChanges"] == {
            "events": [
                {
                    "sequence": 2,
                    "kind": "human_direct_message",
                    "actorType": "human",
                    "occurredAt": T,
                    "summary": "human message via telegram",
                    "actorId": "telegram:42",
                },
                {
                    "sequence": 3,
                    "kind": "goal_changed",
                    "actorType": "human",
                    "occurredAt": T,
                    "summary": "goal updated",
                },
            ],
            "truncated": False,
            "earliestAvailableSequence": 1,
            "historyGap": False,
        }
        first, *rest = story("status", CHILD, "--changes-since", 1, "--utc").out.splitlines()
        assert first == f"{CHILD}   version 3   2 changes since 1"
        assert rest[0] == "     2  08:00:00  human_direct_message  human   human message via telegram"

    def test_no_changes_are_a_success(self, story: Cli) -> None:
        document = story.json("status", CHILD, "--since", 3)
        assert (document["ok"], sequences(document)) == (True, [])
        assert "0 changes since 3" in story("status", CHILD, "--since", 3, "--exit-code").out
        assert story("status", CHILD, "--since", 2, "--exit-code", status=1).err == ""

    def test_a_time_becomes_the_version_before_it(self, cli: Cli, log: SignalLog, clock: Clock) -> None:
        for number in range(4):
            clock.now = T + number * MINUTE
            goal(log)
        cli.now = T + 10 * MINUTE
        document = cli.json("status", CHILD, "--since", "8m")
        assert (document["since"], document["sinceInstant"]) == (2, T + 2 * MINUTE)
        assert sequences(document) == [3, 4]

    def test_pages_lose_and_repeat_nothing_while_the_log_grows(self, cli: Cli, log: SignalLog) -> None:
        """A24: 450 events are pages of 200, 200 and 50, and a row appended between pages is found."""
        for _ in range(450):
            note(log)
        pages, since = [], 0
        while True:
            document = cli.json("status", CHILD, "--since", since)
            pages.append(sequences(document))
            assert document["stateChanges"]["truncated"] is ("nextSince" in document)
            if "nextSince" not in document:
                break
            since = document["nextSince"]
            if len(pages) == 1:
                note(log)
        assert [len(page) for page in pages] == [200, 200, 51]
        assert [number for page in pages for number in page] == list(range(1, 452))

    def test_all_pages_at_once(self, cli: Cli, log: SignalLog) -> None:
        for _ in range(450):
            note(log)
        page = cli("status", CHILD, "--since", 0)
        assert "200+ changes since 0" in page.out
        assert page.err == "more than 200 changes: go on with --since 200, or use --all\n"
        whole = cli.json("status", CHILD, "--since", 0, "--all")
        assert (len(sequences(whole)), whole["stateChanges"]["truncated"]) == (450, False)
        assert "nextSince" not in whole
        assert len(cli("status", CHILD, "--since", 0, "--all", "--format", "jsonl").rows) == 450

    def test_a_gap_says_what_is_gone_who_removed_it_and_what_to_do(self, story: Cli) -> None:
        """A23: the document is complete, and the status tells."""
        story("prune", "--max-rows", 2, "-y")
        assert story.json("status", CHILD, "--since", 2)["historyGap"] is False
        document = story.json("status", CHILD, "--since", 1, status=3)
        assert (document["ok"], sequences(document)) == (True, [3])
        gap = document["gap"]
        assert (gap["requested"], gap["earliestAvailableSequence"], gap["head"]) == (1, 3, 3)
        assert [(entry["command"], entry["events"]) for entry in gap["prunes"]] == [("prune", 2)]
        shown = story("status", CHILD, "--since", 1, "--utc", status=3)
        assert f"error: history before 3 is gone for {CHILD} (asked for changes since 1" in shown.err
        assert "  pruned 2027-01-15 08:00 UTC by " in shown.err
        assert "take a fresh snapshot of the session, then go on with --since 3" in shown.err
        assert "goal updated" in shown.out

    def test_sequences_of_other_sessions_are_no_gap(self, cli: Cli, log: SignalLog) -> None:
        goal(log)
        for _ in range(5):
            note(log, key=PARENT)
        goal(log)
        assert sequences(cli.json("status", CHILD, "--since", 4)) == [7]

    def test_in_an_openclaw_directory_a_gap_advises_to_read_again(
        self, cli: Cli, state_dir: StateDir
    ) -> None:
        with SignalLog(state_dir.path, change=True, clock=Clock()) as log:
            goal(log)
            goal(log)
        cli("prune", "--max-rows", 1, "-y", path=state_dir.path)
        gap = cli.json("status", CHILD, "--since", 0, path=state_dir.path, status=3)["gap"]
        assert "sessions_history" in gap["advice"]

    def test_a_bare_key_of_several_agents_needs_its_agent(self, cli: Cli, log: SignalLog) -> None:
        for agent in ("main", "work"):
            goal(log, key="global", agent_id=agent)
        done = cli("status", "global", "--json", status=2)
        assert done.error["agents"] == ["main", "work"]
        assert "main, work" in done.error["message"]
        assert cli.json("status", "global", "--agent", "work")["stateVersion"] == 2

    def test_a_session_known_without_a_version_has_version_0(self, cli: Cli, log: SignalLog) -> None:
        log.watch(PARENT, OTHER)
        document = cli.json("status", OTHER, "--since", 0)
        assert (document["stateVersion"], sequences(document)) == (0, [])

    def test_children_that_ended_are_listed_as_log_only(self, story: Cli, log: SignalLog) -> None:
        log.run_ended(CHILD, run_id="run-1", outcome="timeout")
        document = story.json("status", PARENT, "--children")
        assert [(event["kind"], event["payload"]) for event in document["children"]] == [
            ("run_failed", {"outcome": "timeout"})
        ]
        shown = story("status", PARENT, "--children").out
        assert "log only, no notice" in shown
        assert "child run timed out" in shown
        assert story.json("status", CHILD, "--children")["children"] == []


class TestVersion:
    def test_without_a_key_it_is_the_newest_sequence(self, story: Cli) -> None:
        assert story("version").out == "4\n"
        assert story.json("version")["newestSequence"] == 4

    def test_it_is_one_number_a_key(self, story: Cli) -> None:
        assert story("version", CHILD, PARENT).out == "3\n4\n"
        assert [row["stateVersion"] for row in story.json("version", PARENT, CHILD)["versions"]] == [4, 3]

    def test_the_number_survives_pruning(self, story: Cli) -> None:
        story("prune", "--max-rows", 0, "-y")
        assert story("version", CHILD).out == "3\n"


class TestList:
    def test_the_latest_change_comes_first(self, cli: Cli, log: SignalLog, clock: Clock) -> None:
        goal(log)
        clock.now += 1
        goal(log, key=PARENT)
        document = cli.json("list")
        assert [row["sessionKey"] for row in document["sessions"]] == [PARENT, CHILD]
        assert (document["total"], document["returned"], document["truncated"]) == (2, 2, False)

    def test_a_cut_list_says_so(self, story: Cli) -> None:
        document = story.json("list", "-n", 1)
        assert (document["total"], document["returned"], document["truncated"]) == (2, 1, True)
        assert story("list", "-n", 1).err == "1 of 2 sessions\n"

    def test_a_row_counts_events_watchers_and_what_is_pending(self, story: Cli) -> None:
        (row,) = [row for row in story.json("list")["sessions"] if row["sessionKey"] == CHILD]
        assert (row["stateVersion"], row["events"], row["watchers"], row["pending"]) == (3, 3, 2, 1)
        assert row["lastEvent"]["kind"] == "goal_changed"

    def test_only_the_sessions_of_one_agent(self, story: Cli) -> None:
        assert story.json("list", "--agent", "work")["sessions"] == []
        assert story.json("list", "--agent", "main")["total"] == 2


class TestTail:
    @pytest.fixture
    def days(self, cli: Cli, log: SignalLog, clock: Clock) -> Cli:
        """Twenty events, an hour apart: even ones change a goal, odd ones only log."""
        for number in range(1, 21):
            clock.now = T + number * 3_600_000
            if number % 2:
                note(log, run_id=f"run-{number % 3}")
            else:
                goal(log, key=PARENT, actor_id=f"person:{number % 4}")
        cli.now = clock.now
        return cli

    def test_the_newest_ten_by_default_oldest_first(self, days: Cli) -> None:
        assert sequences(days.json("tail")) == list(range(11, 21))
        assert [line.split()[0] for line in days("tail").out.splitlines()] == [
            str(number) for number in range(11, 21)
        ]

    @pytest.mark.parametrize(
        ("argv", "expected"),
        [
            (("-n", "3"), [18, 19, 20]),
            (("-n", "all"), list(range(1, 21))),
            (("--since", "17"), [18, 19, 20]),
            (("--since", "0"), list(range(1, 21))),
            (("--since", "20"), []),
            (("--until", "2"), [1, 2]),
            (("--since", "4", "--until", "6"), [5, 6]),
            (("--since", "4", "--until", "9", "-n", "2"), [8, 9]),
            (("--since", "3h"), [18, 19, 20]),
            (("--until", "18h", "-n", "all"), [1, 2]),
            (("--since", "2027-01-16T02:00:00Z"), [19, 20]),
            (("--since", "today", "--utc", "--until", "18"), [17, 18]),
            (("--kind", "goal_changed", "-n", "2"), [18, 20]),
            (("--kind", "goal_changed", "--kind", "compacted", "-n", "2"), [19, 20]),
            (("--actor", "system", "-n", "2"), [17, 19]),
            (("--actor", "human:person:2", "-n", "2"), [14, 18]),
            (("--actor", "human:person:2", "--actor", "human:person:0", "-n", "2"), [18, 20]),
            (("--run", "run-1", "-n", "all"), [1, 7, 13, 19]),
            (("--agent", "work"), []),
            ((CHILD, "-n", "2"), [17, 19]),
            ((CHILD, PARENT, "-n", "2"), [19, 20]),
        ],
        ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
    )
    def test_what_is_chosen(self, days: Cli, argv: tuple[str, ...], expected: list[int]) -> None:
        document = days.json("tail", *argv)
        assert sequences(document) == expected
        assert (document["returned"], document["newestSequence"]) == (len(expected), 20)

    def test_nothing_to_show_is_said_on_stderr(self, days: Cli) -> None:
        done = days("tail", "--kind", "adopted")
        assert (done.out, done.err) == ("", "no events match\n")

    def test_times_of_older_days_carry_their_date(self, days: Cli) -> None:
        days.now += 2 * DAY
        assert "2027-01-16 04:00 UTC" in days("tail", "-n", 1, "--utc").out

    def test_an_unknown_key_is_not_found_with_a_suggestion(self, days: Cli) -> None:
        done = days("tail", PARENT.upper(), status=4)
        assert f"did you mean {PARENT}" in done.err


@pytest.mark.parametrize("command", [("status",), ("list",), ("tail",), ("cursors", "list"), ("notices",)])
def test_looking_at_an_empty_log_is_no_error(cli: Cli, log: SignalLog, command: tuple[str, ...]) -> None:
    assert cli(*command).status == 0


@pytest.mark.parametrize("command", [("status",), ("version",), ("list",), ("tail",), ("cursors", "list")])
def test_looking_where_nothing_is_creates_nothing(cli: Cli, home: Path, command: tuple[str, ...]) -> None:
    done = cli(*command, env={"OPENCLAW_STATE_DB": ""}, status=66)
    assert "chosen by embedded" in done.err
    assert list(home.iterdir()) == []
