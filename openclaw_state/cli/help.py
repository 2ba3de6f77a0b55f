"""help TOPIC: what does not belong to one command."""

from __future__ import annotations

from typing import Annotated

import typer

from ..errors import ExitStatus, NotFoundError
from .app import COMMANDS
from .options import Call, Result, command

STATUSES = {
    ExitStatus.OK: "done; also: no changes; also: whoever read our output has gone",
    ExitStatus.FINDINGS: "findings, or changes under --exit-code",
    ExitStatus.USAGE: "the arguments cannot mean anything",
    ExitStatus.HISTORY_GAP: "history gap: the document is complete, but older changes are gone",
    ExitStatus.NOT_FOUND: "no event, version, watch, link or session has exactly that key",
    ExitStatus.AHEAD: "the version asked for lies ahead of the session's",
    ExitStatus.REFUSED: "refused by a rule, or the needed yes was not given",
    ExitStatus.BAD_DATABASE: "not a database, damaged, without a signal log, or newer than known",
    ExitStatus.NO_DATABASE: "the database file is missing or was replaced",
    ExitStatus.UNAVAILABLE: "a command run for an event or a notice failed, or an upstream catalog",
    ExitStatus.BUG: "a bug in this program",
    ExitStatus.IO_ERROR: "the disk failed or is full",
    ExitStatus.BUSY: "another process held the lock for too long; try again",
    ExitStatus.PERMISSION: "this user may not read or write the file",
    ExitStatus.CONFIGURATION: "the surroundings lack something: agent stores, a program, a newer SQLite",
    ExitStatus.TIMED_OUT: "--timeout passed",
    ExitStatus.HUNG_UP: "hung up (SIGHUP)",
    ExitStatus.INTERRUPTED: "interrupted (SIGINT)",
    ExitStatus.TERMINATED: "terminated (SIGTERM)",
}

TOPICS = {
    "exit-codes": "What the exit status says",
    "environment": "Variables that are read",
    "formats": "What the output formats promise",
    "time": "How versions, times and durations are written",
}

ENVIRONMENT = {
    "OPENCLAW_STATE_DB": "the database file, where no option names one",
    "OPENCLAW_STATE_DIR": "OpenClaw's state directory",
    "OPENCLAW_HOME": "the home directory that OpenClaw uses",
    "OPENCLAW_CONFIG_PATH": "where openclaw.json stands",
    "OPENCLAW_SUPERVISOR_MODE": "external lets writes pass where an external supervisor owns the database",
    "OPENCLAW_STATE_NOW": "the clock, in epoch milliseconds; for testing",
    "CLAUDE_CONFIG_DIR": "where Claude Code keeps its files, for monitor in an isolated state",
    "HOME": "your home directory",
    "XDG_DATA_HOME, XDG_STATE_HOME": "where the tool's own database and its sidecar stand",
    "NO_COLOR, FORCE_COLOR, TERM, COLUMNS, LINES": "as everywhere",
    "TZ": "the zone of the times shown and read",
}

_FORMATS = """\
text    for people. Tables keep their columns; notes and counts go to stderr. Control
        characters from the database are shown as escapes.
json    one document: schema, ok, database (path and rule), the members of the command,
        warnings. Times are epoch milliseconds, names end in At. Members are only added.
        A failure is a document too: ok false, error with code, message and hint.
jsonl   one JSON object a row. Where a command follows, json is the same: a line with type is
        a heartbeat or a gap, a line with ok false the failure that ended it.
tsv     a line of field names, then one line a row; tab, newline and backslash are escaped.
--fields A,B chooses and orders the fields of rows (tsv unless --format jsonl)."""

_TIME = """\
N                      a state version: a sequence of the log
90s 15m 24h 30d 1h30m  a duration; that long ago, where a time is meant
2026-11-30             midnight of that day, local, or UTC with --utc
2026-11-30T09:00:00Z   RFC 3339; without an offset, local or UTC with --utc
today yesterday now    midnight of today or of yesterday; this moment
--since is exclusive, --until inclusive. In JSON, times are epoch milliseconds."""


def exit_codes() -> list[str]:
    """A line for each exit status."""
    return [f"{int(status):>3}  {meaning}" for status, meaning in STATUSES.items()]


@command(fields=("topic", "text"))
def topic(
    call: Call,
    name: Annotated[
        str | None, typer.Argument(metavar="[TOPIC]", help=f"One of {', '.join(TOPICS)}.")
    ] = None,
) -> Result:
    """Explain what does not belong to one command."""
    del call
    if name is None:
        shown = [f"{key:12}  {about}" for key, about in TOPICS.items()]
    elif name == "exit-codes":
        shown = exit_codes()
    elif name == "environment":
        shown = [f"{key}\n    {meaning}" for key, meaning in ENVIRONMENT.items()]
    elif name in TOPICS:
        shown = [_FORMATS if name == "formats" else _TIME]
    else:
        raise NotFoundError(f"there is no topic {name!r}", hint=_hint(name))
    rows = [{"topic": name, "text": "\n".join(shown)}]
    return Result("help", rows[0], text=shown, rows=rows)


def _hint(name: str) -> str:
    if any(command.split()[0] == name for command in COMMANDS):
        return f"openclaw-state {name} --help explains a command"
    return f"topics: {', '.join(TOPICS)}"
