"""Running a command for each event: what it is given and how often it is tried."""

from __future__ import annotations

import os
from itertools import islice

import pytest

from openclaw_state.cli.hooks import Runner, Task, growing_pauses, in_environment
from openclaw_state.errors import HookError


class Calm:
    """A vigil that nothing ends and that notes how long it was asked to wait (s)."""

    def __init__(self) -> None:
        self.child: int | None = None
        self.pauses: list[float] = []

    def check(self) -> None: ...

    def say(self, words: str) -> None: ...

    def pause(self, seconds: float) -> None:
        self.pauses.append(seconds)


def attempt(
    command: str | list[str], *, retries: int = 0, vigil: Calm | None = None, **environ: str | None
) -> Calm:
    vigil = vigil or Calm()
    Runner(os.environ, retries=retries).run(Task("event 1", command, environ), vigil)  # type: ignore[arg-type]
    return vigil


def test_values_become_variables_and_absent_ones_are_unset() -> None:
    found = in_environment("/a/database", {"SEQUENCE": 7, "RUN_ID": None, "KIND": "a\0b"})
    assert found == {
        "OPENCLAW_STATE_DB": "/a/database",
        "OPENCLAW_STATE_SEQUENCE": "7",
        "OPENCLAW_STATE_RUN_ID": None,
        "OPENCLAW_STATE_KIND": "a\ufffdb",
    }


def test_none_takes_a_variable_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENCLAW_STATE_RUN_ID", "outer")
    attempt('test -z "${OPENCLAW_STATE_RUN_ID+set}"', OPENCLAW_STATE_RUN_ID=None)
    attempt('test "$OPENCLAW_STATE_RUN_ID" = outer')


def test_words_are_not_read_by_a_shell() -> None:
    attempt(["test", "$(false)`;|", "=", "$(false)`;|"])


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("exit 3", "failed with exit status 3"),
        ("kill -TERM $$", "was ended by SIGTERM"),
        (["/no/such/program"], "could not be started: No such file or directory"),
    ],
)
def test_a_failure_is_told_in_words(command: str | list[str], why: str) -> None:
    with pytest.raises(HookError, match=f"the command for event 1 {why}"):
        attempt(command)


def test_a_success_is_not_repeated() -> None:
    assert attempt("true", retries=5).pauses == []


def test_between_two_tries_there_is_a_pause_each_time_twice_as_long_up_to_a_minute() -> None:
    assert list(islice(growing_pauses(), 9)) == [1, 2, 4, 8, 16, 32, 60, 60, 60]


def test_after_the_last_try_it_has_failed() -> None:
    vigil = Calm()
    with pytest.raises(HookError):
        attempt("false", retries=3, vigil=vigil)
    assert vigil.pauses == [1, 2, 4]


@pytest.mark.parametrize("number", [40, 64])
def test_any_signal_that_ended_a_command_can_be_told(number: int) -> None:
    with pytest.raises(HookError, match="was ended by "):
        attempt(f"kill -{number} $$")
