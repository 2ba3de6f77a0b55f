"""tail --position and --position-file: where a reader goes on, and what retention did meanwhile."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from openclaw_state import Limits, SignalLog
from tests.cli.conftest import OTHER
from tests.cli.harness import Cli
from tests.following import HEARTBEAT, Following, eventually, follow, last_error, sequences
from tests.support import CHILD, Clock, goal, needs_permissions, note

JSON = ("--format", "jsonl")
TAIL = ("tail", "-f", *JSON)


@pytest.fixture
def three(cli: Cli, log: SignalLog) -> Cli:
    """Three events of the child."""
    for _ in range(3):
        goal(log)
    return cli


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where a position is to be kept; nothing is there yet."""
    return tmp_path / "position"


@pytest.fixture(params=["name", "file"])
def kept(request: pytest.FixtureRequest, file: Path) -> tuple[str, ...]:
    """Both ways to keep a position."""
    return ("--position", "reader") if request.param == "name" else ("--position-file", str(file))


def news(cli: Cli, *argv: object, **options: object) -> list[int]:
    """What is new for a reader, taken without waiting."""
    return sequences(cli("tail", *JSON, *argv, **options).rows)  # type: ignore[arg-type]


class TestGoingOn:
    def test_an_absent_position_is_the_head_and_kept_at_once(
        self, three: Cli, log: SignalLog, kept: tuple[str, ...]
    ) -> None:
        assert news(three, *kept) == []
        goal(log)
        assert news(three, *kept) == [4]
        assert news(three, *kept) == []

    @pytest.mark.parametrize(
        ("start", "expected"), [(("-n", 2), [2, 3]), (("--since", 1), [2, 3]), (("--since", 0), [1, 2, 3])]
    )
    def test_older_events_come_first_where_that_is_asked_for(
        self,
        three: Cli,
        log: SignalLog,
        kept: tuple[str, ...],
        start: tuple[object, ...],
        expected: list[int],
    ) -> None:
        assert news(three, *kept, *start) == expected
        goal(log)
        assert news(three, *kept, *start) == [4], "the position goes before"

    def test_a_first_look_that_finds_nothing_keeps_its_place(
        self, cli: Cli, log: SignalLog, kept: tuple[str, ...]
    ) -> None:
        assert news(cli, *kept, "--since", 0) == []
        goal(log)
        assert news(cli, *kept) == [1]

    def test_a_sequence_given_as_well_is_not_gone_behind(
        self, three: Cli, log: SignalLog, kept: tuple[str, ...]
    ) -> None:
        assert news(three, *kept, "-n", "all", "--until", 1) == [1]
        assert news(three, *kept, "--since", 2) == [3]

    def test_the_first_match_after_the_position_is_printed_also_behind_many_others(
        self, three: Cli, log: SignalLog, kept: tuple[str, ...]
    ) -> None:
        """A25"""
        rare = (*kept, "--kind", "adopted")
        assert news(three, *rare) == []
        for _ in range(700):
            note(log)
        log.record(CHILD, "adopted", actor_type="system", summary="adopted")
        assert news(three, *rare) == [704]

    def test_a_rare_filter_does_not_fall_behind_retention(
        self, three: Cli, log: SignalLog, kept: tuple[str, ...]
    ) -> None:
        rare = (*kept, "--kind", "adopted")
        news(three, *rare)
        for _ in range(5):
            goal(log)
        assert news(three, *rare) == []
        log.prune(Limits(max_rows=0))
        log.record(CHILD, "adopted", actor_type="system", summary="adopted")
        assert news(three, *rare) == [9]

    def test_a_count_keeps_the_place_behind_the_last_one_printed(
        self, three: Cli, kept: tuple[str, ...]
    ) -> None:
        assert news(three, *kept, "--since", 0, "--count", 2) == [1, 2]
        assert news(three, *kept) == [3]

    def test_a_bound_keeps_what_lies_behind_it(self, three: Cli, kept: tuple[str, ...]) -> None:
        assert news(three, *kept, "--since", 0, "--until", 2, "--kind", "adopted", "--count", 9) == []
        assert news(three, *kept) == [3]

    def test_a_follower_goes_on_where_it_was_ended(
        self, three: Cli, log: SignalLog, kept: tuple[str, ...]
    ) -> None:
        with Following(three, *TAIL, *kept, "-n", 1) as follower:
            assert follower.row()["sequence"] == 3
            goal(log)
            assert follower.row()["sequence"] == 4
            assert follower.end(signal.SIGTERM).err == f"stopped after 4; go on with {' '.join(kept)}\n"
        goal(log)
        assert sequences(follow(three, *TAIL, *kept, "--count", 1).rows) == [5]

    def test_killed_it_repeats_at_most_what_it_had_not_kept(
        self, three: Cli, log: SignalLog, kept: tuple[str, ...]
    ) -> None:
        with Following(three, *TAIL, *kept, "-n", 1) as follower:
            follower.row()
            goal(log)
            follower.row()
            follower.end(signal.SIGKILL)
        goal(log)
        assert news(three, *kept) in ([5], [4, 5], [3, 4, 5])

    def test_names_and_databases_do_not_mix(self, three: Cli, log: SignalLog, tmp_path: Path) -> None:
        other = tmp_path / "other.sqlite"
        with SignalLog(other, change=True, create=True, clock=Clock()) as second:
            goal(second)
            for path in (three.path, other):
                news(three, "--position", "one", path=path)
            news(three, "--position", "two", "-n", 2)
            goal(log)
            goal(second)
            assert news(three, "--position", "one", path=other) == [2]
            assert news(three, "--position", "one") == [4]
            assert news(three, "--position", "two") == [4]

    def test_a_name_of_notices_is_another_one(self, three: Cli, log: SignalLog) -> None:
        log.watch("agent:work:main", CHILD)
        goal(log)
        follow(three, "notices", "-f", "--position", "same", "--count", 1)
        assert news(three, "--position", "same") == []
        goal(log)
        assert news(three, "--position", "same") == [5]

    def test_the_same_database_by_a_symbolic_link_has_the_same_position(
        self, three: Cli, log: SignalLog, tmp_path: Path
    ) -> None:
        link = tmp_path / "link.sqlite"
        link.symlink_to(three.path)
        news(three, "--position", "one")
        goal(log)
        assert news(three, "--position", "one", path=link) == [4]


class TestFile:
    def test_it_is_private_and_holds_the_sequence_alone(self, three: Cli, file: Path) -> None:
        news(three, "--position-file", file)
        assert file.read_text("ascii") == "3\n"
        assert file.stat().st_mode & 0o777 == 0o600

    def test_it_is_replaced_as_a_whole(self, three: Cli, log: SignalLog, file: Path) -> None:
        file.write_text("1\n")
        with file.open() as before:
            assert news(three, "--position-file", file) == [2, 3]
            assert before.read() == "1\n"
        assert file.read_text() == "3\n"
        assert [path for path in file.parent.iterdir() if path.name.endswith(".new")] == []

    def test_a_symbolic_link_stays_one(self, three: Cli, file: Path, tmp_path: Path) -> None:
        target = tmp_path / "elsewhere" / "position"
        target.parent.mkdir()
        file.symlink_to(target)
        news(three, "--position-file", file)
        assert (target.read_text(), file.is_symlink()) == ("3\n", True)
        target.write_text("2\n")
        assert news(three, "--position-file", file) == [3]
        assert (target.read_text(), file.is_symlink()) == ("3\n", True)

    def test_it_keeps_up_with_events_that_do_not_match(self, three: Cli, log: SignalLog, file: Path) -> None:
        with Following(three, *TAIL, "--position-file", file, "--kind", "adopted", *HEARTBEAT) as follower:
            follower.settle()
            goal(log)
            eventually(lambda: file.read_text() == "4\n", "the position moves")

    @pytest.mark.parametrize(
        ("content", "what"),
        [
            (b"", "is empty"),
            (b"\n", "is empty"),
            (b"four\n", "holds 'four'"),
            (b"-1\n", "holds '-1'"),
            (b"+1\n", "holds '+1'"),
            (b"1.0\n", "holds '1.0'"),
            (b"1 2\n", "holds '1 2'"),
            (b"9007199254740992\n", "holds '9007199254740992'"),
            (b"9" * 5000, "holds '99999999999999999999'"),
            ("٣".encode(), "holds "),
            (b"\x00\xff\x1b[31m", "holds "),
        ],
    )
    @pytest.mark.parametrize("form", ["text", "tsv", "jsonl"])
    def test_anything_but_a_sequence_is_refused_before_anything_is_printed(
        self, three: Cli, file: Path, content: bytes, what: str, form: str
    ) -> None:
        """A25"""
        file.write_bytes(content)
        done = follow(three, "tail", "-f", "--position-file", file, "--format", form, status=2)
        assert f"{file} {what}" in done.err
        assert "\x1b" not in done.err
        assert (len(done.rows) == 1) if form == "jsonl" else (done.out == "")
        assert file.read_bytes() == content

    def test_a_folder_is_refused(self, three: Cli, tmp_path: Path) -> None:
        done = follow(three, "tail", "-f", "--position-file", tmp_path, status=2)
        assert f"{tmp_path} is not a file" in done.err

    def test_a_pipe_is_refused_and_not_waited_for(self, three: Cli, file: Path) -> None:
        os.mkfifo(file)
        done = follow(three, "tail", "-f", "--position-file", file, status=2)
        assert f"{file} is not a file" in done.err

    @needs_permissions
    def test_an_unreadable_file_is_77(self, three: Cli, file: Path) -> None:
        file.write_text("1\n")
        file.chmod(0)
        assert follow(three, "tail", "-f", "--position-file", file, status=77).out == ""

    def test_a_place_that_does_not_exist_is_told(self, three: Cli, tmp_path: Path) -> None:
        done = follow(three, "tail", "-f", "--position-file", tmp_path / "no" / "position", status=74)
        assert "could not be saved" in done.err
        assert done.out == ""


class TestGap:
    """Retention overtook a position."""

    @pytest.fixture
    def torn(self, three: Cli, log: SignalLog, kept: tuple[str, ...]) -> Cli:
        """Read up to 3; the child's 4 and 5 are gone, 6 of the other session and 7 are there."""
        news(three, *kept)
        goal(log)
        goal(log)
        goal(log, key=OTHER)
        goal(log)
        log.prune(Limits(max_rows=2))
        return three

    def test_it_fails_with_the_position_unmoved(self, torn: Cli, kept: tuple[str, ...]) -> None:
        for _ in range(2):
            done = follow(torn, *TAIL, *kept, status=3)
            error = last_error(done)
            assert (error["code"], error["position"], len(done.rows)) == ("history_gap", 3, 1)
            assert error["gaps"] == [
                {"sessionKey": CHILD, "agentId": "main", "prunedMaxSequence": 5, "stateVersion": 7}
            ]
            assert f"events after 3 are gone for {CHILD}" in done.err

    def test_its_hint_leads_out(self, torn: Cli, kept: tuple[str, ...]) -> None:
        assert "go on with --since 5" in follow(torn, *TAIL, *kept, status=3).err
        assert news(torn, *kept, "--since", 5) == [6, 7]
        assert news(torn, *kept) == []

    def test_snapshot_tells_of_it_and_goes_on(self, torn: Cli, kept: tuple[str, ...]) -> None:
        gap, *rows = torn("tail", *JSON, *kept, "--on-gap", "snapshot").rows
        assert gap == {
            "type": "gap",
            "sessionKey": CHILD,
            "agentId": "main",
            "prunedMaxSequence": 5,
            "stateVersion": 7,
        }
        assert sequences(rows) == [6, 7]
        assert news(torn, *kept) == []

    def test_snapshot_as_text(self, torn: Cli, kept: tuple[str, ...]) -> None:
        first, *events = torn("tail", *kept, "--on-gap", "snapshot").out.splitlines()
        assert first == f"-- {CHILD} lost its events up to 5; its version is 7"
        assert len(events) == 2

    def test_snapshot_beside_tab_separated_lines_is_a_note(self, torn: Cli, kept: tuple[str, ...]) -> None:
        done = torn("tail", "--fields", "sequence", *kept, "--on-gap", "snapshot")
        assert (done.out, done.err) == (
            "sequence\n6\n7\n",
            f"gap: {CHILD} lost its events up to 5; its version is 7\n",
        )

    def test_skip_notes_it_and_goes_on(self, torn: Cli, kept: tuple[str, ...]) -> None:
        done = torn("tail", *JSON, *kept, "--on-gap", "skip")
        assert sequences(done.rows) == [6, 7]
        assert done.err == f"gap: {CHILD} lost its events up to 5; its version is 7\n"

    def test_sessions_that_were_not_chosen_have_no_gap(self, torn: Cli, kept: tuple[str, ...]) -> None:
        assert news(torn, *kept, OTHER) == [6]

    def test_agents_that_were_not_chosen_have_no_gap(self, torn: Cli, kept: tuple[str, ...]) -> None:
        assert news(torn, *kept, "--agent", "work") == [6]

    def test_a_position_behind_all_that_is_gone_has_no_gap(
        self, three: Cli, log: SignalLog, kept: tuple[str, ...]
    ) -> None:
        news(three, *kept)
        log.prune(Limits(max_rows=0))
        goal(log)
        assert news(three, *kept) == [4]


@pytest.mark.parametrize(("on_gap", "status"), [("fail", 3), ("snapshot", -15), ("skip", -15)])
def test_a_gap_torn_while_it_follows(three: Cli, log: SignalLog, on_gap: str, status: int) -> None:
    """It is stopped while events come and go, as a machine asleep would stop it."""
    with Following(three, *TAIL, "-n", 1, "--on-gap", on_gap) as follower:
        follower.row()
        follower.send(signal.SIGSTOP)
        for _ in range(10):
            goal(log)
        log.prune(Limits(max_rows=2))
        follower.send(signal.SIGCONT)
        if on_gap == "fail":
            assert last_error(follower.end(status=3))["position"] == 3
            return
        if on_gap == "snapshot":
            assert follower.row()["prunedMaxSequence"] == 11
        assert sequences([follower.row(), follower.row()]) == [12, 13]
        goal(log)
        assert follower.row()["sequence"] == 14
        gaps = follower.end(signal.SIGTERM).err.count("gap: ")
        assert gaps == (on_gap == "skip")


def test_a_position_ahead_of_the_log_is_5_and_stays(three: Cli, file: Path) -> None:
    file.write_text("9\n")
    error = last_error(follow(three, *TAIL, "--position-file", file, status=5))
    assert (error["requested"], error["head"], file.read_text()) == (9, 3, "9\n")
