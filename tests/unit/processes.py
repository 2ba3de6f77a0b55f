"""Processes made up in a folder, and the lock files that name them."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from openclaw_state.host.processes import Processes

PID, STARTED = 2727, 193_884
GATEWAY = ("/usr/bin/node", "/opt/openclaw/dist/index.js", "gateway")
OPENCLAW = ("/usr/bin/openclaw",)


class Host:
    """Processes made up in a folder; `hidden` ones exist without being shown."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hidden: set[int] = set()
        self.processes = Processes(str(folder), self._kill)

    def start(
        self,
        pid: int = PID,
        *argv: str,
        started: int = STARTED,
        state: str = "S",
        threads: int = 11,
        name: str = "node",
    ) -> None:
        place = self.folder / str(pid)
        place.mkdir(parents=True)
        between = " ".join(["0"] * 16)
        line = f"{pid} ({name}) {state} {between} {threads} 0 {started} 0 0\n"
        (place / "stat").write_text(line)
        (place / "cmdline").write_bytes("\0".join([*argv, ""]).encode())

    def forget(self, pid: int, name: str) -> None:
        (self.folder / str(pid) / name).unlink()

    def _kill(self, pid: int, signal: int) -> None:
        assert signal == 0
        if pid > 2**31 - 1:
            raise OverflowError
        if pid in self.hidden:
            raise PermissionError
        if not (self.folder / str(pid)).is_dir():
            raise ProcessLookupError


needs_proc = pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="no /proc on this system")


def payload(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = {"pid": PID, "createdAt": "2026-11-30T20:49:07.691Z", "configPath": "/c"}
    return {**found, **changes}


def put_lock(state_dir: Path, text: str | None = None, *, at: str = "openclaw-0/gateway.state.lock") -> Path:
    path = state_dir / "tmp" / at
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(payload(startTime=STARTED)) if text is None else text)
    return path
