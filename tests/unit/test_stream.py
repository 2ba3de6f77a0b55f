"""Waiting between the parts of a stream: what is waited out, and what ends it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from openclaw_state.cli import stream
from openclaw_state.cli.options import Call
from openclaw_state.cli.stream import Vigil
from openclaw_state.cli.terminal import Terminal
from openclaw_state.errors import AccessError, BadDatabaseError, BusyError, StateError, TimedOutError
from tests.cli.harness import Stream


def vigil_of(**flags: object) -> Vigil:
    return Vigil(Call(Terminal(Stream(), Stream(), Stream(), {}), 0, flags))


def failing(times: int, error: StateError) -> Iterator[StateError | None]:
    for _ in range(times):
        yield error
    while True:
        yield None


@pytest.fixture(autouse=True)
def hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stream, "_BUSY_PAUSE_S", 0.001)
    monkeypatch.setattr(stream, "_PASSING_PAUSE_S", 0.001)
    monkeypatch.setattr(stream, "_PASSING_S", 0.05)


@pytest.mark.parametrize("error", [BusyError("b"), AccessError("a"), BadDatabaseError("d")])
def test_what_may_be_passing_is_waited_out(error: StateError) -> None:
    answers = failing(3, error)

    def look() -> str:
        if failure := next(answers):
            raise failure
        return "seen"

    with vigil_of() as vigil:
        assert vigil.patiently(look) == "seen"


@pytest.mark.parametrize("error", [AccessError("a"), BadDatabaseError("d")])
def test_what_lasts_is_an_error(error: StateError) -> None:
    def look() -> None:
        raise error

    with vigil_of() as vigil, pytest.raises(type(error)):
        vigil.patiently(look)


def test_a_lock_is_waited_for_until_the_timeout() -> None:
    def look() -> None:
        raise BusyError("b")

    with vigil_of(timeout="100ms") as vigil, pytest.raises(TimedOutError):
        vigil.patiently(look)
