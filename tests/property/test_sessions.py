"""Rules of sessions that hold for every key, every clock and every store."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from openclaw_state import (
    MaintenancePlan,
    Origin,
    Peer,
    StoredSession,
    canonical_key,
    freshness,
    maintenance_policy,
    parse_key,
    plan_maintenance,
    reset_policy,
    session_key,
)
from openclaw_state.core import keys
from openclaw_state.core.javascript import trim
from openclaw_state.sessions.peers import DM_SCOPES

NOW = 1_800_000_000_000
DAY = 86_400_000
ZONES = (
    "UTC",
    "America/New_York",
    "America/Sao_Paulo",
    "Pacific/Apia",
    "Asia/Kathmandu",
    "Australia/Lord_Howe",
)

kinds = st.sampled_from(["direct", "dm", "group", "channel", "thread", "cron", "run", "hook", "subagent"])
names = st.sampled_from(["agent", "main", "Work", "telegram", "signal", "Matrix", "dashboard", "heartbeat"])
others = st.sampled_from(["", " ", "AbC", "-5", "\u0130x", "\u03a3", "1@g.us"])
words = kinds | names | others
session_keys = st.lists(words, min_size=1, max_size=9).map(":".join) | st.text(max_size=20)
configs = st.fixed_dictionaries(
    {
        "agents": st.sampled_from(
            [{}, {"entries": {"main": {}}}, {"entries": {"work": {"default": True}, "kids": {}}}]
        ),
        "session": st.fixed_dictionaries(
            {},
            optional={
                "mainKey": st.sampled_from(["Home", "main", " ", "a:b"]),
                "scope": st.sampled_from(["global", "per-sender"]),
                "dmScope": st.sampled_from(DM_SCOPES),
            },
        ),
    }
)
rule_sets = st.sampled_from(["2026.7", "2026.9"])


@given(session_keys, configs, st.none() | st.sampled_from(["main", "Work"]))
@example("agent:main:main", {"agents": {"entries": {"work": {}}}}, None)
@example(":signal:group: A :x", {}, None)
def test_a_canonical_key_stays_as_it_is(key: str, config: dict[str, Any], agent: str | None) -> None:
    once = canonical_key(key, config, agent_id=agent)
    assert canonical_key(once, config, agent_id=agent) == once


@given(session_keys)
def test_a_key_that_parses_is_its_agent_and_its_rest(key: str) -> None:
    parsed = parse_key(key)
    assert (parsed.agent_id is None) == (parsed.rest is None) == (parsed.shape != "agent")
    if parsed.agent_id is not None and parsed.rest is not None:
        again = parse_key(keys.qualify(parsed.agent_id, parsed.rest))
        assert (again.agent_id, again.rest) == (parsed.agent_id, parsed.rest)


@given(session_keys)
def test_a_thread_is_its_base_and_its_id(key: str) -> None:
    base, thread_id = parse_key(key).thread
    assert trim(key).startswith(base)
    assert thread_id is None or trim(key).endswith(thread_id)


@given(
    configs,
    st.sampled_from(["Telegram", "signal", "matrix", ""]),
    st.sampled_from(["direct", "dm", "group", "channel"]),
    st.sampled_from(["", "AbC", "1:2", " 7 "]),
)
def test_every_route_leads_to_the_row_that_the_store_keeps(
    config: dict[str, Any], channel: str, kind: str, peer: str
) -> None:
    route = session_key(Origin(channel, peer=Peer(kind, peer)), config)
    assert canonical_key(route.session_key, config, agent_id=route.agent_id) == route.stored_key
    assert canonical_key(route.stored_key, config, agent_id=route.agent_id) == route.stored_key
    assert (route.session_key == route.main_session_key) == (route.last_route_policy == "main")


@st.composite
def judgements(draw: st.DrawFn) -> tuple[Any, ...]:
    """A policy, times that lie behind the clock, the clock, and a zone."""
    block = draw(
        st.fixed_dictionaries(
            {},
            optional={
                "mode": st.sampled_from(["none", "daily", "idle"]),
                "atHour": st.integers(0, 23),
                "idleMinutes": st.integers(0, 3_000),
            },
        )
    )
    session = {"reset": block} if draw(st.booleans()) else {}
    policy = reset_policy(session, "direct", rules=draw(rule_sets))
    now = draw(st.integers(1_300_000_000_000, NOW))
    past = st.none() | st.integers(0, 3 * DAY).map(lambda age: now - age)
    return policy, draw(past), draw(past), now, draw(st.sampled_from(ZONES))


@given(judgements(), st.integers(0, 3 * DAY))
def test_a_stale_session_does_not_become_fresh_by_waiting(judgement: tuple[Any, ...], wait: int) -> None:
    policy, started, last, now, tz = judgement
    if not freshness(policy, started, last, now, tz).fresh:
        assert not freshness(policy, started, last, now + wait, tz).fresh


@given(judgements())
def test_a_fresh_session_expires_when_it_is_said_to(judgement: tuple[Any, ...]) -> None:
    policy, started, last, now, tz = judgement
    found = freshness(policy, started, last, now, tz)
    if found.expires_at is None:
        later = freshness(policy, started, last, now + 4_000 * DAY, tz)
        assert later.fresh == found.fresh
        return
    assert found.fresh
    assert found.expires_at > now
    assert freshness(policy, started, last, found.expires_at - 1, tz).fresh
    ended = freshness(policy, started, last, found.expires_at, tz)
    assert (ended.fresh, ended.reason) == (False, found.expires_by)


@given(judgements())
def test_a_daily_boundary_is_behind_the_clock_and_less_than_two_days(judgement: tuple[Any, ...]) -> None:
    policy, started, last, now, tz = judgement
    boundary = freshness(policy, started, last, now, tz).daily_reset_at
    if policy.mode == "daily":
        assert boundary is not None
        assert 0 <= now - boundary < 2 * DAY + DAY // 12
    else:
        assert boundary is None


ages = st.none() | st.integers(0, 60 * DAY)
opened = st.sampled_from(["main", "notes", "telegram:group:-1", "telegram:direct:1", "x:thread:1"])
machines = st.sampled_from(["hook:1", "cron:j", "cron:j:run:r", "subagent:1", "dashboard:1"])
probes = st.just("explicit:model-run-00000000-0000-4000-8000-00000000000")
rests = opened | machines | probes
flags = st.fixed_dictionaries(
    {},
    optional={
        "archivedAt": st.just(1),
        "pinnedAt": st.just(1),
        "status": st.sampled_from(["running", "done"]),
        "modelSelectionLocked": st.booleans(),
        "chatType": st.sampled_from(["direct", "group"]),
        "parentSessionKey": st.sampled_from(["agent:main:main", "agent:main:notes0"]),
    },
)


@st.composite
def stores(draw: st.DrawFn) -> list[StoredSession]:
    rows = []
    for number, (rest, age, activity) in enumerate(draw(st.lists(st.tuples(rests, ages, ages), max_size=12))):
        times = {"updatedAt": age, "lastInteractionAt": activity}
        entry = {name: NOW - at for name, at in times.items() if at is not None} | draw(flags)
        suffix = "" if rest == "main" else f"{number:x}"
        rows.append(StoredSession(f"agent:main:{rest}{suffix}", entry | {"sessionId": "s"}, True, True))
    return rows


limits = st.fixed_dictionaries(
    {},
    optional={
        "maxEntries": st.integers(1, 8),
        "pruneAfter": st.sampled_from(["1d", "20d"]),
        "archiveDashboardAfter": st.sampled_from([False, "3d"]),
        "preserveRecent": st.sampled_from([False, "2d"]),
    },
)


def planned(rows: list[StoredSession], settings: dict[str, Any], rules: str, forced: bool) -> MaintenancePlan:
    policy = maintenance_policy({"maintenance": settings}, rules=rules)
    return plan_maintenance(rows, policy, NOW, forced=forced, active_key="agent:main:notes1")


def applied(rows: list[StoredSession], plan: MaintenancePlan) -> list[StoredSession]:
    """The store after the plan."""
    left = []
    for row, step in zip(rows, plan.rows, strict=True):
        if not step.deletes:
            entry = {**row.entry, "archivedAt": NOW} if step.archives else row.entry
            left.append(row._replace(entry=entry))
    return left


@given(stores(), limits, rule_sets, st.booleans())
def test_a_plan_never_touches_a_protected_row(
    rows: list[StoredSession], settings: dict[str, Any], rules: str, forced: bool
) -> None:
    plan = planned(rows, settings, rules, forced)
    assert [step.key for step in plan.rows] == [row.key for row in rows]
    for row, step in zip(rows, plan.rows, strict=True):
        facts = (
            "archivedAt" in row.entry,
            row.entry.get("status") == "running",
            row.entry.get("modelSelectionLocked") is True,
            row.key in ("agent:main:main", "agent:main:notes1"),
            ":group:" in row.key or row.key.startswith("agent:main:x:thread:"),
        )
        if any(facts) or step.protected:
            assert (step.action, step.protected) == ("keep", True)
            assert step.reason


@given(stores(), limits, rule_sets, st.booleans())
def test_a_plan_that_was_applied_leaves_nothing_to_do(
    rows: list[StoredSession], settings: dict[str, Any], rules: str, forced: bool
) -> None:
    plan = planned(rows, settings, rules, forced)
    left = applied(rows, plan)
    assert len(left) == plan.after
    assert not planned(left, settings, rules, forced).changes


@given(stores(), limits, rule_sets)
def test_a_forced_plan_reaches_the_cap_or_keeps_only_protected_rows(
    rows: list[StoredSession], settings: dict[str, Any], rules: str
) -> None:
    plan = planned(rows, settings, rules, True)
    most = maintenance_policy({"maintenance": settings}, rules=rules).max_entries
    live = [
        step
        for row, step in zip(rows, plan.rows, strict=True)
        if step.action == "keep" and "archivedAt" not in row.entry
    ]
    assert len(live) <= most or all(step.protected for step in live)


@given(stores(), limits)
def test_july_archives_nothing_and_today_deletes_only_what_nobody_opened(
    rows: list[StoredSession], settings: dict[str, Any]
) -> None:
    assert not any(step.archives for step in planned(rows, settings, "2026.7", True).steps)
    deleted = [step for step in planned(rows, settings, "2026.9", True).steps if step.deletes]
    assert {step.kind for step in deleted} <= {"probe", "cron", "cron run", "synthetic"}
