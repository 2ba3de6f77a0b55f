"""tail -f --exec: what the command gets, in which order, and what its failure means."""

from __future__ import annotations

import json
import signal
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.cli.harness import Cli, check_row
from tests.following import HEARTBEAT, Following, eventually, follow, last_error
from tests.support import CHILD, change, goal, note

TAIL = ("tail", "-f", "--since", 0, "--format", "jsonl")
HOSTILE = "a\nb\x00c'\"`touch owned`$(touch owned);touch owned&\x1b[31m\\|\u202e%s{}"


@pytest.fixture
def three(cli: Cli, log: SignalLog) -> Cli:
    """1 a goal by a person, in a run · 2 a note · 3 a goal."""
    goal(log, actor_id="telegram:1", run_id="run-1")
    note(log)
    goal(log)
    return cli


@pytest.fixture
def notes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file for commands to write to, in the environment as F."""
    monkeypatch.setenv("F", str(tmp_path / "notes"))
    monkeypatch.chdir(tmp_path)
    return tmp_path / "notes"


def written(notes: Path) -> list[str]:
    return notes.read_text("utf-8").splitlines() if notes.exists() else []


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class TestWhatItGets:
    def test_the_event_stands_in_its_environment(self, three: Cli, notes: Path) -> None:
        names = ("SESSION_KEY", "AGENT_ID", "SEQUENCE", "KIND", "ACTOR", "ACTOR_ID", "RUN_ID")
        command = ";".join(f'echo "{name}=${{OPENCLAW_STATE_{name}-unset}}" >>"$F"' for name in names)
        follow(three, *TAIL, "--exec", command, "--count", 2)
        assert written(notes) == [
            *(f"SESSION_KEY={CHILD}", "AGENT_ID=main", "SEQUENCE=1", "KIND=goal_changed", "ACTOR=human"),
            *("ACTOR_ID=telegram:1", "RUN_ID=run-1"),
            *(f"SESSION_KEY={CHILD}", "AGENT_ID=main", "SEQUENCE=2", "KIND=compacted", "ACTOR=system"),
            *("ACTOR_ID=unset", "RUN_ID=unset"),
        ]

    def test_what_an_outer_command_was_told_is_not_taken_for_this_event(
        self, three: Cli, notes: Path
    ) -> None:
        outer = {"OPENCLAW_STATE_RUN_ID": "outer", "OPENCLAW_STATE_ACTOR_ID": "outer"}
        command = 'echo "${OPENCLAW_STATE_RUN_ID-unset} ${OPENCLAW_STATE_ACTOR_ID-unset}" >>"$F"'
        argv = ("tail", "-f", "--since", 1, "--exec", command, "--count", 1)
        assert three.process(*argv, env=outer).status == 0
        assert written(notes) == ["unset unset"]

    def test_its_input_is_the_row_in_json(self, three: Cli, notes: Path) -> None:
        follow(three, *TAIL, "--exec", 'cat >>"$F"', "--count", 3)
        rows = [json.loads(line) for line in written(notes)]
        assert rows == follow(three, *TAIL, "--count", 3).rows
        for row in rows:
            check_row("tail", row)

    def test_nothing_is_printed_beside_it(self, three: Cli) -> None:
        assert follow(three, *TAIL, "--exec", "true", "--count", 3).out == ""
        assert three.process(*TAIL, "-q", "--exec", "echo $OPENCLAW_STATE_SEQUENCE", "--count", 3).out == (
            "1\n2\n3\n"
        )

    def test_filters_choose_the_events_it_is_run_for(self, three: Cli, notes: Path) -> None:
        command = 'echo "$OPENCLAW_STATE_SEQUENCE" >>"$F"'
        follow(three, *TAIL, "--exec", command, "--kind", "goal_changed", "--count", 2)
        assert written(notes) == ["1", "3"]

    def test_text_of_others_never_becomes_code(self, cli: Cli, log: SignalLog, notes: Path) -> None:
        log.record(CHILD, "goal_changed", actor_type="human", summary=HOSTILE, actor_id=HOSTILE)
        stored = follow(cli, *TAIL, "--count", 1).rows[0]
        command = 'printf %s "$OPENCLAW_STATE_ACTOR_ID" >"$F"; cat >"$F.json"'
        follow(cli, *TAIL, "--exec", command, "--count", 1)
        assert notes.read_bytes().decode() == stored["actorId"].replace("\0", "\ufffd")
        assert json.loads(Path(f"{notes}.json").read_text("utf-8")) == stored
        assert not (notes.parent / "owned").exists()

    def test_hostile_keys_reach_it_as_they_are(self, cli: Cli, log: SignalLog, notes: Path) -> None:
        note(log)
        text = HOSTILE.encode().hex()
        change(cli.path, f"UPDATE session_state_events SET session_key = CAST(x'{text}' AS TEXT)")
        follow(cli, *TAIL, "--exec", 'printf %s "$OPENCLAW_STATE_SESSION_KEY" >"$F"', "--count", 1)
        assert notes.read_bytes().decode() == HOSTILE.replace("\0", "\ufffd")
        assert not (notes.parent / "owned").exists()

    def test_an_event_larger_than_a_pipe_reaches_it_whole(
        self, cli: Cli, log: SignalLog, notes: Path
    ) -> None:
        goal(log, payload={"text": "x" * 300_000})
        follow(cli, *TAIL, "--exec", 'wc -c >"$F"', "--count", 1)
        assert int(written(notes)[0]) > 300_000

    def test_it_need_not_read_its_input(self, cli: Cli, log: SignalLog) -> None:
        goal(log, payload={"text": "x" * 300_000})
        for command in ("true", "exec <&-; sleep 0.05"):
            follow(cli, *TAIL, "--exec", command, "--count", 1)


class TestOrder:
    def test_one_at_a_time_in_order(self, three: Cli, log: SignalLog, notes: Path) -> None:
        command = 'echo "begin $OPENCLAW_STATE_SEQUENCE" >>"$F"; sleep 0.02; echo end >>"$F"'
        with Following(three, *TAIL, "--exec", command, "--count", 5) as follower:
            eventually(lambda: written(notes), "the first command is run")
            goal(log)
            goal(log)
            follower.end(status=0)
        assert written(notes) == [word for number in range(1, 6) for word in (f"begin {number}", "end")]

    def test_the_position_follows_each_command(self, three: Cli, notes: Path, tmp_path: Path) -> None:
        position = tmp_path / "position"
        argv = ("tail", "--since", 0, "--position-file", position)
        three(*argv, "--exec", f'cat "{position}" >>"$F"')
        assert written(notes) == ["0", "1", "2"]
        assert position.read_text() == "3\n"


class TestFailure:
    def test_it_stops_there_with_the_position_behind_the_failing_event(
        self, three: Cli, notes: Path, tmp_path: Path
    ) -> None:
        command = 'echo "$OPENCLAW_STATE_SEQUENCE" >>"$F"; test "$OPENCLAW_STATE_SEQUENCE" != 2'
        argv = ("tail", "--format", "jsonl", "--since", 0, "--position-file", tmp_path / "position")
        for _ in range(2):
            done = three(*argv, "--exec", command, status=69)
            error = last_error(done)
            assert (error["code"], error["sequence"]) == ("command_failed", 2)
            assert error["message"] == "the command for event 2 failed with exit status 1"
            assert error["hint"] == f"stopped after 1; go on with --position-file {tmp_path / 'position'}"
        assert written(notes) == ["1", "2", "2"]
        three(*argv, "--exec", 'echo again "$OPENCLAW_STATE_SEQUENCE" >>"$F"')
        assert written(notes)[3:] == ["again 2", "again 3"]

    def test_it_is_run_again_as_often_as_was_asked_for(self, three: Cli, notes: Path) -> None:
        command = 'echo x >>"$F"; test "$(wc -l <"$F")" -ge 2'
        follow(three, *TAIL, "--exec", command, "--exec-retry", 1, "--count", 1)
        assert written(notes) == ["x", "x"]

    def test_it_fails_when_that_is_used_up(self, three: Cli, notes: Path) -> None:
        command = 'echo x >>"$F"; false'
        follow(three, *TAIL, "--exec", command, "--exec-retry", 1, "--count", 1, status=69)
        assert written(notes) == ["x", "x"]

    def test_a_timeout_holds_between_two_tries(self, three: Cli) -> None:
        argv = ("--exec", "false", "--exec-retry", 99, "--timeout", "100ms")
        done = follow(three, *TAIL, *argv, status=124)
        assert last_error(done)["hint"] == "stopped after 0; go on with --since 0"

    def test_a_command_that_is_not_there(self, three: Cli) -> None:
        done = follow(three, *TAIL, "--exec", "/no/such/command 2>/dev/null", status=69)
        assert "the command for event 1 failed with exit status 127" in done.err

    def test_a_command_ended_by_a_signal(self, three: Cli) -> None:
        done = follow(three, *TAIL, "--exec", "kill -KILL $$", status=69)
        assert "the command for event 1 was ended by SIGKILL" in done.err

    def test_an_event_too_large_for_an_environment_is_told(self, cli: Cli, log: SignalLog) -> None:
        goal(log, actor_id="x" * 200_000)
        done = follow(cli, *TAIL, "--exec", "true", status=69)
        assert "could not be started: Argument list too long" in done.err

    @pytest.mark.parametrize(
        "command",
        [
            'sleep 60 & echo $! >"$F"; wait',
            """sh -c 'trap "" TERM; echo $$ >"$F"; sleep 60; sleep 60' & wait""",
        ],
        ids=["plain", "stubborn"],
    )
    def test_one_that_takes_too_long_is_ended_with_all_it_started(
        self, three: Cli, notes: Path, command: str
    ) -> None:
        done = follow(three, *TAIL, "--exec", command, "--exec-timeout", "400ms", status=69)
        assert "the command for event 1 did not end within 400 ms" in done.err
        (child,) = written(notes)
        eventually(lambda: not is_alive(int(child)), "what it started is gone")

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_reaches_the_command_and_nothing_is_counted_as_done(
        self, three: Cli, notes: Path, tmp_path: Path, number: signal.Signals
    ) -> None:
        position = tmp_path / "position"
        argv = ("tail", "-f", "--since", 0, "--position-file", position)
        with Following(three, *argv, "--exec", 'echo $$ >"$F"; exec sleep 60') as follower:
            (child,) = eventually(lambda: written(notes), "the command is run")
            done = follower.end(number)
        assert not is_alive(int(child))
        assert done.err == f"stopped after 0; go on with --position-file {position}\n"
        assert position.read_text() == "0\n"

    def test_a_signal_that_the_command_outlives_counts_it_and_runs_no_other(
        self, three: Cli, notes: Path, tmp_path: Path
    ) -> None:
        position = tmp_path / "position"
        command = 'trap "" TERM; echo $$ >>"$F"; sleep 0.2'
        argv = ("tail", "-f", "--since", 0, "--position-file", position, "--exec", command)
        with Following(three, *argv) as one:
            eventually(lambda: written(notes), "the command is run")
            assert one.end(signal.SIGTERM).err.startswith("stopped after 1; ")
        assert len(written(notes)) == 1
        assert position.read_text() == "1\n"


def test_heartbeats_go_on_beside_commands(three: Cli, log: SignalLog, notes: Path) -> None:
    with Following(three, *TAIL, "--exec", 'echo x >>"$F"', *HEARTBEAT) as follower:
        follower.settle()
        goal(log)
        eventually(lambda: len(written(notes)) == 4, "the command is run for the new event")
        follower.settle()
        follower.end(signal.SIGTERM)
