"""When a session starts over, why, by which block and which timestamp; and over clock changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from openclaw_state import Freshness, ResetPolicy, choose_rules, freshness, reset_policy, session_freshness
from openclaw_state.errors import ConfigurationError, UsageError
from openclaw_state.sessions.calendar import last_boundary, next_boundary

KEY = "agent:main:main"
HOUR = 3_600_000
MINUTE = 60_000


def at(text: str, tz: str = "UTC") -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(tz)).timestamp() * 1000)


NOON = at("2026-07-15 12:00")


def judge(
    session: dict[str, Any], *, now: int = NOON, tz: str = "UTC", rules: str = "2026.9", **entry: Any
) -> Freshness:
    return session_freshness(session, KEY, {"updatedAt": now} | entry, now, tz, rules=rules).freshness


def policy(session: dict[str, Any], kind: str = "direct", **options: Any) -> ResetPolicy:
    return reset_policy(session, kind, **options)


def test_without_configuration_july_resets_nightly_and_today_nothing_does() -> None:
    started = at("2026-07-14 20:00")
    july = judge({}, rules="2026.7", sessionStartedAt=started)
    today = judge({}, rules="2026.9", sessionStartedAt=started)
    assert (july.rules, july.verdict, july.daily_reset_at) == ("2026.7", "daily", at("2026-07-15 04:00"))
    assert (today.rules, today.verdict, today.expires_at) == ("2026.9", "no reset", None)
    fresh = judge({}, rules="2026.7", sessionStartedAt=NOON)
    assert (fresh.expires_at, fresh.expires_by) == (at("2026-07-16 04:00"), "daily")


@pytest.mark.parametrize("rules", ["2026.7", "2026.9"])
def test_an_hour_alone_makes_a_block_daily(rules: str) -> None:
    found = policy({"reset": {"atHour": 6}}, rules=rules)
    assert (found.mode, found.at_hour, found.configured) == ("daily", 6, True)
    assert (found.mode_source, found.at_hour_source) == (
        "session.reset without a mode",
        "session.reset.atHour",
    )


def test_heartbeats_do_not_keep_an_idle_session_alive() -> None:
    session = {"reset": {"mode": "idle", "idleMinutes": 120}}
    found = judge(session, sessionStartedAt=NOON - 9 * HOUR, lastInteractionAt=NOON - 3 * HOUR)
    assert (found.reason, found.last.source) == ("idle", "lastInteractionAt")
    without = judge(session, sessionStartedAt=NOON - 3 * HOUR)
    assert (without.reason, without.last) == ("idle", (NOON - 3 * HOUR, "sessionStartedAt"))


def test_the_daily_boundary_cuts_off_an_active_chat() -> None:
    session = {"reset": {"mode": "daily"}}
    found = judge(session, sessionStartedAt=at("2026-07-15 03:59"), lastInteractionAt=at("2026-07-15 04:05"))
    assert (found.reason, found.start) == ("daily", (at("2026-07-15 03:59"), "sessionStartedAt"))
    assert found.expires_at is None


def test_an_idle_session_ends_after_its_deadline_and_not_at_it() -> None:
    idle = policy({"reset": {"mode": "idle", "idleMinutes": 5}})
    deadline = NOON + 5 * MINUTE
    assert freshness(idle, NOON, NOON, deadline, "UTC").fresh
    ahead = freshness(idle, NOON, NOON, NOON, "UTC")
    assert (ahead.idle_expires_at, ahead.expires_at, ahead.expires_by) == (deadline, deadline + 1, "idle")
    assert not freshness(idle, NOON, NOON, deadline + 1, "UTC").fresh


def test_of_two_ends_the_earlier_is_named() -> None:
    both = policy({"reset": {"mode": "daily", "idleMinutes": 30}})
    start = at("2026-07-15 03:00")
    assert freshness(both, start, start, NOON, "UTC").reason == "idle"
    assert freshness(both, start, start + 45 * MINUTE, NOON, "UTC").reason == "daily"
    assert freshness(both, start, start + 30 * MINUTE, NOON, "UTC").reason == "daily"


@pytest.mark.parametrize(
    ("entry", "verdict", "fresh"),
    [
        ({"modelSelectionLocked": True, "updatedAt": 0}, "model locked", True),
        ({"modelProvider": "x", "cliSessionBindings": {"x": {"sessionId": "s"}}}, "provider owned", True),
        ({"modelProvider": "x", "cliSessionIds": {"x": "s"}}, "provider owned", True),
        (
            {"providerOverride": " ", "modelProvider": "x", "cliSessionIds": {"x": "s"}, "updatedAt": 0},
            "reset pending",
            False,
        ),
        ({"updatedAt": 0}, "reset pending", False),
        ({"updatedAt": 0.0}, "reset pending", False),
        ({"updatedAt": False}, "no reset", True),
        ({"updatedAt": "0"}, "no reset", True),
        ({"updatedAt": -1}, "no reset", True),
    ],
)
def test_what_comes_before_any_comparison(entry: dict[str, Any], verdict: str, fresh: bool) -> None:
    found = judge({}, **entry)
    assert (found.verdict, found.fresh, found.reason) == (verdict, fresh, None)
    assert (found.daily_reset_at, found.idle_expires_at) == (None, None)


def test_a_configured_reset_does_not_spare_a_provider_owned_session() -> None:
    owned = {"modelProvider": "x", "cliSessionIds": {"x": "s"}}
    assert judge({"reset": {}}, sessionStartedAt=0, **owned).verdict == "daily"


@pytest.mark.parametrize(
    ("header", "source"),
    [
        ({"type": "session", "id": "s", "timestamp": 5}, "transcript header"),
        ({"type": "session", "id": " ", "timestamp": "2026-07-15T10:00:00Z"}, "transcript header"),
        ({"type": "session", "timestamp": "2026-07-15"}, "transcript header"),
        ({"type": "session", "id": "s", "timestamp": "yesterday"}, "none"),
        ({"type": "session", "id": "t", "timestamp": 5}, "none"),
        ({"type": "message", "id": "s", "timestamp": 5}, "none"),
    ],
)
def test_only_the_header_of_this_session_tells_its_start(header: dict[str, Any], source: str) -> None:
    found = session_freshness({}, KEY, {"sessionId": "s"}, NOON, "UTC", transcript_header=header)
    assert found.started.source == source


def test_a_header_without_a_zone_is_local_time() -> None:
    header = {"type": "session", "timestamp": "2026-07-15T10:00:00"}
    found = session_freshness({}, KEY, {}, NOON, "Europe/Madrid", transcript_header=header)
    assert found.started.at == at("2026-07-15 10:00", "Europe/Madrid")


def test_times_in_the_future_are_shown_and_not_judged() -> None:
    entry = {"sessionStartedAt": NOON + 1, "lastInteractionAt": NOON + 2, "updatedAt": NOON - 5}
    found = session_freshness({"reset": {}}, KEY, entry, NOON, "UTC")
    assert (found.started.at, found.interacted.at) == (NOON + 1, NOON + 2)
    assert found.freshness.start == found.freshness.last == (NOON - 5, "updatedAt")
    entry["updatedAt"] = NOON + 3
    assert session_freshness({"reset": {}}, KEY, entry, NOON, "UTC").freshness.start == (0, "none")


# Which block


def test_a_channels_block_replaces_the_general_ones() -> None:
    session = {
        "reset": {"mode": "idle", "idleMinutes": 5},
        "resetByType": {"direct": {"atHour": 7}},
        "resetByChannel": {"msteams": {}, "teams": {"mode": "none"}},
    }
    found = policy(session, channel=" Teams ")
    assert (found.mode, found.at_hour, found.idle_minutes) == ("daily", 4, None)
    assert found.blocks == ("session.resetByChannel.msteams",)
    assert {one.path for one in found.ignored} == {"session.reset", "session.resetByType.direct"}
    general = policy(session)
    assert (general.mode, general.at_hour, general.idle_minutes) == ("idle", 7, 5)
    assert general.blocks == ("session.reset", "session.resetByType.direct")
    assert (general.mode_source, general.idle_source) == ("session.reset.mode", "session.reset.idleMinutes")


def test_beside_a_block_for_the_type_a_base_of_none_does_not_count() -> None:
    session = {"reset": {"mode": "none"}, "resetByType": {"group": {"atHour": 7}}}
    found = policy(session, "group")
    assert (found.mode, found.mode_source) == ("daily", "session.resetByType.group without a mode")
    assert policy(session).mode == "none"


@pytest.mark.parametrize(
    ("hour", "taken"), [(5.9, 5), (-3, 0), (99, 23), ("6", 4), (True, 4), (None, 4), (float("inf"), 4)]
)
def test_an_hour_is_a_whole_number_of_the_day(hour: Any, taken: int) -> None:
    assert policy({"reset": {"atHour": hour}}).at_hour == taken


@pytest.mark.parametrize(
    ("minutes", "taken"),
    [(5.9, 5), (-3, 0), ("30", 30), ("", 0), ("soon", None), (None, 0), ({}, None), (True, 1)],
)
def test_minutes_are_converted_as_arithmetic_does(minutes: Any, taken: int | None) -> None:
    found = policy({"reset": {"mode": "idle", "idleMinutes": minutes}})
    assert found.idle_minutes == taken


def test_idle_without_minutes_never_ends() -> None:
    found = judge({"reset": {"mode": "idle"}}, sessionStartedAt=0, lastInteractionAt=0)
    assert (found.verdict, found.idle_expires_at, found.expires_at) == ("current", None, None)


def test_retired_settings_are_named_as_not_read() -> None:
    session = {"idleMinutes": 5, "resetByType": {"dm": {"mode": "idle"}}}
    today, july = policy(session), policy(session, rules="2026.7")
    assert (today.mode, today.configured) == ("none", False)
    assert {one.path for one in today.ignored} == {"session.idleMinutes", "session.resetByType.dm"}
    assert all("2026.9" in one.reason for one in today.ignored)
    assert (july.mode, july.blocks) == ("idle", ("session.resetByType.dm",))
    assert [one.path for one in july.ignored] == ["session.idleMinutes"]


def test_in_july_idle_minutes_alone_are_a_policy() -> None:
    alone = policy({"idleMinutes": "7.5"}, rules="2026.7")
    assert (alone.mode, alone.idle_minutes, alone.configured) == ("idle", 7, True)
    assert (alone.blocks, alone.ignored) == (("session.idleMinutes",), ())
    beside = policy({"idleMinutes": 7, "resetByType": {}}, rules="2026.7")
    assert (beside.mode, beside.idle_minutes, beside.configured) == ("daily", None, False)
    direct = policy({"resetByType": {"dm": {"atHour": 1}, "direct": {"atHour": 2}}}, rules="2026.7")
    assert direct.at_hour == 2
    assert [one.path for one in direct.ignored] == ["session.resetByType.dm"]


def test_a_mode_that_openclaw_does_not_know_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match=r"session\.reset\.mode is 'weekly'"):
        policy({"reset": {"mode": "weekly"}})


@pytest.mark.parametrize(
    "call",
    [
        lambda: policy({}, "room"),
        lambda: policy({}, rules="2025.1"),
        lambda: judge({"reset": {}}, tz="Mars/Olympus"),
        lambda: judge({"reset": {}}, tz="../etc/passwd"),
        lambda: judge({"reset": {}}, tz="America"),
        lambda: judge({"reset": {}}, now=10**16),
    ],
    ids=["type", "rules", "no zone", "a path", "a directory", "no date"],
)
def test_what_cannot_mean_anything_is_refused(call: Any) -> None:
    with pytest.raises(UsageError):
        call()


# The calendar


def test_a_skipped_hour_counts_with_the_offset_before_the_change() -> None:
    """Two in the morning does not exist on this day: seven UTC, three o'clock on the wall."""
    tz, name = ZoneInfo("America/New_York"), "America/New_York"
    skipped = at("2026-03-08 07:00")
    assert last_boundary(2, skipped, tz) == skipped
    assert last_boundary(2, skipped - 1, tz) == at("2026-03-07 02:00", name)
    fresh = judge(
        {"reset": {"atHour": 2}},
        now=at("2026-03-08 01:00", name),
        tz=name,
        sessionStartedAt=at("2026-03-07 02:30", name),
    )
    assert (fresh.fresh, fresh.expires_at) == (True, skipped)


def test_a_repeated_hour_is_one_boundary_a_day() -> None:
    tz = ZoneInfo("America/New_York")
    first = at("2026-11-01 05:00")
    for minutes in range(0, 180, 7):
        assert last_boundary(1, first + minutes * MINUTE, tz) == first
    assert next_boundary(1, first, tz) == at("2026-11-02 01:00", "America/New_York")


def test_a_day_that_was_left_out_has_no_boundary_of_its_own() -> None:
    tz = ZoneInfo("Pacific/Apia")
    now = at("2011-12-31 02:00", "Pacific/Apia")
    assert last_boundary(4, now, tz) <= now < next_boundary(4, now, tz)
    assert last_boundary(4, now, tz) == at("2011-12-29 04:00", "Pacific/Apia")


def test_the_same_instants_are_judged_by_the_zone_given() -> None:
    session, started = {"reset": {"atHour": 4}}, at("2026-07-15 03:00")
    assert judge(session, tz="UTC", sessionStartedAt=started).reason == "daily"
    assert judge(session, tz="Europe/Madrid", sessionStartedAt=started).fresh
    assert freshness(policy(session), started, None, NOON, UTC).reason == "daily"


# Which rules


@pytest.mark.parametrize(
    ("version", "reset", "maintenance", "warned"),
    [
        ("2026.7.1", "2026.7", "2026.7", False),
        ("2025.12.31", "2026.7", "2026.7", False),
        ("2026.7.2-beta.5", "2026.9", "2026.7", True),
        ("2026.8.2", "2026.9", "2026.7", True),
        ("2026.9.0-beta.1", "2026.9", "2026.9", False),
        ("2026.9.6", "2026.9", "2026.9", False),
        ("2027.1", "2026.9", "2026.9", False),
        ("nightly", "2026.9", "2026.9", True),
        (None, "2026.9", "2026.9", True),
    ],
)
def test_the_release_that_wrote_the_database_chooses_the_rules(
    version: str | None, reset: str, maintenance: str, warned: bool
) -> None:
    chosen = choose_rules(app_version=version)
    assert (chosen.reset, chosen.maintenance, chosen.warning is not None) == (reset, maintenance, warned)
    assert chosen.reason


def test_sessions_in_no_database_are_julys() -> None:
    chosen = choose_rules(has_session_table=False, has_legacy_store=True)
    assert (chosen.reset, chosen.maintenance, chosen.warning) == ("2026.7", "2026.7", None)
    assert choose_rules(has_session_table=True, has_legacy_store=True).reset == "2026.9"


def test_rules_can_be_asked_for() -> None:
    assert choose_rules("2026.7", app_version="2026.9.6")[:3] == ("2026.7", "2026.7", "as asked for")
    with pytest.raises(UsageError, match="no rule set"):
        choose_rules("2026.8")
