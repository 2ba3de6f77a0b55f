"""What maintenance takes, what it keeps and why, and that a plan says the same before and after."""

from __future__ import annotations

from typing import Any

import pytest

from openclaw_state import MaintenancePlan, StoredSession, maintenance_policy, plan_maintenance
from openclaw_state.errors import ConfigurationError, UsageError
from openclaw_state.sessions.limits import duration_ms
from openclaw_state.sessions.protection import session_class

NOW = 1_800_000_000_000
DAY = 86_400_000
PROBE = "agent:main:explicit:model-run-00000000-0000-4000-8000-000000000001"
DIRECT_CHATS = ("agent:main:direct:1", "agent:main:telegram:direct:1", "agent:main:telegram:acct:direct:1")


def row(key: str, age: int = 0, *, message: bool | None = True, **entry: Any) -> StoredSession:
    at = NOW - age
    times = {"sessionId": key[-3:], "sessionStartedAt": at, "lastInteractionAt": at, "updatedAt": at}
    return StoredSession(key, times | entry, message, message)


def plan(
    *rows: StoredSession, rules: str = "2026.9", scope: str = "main", limits: Any = None, **options: Any
) -> MaintenancePlan:
    session = {"dmScope": scope, "maintenance": limits or {}}
    return plan_maintenance(rows, maintenance_policy(session, rules=rules), NOW, **options)


def actions(found: MaintenancePlan) -> dict[str, str]:
    return {step.key: step.action for step in found.steps}


def kept_because(stored: StoredSession, rules: str = "2026.9", **options: Any) -> str | None:
    """What keeps a row that is very old; None when nothing does."""
    planned = plan(stored, rules=rules, limits={"pruneAfter": "1d"}, **options).rows[0]
    assert planned.protected is (planned.action == "keep")
    return planned.reason if planned.protected else None


def test_a_plan_names_its_rules_and_says_why_each_row_goes_or_stays() -> None:
    found = plan(row("agent:main:main", 99 * DAY), row("agent:main:hook:1", 99 * DAY), row("agent:main:x"))
    assert found.rules == "2026.9"
    assert [(one.action, one.protected, one.reason) for one in found.rows] == [
        ("keep", True, "main session"),
        ("prune-stale", False, "older than pruneAfter"),
        ("keep", False, "within the limits"),
    ]
    assert (found.before, found.after, found.changes) == (3, 2, True)


def test_an_old_session_of_a_person_is_archived_now_and_was_deleted_in_july() -> None:
    stored = row("agent:main:notes", 31 * DAY)
    today, july = plan(stored).rows[0], plan(stored, rules="2026.7").rows[0]
    assert (today.action, today.archive_reason, today.leaves_transcript) == (
        "archive-age",
        "age-retention",
        False,
    )
    assert (july.action, july.archive_reason, july.leaves_transcript) == ("prune-stale", None, True)


@pytest.mark.parametrize(("known", "leaves"), [(True, True), (False, False), (None, None)])
def test_a_deleted_session_leaves_its_transcript_if_it_has_one(
    known: bool | None, leaves: bool | None
) -> None:
    assert plan(row("agent:main:hook:1", 31 * DAY, message=known)).rows[0].leaves_transcript is leaves


@pytest.mark.parametrize(
    ("stored", "today", "july"),
    [
        (row("agent:main:x", 9 * DAY, archivedAt=1), "archived already", "archived already"),
        (row("agent:main:hook:x", 9 * DAY, pinnedAt=1), "pinned", "pinned"),
        (row("agent:main:x", 9 * DAY, pinnedAt=1, parentSessionKey="agent:main:main"), "pinned", "pinned"),
        (row("agent:main:x", 9 * DAY, pinnedAt=1, parentSessionKey="agent:main:y"), None, None),
        (row("agent:main:x", 9 * DAY, pinnedAt=1, spawnedBy="agent:main:main"), None, None),
        (row("agent:main:subagent:x", 9 * DAY, pinnedAt=1), None, None),
        (row("agent:main:hook:x", 9 * DAY, modelSelectionLocked=True), "model locked", "model locked"),
        (row("agent:main:hook:x", 9 * DAY, modelSelectionLocked=1), None, None),
        (row("agent:main:hook:x", 9 * DAY, status="running"), "running", "running"),
        (row("global", 9 * DAY), "main session", "main session"),
        (row("agent:main:main", 9 * DAY), "main session", "main session"),
        (row("agent:main:home", 9 * DAY), None, None),
        (row("agent:main:x:thread:1", 9 * DAY), "thread", "thread"),
        (row("agent:main:x:thread: ", 9 * DAY), None, None),
        (row("agent:main:hook:x:thread:1", 9 * DAY), None, None),
        (row("agent:main:x", 9 * DAY, delivery={"kind": "external"}), "external delivery", None),
        (row("agent:main:x", 9 * DAY, delivery={"kind": "internal"}), None, None),
        (row("agent:main:slack:channel:c", 9 * DAY), "group or channel", "group or channel"),
        (row("agent:main:telegram:dm:1", 9 * DAY), "outside conversation", None),
        (row("agent:main:telegram:acct:direct:1", 9 * DAY), "outside conversation", None),
        (row("agent:main:direct:1", 9 * DAY), "outside conversation", None),
        (row("agent:main:dm:1", 9 * DAY), None, None),
        (row("agent:main:group:5", 9 * DAY), None, None),
        (row("agent:main:telegram:acct:group:1", 9 * DAY), None, None),
        (row("agent:main:x", 9 * DAY, chatType="Thread"), "thread chat", "thread chat"),
        (row("agent:main:x", 9 * DAY, chatType="direct"), None, None),
        (row("agent:main:cron:j", 9 * DAY, chatType="group"), None, None),
    ],
)
def test_a_row_is_kept_for_a_reason(stored: StoredSession, today: str | None, july: str | None) -> None:
    assert kept_because(stored) == today
    assert kept_because(stored, rules="2026.7") == july


def test_recent_activity_keeps_what_a_person_opened() -> None:
    limits = {"pruneAfter": "1h", "preserveRecent": "2d"}
    old = {"updatedAt": NOW - 9 * DAY, "sessionStartedAt": NOW - 9 * DAY}
    found = plan(
        row("agent:main:a", 2 * DAY, **old),
        row("agent:main:b", 2 * DAY + 1, **old),
        row("agent:main:hook:c", DAY),
        limits=limits,
    )
    assert actions(found) == {"agent:main:b": "archive-age", "agent:main:hook:c": "prune-stale"}
    assert found.rows[0].reason == "recent"


def test_a_run_that_has_ended_is_not_running_whatever_its_status_says() -> None:
    ended = row("agent:main:hook:x", 9 * DAY, status="running", endedAt=NOW - 9 * DAY)
    planned = plan(ended, limits={"pruneAfter": "1d"}).rows[0]
    assert planned.action == "prune-stale"
    assert planned.note == f"the status is running, but the run ended at {NOW - 9 * DAY}"
    again = row("agent:main:hook:x", 9 * DAY, status="running", endedAt=5, startedAt=6)
    assert kept_because(again) == "running"


def test_the_active_session_is_kept_and_on_applying_what_is_above_it() -> None:
    rows = [
        row("agent:main:a", 9 * DAY),
        row("agent:main:b", 9 * DAY, parentSessionKey="agent:main:a"),
        row("agent:main:c", 9 * DAY, spawnedBy="agent:main:b"),
    ]
    options: dict[str, Any] = {"limits": {"pruneAfter": "1d"}, "active_key": "Agent:Main:C"}
    assert set(actions(plan(*rows, **options))) == {"agent:main:a", "agent:main:b"}
    applied = plan(*rows, applying=True, **options)
    assert not applied.changes
    assert [one.reason for one in applied.rows] == [
        "ancestor of the active session",
        "ancestor of the active session",
        "active",
    ]


def test_ancestors_that_go_in_a_circle_end() -> None:
    rows = [
        row("agent:main:a", parentSessionKey="agent:main:b"),
        row("agent:main:b", parentSessionKey="agent:main:a"),
    ]
    assert not plan(*rows, applying=True, active_key="agent:main:a").changes


# The passes


def test_under_the_cap_the_least_active_goes_and_of_equal_ones_the_later() -> None:
    rows = [row("agent:main:a", 2), row("agent:main:b", 3), row("agent:main:c", 3), row("agent:main:d", 1)]
    found = plan(*rows, limits={"maxEntries": 2})
    assert [step.key for step in found.steps] == ["agent:main:c", "agent:main:b"]
    assert found.summary() | {"capArchived": 2, "capped": 2, "afterCount": 4} == found.summary()


def test_the_oldest_row_runs_and_the_next_one_goes() -> None:
    rows = [row(f"agent:main:{number:02}", 100 - number) for number in range(21)]
    rows[0] = row("agent:main:00", 100, status="running")
    found = plan(*rows, limits={"maxEntries": 20})
    assert actions(found) == {"agent:main:01": "archive-cap"}
    assert found.rows[0].reason == "running"


def test_probes_are_untouched_below_the_cap_and_first_above_it() -> None:
    probe, fake = row(PROBE, 30 * 3_600_000), row(f"{PROBE[:-4]}none", 30 * 3_600_000)
    other = row("agent:main:x", 40 * 3_600_000)
    assert not plan(probe, fake, other, limits={"maxEntries": 3}).changes
    assert actions(plan(probe, fake, other, limits={"maxEntries": 2})) == {PROBE: "prune-model-run"}
    assert not plan(probe, fake, other, limits={"maxEntries": 3}, forced=False).changes


def test_an_ordinary_write_waits_for_the_high_water() -> None:
    rows = [row(f"agent:main:{number}", 9 - number) for number in range(4)]
    assert not plan(*rows[:3], limits={"maxEntries": 3}, forced=False).changes
    assert plan(*rows, limits={"maxEntries": 3}, forced=False).count("archive-cap") == 1
    sizes = {1: 2, 49: 50, 50: 75, 250: 275, 251: 277, 5_000: 5_500}
    high_waters = {
        most: maintenance_policy({"maintenance": {"maxEntries": most}}).high_water for most in sizes
    }
    assert high_waters == sizes


def test_dashboards_are_judged_by_activity_before_age() -> None:
    quiet, busy = row("agent:main:dashboard:a", 8 * DAY), row("agent:main:dashboard:b", 40 * DAY)
    busy = busy._replace(entry={**busy.entry, "lastActivityAt": NOW})
    unknown = StoredSession("agent:main:dashboard:c", {})
    found = plan(quiet, busy, unknown)
    assert actions(found) == {
        "agent:main:dashboard:a": "archive-dashboard",
        "agent:main:dashboard:b": "archive-age",
    }
    assert actions(plan(quiet, rules="2026.7")) == {}


@pytest.mark.parametrize(("updated", "gone"), [(0, True), (None, False), ("1", False), (-5, True)])
def test_age_needs_a_number_and_zero_is_one(updated: Any, gone: bool) -> None:
    assert plan(row("agent:main:hook:x", updatedAt=updated)).changes is gone


def test_a_plan_that_warns_counts_everything_and_applies_nothing() -> None:
    stored = row("agent:main:hook:x", 31 * DAY, message=False)
    options: dict[str, Any] = {"limits": {"mode": "warn"}, "fix_missing": True}
    assert plan(stored, **options).changes
    assert not plan(stored, applying=True, **options).changes
    enforced = plan(stored, applying=True, enforce=True, **options)
    assert (enforced.mode, enforced.changes) == ("enforce", True)


def test_cron_sessions_are_told_apart_and_a_living_jobs_base_can_be_kept() -> None:
    base, orphan = row("agent:main:cron:Live", 31 * DAY), row("agent:main:cron:gone", 31 * DAY)
    run = row("agent:main:cron:live:run:r", 31 * DAY)
    found = plan(base, run, orphan, live_jobs={"Live"})
    assert [(one.kind, one.action, one.reason) for one in found.rows] == [
        ("cron", "keep", "its cron job exists"),
        ("cron run", "prune-stale", "older than pruneAfter"),
        ("cron", "prune-stale", "older than pruneAfter"),
    ]


@pytest.mark.parametrize(
    ("key", "kind"),
    [
        (PROBE.upper(), "probe"),
        (f"{PROBE}0", "ordinary"),
        ("agent:main:Dashboard:1", "dashboard"),
        ("agent:main:acp-bridge:1", "synthetic"),
        ("agent:main:x:heartbeat:y", "synthetic"),
        ("agent:main:heartbeat", "synthetic"),
        ("agent:main:heartbeat:1", "ordinary"),
        ("agent:main:a:heartbeats", "ordinary"),
        ("global:heartbeat", "synthetic"),
        ("agent:main:cron:j:failure", "cron"),
    ],
)
def test_a_session_has_a_class(key: str, kind: str) -> None:
    assert session_class(key) == kind


# What is only done when asked for


def test_stale_direct_chats_go_where_dm_scope_is_main() -> None:
    kept = (
        "agent:main:telegram:dm:1",
        "agent:main:telegram:direct:1:thread:2",
        "agent:main:a:b:c:direct:1",
        "agent:main:direct:",
        "agent:work:direct:1",
    )
    rows = [row(key, status="running", pinnedAt=1) for key in DIRECT_CHATS + kept]
    found = plan(*rows, fix_dm_scope=True)
    assert actions(found) == dict.fromkeys(DIRECT_CHATS, "retire-dm-scope")
    assert not plan(*rows, fix_dm_scope=True, scope="per-peer").changes
    one_less = plan(*rows, fix_dm_scope=True, active_key=DIRECT_CHATS[0])
    assert set(actions(one_less)) == set(DIRECT_CHATS[1:])
    archived = row(DIRECT_CHATS[0], archivedAt=1)
    assert not plan(archived, fix_dm_scope=True).changes


def test_rows_without_a_message_go_even_when_they_are_protected() -> None:
    rows = [
        row("agent:main:main", message=False, status="running"),
        row("agent:main:a", message=False, archivedAt=1),
        row("agent:main:b", message=False, modelSelectionLocked=True),
        row("agent:main:c", message=False, initializationPending=True),
        row("agent:main:d", message=False, sessionId=" "),
        row("agent:main:e", message=False, sessionId="agent:main:e"),
        row("global", message=False, sessionId=None),
        row("agent:main:f", message=True),
    ]
    found = plan(*rows, fix_missing=True, active_key="agent:main:main")
    assert actions(found) == {"agent:main:main": "prune-missing", "global": "prune-missing"}
    assert not plan(*rows).changes


def test_a_transcript_that_nobody_looked_at_is_not_missing() -> None:
    found = plan(row("agent:main:x", message=None), fix_missing=True)
    assert (found.changes, found.undecided) == (False, ("agent:main:x",))


def test_rows_taken_first_make_room_under_the_cap() -> None:
    rows = [row("agent:main:direct:1"), row("agent:main:x", 5)]
    assert actions(plan(*rows, limits={"maxEntries": 1}, fix_dm_scope=True)) == {
        "agent:main:direct:1": "retire-dm-scope"
    }


# The limits


def test_the_default_limits_are_those_of_the_rules() -> None:
    today, july = maintenance_policy({}), maintenance_policy({}, rules="2026.7")
    assert (today.max_entries, today.archive_dashboard_after_ms) == (5_000, 7 * DAY)
    assert (july.max_entries, july.archive_dashboard_after_ms) == (500, None)
    assert today.prune_after_ms == july.prune_after_ms == 30 * DAY


@pytest.mark.parametrize(
    ("value", "milliseconds"),
    [
        ("12h", 43_200_000),
        (" 1H30M ", 5_400_000),
        ("90", 90 * DAY),
        (2.5, 216_000_000),
        ("1.5ms", 2),
        ("0.4ms", None),
        ("0", None),
        ("1w", None),
        ("1h30", None),
        ("1h 30m", None),
        ("-1d", None),
        ("", None),
        (True, None),
        (None, None),
    ],
)
def test_a_duration_is_openclaws_own(value: Any, milliseconds: int | None) -> None:
    assert duration_ms(value) == milliseconds


@pytest.mark.parametrize(
    "limits",
    [
        {"pruneAfter": "1w"},
        {"pruneAfter": False},
        {"pruneAfter": None},
        {"archiveDashboardAfter": "0"},
        {"preserveRecent": 0},
        {"resetArchiveRetention": "bogus"},
        {"maxEntries": 0},
        {"maxEntries": 1.5},
        {"maxEntries": "5"},
        {"maxEntries": True},
        {"mode": "delete"},
    ],
)
def test_one_bad_value_refuses_the_whole_configuration(limits: dict[str, Any]) -> None:
    name = next(iter(limits))
    with pytest.raises(ConfigurationError, match=rf"session\.maintenance\.{name} is"):
        maintenance_policy({"maintenance": limits})


def test_some_values_switch_a_limit_off() -> None:
    for off in (False, 0):
        found = maintenance_policy({"maintenance": {"archiveDashboardAfter": off}})
        assert found.archive_dashboard_after_ms is None
    assert maintenance_policy({"maintenance": {"preserveRecent": False}}).preserve_recent_ms is None


def test_limits_that_are_no_object_are_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"session\.maintenance is 'off'"):
        maintenance_policy({"maintenance": "off"})
    with pytest.raises(UsageError, match="no rule set"):
        maintenance_policy({}, rules="2024.1")


def test_july_does_not_read_the_dashboards_limit() -> None:
    assert maintenance_policy({"maintenance": {"archiveDashboardAfter": "bogus"}}, rules="2026.7")
