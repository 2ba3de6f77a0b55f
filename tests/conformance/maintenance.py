"""Driver for the suites `maintenance` and `maintenance-2026.7` (contract, sessions section 10.3)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from openclaw_state import StoredSession, maintenance_policy, plan_maintenance
from openclaw_state.errors import ConfigurationError
from openclaw_state.sessions.maintenance import MaintenancePlan, PlannedRow

from .compare import difference

AGENT = "main"
MOST_SHOWN = 12
REMOVED = {"prune-model-run": "model-run-pruned", "prune-stale": "pruned", "cap-overflow": "capped"}
ARCHIVED = {"archive-dashboard": "dashboard", "archive-age": "age", "archive-cap": "cap"}
ARCHIVE_FILE = "<sid>.jsonl.deleted.<ts>.<generation>.zst"


def cases(document: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    rules = document.get("rules", "2026.9")
    for case in document["cases"]:
        check = _check_cleanup if case["op"] == "cleanup" else _check_plan
        yield case["id"], partial(check, case, rules)


def _check_cleanup(case: dict[str, Any], rules: str) -> str | None:
    expected, flags = case["expect"], case.get("flags") or {}
    try:
        policy = maintenance_policy(case["config"].get("session") or {}, rules=rules)
    except ConfigurationError:
        return difference(expected, {"error": "invalid-config"}, "answer")
    # A database hands out its rows in the byte order of their keys.
    rows = sorted(map(_stored, case["rows"]), key=lambda row: row.key.encode())
    plan, applied = (
        plan_maintenance(
            rows,
            policy,
            case["now"],
            applying=applying,
            enforce=flags.get("enforce", False),
            active_key=flags.get("activeKey"),
            agent_id=AGENT,
            fix_missing=flags.get("fixMissing", False),
            fix_dm_scope=flags.get("fixDmScope", False),
        )
        for applying in (False, True)
    )
    answer = {
        "preview": {
            "summary": _summary(plan, policy.prune_after_ms) | {"dryRun": True},
            "actions": {row.key: row.action for row in plan.rows},
        },
        "applied": {
            "summary": _summary(applied, policy.prune_after_ms)
            | {"dryRun": False, "applied": True, "appliedCount": applied.after},
            "rows": {row.key: _outcome(row) for row in applied.rows},
            "archiveFiles": [ARCHIVE_FILE for row in applied.steps if row.deletes and row.leaves_transcript],
        },
    }
    return _named_difference(expected, answer)


def _named_difference(expected: dict[str, Any], answer: dict[str, Any]) -> str | None:
    """In these objects only the members that the file names are compared."""
    for part, members in expected.items():
        for name, wanted in members.items():
            found = answer[part][name]
            if name == "summary":
                found = {member: found.get(member) for member in wanted}
            if problem := difference(wanted, found, f"{part}.{name}"):
                return problem
    return None


def _stored(row: dict[str, Any]) -> StoredSession:
    has_transcript = "transcript" in row
    return StoredSession(row["key"], row["entry"], has_transcript, has_transcript)


def _summary(plan: MaintenancePlan, older_than: int) -> dict[str, Any]:
    nothing = {"scannedFiles": 0, "removedFiles": 0, "freedBytes": 0, "olderThanMs": older_than}
    return plan.summary() | {"agentId": AGENT, "unreferencedArtifacts": nothing}


def _outcome(row: PlannedRow) -> str:
    if row.deletes:
        return "removed"
    if row.archives:
        return f"archived:{row.archive_reason}"
    return "kept-archived" if row.reason == "archived already" else "kept"


def _check_plan(case: dict[str, Any], rules: str) -> str | None:
    session = {"maintenance": case["config"]["maintenance"]}
    policy = maintenance_policy(session, rules=rules, allow_no_entries=True)
    rows = [_stored(row) for row in case.get("rows") or _generated(case["now"], case["generate"])]
    plan = plan_maintenance(rows, policy, case["now"], forced=case["force"])
    archived = [[row.key, ARCHIVED[row.action]] for row in plan.steps if row.archives]
    phases = Counter(phase for _, phase in archived)
    answer = {
        "archived": len(archived),
        "capArchived": phases["cap"],
        "modelRunPruned": plan.count("prune-model-run"),
        "pruned": plan.count("prune-stale"),
        "capped": plan.count("archive-cap", "cap-overflow"),
        "removed": [[row.key, REMOVED[row.action]] for row in plan.steps if row.deletes],
        "archivedKeys": archived
        if len(archived) <= MOST_SHOWN
        else {"count": len(archived), "first": archived[0], "last": archived[-1]},
    }
    expected = case["expect"]
    return difference(expected, {name: answer[name] for name in expected}, "answer")


def _generated(now: int, recipe: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for index in range(recipe["count"]):
        at = now - recipe["newestAgeMs"] - (recipe["count"] - index) * recipe["stepMs"]
        entry = {"sessionStartedAt": at, "lastInteractionAt": at, "updatedAt": at}
        yield {"key": f"{recipe['keyPrefix']}{index:04d}", "entry": entry}
