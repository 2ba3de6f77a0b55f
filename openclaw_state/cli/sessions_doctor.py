"""sessions doctor: shared direct messages, duplicates, orphans, and stores that are not well."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ..core.keys import fold
from ..errors import ExitStatus, StateError
from ..host.agentdb import Store
from ..host.agentrows import StoreContents
from ..host.conversations import direct_senders
from ..report.escape import escape
from ..report.text import plural
from ..sessions.findings import (
    MEND,
    SEVERITIES,
    Finding,
    Inspected,
    Sender,
    head_findings,
    link_findings,
    session_findings,
)
from ..sessions.listing import WANTED
from .options import Call, Result, command
from .sessions_stores import IMPORT, ReadStores, Surroundings, read_stores, surroundings

FINDING_FIELDS = ("code", "severity", "agentId", "sessionKeys", "message", "fix")


@command("agent", fields=FINDING_FIELDS)
def doctor(call: Call) -> Result:
    """Look for shared direct messages, duplicates, orphans and leftovers; exit 1 when there are any."""
    around = surroundings(call, every=call.agent is None)
    done = read_stores(around, wanted=WANTED)
    findings = sorted(_findings(call, around, done), key=lambda one: SEVERITIES.index(one.severity))
    rows = [_view(one) for one in findings]
    counts = Counter(one.severity for one in findings)
    return Result(
        "sessions doctor",
        {
            "agents": [store.agent_id for store in around.stores],
            "findings": rows,
            "counts": {severity: counts[severity] for severity in SEVERITIES},
        },
        text=_text(call, findings),
        rows=rows,
        notes=lambda: [
            f"{plural(len(findings), 'finding')} in the stores of {plural(len(around.stores), 'agent')}"
        ],
        place=around.place,
        warnings=[*around.warnings, *done.remarks],
        status=ExitStatus.FINDINGS if findings else ExitStatus.OK,
    )


def _findings(call: Call, around: Surroundings, done: ReadStores) -> Iterator[Finding]:
    for problem in done.problems:
        keys = (problem.session_key,) if problem.session_key else ()
        hint = problem.hint or MEND
        yield Finding(problem.code, "error", problem.agent_id, keys, problem.message, hint)
    known = {}
    for store, contents in done.contents:
        if store.has_legacy:
            yield _left_over(store, contents)
        yield from session_findings(store.agent_id, _inspected(store, contents), around.config.data)
        if not contents.invalid:
            known[store.agent_id] = frozenset(fold(row.key) for row in contents.rows)
    yield from link_findings(around.config.data)
    if around.standing is not None:
        yield from head_findings(around.standing.versions, known)
    yield from _orphans(call, around)


def _left_over(store: Store, contents: StoreContents) -> Finding:
    empty = not contents.rows
    return Finding(
        "legacy_store",
        "error" if empty else "warning",
        store.agent_id,
        (),
        f"agent {store.agent_id}: {store.legacy_path} was not imported"
        + ("" if empty else ", and the database has sessions of its own"),
        IMPORT,
    )


def _inspected(store: Store, contents: StoreContents) -> Iterator[Inspected]:
    try:
        senders = direct_senders(store.path)
    except StateError:
        senders = {}
    for row in contents.rows:
        yield Inspected(row.key, row.entry, tuple(Sender(*one) for one in senders.get(row.key, ())))


def _orphans(call: Call, around: Surroundings) -> Iterator[Finding]:
    """Rows of the shared database that lead nowhere."""
    directory = around.place.state_dir
    for one in around.registered:
        path = os.path.join(directory or "", one.path)
        if not os.path.exists(path) and call.agent in (None, one.agent_id):
            yield Finding(
                "registry_without_directory",
                "warning",
                one.agent_id,
                (),
                f"agent {one.agent_id} is registered with {path}, which is not there",
                "restore the directory from a backup, or leave the row: nothing reads it",
            )
    for report in around.log.cursors() if around.log and call.agent is None else ():
        if report.orphaned:
            watcher, target = report.cursor.watcher, report.cursor.target
            yield Finding(
                "cursor_without_session",
                "warning",
                None,
                (watcher, target),
                f"the watch of {watcher} on {target} is orphaned: one of the two has no session",
                "openclaw-state cursors prune --orphaned --dry-run shows what would be removed",
            )


def _view(one: Finding) -> dict[str, Any]:
    values = (one.code, one.severity, one.agent_id, list(one.session_keys), one.message, one.fix)
    return dict(zip(FINDING_FIELDS, values, strict=True))


def _text(call: Call, findings: list[Finding]) -> Iterator[str]:
    for one in findings:
        severity = one.severity if one.severity == "info" else call.palette.warn(one.severity)
        yield f"{severity}: {escape(one.message)} [{one.code}]"
        yield f"  fix: {escape(one.fix)}"
