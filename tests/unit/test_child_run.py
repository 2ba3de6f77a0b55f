"""child_run: a spawn, a block, and an end whose outcome tells what ended it."""

from __future__ import annotations

import asyncio
import concurrent.futures
import subprocess

import pytest

from openclaw_state import Event, SignalLog
from openclaw_state.errors import UsageError
from tests.support import CHILD, PARENT


def last(log: SignalLog) -> Event:
    return list(log.events())[-1]


def test_a_block_that_ends_well_completes_the_run(log: SignalLog) -> None:
    with log.child_run(PARENT, CHILD) as run:
        assert [(event.kind, event.run_id) for event in log.events()] == [("child_spawned", run.run_id)]
    end = last(log)
    assert (end.kind, end.run_id, end.summary) == ("run_completed", run.run_id, "child run completed")
    assert run.outcome is None


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (TimeoutError(), "timeout"),
        (subprocess.TimeoutExpired("true", 1), "timeout"),
        (KeyboardInterrupt(), "cancelled"),
        (asyncio.CancelledError(), "cancelled"),
        (concurrent.futures.CancelledError(), "cancelled"),
        (ValueError("no"), "error"),
        (GeneratorExit(), "error"),
        (SystemExit(2), "error"),
        (SystemExit("no"), "error"),
    ],
)
def test_what_ends_the_block_is_the_outcome_and_goes_on(
    log: SignalLog, error: BaseException, outcome: str
) -> None:
    with pytest.raises(type(error)) as caught, log.child_run(PARENT, CHILD):
        raise error
    assert caught.value is error
    assert (last(log).kind, last(log).payload) == ("run_failed", {"outcome": outcome})


@pytest.mark.parametrize("code", [None, 0, False])
def test_leaving_with_status_zero_is_success(log: SignalLog, code: int | None) -> None:
    with pytest.raises(SystemExit), log.child_run(PARENT, CHILD):
        raise SystemExit(code)
    assert last(log).kind == "run_completed"


def test_a_cancelled_task_is_told_from_one_that_took_too_long(log: SignalLog) -> None:
    async def work() -> None:
        with log.child_run(PARENT, CHILD):
            await asyncio.sleep(60)

    async def cancel() -> None:
        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        await task

    async def wait_too_short() -> None:
        with log.child_run(PARENT, CHILD):
            await asyncio.wait_for(asyncio.sleep(60), timeout=0)

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancel())
    assert last(log).payload == {"outcome": "cancelled"}
    with pytest.raises(TimeoutError):
        asyncio.run(wait_too_short())
    assert last(log).payload == {"outcome": "timeout"}


@pytest.mark.parametrize("outcome", ["error", "timeout", "cancelled"])
def test_the_block_may_say_itself_how_it_ended(log: SignalLog, outcome: str) -> None:
    with log.child_run(PARENT, CHILD) as run:
        run.outcome = outcome
    assert last(log).payload == {"outcome": outcome}


def test_an_outcome_that_does_not_exist_is_refused(log: SignalLog) -> None:
    with pytest.raises(UsageError, match="an outcome is one of"), log.child_run(PARENT, CHILD) as run:
        run.outcome = "vanished"


def test_the_parent_watches_from_the_spawn_on_and_gets_no_notice_of_the_end(log: SignalLog) -> None:
    with log.child_run(PARENT, CHILD, run_id="r1") as run:
        assert run.run_id == "r1"
    (report,) = log.cursors(watcher=PARENT)
    assert (report.cursor.seen, report.state, report.lag) == (1, "quiet", 0)
    assert log.notices() == []


def test_every_run_has_an_id_of_its_own_and_is_recorded_once(log: SignalLog) -> None:
    with log.child_run(PARENT, CHILD) as first, log.child_run(PARENT, CHILD) as second:
        assert first.run_id != second.run_id
    assert len(list(log.events())) == 4
    with log.child_run(PARENT, CHILD, run_id=first.run_id):
        pass
    assert len(list(log.events())) == 4


def test_a_bare_child_needs_its_agent(log: SignalLog) -> None:
    with log.child_run(PARENT, "worker", agent_id="main"):
        pass
    assert log.version("worker", agent_id="main") == 2
    with pytest.raises(UsageError, match="names no agent"), log.child_run(PARENT, "worker"):
        pytest.fail("the block must not run")
