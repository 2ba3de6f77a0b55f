"""Durations, instants, the --since grammar and the clock of tests."""

from __future__ import annotations

import time
from datetime import UTC, datetime

import pytest

from openclaw_state.errors import UsageError
from openclaw_state.timespec import (
    SAFE_MAX,
    Point,
    format_clock,
    format_duration,
    format_instant,
    now_ms,
    parse_duration,
    parse_point,
)

HOUR = 3_600_000
DAY = 24 * HOUR


def at(text: str) -> int:
    """Epoch ms of a time with an offset, by another way than the one under test."""
    return int(datetime.fromisoformat(text).astimezone(UTC).timestamp()) * 1000


NOW = at("2026-11-30T12:03:05+00:00")


@pytest.fixture
def zone(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> str:
    """The local time zone that the test names."""
    name = str(request.param)
    monkeypatch.setenv("TZ", name)
    time.tzset()
    return name


def in_zone(name: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("zone", [name], indirect=True)


@pytest.mark.parametrize(
    ("text", "milliseconds"),
    [
        ("250ms", 250),
        ("15s", 15_000),
        ("10m", 600_000),
        ("24h", DAY),
        ("30d", 30 * DAY),
        ("2w", 14 * DAY),
        ("1h30m", HOUR + 1_800_000),
        ("1.5h", HOUR + 1_800_000),
        ("1m250ms", 60_250),
        (" 5s ", 5_000),
        ("0", 0),
        ("0s", 0),
        (f"{SAFE_MAX}ms", SAFE_MAX),
    ],
)
def test_a_duration_is_numbers_with_units(text: str, milliseconds: int) -> None:
    assert parse_duration(text) == milliseconds


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "5",
        "1.5",
        "-5s",
        "+5s",
        "s",
        "1 h",
        "1e3s",
        "0x5s",
        "5y",
        "5S",
        ".5h",
        "5.h",
        "\u0665s",
        "\udcffs",
    ],
    ids=ascii,
)
def test_anything_else_is_not_a_duration(text: str) -> None:
    with pytest.raises(UsageError, match="is not a duration") as caught:
        parse_duration(text)
    assert caught.value.hint


def test_a_bare_number_is_told_to_take_a_unit() -> None:
    with pytest.raises(UsageError) as caught:
        parse_duration("90")
    assert caught.value.hint == "give a unit: 90s, 90m, 90h"


@pytest.mark.parametrize("text", [f"{SAFE_MAX + 1}ms", "99999999999w", "9" * 400 + "d"], ids=len)
def test_a_duration_past_the_largest_safe_number_is_too_long(text: str) -> None:
    with pytest.raises(UsageError, match="is too long"):
        parse_duration(text)


@pytest.mark.parametrize(
    ("text", "version"), [("0", 0), ("12", 12), (" 12 ", 12), ("007", 7), (str(SAFE_MAX), SAFE_MAX)]
)
def test_a_bare_whole_number_is_a_version(text: str, version: int) -> None:
    assert parse_point(text, now=NOW) == Point(text, version=version)


@pytest.mark.parametrize("text", ["-1", "+1", "1.5", "1.", str(SAFE_MAX + 1), "\u0663", "\u00b2"], ids=ascii)
def test_other_numbers_are_no_versions(text: str) -> None:
    with pytest.raises(UsageError, match="is not a version: a whole number from 0 to 9007199254740991"):
        parse_point(text, now=NOW)


def test_a_command_without_versions_asks_for_a_time() -> None:
    with pytest.raises(UsageError, match="is a version, and a time is meant here"):
        parse_point("12", now=NOW, versions=False)
    assert parse_point("12h", now=NOW, versions=False).instant == NOW - 12 * HOUR


@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("now", NOW),
        ("24h", NOW - DAY),
        ("1h30m", NOW - HOUR - 1_800_000),
        ("0s", NOW),
        ("9999w", 0),
        ("today", at("2026-11-30T00:00:00+00:00")),
        ("yesterday", at("2026-11-29T00:00:00+00:00")),
        ("2026-11-30", at("2026-11-30T00:00:00+00:00")),
        ("2026-11-30 03:00", at("2026-11-30T03:00:00+00:00")),
        ("2026-11-30T03:00:07", at("2026-11-30T03:00:07+00:00")),
        ("2026-11-30T03:00:07.25Z", at("2026-11-30T03:00:07+00:00") + 250),
        ("2026-11-30t03:00:07.123456789z", at("2026-11-30T03:00:07+00:00") + 123),
        ("2026-11-30T03:00:07+05:30", at("2026-11-29T21:30:07+00:00")),
        ("2026-11-30 03:00-08:00", at("2026-11-30T11:00:00+00:00")),
        ("1969-12-31", 0),
    ],
)
def test_durations_ago_dates_and_words_are_instants(text: str, instant: int) -> None:
    assert parse_point(text, now=NOW, utc=True) == Point(text, instant=instant)


@in_zone("America/New_York")
@pytest.mark.parametrize(
    ("text", "local", "utc"),
    [
        ("today", "2026-11-30T00:00:00-05:00", "2026-11-30T00:00:00+00:00"),
        ("2026-07-01", "2026-07-01T00:00:00-04:00", "2026-07-01T00:00:00+00:00"),
        ("2026-11-30 08:00", "2026-11-30T08:00:00-05:00", "2026-11-30T08:00:00+00:00"),
        ("2026-11-30T08:00Z", "2026-11-30T08:00:00+00:00", "2026-11-30T08:00:00+00:00"),
    ],
)
def test_a_time_without_an_offset_is_local_unless_utc(zone: str, text: str, local: str, utc: str) -> None:
    assert parse_point(text, now=NOW).instant == at(local)
    assert parse_point(text, now=NOW, utc=True).instant == at(utc)


@in_zone("Europe/Berlin")
@pytest.mark.parametrize(
    ("text", "instant"),
    [
        ("2026-03-29 02:30", "2026-03-29T03:30:00+02:00"),
        ("2026-10-25 02:30", "2026-10-25T02:30:00+02:00"),
    ],
)
def test_an_hour_that_the_clock_skips_or_repeats_is_one_instant(zone: str, text: str, instant: str) -> None:
    assert parse_point(text, now=NOW).instant == at(instant)


@in_zone("America/Havana")
def test_today_begins_at_the_first_midnight_where_midnight_comes_twice(zone: str) -> None:
    second_half_past = at("2026-11-01T00:30:00-05:00")
    assert parse_point("today", now=second_half_past).instant == at("2026-11-01T00:00:00-04:00")
    assert parse_point("yesterday", now=second_half_past).instant == at("2026-10-31T00:00:00-04:00")


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30",
        "2026-13-01",
        "2026-11-30T24:00",
        "2026-11-30T23:59:60Z",
        "2026-11-30T12:00+99:00",
        "0000-01-01",
    ],
)
def test_a_date_that_no_calendar_has_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is no date that exists"):
        parse_point(text, now=NOW)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "abc",
        "0x10",
        "1e3",
        "-5h",
        "tomorrow",
        "Today",
        "2026-11",
        "12:00",
        "2026-11-30T12",
        "\udcff",
    ],
    ids=ascii,
)
def test_what_is_no_point_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="is not a point in the log") as caught:
        parse_point(text, now=NOW)
    assert caught.value.hint
    for form in ("version", "24h", "RFC 3339", "today", "yesterday", "now"):
        assert form in caught.value.hint


def test_the_clock_can_be_set_for_tests() -> None:
    assert now_ms({"OPENCLAW_STATE_NOW": "1796040185000"}) == 1_796_040_185_000
    assert now_ms({"OPENCLAW_STATE_NOW": str(SAFE_MAX)}) == SAFE_MAX


@pytest.mark.parametrize("environ", [{}, {"OPENCLAW_STATE_NOW": ""}, {"OPENCLAW_STATE_NOW": " "}])
def test_the_clock_is_else_the_systems(environ: dict[str, str]) -> None:
    before = time.time_ns() // 1_000_000
    assert before <= now_ms(environ) <= time.time_ns() // 1_000_000


@pytest.mark.parametrize("value", ["-1", "1.5", "now", "1e3", str(SAFE_MAX + 1), "\u00b2"], ids=ascii)
def test_a_clock_that_is_no_time_is_refused(value: str) -> None:
    with pytest.raises(UsageError, match="OPENCLAW_STATE_NOW is epoch milliseconds"):
        now_ms({"OPENCLAW_STATE_NOW": value})


@in_zone("America/New_York")
def test_an_instant_is_shown_with_the_zone_it_is_in(zone: str) -> None:
    assert format_instant(NOW, utc=True) == "2026-11-30 12:03 UTC"
    assert format_instant(NOW, utc=False) == "2026-11-30 07:03 EST"
    assert format_clock(NOW, utc=True) == "12:03:05"
    assert format_clock(NOW, utc=False) == "07:03:05"


@pytest.mark.parametrize("instant", [10**30, -(10**30)])
def test_an_instant_outside_every_calendar_is_shown_as_the_number(instant: int) -> None:
    for utc in (True, False):
        assert format_instant(instant, utc=utc) == format_clock(instant, utc=utc) == f"{instant} ms"


@pytest.mark.parametrize(
    ("duration", "shown"),
    [
        (0, "0 s"),
        (1, "1 ms"),
        (999, "999 ms"),
        (1_000, "1 s"),
        (59_999, "59 s"),
        (96_000, "1 m 36 s"),
        (HOUR, "1 h"),
        (HOUR + 5_000, "1 h"),
        (4 * DAY + 3 * HOUR + 59_000, "4 d 3 h"),
        (29 * DAY, "29 d"),
        (-250, "-250 ms"),
        (-96_000, "-1 m 36 s"),
    ],
)
def test_a_duration_is_shown_in_two_units_at_most(duration: int, shown: str) -> None:
    assert format_duration(duration) == shown
