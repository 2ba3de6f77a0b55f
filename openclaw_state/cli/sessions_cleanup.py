"""sessions cleanup: what maintenance would do with every session; OpenClaw itself applies it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any

import typer

from ..errors import ExitStatus, UsageError
from ..report.escape import escape
from ..report.text import plural
from ..sessions.rules import check_rules
from .options import Call, Result, command
from .sessions_apply import Difference, command_for, compare, require_program, run_command
from .sessions_place import agents_of, configuration, place_of
from .sessions_plan import ACTION_FIELDS, AgentPlan, Selection, action_view, plan_text, plans, store_view


@command("agent", "ask", fields=ACTION_FIELDS)
def cleanup(
    call: Call,
    all_agents: Annotated[bool, typer.Option("--all-agents", help="Every agent's sessions.")] = False,
    apply: Annotated[
        bool, typer.Option("--apply", help="Let the installed openclaw do it, and compare with the plan.")
    ] = False,
    enforce: Annotated[bool, typer.Option("--enforce", help="Also where the mode is warn.")] = False,
    fix_missing: Annotated[
        bool, typer.Option("--fix-missing", help="Also sessions whose transcript has no message.")
    ] = False,
    fix_dm_scope: Annotated[
        bool,
        typer.Option("--fix-dm-scope", help="Also rows of direct chats that dmScope main no longer has."),
    ] = False,
    active_key: Annotated[
        str | None, typer.Option("--active-key", metavar="KEY", help="Keep this session: it is in use.")
    ] = None,
    rules: Annotated[
        str,
        typer.Option("--rules", metavar="auto|2026.7|2026.9", help="By the rules of this release."),
    ] = "auto",
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="This openclaw.json instead of your own.")
    ] = None,
) -> Result:
    """Plan what maintenance would do; only --apply changes anything (openclaw sessions cleanup, without
    flags, changes at once)."""
    if all_agents and call.flag("agent"):
        raise UsageError("--agent contradicts --all-agents")
    if rules != "auto":
        check_rules(rules)
    if not apply:
        call.refuse_alone("yes", needs="--apply")
    settings = configuration(call, config)
    agents = agents_of(call, settings, everyone=all_agents)
    wanted = Selection(enforce, fix_missing, fix_dm_scope, active_key, rules)
    found, failed = plans(call, settings, agents, wanted)
    warnings = [*settings.warnings, *(f"{one.agent_id}: {text}" for one in found for text in one.warnings)]
    warnings += [f"agent {agent} has no plan: {error.message}" for agent, error in failed.items()]
    body: dict[str, Any] = {"configuration": settings.view()}
    status = ExitStatus.FINDINGS if failed else ExitStatus.OK
    lines: Iterable[str] = _plan_text(call, found)
    if apply:
        to_run = command_for(call, settings, agents, wanted)
        require_program(call, to_run)
        changes = sum(len(one.applied.steps) for one in found)
        call.confirm(lambda: f"Run {to_run.line()} ({plural(changes, 'session')} planned)?")
        if not call.flag("quiet"):
            call.terminal.stderr.write(f"running: {escape(to_run.line())}\n")
        exit_status = run_command(call, to_run)
        differences = [one for plan in found for one in compare(call, settings, plan)]
        unforeseen = [one for one in differences if not one.known]
        status = ExitStatus.FINDINGS if exit_status or unforeseen or failed else ExitStatus.OK
        body |= {
            "applied": exit_status == 0,
            "appliedCount": sum(_left(one, differences) for one in found),
            "command": to_run.line(),
            "exitStatus": exit_status,
            "differences": [one.view() for one in differences],
        }
        lines = _applied_text(found, differences, exit_status)
    stores = [store_view(one, applied=apply) for one in found]
    if all_agents:
        modes = {store["mode"] for store in stores}
        body |= {
            "allAgents": True,
            "mode": modes.pop() if modes else None,
            "dryRun": not apply,
            "stores": stores,
        }
        if failed:
            body["partialError"] = {agent: error.message for agent, error in failed.items()}
    else:
        body |= stores[0]
    return Result(
        "sessions cleanup",
        body,
        text=lines,
        rows=[action_view(one, row) for one in found for row in one.preview.rows],
        notes=lambda: [] if apply else [_advice(found)],
        place=place_of(call, found[0].store) if len(found) == 1 else call.location(),
        warnings=warnings,
        status=status,
    )


def _plan_text(call: Call, found: list[AgentPlan]) -> Iterator[str]:
    for number, one in enumerate(found):
        if number:
            yield ""
        yield from plan_text(call, one, several=len(found) > 1)


def _advice(found: list[AgentPlan]) -> str:
    if not any(one.preview.changes for one in found):
        return "nothing to do"
    if all(one.preview.mode == "warn" for one in found):
        return "nothing was changed; the mode is warn, so OpenClaw changes nothing without --enforce"
    return "nothing was changed; --apply lets openclaw do it"


def _left(plan: AgentPlan, differences: list[Difference]) -> int:
    """The rows of the plan that are still there."""
    unlike = {one.key: one.happened for one in differences if one.agent_id == plan.agent_id}
    planned = {row.key: "removed" if row.deletes else "kept" for row in plan.preview.rows}
    return sum((planned | unlike)[key] != "removed" for key in planned)


def _applied_text(found: list[AgentPlan], differences: list[Difference], exit_status: int) -> Iterator[str]:
    for one in found:
        yield f"Session store: {escape(one.store.path)}"
        left = _left(one, differences)
        yield (
            f"Applied maintenance. Current entries: {left}" if not exit_status else f"Current entries: {left}"
        )
    if exit_status:
        yield f"openclaw failed with exit status {exit_status}"
    for item in differences:
        word = "as it may be" if item.known else "DIFFERENT"
        yield (
            f"{word}: {escape(item.key)} was planned {item.planned}, and was {escape(item.happened)}"
            f" ({escape(item.why)})"
        )
    if not exit_status and not differences:
        yield "what happened is what was planned"
