"""prune and forget: the plan is the result, and what went is remembered."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.sidecar import sidecar_path
from tests.cli.conftest import OTHER
from tests.cli.harness import Cli
from tests.support import CHILD, DAY, PARENT, Clock, T, goal, needs_permissions, note, query, triples

COUNT = "SELECT (SELECT count(*) FROM session_state_events), (SELECT count(*) FROM session_watch_cursors)"


@pytest.fixture
def decades(cli: Cli, log: SignalLog, clock: Clock) -> Cli:
    """Ten old events with a pending watch, five young ones, and a day between."""
    log.watch(OTHER, CHILD)
    log.watch(PARENT, CHILD)
    for number in range(15):
        clock.now = T if number < 10 else T + 40 * DAY
        (goal if number == 0 else note)(log, key=CHILD if number % 2 == 0 else PARENT)
    cli.now = T + 40 * DAY
    return cli


@pytest.mark.parametrize(
    ("argv", "by_age", "by_rows"),
    [
        ((), 10, 0),
        (("--max-rows", "3"), 10, 2),
        (("--max-age", "50d", "--max-rows", "3"), 0, 12),
        (("--max-age", "50d"), 0, 0),
        (("--max-age", "0"), 10, 0),
        (("--max-rows", "0"), 10, 5),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_dry_run_equals_apply(decades: Cli, argv: tuple[str, ...], by_age: int, by_rows: int) -> None:
    before = query(decades.path, COUNT)
    planned = decades.json("prune", *argv, "--dry-run")
    assert query(decades.path, COUNT) == before
    done = decades.json("prune", *argv, "-y")
    assert (planned.pop("dryRun"), done.pop("dryRun")) == (True, False)
    assert planned == done
    assert (done["eventsByAge"], done["eventsByRows"]) == (by_age, by_rows)
    expired = 0 if "50d" in argv else 2
    assert (done["cursorsExpired"], done["cursorsPending"]) == (expired, expired)
    assert query(decades.path, COUNT) == [(15 - by_age - by_rows, 2 - expired)]
    again = decades.json("prune", *argv, "-y")
    assert (again["eventsByAge"], again["eventsByRows"], again["cursorsExpired"]) == (0, 0, 0)


def test_text_says_what_went_and_what_stays(decades: Cli) -> None:
    sentence = "10 events (10 by age, 0 by count) of 2 sessions and 2 watches (2 pending)"
    assert decades("prune", "--dry-run").out.startswith(f"would remove {sentence}\n")
    assert decades("prune").out == f"removed {sentence}\n2 state versions kept\n"


def test_the_gateways_own_limits_need_no_question_and_wider_ones_neither(decades: Cli) -> None:
    assert decades.json("prune", "--max-age", "30d", "--max-rows", "50000")["eventsByAge"] == 10
    assert decades.json("prune", "--max-age", "60d", "--max-rows", "60000")["eventsByAge"] == 0


def test_versions_survive_and_the_gap_is_exact(decades: Cli) -> None:
    decades("prune")
    assert decades("version", CHILD).out == "15\n"
    assert decades.json("status", CHILD, "--since", 9)["historyGap"] is False
    assert decades.json("status", CHILD, "--since", 8, status=3)["historyGap"] is True


def test_the_ledger_remembers_who_pruned_what(decades: Cli) -> None:
    decades("prune")
    (entry,) = decades.json("status", CHILD, "--since", 0, status=3)["gap"]["prunes"]
    assert (entry["at"], entry["command"], entry["events"], entry["cursors"]) == (decades.now, "prune", 10, 2)
    assert "@" in entry["by"]
    assert Path(sidecar_path()).stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("argv", [("--dry-run",), ("--max-age", "60d")])
def test_what_removed_nothing_is_not_in_the_ledger(decades: Cli, argv: tuple[str, ...]) -> None:
    decades("prune", *argv)
    assert not Path(sidecar_path()).exists()


def test_a_gap_without_a_ledger_points_at_the_gateway(decades: Cli, log: SignalLog, clock: Clock) -> None:
    clock.now = decades.now
    log.prune()
    gap = decades.json("status", CHILD, "--since", 0, status=3)["gap"]
    assert gap["prunes"] == []
    assert "a gateway applies retention by itself" in gap["because"][0]


@needs_permissions
def test_a_ledger_that_cannot_be_written_is_a_warning(decades: Cli, home: Path) -> None:
    home.chmod(0o500)
    try:
        document = decades.json("prune")
    finally:
        home.chmod(0o700)
    assert document["eventsByAge"] == 10
    assert "the prune ledger was not written" in document["warnings"][0]


def test_two_at_once_both_finish_and_report_their_own_part(decades: Cli) -> None:
    argv = ["prune", "--format", "jsonl"]
    with decades.start(*argv) as first, decades.start(*argv) as second:
        outs = [process.communicate(timeout=60)[0] for process in (first, second)]
    assert (first.returncode, second.returncode) == (0, 0)
    removed = [int(out.partition('"eventsByAge":')[2].partition(",")[0]) for out in outs]
    assert sum(removed) == 10
    with closing(sqlite3.connect(decades.path)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)


def test_forget_plans_what_it_does(story: Cli) -> None:
    before = query(story.path, COUNT)
    planned = story.json("forget", CHILD, "--dry-run")
    assert query(story.path, COUNT) == before
    done = story.json("forget", CHILD, "-y")
    assert (planned.pop("dryRun"), done.pop("dryRun")) == (True, False)
    assert planned == done
    assert (done["events"], done["heads"], done["links"], done["cursors"]) == (3, 1, 0, 2)
    assert triples(story.path) == {}
    story("version", CHILD, status=4)
    assert story("version", PARENT).out == "4\n"


def test_forget_in_words(story: Cli) -> None:
    sentence = f"3 events, 1 state version, 0 links and 2 watches of {CHILD}"
    assert story("forget", CHILD, "--dry-run").out == f"would remove {sentence}\n"
    assert f"Remove {sentence}? [y/N]" in story("forget", CHILD, answer="n\n", status=9).err
    assert story("forget", CHILD, "-y").out == f"removed {sentence}\n"


def test_forget_of_a_bare_key_takes_only_the_agent_that_is_named(cli: Cli, log: SignalLog) -> None:
    for agent in ("main", "work"):
        goal(log, key="global", agent_id=agent)
    cli("forget", "global", "-y", status=2)
    cli("forget", "global", "-y", "--agent", "work")
    assert query(cli.path, "SELECT agent_id FROM session_state_heads") == [("main",)]


def test_numbers_never_start_again(story: Cli) -> None:
    story("forget", CHILD, "-y")
    assert story.json("record", CHILD, "--kind", "compacted")["event"]["sequence"] == 5
