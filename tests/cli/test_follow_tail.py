"""tail -f: which events are printed, in which form, and what ends it."""

from __future__ import annotations

import os
import signal
import time
from functools import partial

import pytest

from openclaw_state import Limits, SignalLog
from tests.cli.conftest import OTHER
from tests.cli.harness import Cli, check_row
from tests.following import HEARTBEAT, Following, follow, last_error, sequences
from tests.support import CHILD, DAY, PARENT, Clock, T, goal, note

TAIL = ("tail", "-f", "--format", "jsonl")


@pytest.fixture
def five(cli: Cli, log: SignalLog) -> Cli:
    """1 goal of the child · 2 note · 3 goal of the other session · 4 note of the child · 5 goal."""
    goal(log, actor_id="telegram:1")
    note(log)
    goal(log, key=OTHER, run_id="run-3")
    note(log)
    goal(log, actor_id="telegram:2", run_id="run-5")
    return cli


class TestChoice:
    def test_events_of_all_sessions_are_printed_as_they_come(self, five: Cli, log: SignalLog) -> None:
        with Following(five, *TAIL) as follower:
            assert sequences([follower.row() for _ in range(5)]) == [1, 2, 3, 4, 5]
            for key in (CHILD, OTHER, PARENT):
                goal(log, key=key)
                assert follower.row()["sessionKey"] == key

    @pytest.mark.parametrize(
        ("chosen", "old", "new"),
        [
            ((OTHER,), [3], [7, 9]),
            ((OTHER, PARENT), [3], [7, 8, 9]),
            (("--kind", "goal_changed"), [1, 3, 5], [7, 9]),
            (("--kind", "goal_changed", "--kind", "compacted"), [1, 2, 3, 4, 5], [6, 7, 8, 9]),
            (("--actor", "human"), [1, 3, 5], [7, 9]),
            (("--actor", "human:telegram:2"), [5], [9]),
            (("--agent", "work"), [3], [7, 9]),
            (("--run", "run-5"), [5], [8]),
            ((OTHER, "--kind", "goal_changed", "--actor", "human:telegram:2"), [], [9]),
        ],
    )
    def test_filters_hold_for_old_and_new_events(
        self, five: Cli, log: SignalLog, chosen: tuple[str, ...], old: list[int], new: list[int]
    ) -> None:
        log.watch("agent:main:other", PARENT)
        with Following(five, *TAIL, *chosen, *HEARTBEAT, "--count", len(old) + len(new)) as follower:
            assert sequences([follower.row() for _ in old]) == old
            note(log)
            goal(log, key=OTHER)
            note(log, key=PARENT, run_id="run-5")
            goal(log, key=OTHER, actor_id="telegram:2")
            assert sequences([follower.row() for _ in new]) == new
            follower.end(status=0)

    def test_an_unknown_session_is_refused_with_close_spellings(self, five: Cli) -> None:
        done = follow(five, *TAIL, CHILD + "x", status=4)
        assert last_error(done)["similar"] == [CHILD]

    def test_a_session_that_only_a_watch_names_is_waited_for(self, five: Cli, log: SignalLog) -> None:
        log.watch(PARENT, "agent:main:subagent:later")
        with Following(five, *TAIL, "agent:main:subagent:later", *HEARTBEAT, "--count", 1) as follower:
            follower.settle()
            goal(log)
            goal(log, key="agent:main:subagent:later")
            assert follower.row()["sequence"] == 7
            follower.end(status=0)

    def test_a_burst_larger_than_a_batch_comes_whole_and_in_order(self, five: Cli, log: SignalLog) -> None:
        with Following(five, *TAIL, "-n", 1, "--count", 1201) as follower:
            assert follower.row()["sequence"] == 5
            for _ in range(1200):
                note(log)
            assert sequences([follower.row() for _ in range(1200)]) == list(range(6, 1206))
            follower.end(status=0)


class TestStart:
    @pytest.mark.parametrize(
        ("options", "expected"),
        [
            (("-n", 2), [4, 5]),
            (("-n", 0), []),
            (("-n", "all"), [1, 2, 3, 4, 5]),
            (("-n", 2, "--kind", "goal_changed"), [3, 5]),
            (("-n", 9, "--kind", "goal_changed"), [1, 3, 5]),
            (("--since", 3), [4, 5]),
            (("--since", 0), [1, 2, 3, 4, 5]),
            (("--since", 5), []),
            (("--since", 1, "-n", 2), [4, 5]),
            (("--since", 4, "-n", 3), [5]),
            (("--since", "24h"), [1, 2, 3, 4, 5]),
            (("--since", "now"), []),
            ((), [1, 2, 3, 4, 5]),
        ],
    )
    def test_it_begins_where_it_was_told(
        self, five: Cli, options: tuple[object, ...], expected: list[int]
    ) -> None:
        done = follow(five, *TAIL, *options, "--timeout", 0, status=124)
        assert sequences(done.rows[:-1]) == expected
        assert last_error(done)["hint"] == "stopped after 5; go on with --since 5"

    def test_the_newest_ten_come_first(self, five: Cli, log: SignalLog) -> None:
        for _ in range(7):
            note(log)
        assert sequences(follow(five, *TAIL, "--count", 10).rows) == list(range(3, 13))

    def test_since_a_time_leaves_out_what_is_older(self, five: Cli, log: SignalLog, clock: Clock) -> None:
        five.now = clock.now = T + 2 * DAY
        goal(log)
        assert sequences(follow(five, *TAIL, "--since", "24h", "--timeout", 0, status=124).rows[:-1]) == [6]

    def test_events_gone_before_a_start_without_a_position_are_no_gap(
        self, five: Cli, log: SignalLog
    ) -> None:
        log.prune(Limits(max_rows=2))
        for start in ((), ("-n", 4), ("--since", 0), ("--since", "24h")):
            assert sequences(follow(five, *TAIL, *start, "--count", 2).rows) == [4, 5]

    def test_it_says_how_it_notices_changes(self, five: Cli) -> None:
        done = follow(five, "tail", "-f", "-v", "--timeout", 0, status=124)
        assert f"database: {five.path} (chosen by OPENCLAW_STATE_DB)\n" in done.err
        assert "following by " in done.err


class TestEnd:
    @pytest.mark.parametrize(("until", "expected"), [(3, [1, 2, 3]), (5, [1, 2, 3, 4, 5])])
    def test_until_a_sequence_that_is_there_ends_at_once(
        self, five: Cli, until: int, expected: list[int]
    ) -> None:
        assert sequences(follow(five, *TAIL, "--since", 0, "--until", until).rows) == expected

    def test_until_a_sequence_to_come_waits_for_it(self, five: Cli, log: SignalLog) -> None:
        with Following(five, *TAIL, "--since", 4, "--until", 7) as follower:
            assert follower.row()["sequence"] == 5
            for _ in range(3):
                goal(log)
            assert sequences(follower.end(status=0).rows) == [5, 6, 7]

    def test_until_a_sequence_ends_also_when_that_event_does_not_match(
        self, five: Cli, log: SignalLog
    ) -> None:
        with Following(five, *TAIL, "--since", 4, "--until", 7, "--kind", "goal_changed") as follower:
            assert follower.row()["sequence"] == 5
            for _ in range(3):
                note(log)
            assert sequences(follower.end(status=0).rows) == [5]

    def test_until_an_instant_ends_by_itself_when_it_has_come(self, five: Cli) -> None:
        soon = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
        with Following(five, *TAIL, "--until", soon, env={"OPENCLAW_STATE_NOW": ""}) as follower:
            assert follower.end(status=0).rows == []

    def test_until_an_instant_that_has_passed_ends_at_once(self, five: Cli) -> None:
        assert sequences(follow(five, *TAIL, "--until", "now").rows) == [1, 2, 3, 4, 5]
        assert follow(five, *TAIL, "--until", "1s").rows == []

    def test_a_count_ends_it(self, five: Cli, log: SignalLog) -> None:
        assert sequences(follow(five, *TAIL, "--since", 0, "--count", 2).rows) == [1, 2]
        with Following(five, *TAIL, "-n", 1, "--count", 3) as follower:
            assert follower.row()["sequence"] == 5
            for _ in range(4):
                goal(log)
            assert sequences(follower.end(status=0).rows) == [5, 6, 7]

    def test_a_timeout_says_where_it_stopped(self, five: Cli) -> None:
        done = follow(five, "tail", "-f", "--since", 3, "--timeout", "50ms", status=124)
        assert done.err == (
            "error: nothing more came within 50ms\n  next: stopped after 5; go on with --since 5\n"
        )

    def test_a_timeout_holds_also_while_events_keep_coming(self, five: Cli, log: SignalLog) -> None:
        with Following(five, *TAIL, "--timeout", "300ms") as follower:
            end = time.monotonic() + 15
            while follower.is_running() and time.monotonic() < end:
                goal(log)
                follower.pump()
            assert not follower.is_running()
            assert last_error(follower.end(status=124))["code"] == "timed_out"

    @pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
    def test_a_signal_says_where_it_stopped(self, five: Cli, number: signal.Signals) -> None:
        with Following(five, *TAIL, "-n", 1) as follower:
            follower.row()
            assert follower.end(number).err == "stopped after 5; go on with --since 5\n"

    def test_a_sequence_ahead_of_the_log_is_an_error(self, five: Cli) -> None:
        error = last_error(follow(five, *TAIL, "--since", 9, status=5))
        assert (error["requested"], error["head"]) == (9, 5)


class TestForms:
    def test_json_means_json_lines(self, five: Cli) -> None:
        rows = five.process("tail", "-f", "--json", "--count", 5).rows
        assert sequences(rows) == [1, 2, 3, 4, 5]
        for row in rows:
            check_row("tail", row)

    def test_text_is_that_of_tail(self, five: Cli) -> None:
        assert follow(five, "tail", "-f", "--count", 5).out == five("tail").out

    def test_tab_separated_lines_have_one_head(self, five: Cli, log: SignalLog) -> None:
        with Following(five, "tail", "-f", "--fields", "sequence,kind", "-n", 1, "--count", 2) as follower:
            assert [follower.line(), follower.line()] == ["sequence\tkind", "5\tgoal_changed"]
            note(log)
            assert follower.line() == "6\tcompacted"
            follower.end(status=0)
        assert follow(five, "tail", "-f", "--format", "tsv", "--count", 2).cells[0][:2] == [
            "sequence",
            "sessionKey",
        ]

    def test_fields_cut_json_lines(self, five: Cli) -> None:
        assert follow(five, *TAIL, "--fields", "kind,sequence", "--since", 4, "--count", 1).out == (
            '{"kind":"goal_changed","sequence":5}\n'
        )

    def test_a_heartbeat_tells_the_head_after_each_silence(self, five: Cli, log: SignalLog) -> None:
        with Following(five, *TAIL, *HEARTBEAT, "--since", 5) as follower:
            assert follower.record() == {"type": "heartbeat", "at": T, "newestSequence": 5}
            assert follower.record() == {"type": "heartbeat", "at": T, "newestSequence": 5}
            goal(log)
            assert follower.row()["sequence"] == 6
            assert follower.record()["newestSequence"] == 6

    def test_a_heartbeat_tells_of_events_that_do_not_match(self, five: Cli, log: SignalLog) -> None:
        with Following(five, *TAIL, *HEARTBEAT, "--kind", "adopted") as follower:
            follower.settle()
            goal(log)
            while follower.record()["newestSequence"] != 6:
                pass
            assert follower.end(signal.SIGTERM).err == "stopped after 6; go on with --since 6\n"

    def test_a_heartbeat_as_text(self, five: Cli) -> None:
        with Following(five, "tail", "-f", "--utc", "--since", 5, "--heartbeat", "10ms") as follower:
            assert follower.line() == "-- 08:00:00  head 5"

    def test_a_heartbeat_has_no_place_among_tab_separated_lines(self, five: Cli) -> None:
        done = follow(
            five, "tail", "-f", "--fields", "kind", "--since", 5, *HEARTBEAT, "--timeout", "80ms", status=124
        )
        assert done.out == "kind\n"

    def test_quiet_prints_nothing(self, five: Cli) -> None:
        done = follow(five, "tail", "-f", "-q", "--count", 5)
        assert (done.out, done.err) == ("", "")

    def test_text_of_others_is_escaped_for_people(self, cli: Cli, log: SignalLog) -> None:
        log.record(CHILD, "goal_changed", actor_type="human", summary="red \x1b[31m\u202e")
        shown = follow(cli, "tail", "-f", "--count", 1).out
        assert "\x1b" not in shown
        assert "\u202e" not in shown


@pytest.mark.parametrize(
    "wrong",
    [
        ("-f", "--timeout", "soon"),
        ("-f", "--heartbeat", "5"),
        ("-f", "--heartbeat", "0"),
        ("-f", "--on-gap", "ignore"),
        ("-f", "--count", "0"),
        ("-f", "-n", "x"),
        ("-f", "--exec-retry", "1"),
        ("-f", "--exec-timeout", "1s"),
        ("-f", "--exec", "true", "--exec-timeout", "x"),
        ("-f", "--since", "x"),
        ("-f", "--fields", "nothing"),
        ("-f", "--position", "a", "--position-file", "b"),
        ("--heartbeat", "5s"),
        ("--on-gap", "skip"),
        ("--exec", "true"),
        ("--count", "1"),
        ("--timeout", "1s"),
    ],
)
@pytest.mark.parametrize("form", ["text", "tsv", "jsonl"])
def test_what_cannot_mean_anything_is_refused_before_anything_is_printed(
    five: Cli, wrong: tuple[str, ...], form: str
) -> None:
    run = partial(follow, five) if "-f" in wrong else five
    done = run("tail", *wrong, "--format", form, status=2)
    if form == "jsonl":
        assert last_error(done)["code"] == "usage"
        assert len(done.rows) == 1
    else:
        assert done.out == ""


def test_its_own_file_is_waited_for(cli: Cli, home: os.PathLike[str]) -> None:
    env = {"OPENCLAW_STATE_DB": "", "XDG_DATA_HOME": str(home)}
    with Following(cli, *TAIL, CHILD, "--count", 1, env=env) as follower:
        follower.note("to be created")
        cli.process("record", CHILD, "--kind", "goal_changed", env=env)
        assert sequences(follower.end(status=0).rows) == [1]
