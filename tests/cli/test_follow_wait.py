"""status --wait: an answer as soon as there is one, and what is answered instead."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest

from openclaw_state import Limits, SignalLog
from tests.cli.conftest import OTHER
from tests.cli.harness import Cli
from tests.following import Following, follow
from tests.support import CHILD, DAY, PARENT, Clock, T, goal, note

LATER = "agent:main:subagent:later"


@pytest.fixture
def two(cli: Cli, log: SignalLog) -> Cli:
    """Two events of the child."""
    goal(log)
    goal(log)
    return cli


class TestAnswer:
    def test_a_change_that_is_there_is_answered_at_once(self, two: Cli) -> None:
        argv = ("status", CHILD, "--since", 1)
        assert follow(two, *argv, "--wait", "--json").document == two.json(*argv)
        assert follow(two, *argv, "--wait").out == two(*argv).out

    def test_the_next_change_is_waited_for(self, two: Cli, log: SignalLog) -> None:
        with Following(two, "status", CHILD, "--since", 2, "--wait", "--json", "--timeout", "20s") as waiting:
            goal(log, key=OTHER)
            assert waiting.is_running()
            goal(log)
            document = waiting.end(status=0).document
        assert (document["stateVersion"], document["since"]) == (4, 2)
        assert [event["sequence"] for event in document["stateChanges"]["events"]] == [4]

    def test_a_change_of_another_session_is_none(self, two: Cli, log: SignalLog) -> None:
        goal(log, key=OTHER)
        follow(two, "status", CHILD, "--since", 2, "--wait", "--timeout", "50ms", status=124)

    def test_a_time_stands_for_the_version_before_it(self, two: Cli, log: SignalLog, clock: Clock) -> None:
        two.now = clock.now = T + 2 * DAY
        follow(two, "status", CHILD, "--since", "24h", "--wait", "--timeout", 0, status=124)
        note(log)
        document = follow(two, "status", CHILD, "--since", "24h", "--wait", "--json").document
        assert (document["since"], document["stateVersion"]) == (2, 3)

    def test_exit_code_goes_with_it(self, two: Cli) -> None:
        follow(two, "status", CHILD, "--since", 1, "--wait", "--exit-code", status=1)

    def test_a_session_without_a_version_is_waited_for(self, two: Cli, log: SignalLog) -> None:
        log.watch(PARENT, LATER)
        argv = ("status", LATER, "--since", 0, "--wait", "--json")
        follow(two, *argv, "--timeout", 0, status=124)
        with Following(two, *argv, "--timeout", "20s") as waiting:
            goal(log, key=LATER)
            assert waiting.end(status=0).document["stateVersion"] == 3


class TestInstead:
    def test_a_timeout_is_124_and_says_that_nothing_is_lost(self, two: Cli) -> None:
        done = follow(two, "status", CHILD, "--since", 2, "--wait", "--json", "--timeout", "20ms", status=124)
        assert done.error["code"] == "timed_out"
        assert done.error["message"] == "nothing changed within 20ms"
        assert "nothing is lost" in done.error["hint"]

    def test_a_gap_is_answered_at_once(self, two: Cli, log: SignalLog) -> None:
        log.prune(Limits(max_rows=0))
        document = follow(two, "status", CHILD, "--since", 1, "--wait", "--json", status=3).document
        assert (document["ok"], document["historyGap"]) == (True, True)

    def test_a_version_ahead_is_5(self, two: Cli) -> None:
        error = follow(two, "status", CHILD, "--since", 3, "--wait", "--json", status=5).error
        assert (error["requested"], error["head"]) == (3, 2)

    def test_an_unknown_session_is_4(self, two: Cli) -> None:
        error = follow(two, "status", CHILD + "x", "--since", 0, "--wait", "--json", status=4).error
        assert error["similar"] == [CHILD]

    def test_a_missing_file_that_was_named_is_66(self, cli: Cli, tmp_path: Path) -> None:
        missing = tmp_path / "missing.sqlite"
        done = follow(cli, "--db", missing, "status", CHILD, "--since", 0, "--wait", status=66)
        assert str(missing) in done.err
        assert not missing.exists()

    @pytest.mark.parametrize(
        "wrong",
        [
            ("status", CHILD, "--wait"),
            ("status", "--wait", "--since", "1"),
            ("status", CHILD, "--since", "1", "--timeout", "1s"),
            ("status", "--timeout", "1s"),
            ("status", CHILD, "--since", "2", "--wait", "--timeout", "soon"),
        ],
    )
    def test_what_cannot_mean_anything_is_refused(self, two: Cli, wrong: tuple[str, ...]) -> None:
        assert two(*wrong, status=2).out == ""

    def test_a_signal_ends_it_without_an_answer(self, two: Cli) -> None:
        with Following(two, "status", CHILD, "--since", 2, "--wait") as waiting:
            waiting.until_it_waits()
            done = waiting.end(signal.SIGTERM)
        assert (done.out, done.err) == ("", "stopped: nothing had changed\n")


class TestOwnFile:
    """The tool's own file, which is not there yet."""

    @pytest.fixture
    def env(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
        monkeypatch.setenv("XDG_DATA_HOME", str(home / "data"))
        return {"OPENCLAW_STATE_DB": ""}

    def test_it_is_waited_for(self, cli: Cli, env: dict[str, str], home: Path) -> None:
        argv = ("status", CHILD, "--since", 0, "--wait", "--json", "--timeout", "20s")
        with Following(cli, *argv, env=env) as waiting:
            assert "openclaw.sqlite to be created" in waiting.note("to be created")
            assert not (home / "data").exists()
            cli.process("record", CHILD, "--kind", "goal_changed", env=env)
            assert waiting.end(status=0).document["stateVersion"] == 1

    def test_created_and_still_empty_it_is_waited_for_as_well(
        self, cli: Cli, env: dict[str, str], home: Path
    ) -> None:
        path = home / "data" / "openclaw-state" / "openclaw.sqlite"
        with SignalLog(path, change=True, create=True, clock=Clock()) as log:
            argv = ("status", CHILD, "--since", 0, "--wait", "--json", "--timeout", "20s")
            with Following(cli, *argv, env=env) as waiting:
                waiting.until_it_waits()
                goal(log)
                assert waiting.end(status=0).document["stateVersion"] == 1

    def test_an_unknown_session_beside_others_is_4(self, cli: Cli, env: dict[str, str]) -> None:
        cli.process("record", CHILD, "--kind", "goal_changed", env=env)
        follow(cli, "status", CHILD + "x", "--since", 0, "--wait", env=env, status=4)

    def test_a_timeout_holds_before_it_is_there(self, cli: Cli, env: dict[str, str]) -> None:
        follow(cli, "status", CHILD, "--since", 0, "--wait", "--timeout", "30ms", env=env, status=124)
