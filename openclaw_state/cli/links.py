"""links: which session follows what outside OpenClaw, and whether it can."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Annotated, TypeVar

import typer

from ..errors import NotFoundError, StateError, UsageError
from ..log.planning import Plan
from ..log.reading import Reading
from ..model import Link
from ..report.linking import (
    LINK_DETAIL_FIELDS,
    LINK_FIELDS,
    link_detail_view,
    link_lines,
    link_table,
    link_view,
    summary,
)
from ..results import LinkHealth
from ..upstream.health import inspect, without_link
from ..upstream.links import source_key
from .look import require_known, style_of
from .options import Call, Result, command
from .overview import gateway_of
from .upstream import catalogs_of, sessions_of, streaks_of

Linked = TypeVar("Linked", Link, LinkHealth)

Key = Annotated[str, typer.Argument(metavar="KEY", help="The session.")]


@command(fields=LINK_FIELDS)
def list_links(call: Call) -> Result:
    """List upstream links and how they stand, and adopted sessions without one."""
    log = call.read()
    found, warnings = look(call, log)
    rows = [link_view(health) for health in found]
    faulty = sum(health.state.good is False for health in found)
    return Result(
        "links list",
        {"links": rows, "total": len(rows), "faulty": faulty},
        text=link_table(found, style_of(call)) if found else (),
        rows=rows,
        notes=lambda: [summary(found)],
        log=log,
        warnings=warnings,
    )


@command("agent", fields=LINK_DETAIL_FIELDS)
def show(call: Call, key: Key) -> Result:
    """Show everything about the link of one session, and what to do about it."""
    log = call.read()
    require_known(log, key)
    found, warnings = look(call, log, only=[key])
    health = chosen(found, key, call.agent)
    view = link_detail_view(
        health,
        source_key=source_key(health.link) if health.link else None,
        watchers=[report.cursor.watcher for report in log.cursors(target=key)],
    )
    return Result(
        "links show",
        view,
        text=link_lines(view, health, style_of(call)),
        rows=[view],
        log=log,
        warnings=warnings,
    )


def look(
    call: Call, log: Reading, *, only: Collection[str] | None = None
) -> tuple[list[LinkHealth], list[str]]:
    """How links stand, adopted sessions without one among them, and warnings."""
    environ, warnings = call.terminal.environ, []
    try:
        kept = streaks_of(log)
    except StateError as error:
        kept = None
        warnings.append(f"how often in a row a source was missing is not known: {error.message}")
    found = inspect(
        Plan(log, clock=lambda: call.now),
        sessions_of(log, environ, gateway_of(log, call.now)),
        catalogs_of(log, environ),
        kept,
        clock=lambda: call.now,
        only=only,
    )
    found += [
        without_link(session) for session in log.unlinked() if only is None or session.session_key in only
    ]
    return found, warnings


def chosen(found: Iterable[Linked], key: str, agent: str | None) -> Linked:
    """The one that is meant. Raises NotFoundError, or UsageError where several agents have one."""
    mine = [one for one in found if one.session_key == key and agent in (None, one.agent_id)]
    if not mine:
        raise NotFoundError(f"{key} has no upstream link", hint="openclaw-state links list shows them")
    if len(mine) > 1:
        agents = [one.agent_id for one in mine]
        raise UsageError(
            f"several agents have a link of {key}: {', '.join(agents)}",
            hint=f"choose one with --agent {agents[0]}",
            agents=agents,
        )
    return mine[0]
