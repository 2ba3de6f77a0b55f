"""run and demo: programs that the command line starts."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.errors import ExitStatus
from tests.cli.harness import Cli, Outcome, check_document
from tests.support import CHILD, PARENT


@pytest.fixture
def run(cli: Cli, log: SignalLog) -> Callable[..., Outcome]:
    def run(*program: str, options: tuple[str, ...] = ()) -> Outcome:
        return cli.process("run", "--parent", PARENT, "--child", CHILD, *options, "--", *program)

    return run


@pytest.mark.parametrize(
    ("program", "status", "kind", "outcome"),
    [
        (("true",), 0, "run_completed", None),
        (("sh", "-c", "exit 7"), 7, "run_failed", "error"),
        (("sh", "-c", "kill -9 $$"), 137, "run_failed", "error"),
        (("/no/such/program",), 127, "run_failed", "error"),
        ((str(Path(__file__)),), 126, "run_failed", "error"),
        ((".",), 126, "run_failed", "error"),
    ],
)
def test_status_and_end_are_those_of_the_program(
    run: Callable[..., Outcome],
    log: SignalLog,
    program: tuple[str, ...],
    status: int,
    kind: str,
    outcome: str | None,
) -> None:
    assert run(*program).status == status
    spawned, ended = log.events()
    assert (spawned.kind, ended.kind) == ("child_spawned", kind)
    assert spawned.run_id == ended.run_id
    assert (ended.payload or {}).get("outcome") == outcome


def test_a_timeout_is_told_apart(run: Callable[..., Outcome], log: SignalLog) -> None:
    done = run("sleep", "60", options=("--timeout", "50ms", "--run", "r-9", "--json"))
    assert done.status == 124
    assert (done.document["outcome"], done.document["exitStatus"]) == ("timeout", 124)
    ended = list(log.events())[-1]
    assert (ended.run_id, ended.payload) == ("r-9", {"outcome": "timeout"})


def test_in_json_mode_the_program_writes_to_stderr(run: Callable[..., Outcome]) -> None:
    done = run("echo", "from the program", options=("--json",))
    check_document(done.document)
    assert done.err == "from the program\n"


def test_in_text_mode_the_program_keeps_its_stdout(run: Callable[..., Outcome]) -> None:
    assert run("echo", "from the program").out == "from the program\n"


def test_options_behind_the_dashes_are_the_programs(run: Callable[..., Outcome]) -> None:
    assert run("echo", "--json", "-q", "", "--").out == "--json -q  --\n"


def test_a_signal_is_handed_on_and_recorded_as_cancelled(cli: Cli, log: SignalLog) -> None:
    argv = ["run", "--parent", PARENT, "--child", CHILD, "--", "sh", "-c", "echo up; exec sleep 60"]
    with cli.start(*argv) as process:
        assert process.stdout.readline() == "up\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == -signal.SIGTERM
    assert list(log.events())[-1].payload == {"outcome": "cancelled"}


def test_an_interrupt_at_the_terminal_reaches_both_and_is_recorded(cli: Cli, log: SignalLog) -> None:
    argv = ["run", "--parent", PARENT, "--child", CHILD, "--", "sh", "-c", "echo up; exec sleep 60"]
    with cli.start(*argv, start_new_session=True) as process:
        assert process.stdout.readline() == "up\n"
        os.killpg(process.pid, signal.SIGINT)
        assert process.wait(60) == -signal.SIGINT
    assert list(log.events())[-1].payload == {"outcome": "cancelled"}


def test_with_best_effort_the_program_runs_also_where_no_log_is(tmp_path: Path, cli: Cli) -> None:
    argv = ["run", "--parent", PARENT, "--child", CHILD, "--db", tmp_path]
    assert cli.process(*argv, "--", "echo", "ran").status == ExitStatus.BAD_DATABASE
    done = cli.process(*argv, "--best-effort", "--", "echo", "ran")
    assert (done.status, done.out) == (0, "ran\n")
    assert "warning: not recorded" in done.err


def test_the_parent_hears_nothing_but_the_log_does(
    run: Callable[..., Outcome], cli: Cli, log: SignalLog
) -> None:
    run("false")
    assert log.notices() == []
    (ended,) = cli.json("status", PARENT, "--children")["children"]
    assert (ended["kind"], ended["payload"]) == ("run_failed", {"outcome": "error"})


def test_the_demo_ends_well_and_leaves_other_databases_alone(story: Cli, home: Path) -> None:
    tree = home / ".openclaw" / "state"
    tree.mkdir(parents=True)
    (tree / "openclaw.sqlite").write_bytes(b"untouched")
    kept = home / "kept.sqlite"
    before = sorted(os.listdir(story.path.parent))
    done = story.process("demo", "--keep", kept, "--json")
    check_document(done.document)
    assert [scene["status"] for scene in done.document["scenes"]] == [0] * 9 + [3]
    assert (tree / "openclaw.sqlite").read_bytes() == b"untouched"
    assert sorted(path.name for path in home.rglob("*")) == [
        ".openclaw",
        "kept.sqlite",
        "openclaw.sqlite",
        "state",
    ]
    assert sorted(os.listdir(story.path.parent)) == before
    assert kept.stat().st_mode & 0o777 == 0o600
    assert story.json("version", path=kept)["newestSequence"] == 3


def test_the_demo_keeps_nothing_where_something_stands(cli: Cli, tmp_path: Path) -> None:
    done = cli("demo", "--keep", tmp_path, "--json", status=2)
    assert done.error["message"] == f"{tmp_path} exists already"
