"""The plan of a session cleanup for each agent, as `sessions cleanup` shows it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..core.javascript import is_finite
from ..errors import StateError
from ..report.escape import escape
from ..report.text import Column, table
from ..sessions.document import section, text_of
from ..sessions.limits import MaintenancePolicy, maintenance_policy
from ..sessions.maintenance import KEEP, MaintenancePlan, PlannedRow, plan_maintenance
from ..timespec import format_duration
from .options import Call
from .sessions_place import AgentStore, Configuration, agent_store, live_jobs

ACTION_FIELDS = (
    "agentId",
    "key",
    "action",
    "kind",
    "reason",
    "protected",
    "archiveReason",
    "leavesTranscript",
    "note",
)
NOT_PLANNED = ("disk budget", "unreferenced artifacts")
_COUNTERS = (
    ("prune missing transcripts", "missing"),
    ("retire stale direct DM sessions", "dmScopeRetired"),
    ("prune stale model-run probes", "modelRunPruned"),
    ("archive inactive sessions", "archived"),
    ("archive cap overflow", "capArchived"),
    ("prune stale", "pruned"),
    ("cap overflow", "capped"),
)


class Selection(NamedTuple):
    """What a cleanup takes into account, under the names of OpenClaw's own flags."""

    enforce: bool
    fix_missing: bool
    fix_dm_scope: bool
    active_key: str | None
    rules: str


class AgentPlan(NamedTuple):
    """The plan for one agent: as a preview, and as it would be applied."""

    store: AgentStore
    preview: MaintenancePlan
    applied: MaintenancePlan
    orphaned_jobs: tuple[str, ...]
    warnings: tuple[str, ...]

    @property
    def agent_id(self) -> str:
        return self.store.agent_id


def plans(
    call: Call, config: Configuration, agents: list[str], wanted: Selection
) -> tuple[list[AgentPlan], dict[str, StateError]]:
    """The plan of each agent, and what kept the others from having one."""
    found: list[AgentPlan] = []
    failed: dict[str, StateError] = {}
    jobs = live_jobs(call)
    for agent in agents:
        try:
            store = agent_store(call, config, agent, rules=wanted.rules, messages=wanted.fix_missing)
            policy = maintenance_policy(section(config.data, "session"), rules=store.rules.maintenance)
            found.append(_plan(call, store, policy, wanted, jobs))
        except StateError as error:
            if len(agents) == 1:
                raise
            failed[agent] = error
    return found, failed


def _plan(
    call: Call,
    store: AgentStore,
    policy: MaintenancePolicy,
    wanted: Selection,
    jobs: frozenset[str] | None,
) -> AgentPlan:
    def plan(*, applying: bool) -> MaintenancePlan:
        return plan_maintenance(
            store.rows,
            policy,
            call.now,
            applying=applying,
            enforce=wanted.enforce,
            active_key=wanted.active_key,
            agent_id=store.agent_id,
            fix_missing=wanted.fix_missing,
            fix_dm_scope=wanted.fix_dm_scope,
            live_jobs=jobs or (),
        )

    preview = plan(applying=False)
    warnings = list(store.warnings)
    if preview.undecided:
        warnings.append(
            f"--fix-missing left {len(preview.undecided)} sessions alone: transcripts not readable"
        )
    orphaned = () if jobs is None else tuple(_orphaned(preview, jobs))
    return AgentPlan(store, preview, plan(applying=True), orphaned, tuple(warnings))


def _orphaned(plan: MaintenancePlan, jobs: frozenset[str]) -> Iterator[str]:
    """The base sessions of cron jobs that no longer exist."""
    bases = {f"cron:{job}".lower() for job in jobs}
    for row in plan.rows:
        rest = row.key.split(":", 2)[-1].lower()
        if row.kind == "cron" and rest.count(":") == 1 and rest not in bases:
            yield row.key


def store_view(plan: AgentPlan, *, applied: bool = False) -> dict[str, Any]:
    """The members that OpenClaw's own document has for a store, and ours behind them."""
    summary = plan.preview.summary()
    changes = summary.pop("wouldMutate")
    return {
        "agentId": plan.agent_id,
        "storePath": plan.store.path,
        "mode": summary.pop("mode"),
        "dryRun": not applied,
        **summary,
        "wouldMutate": changes,
        "notPlanned": list(NOT_PLANNED),
        "rules": {"set": plan.preview.rules, "reason": plan.store.rules.reason},
        "orphanedJobs": list(plan.orphaned_jobs),
        "actions": [action_view(plan, row) for row in plan.preview.rows],
    }


def action_view(plan: AgentPlan, row: PlannedRow) -> dict[str, Any]:
    return {
        "agentId": plan.agent_id,
        "key": row.key,
        "action": row.action,
        "kind": row.kind,
        "reason": row.reason,
        "protected": row.protected,
        "archiveReason": row.archive_reason,
        "leavesTranscript": row.leaves_transcript,
        "note": row.note,
    }


def plan_text(call: Call, plan: AgentPlan, *, several: bool) -> Iterator[str]:
    """The lines of a preview, in OpenClaw's order."""
    summary = plan.preview.summary()
    removed = summary["beforeCount"] - summary["afterCount"]
    if several:
        yield f"Agent: {escape(plan.agent_id)}"
    yield f"Session store: {escape(plan.store.path)}"
    yield f"Rules: {plan.preview.rules} ({escape(plan.store.rules.reason)})"
    yield f"Maintenance mode: {plan.preview.mode}"
    yield f"Entries: {summary['beforeCount']} -> {summary['afterCount']} (remove {removed})"
    for words, name in _COUNTERS:
        yield f"Would {words}: {summary[name]}"
    yield f"Not planned: {', '.join(NOT_PLANNED)}"
    for key in plan.orphaned_jobs:
        yield f"Orphan cron session, its job is gone: {escape(key)}"
    yield ""
    yield "Planned session actions:"
    yield from _table(call, plan)
    yield ""
    yield from _labels(plan)


def _table(call: Call, plan: AgentPlan) -> Iterator[str]:
    heads = ["Action", "Key", "Age", "Model", "Flags", "Why"]
    cells = []
    for stored, row in zip(plan.store.rows, plan.preview.rows, strict=True):
        updated = stored.entry.get("updatedAt")
        age = format_duration(call.now - int(updated)) if is_finite(updated) and updated > 0 else None
        flags = [row.kind] if row.kind != "ordinary" else []
        flags += ["protected"] if row.protected else []
        why = [row.reason, "a transcript archive stays" if row.leaves_transcript else None, row.note]
        cells.append(
            [
                row.action,
                row.key,
                age,
                text_of(stored.entry.get("model")) or None,
                " ".join(flags) or None,
                "; ".join(filter(None, why)),
            ]
        )
    return table([Column(head) for head in heads], cells, width=call.width, palette=call.palette)


def _labels(plan: AgentPlan) -> Iterator[str]:
    total: Counter[str] = Counter()
    by_label: dict[str, Counter[str]] = {}
    for stored, row in zip(plan.store.rows, plan.preview.rows, strict=True):
        word = "kept" if row.action == KEEP else "archived" if row.archives else "pruned"
        label = text_of(stored.entry.get("label")) or "(unlabeled)"
        by_label.setdefault(label, Counter())[word] += 1
        total[word] += 1
    yield "Summary by Label:"
    for label in sorted(by_label):
        yield f"{escape(label)}  {_counted(by_label[label])}"
    yield f"Total: {_counted(total) or '0 kept'}"


def _counted(words: Counter[str]) -> str:
    return ", ".join(f"{words[word]} {word}" for word in ("kept", "archived", "pruned") if words[word])
