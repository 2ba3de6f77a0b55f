"""What maintenance would do with each session of a store: the one planner, for preview and apply.

Contract, sessions sections 6.4, 7.2, 7.3 and 7.4.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from ..core import keys
from ..core.javascript import is_finite
from .limits import DAY_MS, MaintenancePolicy
from .protection import (
    StoredSession,
    active_keys,
    activity,
    contradiction,
    is_dashboard,
    is_direct_chat,
    is_probe,
    is_synthetic,
    missing_transcript,
    protection,
    session_class,
)
from .rules import JULY, RuleSet

PROBE_AGE_MS = DAY_MS
KEEP = "keep"
ARCHIVE_REASONS = {
    "archive-dashboard": "stale-dashboard",
    "archive-age": "age-retention",
    "archive-cap": "active-session-cap",
}
DELETIONS = ("prune-missing", "retire-dm-scope", "prune-model-run", "prune-stale", "cap-overflow")


class PlannedRow(NamedTuple):
    """What happens to one row, and why.

    action is OpenClaw's word (`keep`, `archive-age`, `prune-stale`, ...); kind the class of the
    session; reason says what took the row, or what keeps it; archive_reason is stored with a row
    that is archived in place; leaves_transcript tells whether a transcript archive stays behind
    a deleted row, None when nobody has looked; note is a contradiction in the row itself.
    """

    key: str
    action: str
    kind: str
    reason: str
    protected: bool
    archive_reason: str | None
    leaves_transcript: bool | None
    note: str | None = None

    @property
    def deletes(self) -> bool:
        return self.action in DELETIONS

    @property
    def archives(self) -> bool:
        return self.action in ARCHIVE_REASONS


class MaintenancePlan(NamedTuple):
    """The plan for a store (contract, sessions section 7.2).

    rows has every row in the order given, steps those that change in the order of the passes.
    Counts are rows; before and after include archived ones. undecided are the keys that
    `--fix-missing` left alone because their transcripts are not known.
    """

    rules: RuleSet
    mode: str
    rows: tuple[PlannedRow, ...]
    steps: tuple[PlannedRow, ...]
    undecided: tuple[str, ...] = ()

    def count(self, *actions: str) -> int:
        return sum(step.action in actions for step in self.steps)

    @property
    def before(self) -> int:
        return len(self.rows)

    @property
    def after(self) -> int:
        return self.before - self.count(*DELETIONS)

    @property
    def changes(self) -> bool:
        return bool(self.steps)

    def summary(self) -> dict[str, Any]:
        """The counters of `openclaw sessions cleanup --json`, under its names."""
        return {
            "mode": self.mode,
            "beforeCount": self.before,
            "afterCount": self.after,
            "missing": self.count("prune-missing"),
            "dmScopeRetired": self.count("retire-dm-scope"),
            "modelRunPruned": self.count("prune-model-run"),
            "archived": self.count("archive-dashboard", "archive-age"),
            "capArchived": self.count("archive-cap"),
            "pruned": self.count("prune-stale"),
            "capped": self.count("archive-cap", "cap-overflow"),
            "wouldMutate": self.changes,
        }


def plan_maintenance(
    rows: Iterable[StoredSession],
    policy: MaintenancePolicy,
    now: int,
    *,
    forced: bool = True,
    applying: bool = False,
    enforce: bool = False,
    active_key: str | None = None,
    agent_id: str = "main",
    fix_missing: bool = False,
    fix_dm_scope: bool = False,
    live_jobs: Collection[str] = (),
) -> MaintenancePlan:
    """What one pass of maintenance does with the rows of a store at now (epoch ms).

    rows come in the order of the store; a database has them in the byte order of their keys.
    forced is `sessions cleanup`; otherwise what the gateway does after a write of its own.
    applying protects the ancestors of the active key too, and changes nothing in mode `warn`,
    which enforce overrides. agent_id is the agent of the store. live_jobs are the ids of cron
    jobs that exist: their base sessions are kept, which OpenClaw does not do by itself.
    """
    mode = "enforce" if enforce else policy.mode
    acts = not (applying and mode == "warn")
    work = _Work(list(rows), policy, now)
    if acts and fix_missing:
        work.take_missing()
    if acts and fix_dm_scope and policy.dm_scope == "main":
        work.retire_direct_chats(keys.normalize_agent_id(agent_id), active_key)
    work.protect(active_key, live_jobs, ancestors=applying)
    if acts:
        work.prune_probes(forced=forced)
        work.archive_dashboards()
        work.retire_by_age()
        work.cap(forced=forced)
    return MaintenancePlan(
        policy.rules, mode, work.planned(), tuple(work.steps.values()), tuple(work.undecided)
    )


class _Work:
    """The rows that are still unarchived, and what has been decided about the others."""

    def __init__(self, rows: list[StoredSession], policy: MaintenancePolicy, now: int) -> None:
        self.rows, self.policy, self.now = rows, policy, now
        self.live = {number: row for number, row in enumerate(rows) if row.entry.get("archivedAt") is None}
        self.kept: dict[int, str] = {}
        self.steps: dict[int, PlannedRow] = {}
        self.undecided: list[str] = []

    def take_missing(self) -> None:
        answers = {number: missing_transcript(row) for number, row in self.live.items()}
        self.undecided = [self.rows[number].key for number, answer in answers.items() if answer is None]
        for number, answer in answers.items():
            if answer:
                self._take(number, "prune-missing", "its transcript has no message")

    def retire_direct_chats(self, agent_id: str, active_key: str | None) -> None:
        active = keys.fold(active_key or "")
        for number, row in list(self.live.items()):
            if is_direct_chat(row.key, agent_id) and keys.fold(row.key) != active:
                self._take(number, "retire-dm-scope", "dmScope main has no row of its own for a direct chat")

    def protect(self, active_key: str | None, live_jobs: Collection[str], *, ancestors: bool) -> None:
        active = active_keys(self.live.values(), active_key, ancestors=ancestors) if active_key else {}
        bases = {f"cron:{job}".lower() for job in live_jobs}
        for number, row in enumerate(self.rows):
            if number in self.steps:
                continue
            reason = protection(row, self.policy, self.now, active)
            if reason is None and keys.body(row.key).lower() in bases:
                reason = "its cron job exists"
            if reason:
                self.kept[number] = reason

    def prune_probes(self, *, forced: bool) -> None:
        limit = self.policy.max_entries + 1 if forced else self.policy.high_water
        if len(self.live) >= limit:
            reason = "a probe older than a day, and too many sessions"
            for number in self._free(lambda row: is_probe(row.key) and self._older(row, PROBE_AGE_MS)):
                self._take(number, "prune-model-run", reason)

    def archive_dashboards(self) -> None:
        limit = self.policy.archive_dashboard_after_ms
        if limit is None:
            return
        for number in self._free(lambda row: is_dashboard(row.key)):
            if 0 < activity(self.rows[number].entry) < self.now - limit:
                self._take(number, "archive-dashboard", "a dashboard without activity")

    def retire_by_age(self) -> None:
        for number in self._free(lambda row: self._older(row, self.policy.prune_after_ms)):
            self._take(number, self._by_class(number, "prune-stale", "archive-age"), "older than pruneAfter")

    def cap(self, *, forced: bool) -> None:
        """The least active first; of equally active ones the later row."""
        if not forced and len(self.live) < self.policy.high_water:
            return
        overflow = len(self.live) - self.policy.max_entries
        victims = sorted(
            self._free(lambda _: True), key=lambda number: (activity(self.rows[number].entry), -number)
        )
        for number in victims[: max(0, overflow)]:
            self._take(number, self._by_class(number, "cap-overflow", "archive-cap"), "over maxEntries")

    def planned(self) -> tuple[PlannedRow, ...]:
        return tuple(self.steps.get(number) or self._kept(number) for number in range(len(self.rows)))

    def _free(self, wanted: Callable[[StoredSession], bool]) -> list[int]:
        """Unarchived rows that nothing protects, in row order."""
        return [number for number, row in self.live.items() if number not in self.kept and wanted(row)]

    def _older(self, row: StoredSession, age_ms: int) -> bool:
        """A row without updatedAt is left alone."""
        updated = row.entry.get("updatedAt")
        return is_finite(updated) and updated < self.now - age_ms

    def _by_class(self, number: int, deletion: str, archive: str) -> str:
        """2026.7 deletes what 2026.9 archives."""
        deletes = self.policy.rules == JULY or is_synthetic(self.rows[number].key)
        return deletion if deletes else archive

    def _take(self, number: int, action: str, reason: str) -> None:
        row = self.live.pop(number)
        leaves = row.has_transcript if action in DELETIONS else False
        self.steps[number] = self._row(number, action, reason, protected=False, leaves=leaves)

    def _kept(self, number: int) -> PlannedRow:
        reason = self.kept.get(number)
        return self._row(number, KEEP, reason or "within the limits", protected=reason is not None)

    def _row(
        self, number: int, action: str, reason: str, *, protected: bool, leaves: bool | None = False
    ) -> PlannedRow:
        row = self.rows[number]
        return PlannedRow(
            key=row.key,
            action=action,
            kind=session_class(row.key),
            reason=reason,
            protected=protected,
            archive_reason=ARCHIVE_REASONS.get(action),
            leaves_transcript=leaves,
            note=contradiction(row.entry),
        )
