"""sessions cleanup: one plan with its reasons; OpenClaw applies it, and what happened is compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from openclaw_state import SignalLog
from tests.cli.agents import Agents
from tests.cli.harness import Cli
from tests.support import DAY, PARENT, Clock, T, change, goal, openclaw_file, unpack_state_directory

PROBE = "agent:main:explicit:model-run-11111111-1111-4111-8111-111111111111"
OLD = {"updatedAt": T - 40 * DAY}


@pytest.fixture
def agents(cli: Cli, tmp_path: Path) -> Agents:
    return Agents(cli, tmp_path / "openclaw")


def plan(agents: Agents, *argv: str, **options: Any) -> Any:
    return agents.json("sessions", "cleanup", *argv, **options)


def actions(document: Any) -> dict[str, str]:
    """Key -> action of the rows that change."""
    return {row["key"]: row["action"] for row in document["actions"] if row["action"] != "keep"}


def reasons(document: Any) -> dict[str, str]:
    return {row["key"]: row["reason"] for row in document["actions"]}


def crowd(count: int) -> dict[str, dict[str, int]]:
    """Ordinary sessions, the first the least active."""
    return {f"agent:main:chat-{number:02}": {"updatedAt": T - DAY + number} for number in range(count)}


def test_without_a_flag_it_plans_and_changes_nothing(agents: Agents) -> None:
    agents.install({PARENT: None})
    agents.add({PARENT: OLD, "agent:main:hook:1": OLD}, transcripts=("agent:main:hook:1",))
    before = agents.store().read_bytes()
    found = plan(agents)
    assert actions(found) == {"agent:main:hook:1": "prune-stale"}
    assert (found["dryRun"], found["beforeCount"], found["afterCount"]) == (True, 2, 1)
    assert (found["pruned"], found["wouldMutate"]) == (1, True)
    row = next(row for row in found["actions"] if row["key"] == "agent:main:hook:1")
    assert row["leavesTranscript"] is True
    assert reasons(found)[PARENT] == "main session"
    assert agents.store().read_bytes() == before
    assert not (agents.programs / "called").exists()
    assert "changes at once" in " ".join(agents.cli.process("sessions", "cleanup", "--help").out.split())


def test_the_text_has_openclaws_lines(agents: Agents) -> None:
    agents.add({PARENT: {"label": "Home"}, "agent:main:hook:1": OLD})
    done = agents("sessions", "cleanup")
    lines = done.out.splitlines()
    assert lines[0] == f"Session store: {agents.store()}"
    assert "Rules: 2026.9 (the agent database was written by 2026.9.6)" in lines
    assert "Entries: 2 -> 1 (remove 1)" in lines
    assert "Would prune stale: 1" in lines
    assert lines[-4:] == [
        "Summary by Label:",
        "(unlabeled)  1 pruned",
        "Home  1 kept",
        "Total: 1 kept, 1 pruned",
    ]
    assert done.err == "nothing was changed; --apply lets openclaw do it\n"


def test_the_cap_takes_exactly_the_victim_that_was_shown(agents: Agents) -> None:
    agents.configure(session={"maintenance": {"maxEntries": 20}})
    agents.add(crowd(21))
    victim = "agent:main:chat-00"
    assert actions(plan(agents)) == {victim: "archive-cap"}
    agents.install({victim: {"archivedAt": T, "archiveReason": "active-session-cap"}})
    done = plan(agents, "--apply", "-y")
    assert (done["applied"], done["appliedCount"], done["differences"]) == (True, 21, [])
    assert agents.called == ["sessions", "cleanup", "--agent", "main", "--json"]
    assert plan(agents)["wouldMutate"] is False


def test_the_rules_of_july_delete_the_victim(agents: Agents) -> None:
    agents.configure(session={"maintenance": {"maxEntries": 20}})
    agents.add(crowd(21), release="2026.7.1")
    found = plan(agents)
    assert found["rules"]["set"] == "2026.7"
    assert actions(found) == {"agent:main:chat-00": "cap-overflow"}
    agents.install({"agent:main:chat-00": None})
    assert plan(agents, "--apply", "-y")["appliedCount"] == 20


def test_an_openclaw_that_does_nothing_is_found_out(agents: Agents) -> None:
    agents.add({"agent:main:hook:1": OLD})
    agents.install()
    done = agents("sessions", "cleanup", "--apply", "-y", status=1)
    assert "DIFFERENT: agent:main:hook:1 was planned removed, and was kept" in done.out
    found = plan(agents, "--apply", "-y", status=1)
    assert [(one["key"], one["known"]) for one in found["differences"]] == [("agent:main:hook:1", False)]


def test_a_row_that_went_unasked_is_found_out(agents: Agents) -> None:
    agents.add({PARENT: {}, "agent:main:chat": {}})
    agents.install({"agent:main:chat": None})
    (difference,) = plan(agents, "--apply", "-y", status=1)["differences"]
    assert (difference["planned"], difference["happened"]) == ("kept", "removed")


def test_an_openclaw_that_fails_is_not_applied(agents: Agents) -> None:
    agents.add({PARENT: {}})
    agents.install(status=3)
    found = plan(agents, "--apply", "-y", status=1)
    assert (found["applied"], found["exitStatus"]) == (False, 3)


def test_warn_mode_and_ancestors_are_known_differences(agents: Agents) -> None:
    agents.configure(session={"maintenance": {"mode": "warn"}})
    agents.add({"agent:main:hook:1": OLD})
    agents.install()
    (difference,) = plan(agents, "--apply", "-y")["differences"]
    assert difference["known"]
    assert "--enforce" in difference["why"]
    agents.configure()
    child = "agent:main:subagent:1"
    agents.add({child: {"spawnedBy": "agent:main:hook:1"}})
    (difference,) = plan(agents, "--apply", "-y", "--active-key", child)["differences"]
    assert (difference["known"], difference["why"]) == (True, "ancestor of the active session")


def test_the_same_selection_and_flags_are_handed_on(agents: Agents) -> None:
    agents.add({PARENT: {}}, transcripts=(PARENT,))
    agents.install()
    flags = ["--enforce", "--fix-missing", "--fix-dm-scope", "--active-key", "agent:main:x"]
    done = agents("sessions", "cleanup", "--agent", "main", *flags, "--apply", "-y")
    assert agents.called == ["sessions", "cleanup", "--agent", "main", *flags, "--json"]
    assert "running: OPENCLAW_STATE_DIR=" in done.err


def test_without_openclaw_it_says_how_to_apply(agents: Agents) -> None:
    agents.add({PARENT: {}})
    error = agents("sessions", "cleanup", "--apply", "-y", "--json", status=78).error
    assert error["hint"].endswith("openclaw sessions cleanup --agent main --json")


def test_applying_needs_a_yes(agents: Agents) -> None:
    agents.add({"agent:main:hook:1": OLD})
    agents.install({"agent:main:hook:1": None})
    agents("sessions", "cleanup", "--apply", status=9)
    assert agents.keys() == {"agent:main:hook:1"}


def test_a_running_row_is_kept_and_the_next_one_goes(agents: Agents) -> None:
    agents.configure(session={"maintenance": {"maxEntries": 2}})
    rows: dict[str, Any] = crowd(3)
    rows["agent:main:chat-00"]["status"] = "running"
    agents.add(rows)
    found = plan(agents)
    assert actions(found) == {"agent:main:chat-01": "archive-cap"}
    assert reasons(found)["agent:main:chat-00"] == "running"
    agents.install({"agent:main:chat-01": {"status": "running"}})
    (difference,) = plan(agents, "--apply", "-y")["differences"]
    assert (difference["known"], difference["why"]) == (True, "it runs now")


def test_a_row_that_runs_though_its_run_ended_is_not_protected(agents: Agents) -> None:
    key = "agent:main:subagent:1"
    agents.add({key: {**OLD, "status": "running", "endedAt": T - 39 * DAY}})
    found = plan(agents)
    assert actions(found) == {key: "prune-stale"}
    assert "the run ended" in found["actions"][0]["note"]
    agents.install()
    (difference,) = plan(agents, "--apply", "-y")["differences"]
    assert difference["known"]
    assert "OpenClaw keeps it" in difference["why"]


def test_cron_runs_go_a_live_jobs_base_stays_and_an_orphan_is_told(agents: Agents) -> None:
    state = agents.root / "state" / "openclaw.sqlite"
    state.parent.mkdir()
    openclaw_file(state)
    change(state, "CREATE TABLE cron_jobs (job_id TEXT)", "INSERT INTO cron_jobs VALUES ('J')")
    base, run, orphan = "agent:main:cron:j", "agent:main:cron:j:run:r", "agent:main:cron:gone"
    agents.add({base: OLD, run: OLD, orphan: {"updatedAt": T}})
    found = plan(agents)
    assert actions(found) == {run: "prune-stale"}
    assert reasons(found)[base] == "its cron job exists"
    assert found["orphanedJobs"] == [orphan]
    assert f"Orphan cron session, its job is gone: {orphan}" in agents("sessions", "cleanup").out


def test_probes_go_first_and_only_under_pressure(agents: Agents) -> None:
    near = PROBE[:-36] + "notauuid"
    rows = {PROBE: {"updatedAt": T - 30 * 3_600_000}, near: {"updatedAt": T - 30 * 3_600_000}, PARENT: {}}
    agents.add(rows)
    assert actions(plan(agents)) == {}
    agents.configure(session={"maintenance": {"maxEntries": 2}})
    assert actions(plan(agents)) == {PROBE: "prune-model-run"}


def test_fix_missing_and_fix_dm_scope_take_what_they_name(agents: Agents) -> None:
    chat = "agent:main:telegram:direct:5"
    agents.add({PARENT: {}, chat: {}}, transcripts=(chat,))
    assert actions(plan(agents)) == {}
    assert actions(plan(agents, "--fix-missing")) == {PARENT: "prune-missing"}
    assert actions(plan(agents, "--fix-dm-scope")) == {chat: "retire-dm-scope"}


def test_every_agent_has_a_plan_and_one_that_cannot_be_read_stops_no_other(agents: Agents) -> None:
    agents.add({PARENT: {}})
    agents.add({"agent:work:hook:1": OLD}, agent="work")
    found = plan(agents, "--all-agents")
    assert [(one["agentId"], one["wouldMutate"]) for one in found["stores"]] == [
        ("main", False),
        ("work", True),
    ]
    agents.store("work").write_bytes(b"four letters and" * 512)
    broken = plan(agents, "--all-agents", status=1)
    assert [one["agentId"] for one in broken["stores"]] == ["main"]
    assert list(broken["partialError"]) == ["work"]


def test_a_release_between_the_rule_sets_is_planned_by_the_older_and_judged_by_the_newer(
    agents: Agents,
) -> None:
    agents.add({"agent:main:scratch": OLD}, release="2026.8.2")
    found = plan(agents)
    assert (found["rules"]["set"], actions(found)) == ("2026.7", {"agent:main:scratch": "prune-stale"})
    assert found["warnings"] == ["main: release between the two rule sets"]
    judged = agents.json("sessions", "freshness", "agent:main:scratch")
    assert (judged["rules"]["set"], judged["verdict"]) == ("2026.9", "no reset")


def test_stores_of_openclaw_have_plans_and_stay_as_they_are(
    agents: Agents, peer: Path, tmp_path: Path
) -> None:
    path = tmp_path / "peer.sqlite"
    path.write_bytes((peer / "peer-agent-2026.9.6.sqlite").read_bytes())
    before = path.read_bytes()
    found = agents.cli.json("sessions", "cleanup", "--db", path, "--fix-missing")
    assert len(found["actions"]) == found["beforeCount"] > 0
    for row in found["actions"]:
        judged = agents.cli.json("sessions", "freshness", row["key"], "--db", path)
        assert judged["rules"]["set"] == "2026.9"
    assert path.read_bytes() == before


def test_a_state_directory_of_openclaw_has_a_plan_for_each_agent(
    cli: Cli, peer: Path, tmp_path: Path
) -> None:
    folder = unpack_state_directory(peer / "peer-statedir.tar.gz", tmp_path / "unpacked")
    found = cli.json("sessions", "cleanup", "--all-agents", "--state-dir", folder)
    assert [one["agentId"] for one in found["stores"]] == ["main", "work"]
    assert all(one["rules"]["set"] == "2026.9" for one in found["stores"])


def test_a_configuration_that_openclaw_refuses_plans_nothing(agents: Agents) -> None:
    agents.configure(session={"maintenance": {"pruneAfter": "1w"}})
    agents.add({PARENT: OLD})
    error = agents("sessions", "cleanup", "--json", status=78).error
    assert "session.maintenance.pruneAfter" in error["message"]


def test_forget_takes_old_sessions_by_the_same_classes(cli: Cli, log: SignalLog, clock: Clock) -> None:
    old, chat, kept = "agent:main:hook:1", "agent:main:explicit:x", "agent:main:telegram:group:-5"
    for key in (old, chat, kept, PARENT):
        goal(log, key)
    clock.now = cli.now = T + 40 * DAY
    goal(log, "agent:main:hook:2")
    planned = cli.json("forget", "--older-than", "30d", "--dry-run")
    assert [(one["sessionKey"], one["kind"]) for one in planned["sessions"]] == [
        (chat, "ordinary"),
        (old, "synthetic"),
    ]
    assert planned["protected"] == 2
    synthetic = cli.json("forget", "--older-than", "30d", "--synthetic-only", "--dry-run")
    assert [one["sessionKey"] for one in synthetic["sessions"]] == [old]
    capped = cli.json("forget", "--max-sessions", "4", "--dry-run")
    assert [one["sessionKey"] for one in capped["sessions"]] == [old]
    assert log.version(old) > 0
    done = cli.json("forget", "--older-than", "30d", "-y")
    assert [one["sessionKey"] for one in done["sessions"]] == [chat, old]
    assert (log.version(old), log.version(chat)) == (0, 0)
    assert log.version(kept) > 0
    assert cli("forget", "--older-than", "30d", "-y").out == "nothing to remove\n"


def test_forgetting_by_age_is_for_the_tools_own_file(cli: Cli, tmp_path: Path) -> None:
    path = openclaw_file(tmp_path / "peer.sqlite")
    assert cli("forget", "--older-than", "1d", "--json", "--dry-run", path=path, status=9).error["hint"]
    cli("forget", status=2)
    cli("forget", PARENT, "--older-than", "1d", status=2)
    cli("forget", PARENT, "--synthetic-only", status=2)
