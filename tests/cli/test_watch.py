"""The live board through a real pseudo-terminal: what it shows, its keys, and how it leaves."""

from __future__ import annotations

import os
import signal
import sqlite3
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli.terminal import Terminal
from tests.cli.conftest import OTHER, StateDir
from tests.cli.harness import Cli, Stream
from tests.following import Following
from tests.support import CHILD, PARENT, Clock, T, change, goal
from tests.terminal import BACKSPACE, DOWN, ENTER, ESCAPE, UP, Board, watch

pytestmark = pytest.mark.skipif(os.name != "posix", reason="there are no pseudo-terminals here")

SIZES = [(60, 15), (100, 30), (250, 80)]
every_size = pytest.mark.parametrize(("columns", "rows"), SIZES, ids=str)
# An escape sequence, a C1 control, line ends, wide characters, marks, a word from right to left,
# and marks that turn the direction of text.
HOSTILE = "\x1b[2J\x1b]0;x\x07\x9b1m\r\n日本語e\u0301\u0301ที่שלום\u202e\u2066"


@pytest.fixture
def board(story: Cli) -> Iterator[Board]:
    """The board of the story, drawn."""
    with watch(story.environ()) as board:
        board.until("? help")
        yield board


@every_size
def test_the_board_shows_the_story_at_every_size(story: Cli, columns: int, rows: int) -> None:
    story.now += 96_000
    with watch(story.environ(), columns=columns, rows=rows) as board:
        board.until("? help")
        page = board.page
        for words in ("SESSION", "VERSION", "BEHIND", "LAG", "WATCHER", "AGE", "WAKE", "SEQUENCE", "ACTOR"):
            assert words in page
        assert "1 m 36 s" in page
        assert "immediate" in page
        assert "1/2" in page
        assert "2 sessions · 1 notice pending · newest 4" in page
        assert "(OPENCLAW_STATE_DB)   gateway none" in page
        assert len(board.lines) == rows
        assert board.lines[-1] == "q quit  p pause  ↑↓ select  Enter events  / filter  ? help"


def test_a_change_by_another_process_appears(board: Board, log: SignalLog) -> None:
    goal(log, "agent:main:new")
    board.until("3 sessions")
    assert "agent:main:new" in board.lines[1]


def test_keys_limit_the_board_to_what_concerns_their_sessions(story: Cli, log: SignalLog) -> None:
    with watch(story.environ(), PARENT) as board:
        board.until("1 session · 1 notice pending")
        assert "session compacted" in board.page
        assert "goal updated" not in board.page
    with watch(story.environ(), OTHER, PARENT) as board:
        goal(log)
        board.until("1 session · 2 notices pending")


def test_a_key_that_nothing_has_ends_before_anything_is_drawn(story: Cli) -> None:
    with watch(story.environ(), "agent:main:subagent:chidl") as board:
        assert board.end() == 4
        assert f"did you mean {CHILD}" in board.raw.replace("\r\n", "")
        assert "\x1b" not in board.raw


def test_arrows_select_and_enter_opens_the_events_of_a_session(board: Board) -> None:
    board.send(DOWN)
    board.until(f"> {PARENT}")
    board.send(DOWN)
    board.until(f"> {CHILD}")
    board.send(UP)
    board.until(f"> {PARENT}")
    board.send(DOWN, ENTER)
    board.until("version 3, 1 of 2 watchers behind, 3 events, retained from 1")
    assert "telegram:42" in board.page
    assert "session compacted" not in board.page
    board.send(ESCAPE)
    board.until(f"> {CHILD}")


def test_the_mark_stays_on_its_session(board: Board, log: SignalLog) -> None:
    board.send(DOWN)
    board.until(f"> {PARENT}")
    goal(log)
    board.until("newest 5")
    assert board.lines[1].startswith(f"  {CHILD}")
    assert board.lines[2].startswith(f"> {PARENT}")


def test_a_filter_narrows_the_board_while_it_is_typed(board: Board) -> None:
    board.send("/", "S", "U", "B", "x", BACKSPACE)
    board.until("/SUB_ ")
    board.until("1 session ·")
    board.send(ENTER)
    board.until("filter SUB")
    board.send(ESCAPE)
    board.until("2 sessions ·")


def test_a_filter_that_nothing_matches_says_so(board: Board) -> None:
    board.send("/", "x", "y", "z")
    board.until("no session's key contains that")


def test_keys_typed_ahead_mean_what_the_keys_before_them_lead_to(board: Board) -> None:
    board.send("".join(["/", "sub", ENTER, DOWN, ENTER]))
    board.until("version 3, 1 of 2 watchers behind")
    assert CHILD in board.lines[0]
    board.send("".join([ESCAPE, ESCAPE, "\x1b[F", ENTER]))
    board.until("2 sessions ·")
    assert "version 3, 1 of 2 watchers behind" in board.page


def test_pause_lets_the_picture_stand_still(board: Board, log: SignalLog) -> None:
    board.send("p")
    board.until("paused ·")
    goal(log, "agent:main:new")
    board.send(DOWN, ENTER)
    board.until("version 4")
    assert "agent:main:new" not in board.page
    assert "newest 4" in board.page
    board.send(ESCAPE, "p")
    board.until("newest 5")
    assert "agent:main:new" in board.page


def test_help_covers_the_board_and_any_key_takes_it_away(board: Board) -> None:
    board.send("?")
    board.until("any key back")
    assert "select a session" in board.page
    board.send(" ")
    board.until("q quit  p pause")


def test_q_leaves_with_0_and_the_terminal_as_it_was(story: Cli) -> None:
    with watch(story.environ()) as board:
        before = board.modes
        board.until("? help")
        assert board.modes != before
        board.send("q")
        assert board.end() == 0
        assert board.given_back()
        assert board.modes == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_a_signal_ends_the_board_and_the_terminal_is_as_it_was(story: Cli, number: signal.Signals) -> None:
    with watch(story.environ()) as board:
        before = board.modes
        board.until("? help")
        board.kill(number)
        assert board.end() == -number
        assert board.given_back()
        assert board.modes == before


def test_control_c_is_the_signal(board: Board) -> None:
    board.send("\x03")
    assert board.end() == -signal.SIGINT
    assert board.given_back()


def test_a_signal_that_the_caller_ignores_stays_ignored(story: Cli) -> None:
    script = f"trap '' HUP; exec {sys.executable} -m openclaw_state watch"
    with Board(["sh", "-c", script], story.environ()) as board:
        board.until("? help")
        board.kill(signal.SIGHUP)
        board.send("?")
        board.until("any key back")


def test_control_z_gives_the_terminal_to_the_shell_and_back(story: Cli, log: SignalLog) -> None:
    """Under a shell with job control, which prints when it goes on."""
    script = f"{sys.executable} -m openclaw_state watch; echo stopped; read go; fg; echo ended $?"
    with Board(["sh", "-mc", script], story.environ()) as board:
        before = board.modes
        board.until("? help")
        board.send("\x1a")
        board.until(lambda: "stopped\r\n" in board.raw)
        assert board.given_back()
        assert board.modes == before
        goal(log, "agent:main:new")
        board.send("\n")
        board.until("3 sessions")
        assert board.modes != before
        board.send("q")
        assert board.end() == 0
        assert "ended 0" in board.raw
        assert board.given_back()
        assert board.modes == before


def test_a_stop_that_cannot_be_caught_is_painted_over_when_it_ends(board: Board) -> None:
    board.until_settled()
    board.kill(signal.SIGSTOP)
    length = len(board.raw)
    board.kill(signal.SIGCONT)
    board.until(lambda: "\x1b[H\x1b[2J" in board.raw[length:])
    board.send("?")
    board.until("any key back")


def test_another_size_is_drawn_anew(board: Board) -> None:
    for columns, rows in [*SIZES, (20, 5), (100, 30)]:
        board.resize(columns, rows)
        board.until(lambda: board.lines[-1].startswith("q quit"))
        assert len(board.lines) == rows
    assert "2 sessions" in board.page


def test_a_terminal_without_a_size_is_taken_as_the_environment_says(story: Cli) -> None:
    env = {**story.environ(), "COLUMNS": "70", "LINES": "18"}
    with watch(env, columns=100, rows=30) as board:
        board.until("? help")
        board.process.setwinsize(0, 0)
        board.until(lambda: board.raw.rfind("\x1b[18;1H") > board.raw.rfind("\x1b[30;1H"))


@pytest.fixture
def hostile(cli: Cli, log: SignalLog) -> Cli:
    """A session, a watcher and events with text as another program may store it."""
    goal(log)
    with closing(sqlite3.connect(cli.path)) as connection, connection:
        key = f"agent:main:{HOSTILE}"
        connection.execute(
            "INSERT INTO session_state_events (sequence, session_key, agent_id, kind, actor_type, actor_id,"
            " run_id, occurred_at, summary) VALUES (9, ?1, ?2, ?2, ?2, ?2, ?2, ?3, ?2)",
            (key, HOSTILE, T),
        )
        connection.execute("INSERT INTO session_state_heads VALUES (?, ?, 9, 0, ?)", (key, HOSTILE, T))
        connection.execute(
            "INSERT INTO session_watch_cursors VALUES (?1, ?1, ?2, 0, 9, 9, 'explicit', ?3)",
            (f"agent:main:{HOSTILE}2", key, T),
        )
    return cli


@every_size
def test_hostile_text_shifts_no_column_and_reaches_no_terminal(hostile: Cli, columns: int, rows: int) -> None:
    with watch(hostile.environ(), columns=columns, rows=rows) as board:
        board.until("? help")
        assert board.lines[0].startswith("  SESSION")
        # Numbers end below the end of their head, whatever stands before them.
        end = board.lines[0].index("VERSION") + len("VERSION") - 1
        assert [board.cells[row][end].data for row in (1, 2)] == ["9", "1"]
        assert board.lines[-1] == "q quit  p pause  ↑↓ select  Enter events  / filter  ? help"
        assert not {"\x07", "\x9b", "\u202e", "\u2066"} & set(board.raw)
        assert "\x1b]0;" not in board.raw
        board.send(DOWN, ENTER)
        board.until("version 9")
        assert board.lines[1].startswith("  SEQUENCE")
        assert not {"\x07", "\x9b", "\u202e", "\u2066"} & set(board.raw)


@pytest.mark.parametrize(
    ("more", "argv", "coloured"),
    [
        ({}, (), True),
        ({"NO_COLOR": "1"}, (), False),
        ({}, ("--color", "never"), False),
        ({"NO_COLOR": "1"}, ("--color", "always"), True),
    ],
    ids=["colours", "NO_COLOR", "--color never", "--color always"],
)
def test_colours_follow_the_wishes_of_the_person(
    story: Cli, more: dict[str, str], argv: tuple[str, ...], coloured: bool
) -> None:
    with watch({**story.environ(), **more}, *argv) as board:
        board.until("? help")
        colours = {cell.fg for line in board.cells for cell in line}
        assert ("cyan" in colours) is coloured
        assert ("\x1b[1m" in board.raw) is coloured
        if not coloured:
            assert colours == {"default"}


def test_actors_have_their_colours(board: Board) -> None:
    found = {
        "".join(cell.data for cell in line if cell.fg == colour).strip()
        for line in board.cells
        for colour in ("cyan", "magenta")
    }
    assert {"human", "agent"} <= found


def test_the_board_waits_for_the_tools_own_file(home: Path) -> None:
    env = {**os.environ, "OPENCLAW_STATE_NOW": str(T), "XDG_DATA_HOME": str(home / "data")}
    with watch(env) as board:
        board.until("waiting for the tool's own database")
        assert "~/data/openclaw-state/openclaw.sqlite (embedded)" in board.page
        with SignalLog(
            home / "data" / "openclaw-state" / "openclaw.sqlite", change=True, create=True, clock=Clock()
        ) as log:
            goal(log)
            board.until("1 session ·")
        board.send("q")
        assert board.end() == 0


def test_any_other_missing_file_is_an_error(tmp_path: Path) -> None:
    with watch(os.environ, "--db", str(tmp_path / "none.sqlite")) as board:
        assert board.end() == 66
        assert "there is no database at" in board.raw
        assert "\x1b" not in board.raw


def test_a_file_replaced_under_the_board_ends_it_with_the_terminal_given_back(
    story: Cli, board: Board
) -> None:
    other = story.path.with_name("other.sqlite")
    SignalLog(other, change=True, create=True).close()
    other.replace(story.path)
    board.send("?", " ")
    assert board.end() == 66
    assert board.given_back()
    said = board.raw[board.raw.rindex("\x1b[?1049l") :]
    assert "was removed or replaced while it was open" in said.replace("\r\n", " ")


def test_a_lock_is_said_and_the_picture_stays(cli: Cli) -> None:
    with SignalLog(cli.path, change=True, create=True, clock=Clock()) as log:
        goal(log)
        goal(log, PARENT)
    change(cli.path, "PRAGMA journal_mode = DELETE")
    with watch(cli.environ()) as board:
        board.until("? help")
        with closing(sqlite3.connect(cli.path, isolation_level=None)) as writer:
            writer.execute("BEGIN EXCLUSIVE")
            board.send("/", "S", "U", "B")
            board.until("locked by another process, trying again")
            assert CHILD in board.page
            writer.execute("ROLLBACK")
        board.until("1 session ·")
        assert "locked by" not in board.page


def test_the_gateway_stands_in_the_foot(state_dir: StateDir) -> None:
    state_dir.start_gateway()
    env = {**os.environ, "OPENCLAW_STATE_NOW": str(T)}
    with watch(env, "--state-dir", str(state_dir.root), columns=160) as board:
        board.until("gateway alive")


def test_standard_input_that_is_no_terminal_leaves_control_c(story: Cli) -> None:
    script = f"{sys.executable} -m openclaw_state watch </dev/null"
    with Board(["sh", "-c", f"exec {script}"], story.environ()) as board:
        board.until("Ctrl-C quit")
        board.send("q\x03")
        assert board.end() == -signal.SIGINT
        assert board.given_back()


@pytest.mark.parametrize(
    ("terminal", "more", "argv"),
    [
        (False, {}, ()),
        (True, {"TERM": "dumb"}, ()),
        (True, {"TERM": ""}, ()),
        (True, {}, ("--json",)),
        (True, {}, ("--fields", "sequence")),
    ],
    ids=["pipe", "TERM=dumb", "no TERM", "--json", "--fields"],
)
def test_without_a_board_events_are_followed_as_lines(
    story: Cli, monkeypatch: pytest.MonkeyPatch, terminal: bool, more: dict[str, str], argv: tuple[str, ...]
) -> None:
    from openclaw_state.cli import follow
    from openclaw_state.cli.options import Call
    from openclaw_state.cli.options import Stream as Endless
    from openclaw_state.cli.run import run

    asked: list[follow.Request] = []

    def note(call: Call, request: follow.Request) -> Endless:
        asked.append(request)
        return Endless("tail", iter(()), ())

    monkeypatch.setattr(follow, "follow", note)
    out, err = Stream(terminal=terminal), Stream(terminal=terminal)
    words = ["watch", CHILD, *argv]
    assert run(words, Terminal(Stream(terminal=terminal), out, err, {**story.environ(), **more})) == 0
    assert [(request.chosen.session_keys, request.goes_on) for request in asked] == [((CHILD,), True)]


def test_in_a_pipe_it_prints_the_newest_events_and_goes_on(story: Cli) -> None:
    with Following(story, "watch", CHILD) as follower:
        follower.line()
        with SignalLog(story.path, change=True) as log:
            goal(log, PARENT)
            newest = goal(log).event
        assert newest is not None
        while not follower.line().startswith(f"{newest.sequence:6}  "):
            pass


def test_a_terminal_that_takes_nothing_more_does_not_keep_a_signal_waiting(story: Cli) -> None:
    with watch(story.environ(), columns=250, rows=80) as board:
        board.until("? help")
        for step in range(60):
            board.process.setwinsize(80, 200 + step)
            time.sleep(0.02)
        board.kill(signal.SIGTERM)
        assert board.end_unread() == -signal.SIGTERM


def test_a_terminal_that_is_gone_ends_the_board(story: Cli) -> None:
    script = f"trap '' HUP; exec {sys.executable} -m openclaw_state watch"
    with Board(["sh", "-c", script], story.environ()) as board:
        board.until("? help")
        board.hang_up()
        assert board.end_unread() == 0
