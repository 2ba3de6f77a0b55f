"""Time strings in the zone of the process, and those that are out of range."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime

import pytest

from openclaw_state.upstream.times import parse_time


def ms(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp() * 1000)  # type: ignore[arg-type]


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], None]]:
    def change(name: str) -> None:
        monkeypatch.setenv("TZ", name)
        time.tzset()

    yield change
    monkeypatch.undo()
    time.tzset()


def test_a_time_without_a_zone_is_local_and_a_date_alone_is_utc(zone: Callable[[str], None]) -> None:
    zone("CET-1CEST,M3.5.0,M10.5.0/3")
    assert parse_time("2026-07-13T10:00") == ms(2026, 7, 13, 8)
    assert parse_time("2026-07-13") == ms(2026, 7, 13)
    assert parse_time("13 Jul 2026 10:00:00.5") == ms(2026, 7, 13, 8) + 500
    assert parse_time("Mon, 13 Jul 2026 10:00:00 GMT") == ms(2026, 7, 13, 10)


def test_where_the_clocks_change_the_offset_before_holds(zone: Callable[[str], None]) -> None:
    zone("CET-1CEST,M3.5.0,M10.5.0/3")
    assert parse_time("2026-03-29T02:30") == ms(2026, 3, 29, 1, 30)
    assert parse_time("2026-10-25T02:30") == ms(2026, 10, 25, 0, 30)


@pytest.mark.parametrize(
    "text",
    [
        "2026-07-13T10:00:00.000z",
        "2026-07-13t10:00:00.000Z",
        "+002026-07-13T10:00:00.000Z",
        "2026-07-13T10:00:00.0009Z",
        "2026-07-13T12:00:00.000+02:00",
        "2026-07-13T12:00:00+0200",
    ],
)
def test_one_instant_has_many_spellings(text: str) -> None:
    assert parse_time(text) == ms(2026, 7, 13, 10)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " 2026-07-13",
        "2026-07-13\n",
        "2026-07-13T10:00:00.000 Z",
        "2026-W28-1T10:00:00.000Z",
        "2026-13-01T00:00:00.000Z",
        "2026-07-32T00:00:00.000Z",
        "2026-07-13T24:00:01.000Z",
        "2026-07-13T10:60:00.000Z",
        "2026-07-13T10:00:60.000Z",
        "2026-07-13T10:00:00.000+24:00",
        "\u0662\u0660\u0662\u0666-07-13T10:00:00.000Z",
        "\u017fun, 13 Jul 2026",
        "-000000-01-01",
        "+275760-09-14",
        "13",
        "31",
        "Foo 13 2026",
        "1783936800000",
    ],
)
def test_other_texts_are_no_times(text: str) -> None:
    assert parse_time(text) is None


def test_days_roll_over_and_midnight_may_be_24(zone: Callable[[str], None]) -> None:
    zone("UTC0")
    assert parse_time("2026-02-30T00:00:00.000Z") == ms(2026, 3, 2)
    assert parse_time("2026-07-13T24:00:00.000Z") == ms(2026, 7, 14)
    assert parse_time("+275760-09-13") == 8_640_000_000_000_000
    assert parse_time("-271821-04-20") == -8_640_000_000_000_000
    assert parse_time("0099-01-01") == ms(99, 1, 1)
    assert parse_time("1/2/99") == ms(1999, 1, 2)
