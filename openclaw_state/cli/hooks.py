"""Commands that are run for each event or notice: --exec CMD, and OpenClaw's own delivery."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from ..errors import ConfigurationError, HookError
from ..model import Notice
from ..report.jsonout import dumps
from ..timespec import parse_duration
from .notices import GATEWAY_PROGRAM
from .options import Call
from .stream import Vigil

_DELIVERY_TIMEOUT_MS = 60_000
_LONGEST_PAUSE_S = 60.0
_GRACE_S = 2.0


class Task(NamedTuple):
    """One run of a command: its words or shell line, what it finds in its environment and input."""

    what: str
    command: str | Sequence[str]
    environ: Mapping[str, str]
    document: Mapping[str, object] | None = None


class Runner:
    """Runs one command at a time, and again where that was asked for."""

    def __init__(
        self, environ: Mapping[str, str], *, timeout_ms: int | None = None, retries: int | None = 0
    ) -> None:
        """retries: how often a failed command is run again; None for as long as it takes."""
        self._environ = environ
        self._timeout_ms = timeout_ms
        self._retries = retries

    def run(self, task: Task, vigil: Vigil) -> None:
        """Raises HookError when the command failed for good, StopError when the stream is to end."""
        for pause in _pauses(self._retries):
            failure = self._attempt(task, vigil)
            if failure is None:
                return
            vigil.check()
            if pause is None:
                raise HookError(f"the command for {task.what} {failure}", hint="nothing after it was run")
            vigil.say(f"the command for {task.what} {failure}; it is run again in {pause:.0f} s")
            vigil.pause(pause)

    def _attempt(self, task: Task, vigil: Vigil) -> str | None:
        """None for success, else what went wrong."""
        try:
            process = subprocess.Popen(
                task.command,
                shell=isinstance(task.command, str),
                env={**self._environ, **task.environ},
                stdin=subprocess.PIPE if task.document is not None else subprocess.DEVNULL,
                process_group=0,
            )
        except OSError as error:
            return f"could not be started: {error.strerror}"
        vigil.child = process.pid
        document = None if task.document is None else dumps(task.document).encode() + b"\n"
        try:
            process.communicate(document, None if self._timeout_ms is None else self._timeout_ms / 1000)
        except subprocess.TimeoutExpired:
            _end(process)
            return f"did not end within {self._timeout_ms} ms"
        finally:
            vigil.child = None
        return None if process.returncode == 0 else _described(process.returncode)


def chosen_runner(call: Call) -> Runner:
    """The runner of --exec with its options."""
    if call.flag("exec") is None:
        call.refuse_alone("exec_timeout", "exec_retry", needs="--exec")
    timeout = call.flag("exec_timeout")
    return Runner(
        call.terminal.environ,
        timeout_ms=None if timeout is None else parse_duration(timeout),
        retries=call.flag("exec_retry"),
    )


def deliverer(call: Call, *, retries: int | None = None) -> Runner:
    """The runner of deliveries to OpenClaw: a refused one is tried again for as long as it takes.

    retries: or only so often. Raises ConfigurationError when the program is not installed.
    """
    if shutil.which(GATEWAY_PROGRAM, path=call.terminal.environ.get("PATH")) is None:
        raise ConfigurationError(
            f"--deliver {GATEWAY_PROGRAM} needs the program {GATEWAY_PROGRAM}, which is not on PATH",
            hint="install OpenClaw for this user, or use --exec",
        )
    call.refuse_alone("exec_retry", needs="--exec")
    timeout = call.flag("exec_timeout")
    return Runner(
        call.terminal.environ,
        timeout_ms=parse_duration(timeout) if timeout else _DELIVERY_TIMEOUT_MS,
        retries=retries,
    )


def delivery(notice: Notice, state_dir: str | None) -> Task:
    """Handing the line of a notice to its watcher's agent, in the state directory around the database."""
    words = [GATEWAY_PROGRAM, "system", "event", "--session-key", notice.watcher, "--text", notice.text]
    return Task(named(notice), words, {} if state_dir is None else {"OPENCLAW_STATE_DIR": state_dir})


def named(notice: Notice) -> str:
    """A notice as failures name it."""
    return f"the notice of {notice.watcher} about {notice.target}"


def in_environment(database: str, values: Mapping[str, object]) -> dict[str, str]:
    """Values as OPENCLAW_STATE_* variables; None is left out, NUL cannot stand in one.

    The database that is followed is also the one that this program, run by the command, opens.
    """
    return {
        f"OPENCLAW_STATE_{name}": str(value).replace("\0", "\ufffd")
        for name, value in {"DB": database, **values}.items()
        if value is not None
    }


def _pauses(retries: int | None) -> Iterator[float | None]:
    """How long to wait after each failure, twice as long every time; None after the last."""
    pause, done = 1.0, 0
    while retries is None or done < retries:
        yield pause
        pause, done = min(2 * pause, _LONGEST_PAUSE_S), done + 1
    yield None


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command with all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)
            return


def _described(status: int) -> str:
    if status < 0:
        return f"was ended by {signal.Signals(-status).name}"
    return f"failed with exit status {status}"
