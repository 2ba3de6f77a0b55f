"""What people see: streams, colours, widths, silence, and how little a start loads."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.cli.harness import CURSOR_COLUMNS, Cli, Outcome
from tests.support import CHILD, PARENT, query

ESCAPE = "\x1b["


@pytest.mark.parametrize("argv", [("tail",), ("list", "--json"), ("status", "--help")], ids=" ".join)
@pytest.mark.parametrize("closing_streams", [">&-", "2>&-", ">&- 2>&- <&-"])
def test_closed_streams_end_quietly(story: Cli, argv: tuple[str, ...], closing_streams: str) -> None:
    line = f'exec "$@" {closing_streams}'
    done = story.process(*argv, before=("sh", "-c", line, "sh"))
    assert (done.status, done.err) == (0, "")


def test_help_to_a_reader_that_has_gone_is_quiet(story: Cli) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = story.process("status", "--help", stdout=writing)
    finally:
        os.close(writing)
    assert (done.status, done.err) == (0, "")


def test_one_look_at_changes_loads_no_heavy_library(story: Cli) -> None:
    code = (
        "import sys\n"
        "from openclaw_state.cli.run import run\n"
        "from openclaw_state.cli.terminal import Terminal\n"
        "status = run(sys.argv[1:], Terminal(sys.stdin, sys.stdout, sys.stderr))\n"
        "print(status, sorted({'rich', 'sqlite_utils', 'platformdirs', 'pydantic'} & set(sys.modules)))"
    )
    argv = ["status", CHILD, "--since", "1", "--json", "--db", str(story.path)]
    done = subprocess.run(
        [sys.executable, "-c", code, *argv], env=story.environ(), capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "0 []"


@pytest.mark.parametrize(
    ("options", "env", "terminal", "coloured"),
    [
        ((), {}, False, False),
        ((), {}, True, True),
        ((), {"TERM": "dumb"}, True, False),
        ((), {"NO_COLOR": "1"}, True, False),
        ((), {"NO_COLOR": ""}, True, True),
        ((), {"FORCE_COLOR": "1"}, False, True),
        ((), {"NO_COLOR": "1", "FORCE_COLOR": "1"}, True, False),
        (("--color", "always"), {"NO_COLOR": "1"}, False, True),
        (("--color", "never"), {"FORCE_COLOR": "1"}, True, False),
    ],
)
def test_colours_follow_the_option_then_the_environment_then_the_stream(
    story: Cli, options: tuple[str, ...], env: dict[str, str], terminal: bool, coloured: bool
) -> None:
    done = story("tail", *options, env=env, terminal=terminal)
    assert (ESCAPE in done.out) is coloured
    plain = story("tail", "--color", "never", env=env, terminal=terminal).out
    assert (
        done.out.replace("\x1b[0m", "").replace("\x1b[36m", "").replace("\x1b[35m", "").replace("\x1b[2m", "")
        == plain
    )


def test_machine_formats_never_have_colours(story: Cli) -> None:
    for form in ("json", "jsonl", "tsv"):
        assert ESCAPE not in story("cursors", "list", "--format", form, "--color", "always").out


def test_a_table_that_fits_is_a_table_and_else_a_block_a_row(story: Cli) -> None:
    wide = story("cursors", "list", terminal=True, env={"COLUMNS": "200"}).out.splitlines()
    assert wide[0].split()[:3] == [f"{ESCAPE}1mWATCHER", "TARGET", "SEEN"]
    assert len(wide) == 3
    narrow = story("cursors", "list", "--color", "never", terminal=True, env={"COLUMNS": "60"}).out
    first, second = narrow.split("\n\n")
    assert [line.split()[0] for line in first.splitlines()] == CURSOR_COLUMNS
    assert second.startswith("WATCHER")


def test_in_a_pipe_nothing_is_cut_or_folded(story: Cli) -> None:
    done = story("list", env={"COLUMNS": "20"})
    heads, *rows = done.out.splitlines()
    assert heads.split()[0] == "SESSION"
    assert len(rows) == 2
    assert CHILD in done.out


def test_tables_align_numbers_right_and_words_left(story: Cli) -> None:
    heads, *rows = story("list").out.splitlines()
    ends = heads.index("VERSION") + len("VERSION")
    assert [row[:ends].split()[-1] for row in rows] == ["4", "3"]
    assert {row[ends] for row in rows} == {" "}


def test_notes_and_counts_go_to_stderr(story: Cli) -> None:
    done = story("cursors", "list")
    assert "2 watches, 1 pending" in done.err
    assert "2 watches" not in done.out


@pytest.mark.parametrize(
    "argv",
    [
        ("status",),
        ("status", CHILD, "--since", "1"),
        ("version",),
        ("list",),
        ("tail", "--format", "jsonl"),
        ("cursors", "list"),
        ("notices", PARENT, "--ack"),
        ("record", CHILD, "--kind", "goal_changed"),
        ("cursors", "prune", "--expired"),
        ("prune",),
        ("forget", CHILD, "-y"),
        ("help", "time"),
    ],
    ids=" ".join,
)
def test_quiet_prints_nothing_on_success(story: Cli, argv: tuple[str, ...]) -> None:
    done = story(*argv, "-q", env={"FORCE_COLOR": "1"})
    assert (done.out, done.err) == ("", "")


def test_quiet_still_says_why_it_failed(story: Cli) -> None:
    assert story("version", "nobody", "-q", status=4).err.startswith("error: ")


def test_verbose_names_the_database_and_its_rule(story: Cli) -> None:
    done = story("version", "-v", "--db", story.path)
    assert done.err == f"database: {story.path} (chosen by --db)\n"


def test_times_are_local_unless_utc_is_asked_for(home: Path, story: Cli) -> None:
    local = story.process("tail", "-n", "1", env={"TZ": "Asia/Kolkata"}).out
    utc = story.process("tail", "-n", "1", "--utc", env={"TZ": "Asia/Kolkata"}).out
    assert ("13:30:00" in local, "08:00:00" in utc) == (True, True)


def test_the_version_and_the_overview_need_no_database(cli: Cli) -> None:
    assert cli("--version").out.startswith("openclaw-state ")
    shown = cli("--help").out
    for group in ("Look:", "Change:", "Health:"):
        assert group in shown


@pytest.fixture
def surplus(cli: Cli, log: SignalLog) -> Cli:
    for number in range(3):
        log.record(CHILD, "compacted", actor_type="system", summary=f"number {number}")
    return cli


@pytest.mark.parametrize(
    ("answer", "status", "left"), [("y\n", 0, 1), ("YES\n", 0, 1), ("n\n", 9, 3), ("\n", 9, 3)]
)
def test_a_question_is_answered_at_the_terminal(surplus: Cli, answer: str, status: int, left: int) -> None:
    done = surplus("prune", "--max-rows", "1", answer=answer, status=status)
    assert "Remove 2 events (0 by age, 2 by count)" in done.err
    assert "[y/N]" in done.err
    assert query(surplus.path, "SELECT count(*) FROM session_state_events") == [(left,)]


@pytest.mark.parametrize(
    "argv",
    [
        ("forget", CHILD),
        ("cursors", "remove", PARENT, CHILD),
        ("cursors", "reset", PARENT),
        ("prune", "--max-age", "1h"),
        ("prune", "--max-rows", "49999"),
    ],
    ids=" ".join,
)
def test_what_cannot_be_undone_asks_and_needs_yes_elsewhere(story: Cli, argv: tuple[str, ...]) -> None:
    count = "SELECT (SELECT count(*) FROM session_state_events), (SELECT count(*) FROM session_watch_cursors)"
    before = query(story.path, count)
    assert "add -y" in story(*argv, status=9).err
    assert story(*argv, answer="n\n", status=9).err.count("[y/N]") == 1
    assert query(story.path, count) == before
    assert "[y/N]" not in story(*argv, "-y").err


def test_a_question_on_a_real_terminal(surplus: Cli) -> None:
    done = at_terminal(surplus, "y\n", "prune", "--max-rows", "1")
    assert done.status == 0
    assert "removed 2 events" in done.out
    assert at_terminal(surplus, "n\n", "prune", "--max-rows", "0").status == 9


def at_terminal(cli: Cli, typed: str, *argv: str) -> Outcome:
    """Run a command with stdin and stderr on a pseudo-terminal, where somebody types."""
    ours, theirs = pty.openpty()
    try:
        with cli.start(*argv, stdin=theirs, stderr=theirs) as process:
            os.write(ours, typed.encode())
            out = process.communicate(timeout=60)[0]
        return Outcome(process.returncode, out, os.read(ours, 4096).decode())
    finally:
        os.close(ours)
        os.close(theirs)


def test_a_message_of_a_lossy_locale_is_escaped_not_fatal(cli: Cli, log: SignalLog) -> None:
    log.record(CHILD, "goal_changed", actor_type="human", summary="Ziel erreicht ✓")
    done = cli.process("tail", env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii", "PYTHONUTF8": "0"})
    assert (done.status, done.err) == (0, "")
    assert r"Ziel erreicht \u2713" in done.out


@pytest.mark.parametrize(
    "flags", [("--json",), ("--format", "jsonl"), ("--format", "tsv"), ("-q",)], ids=" ".join
)
def test_a_history_gap_is_said_on_stderr_in_every_format(story: Cli, flags: tuple[str, ...]) -> None:
    story("prune", "--max-rows", "1", "-y")
    answer = story("status", CHILD, "--since", "1", *flags, status=3)
    assert "error: history before" in answer.err
    assert "next: take a fresh snapshot" in answer.err
