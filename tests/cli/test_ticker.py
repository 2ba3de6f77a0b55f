"""The monitor as a part of another command: asked whether it is due, and refused as the command is."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from openclaw_state.cli.options import Call
from openclaw_state.cli.terminal import Terminal
from openclaw_state.cli.ticker import BesideError, Settings, ticker
from openclaw_state.errors import ConfigurationError
from openclaw_state.results import Verdict
from tests.adopted import Transcript, adopt, person
from tests.cli.conftest import StateDir
from tests.cli.harness import Cli, Stream
from tests.support import T


def call_of(cli: Cli) -> Call:
    return Call(Terminal(Stream(), Stream(), Stream(), cli.environ()), T, {})


def test_it_is_due_at_its_pace_and_a_tick_says_what_it_found(
    cli: Cli, log: SignalLog, tmp_path: Path
) -> None:
    transcript = Transcript(tmp_path / "thread.jsonl")
    adopt(log, transcript.path)
    transcript.add(person("do the report"))
    found = ticker(call_of(cli), log, Settings(every_s=10.0))
    now = time.monotonic()
    assert not found.due(now)
    assert 9 < found.left(now) <= 10
    assert found.due(now + 10)
    tick = found.tick()
    assert [(report.verdict, report.turns) for report in tick.links] == [(Verdict.RECORDED, 1)]
    assert len(tick.notices) == 1
    assert not found.due(time.monotonic() + 4)


def test_it_is_refused_beside_a_gateway_also_one_that_came_later(state_dir: StateDir) -> None:
    cli = Cli(state_dir.path)
    with SignalLog(state_dir.path, change=True) as log:
        found = ticker(call_of(cli), log)
        state_dir.start_gateway()
        with pytest.raises(BesideError):
            found.tick()
        with pytest.raises(BesideError):
            ticker(call_of(cli), log)
        assert ticker(call_of(cli), log, Settings(anyway=True)).tick().links == ()


def test_it_is_refused_on_a_copy_away_from_its_sessions(state_dir: StateDir, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(state_dir.path.read_bytes())
    with SignalLog(copy, change=True) as log, pytest.raises(ConfigurationError):
        ticker(call_of(Cli(copy)), log)
