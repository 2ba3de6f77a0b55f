"""notices -f: each notice once, acknowledged, run or delivered only when it was told."""

from __future__ import annotations

import json
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from tests.cli.conftest import OTHER, StateDir
from tests.cli.harness import Cli, check_row
from tests.following import Following, eventually, follow, last_error
from tests.support import CHILD, PARENT, change, goal, note, triples

FOLLOW = ("notices", "-f", "--format", "jsonl")
QUEUE = "agent:main:subagent:queue"


@pytest.fixture
def watched(cli: Cli, log: SignalLog) -> Cli:
    """Two watchers of the child, which has one pending notice for each since 0."""
    log.watch(PARENT, CHILD)
    log.watch(OTHER, CHILD)
    goal(log)
    return cli


def told(rows: list[Any]) -> list[tuple[str, int]]:
    return [(row["watcher"], row["sinceVersion"]) for row in rows]


class TestOnce:
    def test_each_is_printed_once_however_much_comes(self, watched: Cli, log: SignalLog) -> None:
        with Following(watched, *FOLLOW) as follower:
            assert told([follower.row(), follower.row()]) == [(PARENT, 0), (OTHER, 0)]
            for _ in range(3):
                goal(log)
            log.watch(PARENT, QUEUE)
            goal(log, key=QUEUE)
            last = follower.row()
            assert (last["watcher"], last["target"]) == (PARENT, QUEUE)
            assert len(follower.end(signal.SIGTERM).rows) == 3

    def test_acknowledged_and_changed_again_it_is_told_again(self, watched: Cli, log: SignalLog) -> None:
        with Following(watched, *FOLLOW, PARENT, "--count", 3) as follower:
            assert told([follower.row()]) == [(PARENT, 0)]
            log.acknowledge(PARENT, [CHILD])
            goal(log)
            assert told([follower.row()]) == [(PARENT, 1)]
            log.acknowledge(PARENT, [CHILD])
            goal(log)
            assert told([follower.row()]) == [(PARENT, 2)]
            follower.end(status=0)

    def test_rows_and_text_are_those_of_notices(self, watched: Cli) -> None:
        rows = follow(watched, *FOLLOW, "--count", 2).rows
        assert rows == watched.json("notices")["notices"]
        for row in rows:
            check_row("notices", row)
        assert follow(watched, "notices", "-f", "--count", 2).out == watched("notices").out
        assert (
            follow(watched, "notices", "-f", "--fields", "target", "--count", 1).out == f"target\n{CHILD}\n"
        )

    def test_a_watcher_nobody_knows_is_waited_for(self, watched: Cli, log: SignalLog) -> None:
        done = follow(watched, *FOLLOW, "agent:main:later", "--timeout", "50ms", status=124)
        assert last_error(done)["code"] == "timed_out"
        with Following(watched, *FOLLOW, "agent:main:later", "--count", 1) as follower:
            log.watch("agent:main:later", CHILD)
            goal(log)
            assert told([follower.row()]) == [("agent:main:later", 1)]
            follower.end(status=0)

    def test_events_that_do_not_notify_open_nothing(self, cli: Cli, log: SignalLog) -> None:
        log.watch(PARENT, CHILD)
        note(log)
        assert len(follow(cli, *FOLLOW, "--timeout", 0, status=124).rows) == 1


class TestPosition:
    def test_nothing_is_told_again_after_a_restart(self, watched: Cli, log: SignalLog) -> None:
        kept = (*FOLLOW, "--position", "desk")
        assert len(follow(watched, *kept, "--count", 2).rows) == 2
        goal(log)
        assert len(follow(watched, *kept, "--timeout", 0, status=124).rows) == 1, "the error document alone"
        log.acknowledge(PARENT, [CHILD])
        goal(log)
        assert told(follow(watched, *kept, "--count", 1).rows) == [(PARENT, 1)]

    def test_a_count_leaves_the_rest_for_the_next_time(self, watched: Cli) -> None:
        kept = (*FOLLOW, "--position", "desk", "--count", 1)
        assert told(follow(watched, *kept).rows + follow(watched, *kept).rows) == [(PARENT, 0), (OTHER, 0)]

    def test_another_name_is_told_all_of_it(self, watched: Cli) -> None:
        for name in ("desk", "phone"):
            assert len(follow(watched, *FOLLOW, "--position", name, "--count", 2).rows) == 2

    def test_without_one_a_restart_tells_all_that_is_pending(self, watched: Cli) -> None:
        with Following(watched, *FOLLOW) as follower:
            follower.row()
            follower.row()
            assert "tells of every notice that is still pending" in follower.end(signal.SIGTERM).err
        assert len(follow(watched, *FOLLOW, "--count", 2).rows) == 2


class TestAck:
    def test_what_was_printed_is_acknowledged(self, watched: Cli, log: SignalLog) -> None:
        with Following(watched, *FOLLOW, PARENT, "--ack") as follower:
            assert told([follower.row()]) == [(PARENT, 0)]
            eventually(lambda: triples(watched.path)[PARENT, CHILD] == (1, 1, 1), "it is acknowledged")
            goal(log)
            assert told([follower.row()]) == [(PARENT, 1)]
            eventually(lambda: triples(watched.path)[PARENT, CHILD] == (2, 2, 2), "it is acknowledged")
            follower.end(signal.SIGTERM)
        assert triples(watched.path)[OTHER, CHILD] == (0, 1, 2)

    def test_without_it_nothing_is_acknowledged(self, watched: Cli) -> None:
        before = triples(watched.path)
        follow(watched, *FOLLOW, "--count", 2)
        assert triples(watched.path) == before

    def test_a_command_is_acknowledged_when_it_succeeded(self, watched: Cli) -> None:
        argv = (*FOLLOW, PARENT, "--ack", "--count", 1, "--exec")
        error = last_error(follow(watched, *argv, "exit 3", status=69))
        assert (error["watcher"], error["target"]) == (PARENT, CHILD)
        assert error["hint"] == "the notice stays pending and unacknowledged"
        assert triples(watched.path)[PARENT, CHILD] == (0, 1, 1)
        follow(watched, *argv, "true")
        assert triples(watched.path)[PARENT, CHILD] == (1, 1, 1)

    def test_a_command_that_failed_is_run_again_the_next_time(self, watched: Cli, tmp_path: Path) -> None:
        file = tmp_path / "runs"
        argv = (*FOLLOW, "--position", "desk", PARENT, "--count", 1, "--exec")
        follow(watched, *argv, f"echo x >>'{file}'; false", status=69)
        follow(watched, *argv, f"echo x >>'{file}'")
        assert file.read_text() == "x\nx\n"
        follow(watched, *argv[:-3], "--timeout", 0, status=124)


def test_a_command_gets_the_notice(watched: Cli, tmp_path: Path) -> None:
    names = ("WATCHER", "TARGET", "SEQUENCE", "KIND", "WAKE", "TEXT")
    command = ";".join(f'echo "$OPENCLAW_STATE_{name}" >>told' for name in names)
    argv = ("notices", "-f", PARENT, "--count", 1, "--exec", f"cd '{tmp_path}';{command};cat >input")
    assert follow(watched, *argv).out == ""
    row = json.loads((tmp_path / "input").read_text())
    check_row("notices", row)
    words = (tmp_path / "told").read_text().splitlines()
    assert words == [PARENT, CHILD, "0", "goal_changed", "immediate", row["text"]]


class TestDelivery:
    """Handing lines to OpenClaw, of which a stand-in writes down what it was called with."""

    @pytest.fixture
    def calls(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Where the calls are written; a file `refuse` beside it makes one call fail."""
        programs = tmp_path / "bin"
        programs.mkdir()
        program = programs / "openclaw"
        program.write_text(
            f"#!{sys.executable}\n"
            "import json, os, sys\n"
            f"folder = {str(tmp_path)!r}\n"
            "call = [sys.argv[1:], os.environ.get('OPENCLAW_STATE_DIR')]\n"
            "print(json.dumps(call), file=open(folder + '/calls', 'a'))\n"
            "if os.path.exists(folder + '/refuse'):\n"
            "    os.unlink(folder + '/refuse')\n"
            "    sys.exit('gateway closed')\n"
        )
        program.chmod(0o755)
        monkeypatch.setenv("PATH", str(programs), prepend=":")
        return tmp_path / "calls"

    def made(self, calls: Path) -> list[Any]:
        return [json.loads(line) for line in calls.read_text().splitlines()] if calls.exists() else []

    def test_the_line_is_handed_to_the_session(self, watched: Cli, calls: Path) -> None:
        done = follow(watched, *FOLLOW, "--deliver", "openclaw", "--count", 1)
        (row,) = done.rows
        argv = ["system", "event", "--session-key", PARENT, "--text", row["text"]]
        assert self.made(calls) == [[argv, None]]

    def test_the_state_directory_is_handed_over(self, cli: Cli, state_dir: StateDir, calls: Path) -> None:
        state_dir.add_sessions("main", PARENT, CHILD)
        cli("record", CHILD, "--kind", "goal_changed", "--watcher", PARENT, path=state_dir.path)
        follow(cli, *FOLLOW, "--deliver", "openclaw", "--count", 1, path=state_dir.path)
        assert self.made(calls)[0][1] == str(state_dir.root)

    def test_what_was_delivered_is_acknowledged(self, watched: Cli, calls: Path) -> None:
        follow(watched, *FOLLOW, PARENT, "--deliver", "openclaw", "--ack", "--count", 1)
        assert triples(watched.path)[PARENT, CHILD] == (1, 1, 1)

    def test_a_refused_call_is_made_again(self, watched: Cli, calls: Path) -> None:
        calls.with_name("refuse").touch()
        follow(watched, *FOLLOW, PARENT, "--deliver", "openclaw", "--ack", "--count", 1)
        first, second = self.made(calls)
        assert first == second
        assert triples(watched.path)[PARENT, CHILD] == (1, 1, 1)

    def test_others_go_on_while_one_is_refused(self, watched: Cli, calls: Path) -> None:
        watched("cursors", "add", "agent:work:main", CHILD)
        watched("record", CHILD, "--kind", "goal_changed")
        calls.with_name("refuse").touch()
        follow(watched, *FOLLOW, "--deliver", "openclaw", "--count", 2)
        first, other, again = (call[0][3] for call in self.made(calls))
        assert first == again != other

    def test_a_refused_call_acknowledges_nothing(self, watched: Cli, calls: Path) -> None:
        calls.with_name("refuse").touch()
        argv = ("--deliver", "openclaw", "--ack", "--position", "desk", "--timeout", "200ms")
        done = follow(watched, *FOLLOW, PARENT, *argv, status=124)
        assert len(done.rows) == 1, "the error document alone"
        assert triples(watched.path)[PARENT, CHILD] == (0, 1, 1)
        follow(watched, *FOLLOW, PARENT, *argv[:-2], "--count", 1)
        assert len(self.made(calls)) == 2

    def test_a_hostile_key_is_handed_over_as_text(self, watched: Cli, calls: Path) -> None:
        hostile = "agent:main:$(touch owned)`\n\x00\x1b'\""
        change(
            watched.path,
            f"UPDATE session_watch_cursors SET target_session_key = CAST(x'{hostile.encode().hex()}' AS TEXT)"
            f" WHERE watcher_session_key = '{PARENT}'",
        )
        follow(watched, *FOLLOW, PARENT, "--deliver", "openclaw", "--count", 1)
        assert hostile.replace("\0", "\ufffd") in self.made(calls)[0][0][-1]

    def test_a_missing_program_is_78(self, watched: Cli, tmp_path: Path) -> None:
        env = {"PATH": str(tmp_path)}
        done = follow(watched, *FOLLOW, "--deliver", "openclaw", env=env, status=78)
        assert last_error(done)["code"] == "configuration"
        assert "which is not on PATH" in done.err


@pytest.mark.parametrize(
    "wrong",
    [
        ("-f", "--deliver", "pager"),
        ("-f", "--deliver", "openclaw", "--exec", "true"),
        ("-f", "--exec-retry", "1"),
        ("-f", "--timeout", "soon"),
        ("--deliver", "openclaw"),
        ("--position", "x"),
        ("--exec", "true"),
        ("--count", "1"),
    ],
)
@pytest.mark.parametrize("form", ["text", "tsv"])
def test_what_cannot_mean_anything_is_refused(watched: Cli, wrong: tuple[str, ...], form: str) -> None:
    limit = ("--timeout", "20s") if wrong[0] == "-f" and "--timeout" not in wrong else ()
    assert watched("notices", *wrong, *limit, "--format", form, status=2).out == ""
