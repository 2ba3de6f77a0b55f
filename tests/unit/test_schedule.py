"""When the ticks of a monitor fall."""

from __future__ import annotations

import pytest

from openclaw_state.cli.ticker import Schedule


def ticks(every_s: float, *durations: float) -> list[float]:
    """When each tick begins, given how long each takes; the start is at 100."""
    schedule = Schedule(every_s, 100.0)
    now, found = 100.0, []
    for duration in durations:
        now += schedule.left(now)
        assert schedule.left(now) == 0
        found.append(now - 100.0)
        now += duration
        schedule.passed(now)
    return found


@pytest.mark.parametrize(
    ("every_s", "durations", "begun"),
    [
        (60.0, (1, 1, 1), [15, 60, 120]),
        (60.0, (0, 0, 0), [15, 60, 120]),
        (60.0, (50, 1, 1), [15, 120, 180]),
        (60.0, (1, 130, 1), [15, 60, 240]),
        (60.0, (1, 60, 1), [15, 60, 180]),
        (5.0, (1, 1, 1, 1), [5, 10, 15, 20]),
        (10.0, (1, 1, 1), [10, 15, 20]),
        (15.0, (1, 1, 1), [15, 30, 45]),
        (3600.0, (1, 1), [15, 3600]),
    ],
)
def test_ticks_are_measured_from_the_start_and_what_falls_into_one_is_dropped(
    every_s: float, durations: tuple[float, ...], begun: list[float]
) -> None:
    assert ticks(every_s, *durations) == begun


def test_a_tick_that_woke_a_moment_early_is_not_done_twice() -> None:
    schedule = Schedule(60.0, 0.0)
    schedule.passed(14.9999)
    assert schedule.left(14.9999) == pytest.approx(45.0001)
    schedule.passed(59.9999)
    assert schedule.left(59.9999) == pytest.approx(60.0001)
