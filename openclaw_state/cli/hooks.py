"""Commands that are run for each event or notice: --exec CMD, and OpenClaw's own delivery."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
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
    """One run of a command: its words or shell line, what it finds in its environment and input.

    A variable that is None is unset, also where this process has it from another event.
    """

    what: str
    command: str | Sequence[str]
    environ: Mapping[str, str | None]
    document: Mapping[str, object] | None = None


class Runner:
    """Runs one command at a time, and again where that was asked for."""

    def __init__(
        self, environ: Mapping[str, str], *, timeout_ms: int | None = None, retries: int = 0
    ) -> None:
        """retries: how often a failed command is run again."""
        self._environ = environ
        self._timeout_ms = timeout_ms
        self._retries = retries

    def run(self, task: Task, vigil: Vigil) -> None:
        """Raises HookError when the command failed for good, StopError when the stream is to end."""
        pauses = islice(growing_pauses(), self._retries)
        while (failure := self._attempt(task, vigil)) is not None:
            vigil.check()
            words = f"the command for {task.what} {failure}"
            pause = next(pauses, None)
            if pause is None:
                raise HookError(words, hint="nothing after it was run")
            vigil.say(f"{words}; it is run again in {pause:.0f} s")
            vigil.pause(pause)

    def _attempt(self, task: Task, vigil: Vigil) -> str | None:
        """None for success, else what went wrong."""
        environ = {**self._environ, **task.environ}
        try:
            process = subprocess.Popen(
                task.command,
                shell=isinstance(task.command, str),
                env={name: value for name, value in environ.items() if value is not None},
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


def deliverer(call: Call, *, retries: int = 0) -> Runner:
    """The runner of deliveries to OpenClaw. Raises ConfigurationError when it is not installed."""
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
    """Handing the line of a notice to its watcher's session, in the state directory around the database."""
    watcher, text = without_nul(notice.watcher), without_nul(notice.text)
    words = [GATEWAY_PROGRAM, "system", "event", "--session-key", watcher, "--text", text]
    return Task(named(notice), words, {} if state_dir is None else {"OPENCLAW_STATE_DIR": state_dir})


def named(notice: Notice) -> str:
    """A notice as failures name it."""
    return f"the notice of {notice.watcher} about {notice.target}"


def in_environment(database: str, values: Mapping[str, object]) -> dict[str, str | None]:
    """Values as OPENCLAW_STATE_* variables; NUL cannot stand in one.

    The database that is followed is also the one that this program, run by the command, opens.
    """
    return {
        f"OPENCLAW_STATE_{name}": None if value is None else without_nul(str(value))
        for name, value in {"DB": database, **values}.items()
    }


def without_nul(text: str) -> str:
    """Text as a program can be given it."""
    return text.replace("\0", "\ufffd")


def growing_pauses() -> Iterator[float]:
    """How long to wait after each failure (s): twice as long every time, up to a minute."""
    pause = 1.0
    while True:
        yield pause
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the command, and then what is left of all that it started."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_GRACE_S)


def _described(status: int) -> str:
    if status >= 0:
        return f"failed with exit status {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:  # real-time signals have no names
        return f"was ended by signal {-status}"
