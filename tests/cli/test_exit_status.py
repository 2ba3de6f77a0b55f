"""Every exit status of `help exit-codes`, reached through its real cause."""

from __future__ import annotations

import resource
import signal
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli.help import STATUSES
from openclaw_state.errors import ExitStatus
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli, Outcome, check_document
from tests.support import CHILD, PARENT, change, needs_permissions, note, query

# A bug is a cause that no test can name; an SQLite too old is one cause of CONFIGURATION, and
# tests/unit substitutes the version for it.
WITHOUT_CAUSE = {ExitStatus.BUG}


class World(NamedTuple):
    """What a cause may use: the story, a state directory, a folder of its own."""

    cli: Cli
    openclaw: StateDir
    folder: Path


class Cause(NamedTuple):
    status: ExitStatus
    reach: Callable[[World], Outcome]


CAUSES: list[Cause] = []


def reaches(status: ExitStatus) -> Callable[[Callable[[World], Outcome]], Callable[[World], Outcome]]:
    """Enter a function into the table: it runs the program into this status."""

    def enter(reach: Callable[[World], Outcome]) -> Callable[[World], Outcome]:
        CAUSES.append(Cause(status, reach))
        return reach

    return enter


@reaches(ExitStatus.OK)
def no_changes(world: World) -> Outcome:
    return world.cli.process("status", CHILD, "--since", "3", "--exit-code")


@reaches(ExitStatus.OK)
def reader_gone(world: World) -> Outcome:
    """A30: `… | head -1`."""
    fill(world.cli.path)
    with (
        world.cli.start("tail", "-n", "all") as process,
        subprocess.Popen(["head", "-1"], stdin=process.stdout, stdout=subprocess.PIPE, text=True) as head,
    ):
        process.stdout.close()
        first = head.communicate()[0]
        return Outcome(process.wait(60), first, process.stderr.read())


@reaches(ExitStatus.FINDINGS)
def changes_under_exit_code(world: World) -> Outcome:
    return world.cli.process("status", CHILD, "--since", "1", "--exit-code", "--json")


@reaches(ExitStatus.USAGE)
def unknown_option(world: World) -> Outcome:
    return world.cli.process("tail", "--newest", "3", "--json")


@reaches(ExitStatus.USAGE)
def bare_key_of_several_agents(world: World) -> Outcome:
    for agent in ("main", "work"):
        world.cli("record", "global", "--kind", "goal_changed", "--agent", agent)
    outcome = world.cli.process("status", "global", "--json")
    assert outcome.error["agents"] == ["main", "work"]
    return outcome


@reaches(ExitStatus.HISTORY_GAP)
def pruned_history(world: World) -> Outcome:
    world.cli("prune", "--max-rows", "1", "-y")
    outcome = world.cli.process("status", CHILD, "--since", "2", "--json")
    assert (outcome.document["ok"], outcome.document["historyGap"]) == (True, True)
    return outcome


@reaches(ExitStatus.NOT_FOUND)
def misspelt_key(world: World) -> Outcome:
    outcome = world.cli.process("status", CHILD.replace("child", "chidl"), "--json")
    assert outcome.error["similar"][0] == CHILD
    assert outcome.error["hint"].startswith(f"did you mean {CHILD}")
    return outcome


@reaches(ExitStatus.NOT_FOUND)
def unknown_topic(world: World) -> Outcome:
    return world.cli.process("help", "weather", "--json")


@reaches(ExitStatus.NOT_FOUND)
def no_such_watch(world: World) -> Outcome:
    return world.cli.process("cursors", "remove", CHILD, PARENT, "-y", "--json")


@reaches(ExitStatus.AHEAD)
def beyond_the_head(world: World) -> Outcome:
    """A22: a version from the future is an error with both numbers, never "up to date"."""
    outcome = world.cli.process("status", CHILD, "--since", "999", "--json")
    assert (outcome.error["requested"], outcome.error["head"]) == (999, 3)
    return outcome


@reaches(ExitStatus.REFUSED)
def bare_watcher(world: World) -> Outcome:
    outcome = world.cli.process("cursors", "add", "main", CHILD, "--json")
    assert "agent-qualified" in outcome.error["rule"]
    return outcome


@reaches(ExitStatus.REFUSED)
def watch_itself(world: World) -> Outcome:
    outcome = world.cli.process("cursors", "add", CHILD, CHILD, "--json")
    assert "itself" in outcome.error["rule"]
    return outcome


@reaches(ExitStatus.REFUSED)
def nobody_to_ask(world: World) -> Outcome:
    outcome = world.cli.process("forget", CHILD, "--json")
    assert outcome.error["hint"] == "add -y to do it"
    return outcome


@reaches(ExitStatus.REFUSED)
def supervised_file(world: World) -> Outcome:
    world.openclaw.supervise()
    outcome = world.cli.process(
        "record", CHILD, "--kind", "goal_changed", "--db", world.openclaw.path, "--json"
    )
    assert "fleet-7" in outcome.error["message"]
    return outcome


@reaches(ExitStatus.REFUSED)
def sweep_beside_a_gateway(world: World) -> Outcome:
    world.openclaw.start_gateway()
    return world.cli.process("notices", "sweep", "--db", world.openclaw.path, "--json")


@reaches(ExitStatus.BAD_DATABASE)
def not_a_database(world: World) -> Outcome:
    (world.folder / "notes.txt").write_text("no database\n" * 512)
    return world.cli.process("list", "--db", world.folder / "notes.txt", "--json")


@reaches(ExitStatus.BAD_DATABASE)
def newer_than_known(world: World) -> Outcome:
    change(world.openclaw.path, "PRAGMA user_version = 99")
    argv = ["record", CHILD, "--kind", "goal_changed", "--db", world.openclaw.path, "--json"]
    outcome = world.cli.process(*argv)
    assert outcome.error["code"] == "newer_schema"
    return outcome


@reaches(ExitStatus.NO_DATABASE)
def missing_file(world: World) -> Outcome:
    outcome = world.cli.process("list", "--db", world.folder / "nothing.sqlite", "--json")
    assert outcome.error["database"]["via"] == "--db"
    return outcome


@reaches(ExitStatus.IO_ERROR)
def full_disk(world: World) -> Outcome:
    """The file may not grow: what a full disk is to SQLite."""
    world.cli("record", CHILD, "--kind", "compacted")

    def stop_growth() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (512, 512))

    return world.cli.process("record", CHILD, "--kind", "compacted", "--json", preexec_fn=stop_growth)


@reaches(ExitStatus.IO_ERROR)
def full_output(world: World) -> Outcome:
    with open("/dev/full", "w") as full:
        done = world.cli.process("list", "--json", stdout=full)
    return Outcome(done.status, "", done.err)


@reaches(ExitStatus.BUSY)
def locked_for_too_long(world: World) -> Outcome:
    with closing(sqlite3.connect(world.cli.path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert world.cli.process("list").status == 0
        return world.cli.process("record", CHILD, "--kind", "goal_changed", "--lock-wait", "50ms", "--json")


def unreadable_file(world: World) -> Outcome:
    world.cli.path.chmod(0)
    return world.cli.process("list", "--json")


CAUSES.append(Cause(ExitStatus.PERMISSION, unreadable_file))


@reaches(ExitStatus.CONFIGURATION)
def sweep_without_agent_stores(world: World) -> Outcome:
    copy = world.folder / "copy.sqlite"
    copy.write_bytes(world.openclaw.path.read_bytes())
    return world.cli.process("notices", "sweep", "--db", copy, "--json")


@reaches(ExitStatus.UNAVAILABLE)
def failing_command(world: World) -> Outcome:
    return world.cli.process("tail", "-f", "-n", 1, "--exec", "exit 4", "--json")


@reaches(ExitStatus.TIMED_OUT)
def nothing_to_follow(world: World) -> Outcome:
    return world.cli.process("tail", "-f", "--position", "new", "--timeout", "100ms", "--json")


@reaches(ExitStatus.TIMED_OUT)
def run_past_its_timeout(world: World) -> Outcome:
    argv = ["--parent", PARENT, "--child", CHILD, "--timeout", "100ms", "--json"]
    return world.cli.process("run", *argv, "--", "sleep", "60")


def interrupted_by(world: World, number: signal.Signals) -> Outcome:
    """The signal finds the program waiting for a reader that reads no further."""
    fill(world.cli.path)
    with world.cli.start("tail", "-n", "all") as process:
        first = process.stdout.readline()
        process.send_signal(number)
        status = process.wait(60)
        assert status == -number, "not ended by the signal itself"
        return Outcome(128 + number, first, process.stderr.read())


@reaches(ExitStatus.HUNG_UP)
def hung_up(world: World) -> Outcome:
    return interrupted_by(world, signal.SIGHUP)


@reaches(ExitStatus.INTERRUPTED)
def interrupted(world: World) -> Outcome:
    return interrupted_by(world, signal.SIGINT)


@reaches(ExitStatus.TERMINATED)
def terminated(world: World) -> Outcome:
    return interrupted_by(world, signal.SIGTERM)


def fill(path: Path, events: int = 3000) -> None:
    """More lines than a pipe holds."""
    with SignalLog(path, change=True) as log:
        note(log)
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?)"
            " INSERT INTO session_state_events"
            " (session_key, agent_id, kind, actor_type, occurred_at, summary)"
            " SELECT e.session_key, e.agent_id, e.kind, e.actor_type, e.occurred_at, e.summary"
            " FROM n, (SELECT * FROM session_state_events ORDER BY sequence DESC LIMIT 1) AS e",
            (events,),
        )


@pytest.fixture
def world(story: Cli, state_dir: StateDir, tmp_path: Path) -> World:
    return World(story, state_dir, tmp_path)


def _case(cause: Cause) -> object:
    marks = [needs_permissions] if cause.reach is unreadable_file else []
    return pytest.param(cause, marks=marks, id=f"{int(cause.status)}-{cause.reach.__name__}")


@pytest.mark.parametrize("cause", [_case(cause) for cause in CAUSES])
def test_status_is_reached_through_its_cause(world: World, cause: Cause) -> None:
    outcome = cause.reach(world)
    assert outcome.status == cause.status, outcome
    assert "Traceback" not in outcome.err
    if outcome.out.startswith("{"):
        check_document(outcome.document)
        assert outcome.document["ok"] or outcome.err.startswith("error: ")
    else:
        assert outcome.err == "" or outcome.status == ExitStatus.IO_ERROR


def test_every_documented_status_has_a_cause() -> None:
    assert {cause.status for cause in CAUSES} == set(STATUSES) - WITHOUT_CAUSE


def test_help_lists_the_statuses_with_their_meaning(cli: Cli) -> None:
    shown = cli("help", "exit-codes").out.splitlines()
    assert [int(line.split()[0]) for line in shown] == sorted(STATUSES)


def test_a_failed_write_leaves_the_log_as_it_was(world: World) -> None:
    before = query(world.cli.path, "SELECT count(*) FROM session_state_events")
    full_disk(world)
    (after,) = query(world.cli.path, "SELECT count(*) FROM session_state_events")
    assert after == (before[0][0] + 1,), "only the event from before the disk was full"
    assert query(world.cli.path, "PRAGMA integrity_check") == [("ok",)]
