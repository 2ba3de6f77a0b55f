"""watch --monitor: the upstream monitor beside the board, and beside lines in a pipe."""

from __future__ import annotations

import json
import select
import subprocess
import sys
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli import ticker
from openclaw_state.cli.beside import Beside, Told
from openclaw_state.cli.options import Call
from openclaw_state.cli.terminal import Terminal
from openclaw_state.cli.ticker import BesideError
from openclaw_state.model import Glance
from openclaw_state.report.board import Place, Scene, Size, View, draw
from tests.adopted import ADOPTED, Transcript, adopt, person
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli, Stream, check_row
from tests.following import LIMIT_S
from tests.support import ROOT, T
from tests.terminal import watch

AT_ONCE = """
from openclaw_state.cli import ticker
ticker.FIRST_S = 0.1
from openclaw_state.cli.run import main
main()
"""


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ticker, "FIRST_S", 0.05)


def call_of(cli: Cli) -> Call:
    return Call(Terminal(Stream(), Stream(), Stream(), cli.environ()), T, {"utc": True})


def next_told(beside: Beside) -> Told:
    assert select.select([beside.descriptor], [], [], LIMIT_S)[0], "nothing was told"
    (told,) = beside.take()
    return told


@pytest.mark.usefixtures("soon")
def test_a_tick_is_told_as_a_line_and_as_json(cli: Cli, log: SignalLog, tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "thread.jsonl")
    adopt(log, transcript.path)
    transcript.add(person("do the report"))
    with Beside(call_of(cli)) as beside:
        assert beside.words == "monitor waits"
        told = next_told(beside)
        assert beside.words == told.words == "monitor 08:00:00: 1 link: 1 probed, 1 human turn"
    assert told.record is not None
    check_row("tail", told.record, kind="tick")
    assert [link["verdict"] for link in told.record["links"]] == ["recorded"]
    assert log.version(ADOPTED) == log.newest_sequence()


def test_in_a_pipe_events_and_ticks_are_json_lines(cli: Cli, log: SignalLog, tmp_path: Path) -> None:
    transcript = Transcript(tmp_path / "thread.jsonl")
    adopt(log, transcript.path)
    transcript.add(person("do the report"))
    command = ["timeout", str(LIMIT_S), sys.executable, "-c", AT_ONCE, "watch", "--monitor"]
    with subprocess.Popen(command, cwd=ROOT, env=cli.environ(), stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        records = [json.loads(process.stdout.readline()) for _ in range(2)]
        process.terminate()
    by_type = {record.get("type", "event"): record for record in records}
    assert by_type["event"]["kind"] == "human_direct_message"
    assert by_type["tick"]["summary"]["humanTurns"] == 1


def test_it_is_refused_as_the_monitor_is(state_dir: StateDir) -> None:
    state_dir.start_gateway()
    found = Cli(state_dir.path)("watch", "--monitor", status=9)
    assert "runs its own monitor" in found.err
    assert "watch without --monitor" in found.err


@pytest.mark.usefixtures("soon")
def test_a_gateway_that_comes_later_ends_it(state_dir: StateDir) -> None:
    beside = Beside(call_of(Cli(state_dir.path)))
    state_dir.start_gateway()
    with beside:
        told = next_told(beside)
    assert isinstance(told.ended_by, BesideError)
    assert told.words.startswith("monitor ended: the gateway at pid ")


def test_the_board_says_what_it_found_last(cli: Cli, log: SignalLog) -> None:
    with watch(cli.environ(), "--monitor") as board:
        board.until("monitor waits")
        board.send("q")
        assert board.end() == 0
    scene = Scene(Glance(), Place("x", "--db", monitor="monitor 08:00:00: 1 link: 1 probed"), T)
    for size in (Size(60, 15), Size(100, 30), Size(250, 80)):
        lines = ["".join(span.text for span in line) for line in draw(scene, View(), size)]
        assert any("monitor 08" in line for line in lines)
        assert max(map(len, lines)) <= size.columns
