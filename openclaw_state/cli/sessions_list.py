"""sessions list: each agent's sessions as OpenClaw shows them, with what it does not show."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import Annotated, Any

import typer

from ..errors import ExitStatus, StateError, UsageError
from ..host.agentrows import StoreContents, StoreRow
from ..report.escape import escape
from ..report.session_text import listed_table
from ..report.text import plural
from ..sessions.document import section, text_of
from ..sessions.freshness import freshness, provider_owned
from ..sessions.kinds import reset_type
from ..sessions.listing import WANTED, Defaults, channel_of, listed_row
from ..sessions.policy import ResetPolicy, reset_policy
from ..sessions.protection import contradiction
from ..sessions.rules import RuleSet, choose_rules
from ..sessions.timestamps import recorded_interaction, recorded_start
from .look import style_of
from .options import Call, Result, command
from .sessions_filters import KINDS, Candidate, parse_filters, positive
from .sessions_freshness import gateway_zone
from .sessions_stores import Surroundings, read_stores, surroundings

LISTED_FIELDS = (
    "key",
    "agentId",
    "kind",
    "status",
    "updatedAt",
    "ageMs",
    "sessionId",
    "label",
    "model",
    "modelProvider",
    "contextTokens",
    "totalTokens",
    "stateVersion",
    "watchers",
    "pending",
    "freshness",
    "archivedAt",
    "inconsistent",
    "transcriptBytes",
)


@command("agent", fields=LISTED_FIELDS)
def list_stored(
    call: Call,
    all_agents: Annotated[
        bool, typer.Option("--all-agents", help="The sessions of every agent, not of the default one.")
    ] = False,
    active: Annotated[
        str | None, typer.Option("--active", metavar="MIN", help="Only updated in the last MIN minutes.")
    ] = None,
    limit: Annotated[
        str, typer.Option("--limit", metavar="N|all", help="How many sessions to show.")
    ] = "100",
    kind: Annotated[
        str | None, typer.Option("--kind", metavar="|".join(KINDS), help="Only sessions of this kind.")
    ] = None,
    older_than: Annotated[
        str | None,
        typer.Option("--older-than", metavar="D", help="Only without a sign of life for this long."),
    ] = None,
    larger_than: Annotated[
        str | None,
        typer.Option("--larger-than", metavar="SIZE", help="Only with a larger transcript (10mb)."),
    ] = None,
    archived: Annotated[bool, typer.Option("--archived", help="Only archived sessions.")] = False,
) -> Result:
    """List stored sessions, the latest first, in the shape of `openclaw sessions --json`."""
    if all_agents and call.agent:
        raise UsageError("--all-agents contradicts --agent")
    most = None if limit == "all" else positive(limit, "--limit", ", or all")
    filters = parse_filters(
        active=active, archived=archived, kind=kind, older_than=older_than, larger_than=larger_than
    )
    around = surroundings(call, every=all_agents)
    done = read_stores(around, wanted=WANTED, sizes=filters.larger_than is not None)
    done.require_one()
    stored = [Candidate(row, store, contents) for store, contents in done.contents for row in contents.rows]
    kept, filtered = filters.apply(stored, call.now)
    kept.sort(key=lambda one: (-one.updated_at, one.row.key))
    judge, defaults = Judge(call, around), around.defaults()
    rows = [stored_row(one, around, defaults, judge, call.now) for one in kept[:most]]
    body = {
        **_targets(around, every=all_agents),
        "count": len(rows),
        "totalCount": len(kept),
        "limitApplied": most,
        "hasMore": len(rows) < len(kept),
        "activeMinutes": filters.active_minutes,
        "sessions": (row for row in rows),
        "storedCount": len(stored),
        "archivedCount": sum(one.is_archived for one in stored),
        "filteredOut": filtered,
        "otherAgents": around.others,
        "problems": [problem.view() for problem in done.problems],
    }
    problems = [_told(problem.message, problem.hint) for problem in done.problems]
    return Result(
        "sessions list",
        body,
        text=listed_table(rows, style_of(call), agents=len(around.stores) > 1) if rows else (),
        rows=rows,
        notes=lambda: _notes(body),
        place=around.place,
        warnings=[*around.warnings, *done.remarks, *judge.warnings, *problems],
        status=ExitStatus.FINDINGS if problems else ExitStatus.OK,
    )


def _targets(around: Surroundings, *, every: bool) -> dict[str, Any]:
    """The stores as OpenClaw names them: one by its path, several in a list."""
    several = len(around.stores) > 1
    named: dict[str, Any] = {"path": None if several else around.stores[0].path}
    if several:
        named["stores"] = [{"agentId": store.agent_id, "path": store.path} for store in around.stores]
    if every:
        named["allAgents"] = True
    return named


def _told(message: str, hint: str | None) -> str:
    return f"{message}; {hint}" if hint else message


class Judge:
    """Says of each row whether its session is fresh; what hinders that is told once."""

    def __init__(self, call: Call, around: Surroundings) -> None:
        self.warnings: list[str] = []
        self._now = call.now
        self._session = section(around.config.data, "session")
        self._zone = self._own_zone(call)
        self._rules: dict[str | None, RuleSet] = {}
        self._policies: dict[tuple[str, str | None, RuleSet], ResetPolicy] = {}

    def __call__(self, row: StoreRow, contents: StoreContents) -> dict[str, Any] | None:
        entry = row.entry
        if self._zone is None:
            return None
        try:
            found = freshness(
                self._policy(row, contents.shape.app_version),
                recorded_start(entry, row.header, tz=self._zone),
                recorded_interaction(entry),
                self._now,
                self._zone,
                updated_at=entry.get("updatedAt"),
                model_locked=entry.get("modelSelectionLocked") is True,
                provider_owned=provider_owned(entry),
            )
        except StateError as error:
            if not self.warnings:
                self.warnings.append(f"freshness is unknown: {error.message}")
            return None
        return {
            "fresh": found.fresh,
            "verdict": found.verdict,
            "staleReason": found.reason,
            "expiresAt": found.expires_at,
            "rules": found.rules,
        }

    def _own_zone(self, call: Call) -> tzinfo | None:
        try:
            return gateway_zone(call, None).tz
        except UsageError as error:
            self.warnings.append(f"freshness is unknown: {error.message}")
            return None

    def _policy(self, row: StoreRow, app_version: str | None) -> ResetPolicy:
        """The reset policy of a session; many sessions share one."""
        if app_version not in self._rules:
            self._rules[app_version] = choose_rules(app_version=app_version).reset
        in_group = text_of(row.entry.get("chatType")).lower() in ("group", "channel")
        kind = reset_type(row.key, is_group=in_group)
        channel = channel_of(row.key, row.entry) if "resetByChannel" in self._session else None
        asked = (kind, channel, self._rules[app_version])
        if asked not in self._policies:
            self._policies[asked] = reset_policy(self._session, kind, channel=channel, rules=asked[2])
        return self._policies[asked]


def stored_row(
    one: Candidate, around: Surroundings, defaults: Defaults, judge: Judge, now: int
) -> dict[str, Any]:
    """OpenClaw's members first, then what only this tool tells."""
    entry = one.row.entry
    listed = around.listed(one.row, one.store.agent_id)
    row = listed_row(listed, defaults, now)
    marks = around.standing.of(one.row.key, listed.agent_id) if around.standing else (None,) * 3
    row |= dict(zip(("stateVersion", "watchers", "pending"), marks, strict=True))
    row["freshness"] = judge(one.row, one.contents)
    for name in ("archivedAt", "archiveReason"):
        if entry.get(name) is not None:
            row[name] = entry[name]
    if reason := contradiction(entry):
        row["inconsistent"] = reason
    if one.row.transcript_bytes is not None:
        row["transcriptBytes"] = one.row.transcript_bytes
    return row


def _notes(body: dict[str, Any]) -> Iterator[str]:
    names = {
        "internal": "internal",
        "active": "by --active",
        "archived": "by --archived",
        "kind": "by --kind",
        "olderThan": "by --older-than",
        "largerThan": "by --larger-than",
    }
    parts = [f"{body['count']} of {plural(body['totalCount'], 'session')}"]
    parts += [f"{count} left out {names[name]}" for name, count in body["filteredOut"].items() if count]
    if body["archivedCount"]:
        parts.append(f"{body['archivedCount']} archived")
    yield ", ".join(parts)
    if body["otherAgents"]:
        yield f"other agents: {escape(', '.join(body['otherAgents']))} (--all-agents)"
