"""links add, remove, skip and own-text: what an operator changes about what sessions follow."""

from __future__ import annotations

import os
from typing import Annotated, Any

import typer

from ..core.jsontext import json_value
from ..core.keys import owner
from ..errors import BusyError, RefusedError, StateError, UsageError
from ..log.reading import Reading
from ..log.signal_log import SignalLog
from ..model import Link
from ..report.escape import escape
from ..report.linking import (
    LINK_ADD_FIELDS,
    LINK_CHANGE_FIELDS,
    OWN_TEXT_FIELDS,
    SKIP_FIELDS,
    link_change_view,
)
from ..report.text import plural
from ..results import Adopted
from ..upstream.adopting import begin
from ..upstream.links import same_source
from ..upstream.opencode_cli import OpenCode
from ..upstream.own_texts import MOST
from ..upstream.skipping import blocking_row
from ..upstream.streaks import key_of
from .links import Key, chosen
from .look import require_known
from .options import Call, Result, command
from .overview import gateway_of
from .upstream import catalogs_of, streaks_of

Anyway = Annotated[
    bool, typer.Option("--anyway", help="Also in OpenClaw's file, whose gateway owns the links.")
]


@command("agent", "write", "plan", fields=LINK_ADD_FIELDS)
def add(
    call: Call,
    key: Key,
    catalog: Annotated[str, typer.Option("--catalog", metavar="ID", help="claude, pi or opencode.")],
    thread: Annotated[str, typer.Option("--thread", metavar="ID", help="The session in that program.")],
    host: Annotated[
        str | None, typer.Option("--host", metavar="ID", help="Where it is; by default this machine.")
    ] = None,
    file: Annotated[str | None, typer.Option("--file", metavar="PATH", help="Its transcript.")] = None,
    ref: Annotated[
        str | None, typer.Option("--ref", metavar="JSON", help="What the link refers to, in place of --file.")
    ] = None,
    anyway: Anyway = False,
) -> Result:
    """Follow a session of another program from its present end on, and record the adoption."""
    reference = _reference(file, ref)
    dry = bool(call.flag("dry_run"))
    log: Reading = call.read() if dry else call.change(create=True)
    _require_ours(
        call, log, anyway, "the gateway would follow it from this marker on, and knows no runtime for it"
    )
    environ = call.terminal.environ
    link = begin(
        key,
        call.agent or _owner(log, key),
        catalog_id=catalog,
        thread_id=thread,
        host_id=host,
        upstream_ref=reference,
        catalogs=catalogs_of(log, environ),
        run_opencode=OpenCode(environ=environ),
    )
    warnings: list[str] = []
    if isinstance(log, SignalLog):
        done = log.adopt(link)
        warnings = _streak_gone(log, done.link)
    else:
        done = _planned(log, link)
    if not any(report.cursor for report in log.cursors(target=key)):
        warnings.append(f"nobody watches {key} yet, so the monitor does not look at it (cursors add)")
    view = link_change_view(done.link, dry_run=dry) | {
        "created": done.before is None,
        "rebased": done.rebased,
        "sequence": done.event.sequence if done.event and not done.duplicate else None,
    }
    return Result(
        "links add",
        view,
        text=[_added(done, dry)],
        rows=[view],
        log=log,
        warnings=warnings,
    )


@command("agent", "write", "plan", "ask", fields=LINK_CHANGE_FIELDS)
def remove(call: Call, key: Key, anyway: Anyway = False) -> Result:
    """Stop following; the session's log and its watches stay."""
    dry = bool(call.flag("dry_run"))
    log: Reading = call.read() if dry else call.change()
    link = _stored(log, key, call.agent)
    _require_ours(
        call, log, anyway, "nothing more would be heard of it until it is continued from its catalog"
    )
    warnings: list[str] = []
    what = f"the link of {escape(key)} to {escape(link.source)}"
    if isinstance(log, SignalLog):
        call.confirm(lambda: f"Remove {what}?")
        done = log.delete_link(key, agent_id=link.agent_id, expected_updated_at=link.updated_at)
        if done != "deleted":
            raise _changed(key)
        warnings = _streak_gone(log, link)
    view = link_change_view(link, dry_run=dry)
    verb = "would remove" if dry else "removed"
    return Result("links remove", view, text=[f"{verb} {what}"], rows=[view], log=log, warnings=warnings)


@command("agent", "write", "plan", "ask", fields=SKIP_FIELDS)
def skip(call: Call, key: Key, anyway: Anyway = False) -> Result:
    """Move the marker of a blocked link past the row that blocks it; what the row says is not counted."""
    dry = bool(call.flag("dry_run"))
    log: Reading = call.read() if dry else call.change()
    link = _stored(log, key, call.agent)
    _require_ours(
        call, log, anyway, "the gateway would go on behind the row; a scan that it is in comes to nothing"
    )
    path, row = blocking_row(link, catalogs_of(log, call.terminal.environ).get(link.catalog_id))
    what = f"{row.length} bytes at offset {row.offset} of {escape(path)}"
    marker = {"offset": row.offset + row.length}
    if isinstance(log, SignalLog):
        call.confirm(lambda: f"Skip {what}? Messages in them are never counted.")
        moved = log.set_link_marker(key, marker, agent_id=link.agent_id, expected_updated_at=link.updated_at)
        if not moved:
            raise _changed(key)
    view: dict[str, Any] = {
        "dryRun": dry,
        "sessionKey": key,
        "agentId": link.agent_id,
        "source": path,
        "offset": row.offset,
        "length": row.length,
        "marker": marker,
    }
    verb = "would skip" if dry else "skipped"
    return Result("links skip", view, text=[f"{verb} {what}"], rows=[view], log=log)


@command("agent", fields=OWN_TEXT_FIELDS)
def own_text(
    call: Call,
    key: Key,
    text: Annotated[
        str | None, typer.Option("--text", metavar="TEXT", help="What it sent; else standard input is read.")
    ] = None,
) -> Result:
    """Note what a session of the tool's own file sent: its echo in the transcript is no person's."""
    log = call.terminal.opened.enter_context(SignalLog(call.location(), clock=lambda: call.now))
    require_known(log, key)
    words = call.terminal.stdin.read() if text is None else text
    if not words.strip():
        raise UsageError("the text is blank", hint="give it with --text or on standard input")
    agent = call.agent or _owner(log, key)
    kept = log.note_own_text(key, words, agent_id=agent)
    view = {"sessionKey": key, "agentId": agent, "kept": kept, "most": MOST}
    return Result(
        "links own-text",
        view,
        text=[f"{plural(kept, 'text')} of {escape(key)} known, as hashes (of at most {MOST})"],
        rows=[view],
        log=log,
    )


def _reference(file: str | None, ref: str | None) -> Any:
    """What the link refers to; None where nothing says."""
    if file is not None and ref is not None:
        raise UsageError("--file and --ref both say what the link refers to", hint="leave one out")
    if file is not None:
        return {"filePath": os.path.abspath(os.path.expanduser(file))}
    if ref is None:
        return None
    try:
        value = json_value(ref)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise UsageError(
            "--ref is no JSON object", hint="""such as --ref '{"filePath":"/home/ann/a.jsonl"}'"""
        )
    return value


def _require_ours(call: Call, log: Reading, anyway: bool, consequence: str) -> None:
    """Raise RefusedError in OpenClaw's file, unless it is wanted anyway."""
    if log.embedded or anyway:
        return
    gateway = gateway_of(log, call.now)
    alive = f" ({gateway.detail})" if gateway and gateway.maybe_alive else ""
    raise RefusedError(
        f"{log.path} is OpenClaw's, and its gateway{alive} makes, moves and removes links there",
        hint=f"--anyway does it all the same: {consequence}",
    )


def _owner(log: Reading, key: str) -> str:
    return log.resolve_agent(key) or owner(key, None)


def _stored(log: Reading, key: str, agent: str | None) -> Link:
    """The link of a session. Raises NotFoundError, or UsageError where several agents have one."""
    require_known(log, key)
    return chosen((link for link, _ in log.links()), key, agent)


def _planned(log: Reading, link: Link) -> Adopted:
    """What `adopt` would do."""
    before = log.link(link.session_key, agent_id=link.agent_id)
    same = before is not None and same_source(before, link)
    shown = link._replace(marker=before.marker) if before and same else link
    return Adopted(shown, before, not same, None, False)


def _added(done: Adopted, dry: bool) -> str:
    verb = "would follow" if dry else "follows"
    marker = "" if done.rebased else ", where it did already: its marker stays"
    event = f" (event {done.event.sequence})" if done.event and not done.duplicate else ""
    return f"{escape(done.link.session_key)} {verb} {escape(done.link.source)}{marker}{event}"


def _streak_gone(log: Reading, link: Link) -> list[str]:
    """A link that begins or ends has missed nothing; a warning where that cannot be written."""
    try:
        kept = streaks_of(log)
        kept.pop(key_of(link), None)
        failure: StateError | None = kept.failure
    except StateError as error:
        failure = error
    return [] if failure is None else [f"its streak of missing checks stays: {failure.message}"]


def _changed(key: str) -> BusyError:
    return BusyError(f"the link of {key} was changed meanwhile", hint="look at it, and try again")
