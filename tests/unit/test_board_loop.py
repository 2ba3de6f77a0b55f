"""The loop of the board on a clock of its own: how often it looks, draws and sleeps."""

from __future__ import annotations

import time
from itertools import pairwise
from typing import Any

import pytest

from openclaw_state.cli import watch
from openclaw_state.cli.options import Call
from openclaw_state.cli.terminal import Terminal
from openclaw_state.model import Glance
from openclaw_state.report.board import Place, Scene, Size, View
from tests.cli.harness import Stream
from tests.support import T


class Time:
    """A monotonic clock that only sleeping moves; seconds."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1_000.0
        monkeypatch.setattr(time, "monotonic", lambda: self.now)
        monkeypatch.setattr(time, "sleep", self.sleep)

    def sleep(self, seconds: float) -> None:
        self.now += seconds


class Screen:
    """Takes frames, and gives these keys, one batch a round; without any more, the terminal goes."""

    has_keys = True
    descriptors: list[int] = []  # noqa: RUF012

    def __init__(self, clock: Time, rounds: list[list[str]]) -> None:
        self.frames: list[tuple[float, str]] = []
        self._clock = clock
        self._rounds = iter(rounds)

    def size(self) -> Size:
        return Size(60, 15)

    def write(self, text: str) -> None:
        self.frames.append((self._clock.now, text))

    def read_keys(self) -> list[str] | None:
        return next(self._rounds, None)

    def attend(self) -> bool:
        return False

    def ours(self) -> Any:
        from contextlib import nullcontext

        return nullcontext()


class Log:
    """A log in which something happens all the time; changing says whether it can be seen."""

    def __init__(self, *, changing: bool) -> None:
        self.looks = 0
        self.last = Glance()
        self._changing = changing

    def look(self, view: View, size: Size) -> None:
        self.looks += 1

    def scene(self, now: int) -> Scene:
        newest = self.looks if self._changing else 1
        return Scene(Glance(total_sessions=1, newest=newest), Place("x", "--db"), now)

    def wait(self, timeout_s: float | None, also: list[int]) -> bool:
        return True

    def patience_s(self, scene: Scene) -> float | None:
        return None


def board(log: Log, screen: Screen) -> watch.Board:
    terminal = Terminal(Stream(), Stream(terminal=True), Stream(), {"OPENCLAW_STATE_NOW": str(T)})
    return watch.Board(log, Call(terminal, T, {}), screen)  # type: ignore[arg-type]


def test_a_busy_log_is_drawn_at_most_ten_times_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Time(monkeypatch)
    screen = Screen(clock, [[]] * 50)
    board(Log(changing=True), screen).run()
    times = [at for at, _ in screen.frames]
    assert len(times) == 51
    assert min(after - before for before, after in pairwise(times)) >= 0.1 - 1e-9


def test_what_looks_the_same_is_not_drawn_again(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(Time(monkeypatch), [[]] * 50)
    log = Log(changing=False)
    board(log, screen).run()
    assert log.looks == 51
    assert len(screen.frames) == 1


def test_many_keys_at_once_are_one_frame(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Screen(Time(monkeypatch), [["/", *"abc"], []])
    board(Log(changing=False), screen).run()
    assert len(screen.frames) == 2
    assert "/abc_" in screen.frames[1][1].replace("\x1b[0m", "").replace("\x1b[1m", "")


def test_a_paused_board_does_not_look(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log(changing=True)
    board(log, Screen(Time(monkeypatch), [["p"], *[[]] * 50])).run()
    assert log.looks == 2
