"""Running OpenCode's own command line: no longer than 30 s, no more than 32 MiB, few variables."""

from __future__ import annotations

import os
import select
import subprocess
import time
from collections.abc import Mapping, Sequence
from typing import IO

from .opencode import CommandError

TIMEOUT_S = 30.0
MOST_BYTES = 32 * 1_048_576

_PASSED_ON = {
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "LOGNAME",
    "OPENCODE_DB",
    "PATH",
    "SHELL",
    "TEMP",
    "TMP",
    "TMPDIR",
    "USER",
    "USERPROFILE",
}


class OpenCode:
    """The `opencode` command; executable is looked up in the PATH of environ unless it is a path."""

    def __init__(
        self,
        executable: str = "opencode",
        *,
        environ: Mapping[str, str] | None = None,
        timeout_s: float = TIMEOUT_S,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._executable = executable
        self._environ = child_environment(os.environ if environ is None else environ)
        self._timeout_s = timeout_s
        self._most_bytes = most_bytes

    def __call__(self, arguments: Sequence[str]) -> str:
        """The standard output of one call. Raises CommandError."""
        from shutil import which

        path = which(self._executable, path=self._environ.get("PATH"))
        if path is None:
            raise CommandError(f"the command {self._executable} was not found")
        try:
            child = subprocess.Popen(
                [path, *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._environ,
            )
        except (OSError, ValueError) as error:
            raise CommandError(f"{path} could not be started: {error}") from error
        with child:
            try:
                return self._answer(child, time.monotonic() + self._timeout_s)
            finally:
                child.kill()

    def _answer(self, child: subprocess.Popen[bytes], deadline: float) -> str:
        assert child.stdout is not None
        data = self._read(child.stdout, deadline)
        try:
            status = child.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._too_slow() from None
        if status:
            raise CommandError(f"{self._executable} failed with status {status}")
        return data.decode("utf-8", "replace")

    def _read(self, pipe: IO[bytes], deadline: float) -> bytes:
        data = bytearray()
        while True:
            # A grandchild may hold the pipe open: the end of the wait must not depend on the pipe.
            if not select.select([pipe], [], [], max(0.0, deadline - time.monotonic()))[0]:
                raise self._too_slow()
            block = os.read(pipe.fileno(), 1_048_576)
            if not block:
                return bytes(data)
            data += block
            if len(data) > self._most_bytes:
                raise CommandError(f"{self._executable} answered with more than {self._most_bytes} bytes")

    def _too_slow(self) -> CommandError:
        return CommandError(f"{self._executable} did not answer within {self._timeout_s:g} s")


def child_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """What OpenCode is given of an environment, and what makes its output plain."""
    kept = {name: value for name, value in environ.items() if name in _PASSED_ON or name.startswith("XDG_")}
    return kept | {"OPENCODE_PURE": "1", "NO_COLOR": "1"}
