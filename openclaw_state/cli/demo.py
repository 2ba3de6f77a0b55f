"""demo: a short story, told by running the real commands in a database of its own."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections import deque
from collections.abc import Iterator
from typing import Annotated

import typer

from ..errors import StateError, StorageError, UsageError
from .options import Call, Result, command

CLOCK = "OPENCLAW_STATE_NOW"
PARENT = "agent:main:main"
CHILD = "agent:main:subagent:report"

STORY: tuple[tuple[str, tuple[str, ...]], ...] = (
    (
        "A manager starts a child session, and watches it from here on.",
        ("record", CHILD, "--kind", "child_spawned", "--actor", f"agent:{PARENT}", "--run", "run-1"),
    ),
    (
        "A person writes to the child directly, over telegram: the manager's picture is stale.",
        (
            "record",
            CHILD,
            "--kind",
            "human_direct_message",
            "--actor",
            "human:telegram:42",
            "--payload",
            '{"channel":"telegram"}',
        ),
    ),
    (
        "The person changes the goal. The notice is open already, so nothing new opens.",
        ("record", CHILD, "--kind", "goal_changed", "--actor", "human:telegram:42"),
    ),
    ("One notice waits for the manager: one line, however much has changed.", ("notices", PARENT)),
    (
        "The manager reconciles: exactly what changed since the version it had seen.",
        ("status", CHILD, "--since", "1"),
    ),
    (
        "It acknowledges. What came after the notice was announced opens a follow-up.",
        ("notices", PARENT, "--ack"),
    ),
    ("And that one, too.", ("notices", PARENT, "--ack")),
    ("Nothing is pending now.", ("cursors", "list")),
    ("Retention by count: keep one event. The state version survives.", ("prune", "--max-rows", "1", "-y")),
    ("Who asks for what is gone is told so, and what to do (exit 3).", ("status", CHILD, "--since", "1")),
)


@command(fields=("about", "command", "status", "output"))
def demo(
    call: Call,
    keep: Annotated[
        str | None, typer.Option("--keep", metavar="PATH", help="Leave the database at this path.")
    ] = None,
) -> Result:
    """Play a short story in a fresh database and show every command with its output."""
    if keep is not None and os.path.lexists(keep):
        raise UsageError(f"{keep} exists already", hint="name a path where nothing stands")

    def tell() -> Iterator[dict[str, object]]:
        with tempfile.TemporaryDirectory(prefix="openclaw-state-demo-") as folder:
            path = os.path.join(folder, "openclaw.sqlite")
            for sentence, arguments in STORY:
                yield _play(folder, path, sentence, arguments)
            if keep is not None:
                _keep(path, keep)

    if call.flag("quiet"):
        deque(tell(), maxlen=0)

    def text() -> Iterator[str]:
        for scene in tell():
            yield call.palette.dim(f"# {scene['about']}")
            yield call.palette.head(f"$ {scene['command']}")
            yield str(scene["output"])
        yield (
            f"The database is at {keep}."
            if keep
            else "The database of this story is gone again (--keep PATH)."
        )

    return Result("demo", {"scenes": tell()}, text=text(), rows=tell())


def _play(folder: str, path: str, sentence: str, arguments: tuple[str, ...]) -> dict[str, object]:
    done = subprocess.run(
        [sys.executable, "-m", "openclaw_state", *arguments],
        env=_environment(folder, path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 3):
        raise StateError(f"the demo stopped at {shlex.join(arguments)}", hint=done.stdout.strip() or None)
    return {
        "about": sentence,
        "command": shlex.join(("openclaw-state", *arguments)),
        "status": done.returncode,
        "output": done.stdout,
    }


def _environment(folder: str, path: str) -> dict[str, str]:
    """The caller's environment without anything that leads to OpenClaw or to the caller's files."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name == CLOCK or not name.startswith(("OPENCLAW_", "XDG_"))
    }
    package = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    return kept | {
        "HOME": folder,
        "XDG_STATE_HOME": folder,
        "OPENCLAW_STATE_DB": path,
        "PYTHONPATH": os.pathsep.join(filter(None, (package, os.environ.get("PYTHONPATH")))),
    }


def _keep(path: str, keep: str) -> None:
    try:
        shutil.copy(path, keep)
        os.chmod(keep, 0o600)
    except OSError as error:
        raise StorageError(f"{keep} could not be written: {error.strerror}") from error
