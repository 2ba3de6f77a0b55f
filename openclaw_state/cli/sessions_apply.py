"""Applying a cleanup through OpenClaw itself, and holding what happened to the plan.

A live gateway does not see rows that go behind its back, so nothing here deletes any.
"""

from __future__ import annotations

import shlex
import shutil
import subprocess
from collections.abc import Iterator
from typing import Any, NamedTuple

from ..errors import ConfigurationError, HookError, UsageError
from ..sessions.maintenance import PlannedRow
from ..sessions.protection import StoredSession, is_running
from .options import Call
from .sessions_place import Configuration, agent_store, state_dir
from .sessions_plan import AgentPlan, Selection

PROGRAM = "openclaw"
_LEFT_ALONE = "its cron job exists"


class Command(NamedTuple):
    """OpenClaw's own cleanup with the same selection, and what its environment has to hold."""

    words: tuple[str, ...]
    environ: dict[str, str]

    def line(self) -> str:
        return shlex.join([*(f"{name}={value}" for name, value in self.environ.items()), *self.words])


class Difference(NamedTuple):
    """A row with which something else happened than was planned; known ones are no fault."""

    agent_id: str
    key: str
    planned: str
    happened: str
    known: bool
    why: str

    def view(self) -> dict[str, Any]:
        return {
            "agentId": self.agent_id,
            "key": self.key,
            "planned": self.planned,
            "happened": self.happened,
            "known": self.known,
            "why": self.why,
        }


def command_for(call: Call, config: Configuration, agents: list[str], wanted: Selection) -> Command:
    """Raises UsageError for a store that no state directory holds."""
    directory, _ = state_dir(call)
    if directory is None:
        raise UsageError(
            "--apply needs OpenClaw's state directory, and --db names a file on its own",
            hint="use --state-dir DIR",
        )
    words = [PROGRAM, "sessions", "cleanup"]
    words += ["--all-agents"] if call.flag("agent") is None and len(agents) > 1 else ["--agent", agents[0]]
    words += ["--enforce"] if wanted.enforce else []
    words += ["--fix-missing"] if wanted.fix_missing else []
    words += ["--fix-dm-scope"] if wanted.fix_dm_scope else []
    words += ["--active-key", wanted.active_key] if wanted.active_key else []
    environ = {"OPENCLAW_STATE_DIR": directory}
    if config.path is not None:
        environ["OPENCLAW_CONFIG_PATH"] = config.path
    return Command((*words, "--json"), environ)


def require_program(call: Call, command: Command) -> None:
    """Raises ConfigurationError, which says how to apply, where OpenClaw is not installed."""
    if shutil.which(PROGRAM, path=call.terminal.environ.get("PATH")) is None:
        raise ConfigurationError(
            f"applying is the job of the program {PROGRAM}, which is not on PATH",
            hint=f"as the gateway's user, run: {command.line()}",
        )


def run_command(call: Call, command: Command) -> int:
    """The exit status of OpenClaw's cleanup; its words go to stderr."""
    try:
        done = subprocess.run(
            command.words,
            env={**call.terminal.environ, **command.environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise HookError(f"{PROGRAM} could not be started: {error.strerror}") from error
    if done.returncode:
        from .run import escape_lines

        call.terminal.stderr.write(escape_lines(done.stderr))
    return done.returncode


def compare(call: Call, config: Configuration, plan: AgentPlan) -> list[Difference]:
    """What happened to the rows of the plan, where it is not what the preview said."""
    after = agent_store(call, config, plan.agent_id)
    return list(_differences(plan, {row.key: row for row in after.rows}))


def _differences(plan: AgentPlan, after: dict[str, StoredSession]) -> Iterator[Difference]:
    rows = zip(plan.store.rows, plan.preview.rows, plan.applied.rows, strict=True)
    for before, preview, applied in rows:
        happened = _happened(before, after.get(before.key))
        planned = _outcome(preview)
        if happened != planned:
            known = _known(plan, preview, applied, happened, after.get(before.key))
            yield Difference(
                plan.agent_id, before.key, planned, happened, known is not None, known or "not foreseen"
            )


def _outcome(row: PlannedRow) -> str:
    if row.deletes:
        return "removed"
    return f"archived: {row.archive_reason}" if row.archives else "kept"


def _happened(before: StoredSession, after: StoredSession | None) -> str:
    if after is None:
        return "removed"
    if after.entry.get("archivedAt") is not None and before.entry.get("archivedAt") is None:
        return f"archived: {after.entry.get('archiveReason')}"
    return "kept"


def _known(
    plan: AgentPlan, preview: PlannedRow, applied: PlannedRow, happened: str, after: StoredSession | None
) -> str | None:
    """Why OpenClaw may do otherwise here; None where nothing explains it."""
    if happened == "kept" and plan.preview.mode == "warn":
        return "the mode is warn, so nothing is changed; --enforce overrides it"
    if happened == "kept" and applied.action == "keep" and applied.protected:
        return applied.reason
    if happened == "kept" and after is not None and is_running(after.entry):
        return "it runs now"
    if happened == "kept" and preview.note is not None:
        return f"OpenClaw keeps it: {preview.note}"
    if preview.reason == _LEFT_ALONE:
        return "OpenClaw does not look whether the cron job exists"
    return None
