"""Is a gateway alive? Decided from its lock file, its lease and /proc; never from age alone.

Contract, agent-loop sections 3.1, 3.3 and 3.4.
"""

from __future__ import annotations

import json
import os
import sqlite3
from dataclasses import dataclass
from typing import Any

FRESH_HEARTBEAT_MS = 60_000
LOCK_FILE = "gateway.state.lock"
_ROLES = ("gateway", "agent-embedded", "skill-workshop-apply", "sqlite-maintenance")
_WORD_OF_ROLE = {"gateway": "gateway", "sqlite-maintenance": "doctor", "skill-workshop-apply": "skills"}
_OPTIONAL = {
    "ownerId": str,
    "cronOwnerProjection": str,
    "port": int,
    "stateDir": str,
    "startTime": (int, float),
    "role": str,
}


@dataclass(frozen=True, slots=True)
class LockPayload:
    """What a gateway lock file says about its owner."""

    pid: float
    created_at: str
    config_path: str
    port: int | None
    start_time: float | None
    role: str


@dataclass(frozen=True, slots=True)
class Lease:
    """The `gateway-owner` row of state_leases; times are epoch ms."""

    host: str | None
    pid: int | None
    started_at: int | None
    port: int | None
    heartbeat_at: int | None


@dataclass(frozen=True, slots=True)
class Gateway:
    """The verdict: state is alive, dead or unknown; reason is one stable word; detail a sentence."""

    state: str
    reason: str
    detail: str
    pid: int | None = None
    port: int | None = None

    @property
    def maybe_alive(self) -> bool:
        """Unknown counts as alive wherever a live gateway could be harmed."""
        return self.state != "dead"


def find_gateway(
    state_dir: str, lease: Lease | None, *, now: int, hostname: str | None = None, proc: str = "/proc"
) -> Gateway:
    """The gateway of a state directory, as its files show it (contract section 3.4)."""
    lock = _read_lock(state_dir)
    if lease is None:
        return Gateway("dead", "none", "no lock and no lease") if lock is None else _by_lock(lock, proc)
    host = os.uname().nodename if hostname is None else hostname
    if lease.host != host:
        return Gateway(
            "unknown",
            "other-host",
            f"its lease is held from another host ({lease.host})",
            lease.pid,
            lease.port,
        )
    state, reason = _by_start_time(lease.pid, lease.started_at, proc)
    if state == "dead" and lease.heartbeat_at is not None and now - lease.heartbeat_at <= FRESH_HEARTBEAT_MS:
        return Gateway(
            "unknown",
            "other-namespace",
            f"no such process {lease.pid} here, but its heartbeat is fresh",
            lease.pid,
            lease.port,
        )
    if state != "unknown":
        return Gateway(state, reason, _detail(state, reason, lease.pid), lease.pid, lease.port)
    if lock is not None:
        return _by_lock(lock, proc)
    return Gateway("unknown", reason, _detail("unknown", reason, lease.pid), lease.pid, lease.port)


def read_lease(connection: sqlite3.Connection) -> Lease | None:
    """The gateway's lease row, None where there is none or the table is missing."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'state_leases'").fetchone():
        return None
    row = connection.execute(
        "SELECT payload_json, heartbeat_at FROM state_leases"
        " WHERE scope = 'gateway-owner' AND lease_key = 'global'"
    ).fetchone()
    return parse_lease(*row) if row else None


def parse_lease(payload_json: str | None, heartbeat_at: int | None) -> Lease:
    """A lease from its payload; what cannot be read is None."""
    payload = _object(payload_json or "")
    owner = payload.get("owner")
    owner = owner if isinstance(owner, dict) else {}
    return Lease(
        host=_of(owner.get("host"), str),
        pid=_of(owner.get("pid"), int),
        started_at=_of(owner.get("startedAt"), int),
        port=_of(payload.get("port"), int),
        heartbeat_at=heartbeat_at,
    )


def parse_lock(text: str) -> LockPayload | None:
    """The payload of a lock file; one wrong type makes the whole of it unreadable."""
    payload = _object(text)
    required = (
        _of(payload.get("pid"), (int, float)),
        _of(payload.get("createdAt"), str),
        _of(payload.get("configPath"), str),
    )
    if None in required:
        return None
    for name, kind in _OPTIONAL.items():
        if name in payload and _of(payload[name], kind) is None:
            return None
    role, port = payload.get("role", "gateway"), payload.get("port")
    if (
        role not in _ROLES
        or payload.get("ownerId") == ""
        or payload.get("cronOwnerProjection", "dynamic-default-v1") != "dynamic-default-v1"
        or (port is not None and not 0 < port < 65_536)
    ):
        return None
    return LockPayload(
        payload["pid"], payload["createdAt"], payload["configPath"], port, payload.get("startTime"), role
    )


def owner_status(lock: LockPayload | None, proc: str = "/proc") -> tuple[str, str]:
    """(alive, dead or unknown; the reason) of a lock's owner (contract section 3.1)."""
    if lock is None or lock.pid == 0:
        return "unknown", "no-owner-pid"
    if lock.pid < 0 or lock.pid != int(lock.pid):
        return "dead", "impossible-pid"
    pid = int(lock.pid)
    state, reason = _by_start_time(pid, lock.start_time, proc)
    return _by_arguments(pid, lock.role, proc) if state == "unknown" else (state, reason)


def _by_lock(lock: LockPayload | str, proc: str) -> Gateway:
    if isinstance(lock, str):
        return Gateway("unknown", "unreadable", f"its lock file cannot be read ({lock})")
    state, reason = owner_status(lock, proc)
    pid = int(lock.pid)
    return Gateway(state, reason, _detail(state, reason, pid), pid, lock.port)


def _detail(state: str, reason: str, pid: int | None) -> str:
    if state == "alive":
        return f"running as pid {pid}"
    words = {
        "exited": "is gone",
        "pid-reused": "is another process by now",
        "not-openclaw": "is not OpenClaw",
        "impossible-pid": "cannot be a process",
        "no-start-time": "cannot be told from another process",
        "no-arguments": "does not show what it runs",
        "no-owner-pid": "is not named",
    }
    return f"the process that held it (pid {pid}) {words.get(reason, reason)}"


def _by_start_time(pid: int | None, recorded: float | None, proc: str) -> tuple[str, str]:
    if pid is None:
        return "unknown", "no-owner-pid"
    if not os.path.isdir(proc):
        return "unknown", "no-start-time"
    stat = _stat(pid, proc)
    if stat is None and not os.path.isdir(os.path.join(proc, str(pid))):
        return "dead", "exited"
    if stat is None or recorded is None:
        return "unknown", "no-start-time"
    status, started = stat
    if status in ("Z", "X"):
        return "dead", "exited"
    return ("alive", "start-time-equal") if started == recorded else ("dead", "pid-reused")


def _stat(pid: int, proc: str) -> tuple[str, int] | None:
    """(state letter, start time) of a process: fields 3 and 22 of its stat file."""
    try:
        with open(os.path.join(proc, str(pid), "stat"), encoding="utf-8", errors="replace") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0], int(fields[19])
    except (OSError, ValueError, IndexError):
        return None


def _by_arguments(pid: int, role: str, proc: str) -> tuple[str, str]:
    try:
        with open(os.path.join(proc, str(pid), "cmdline"), encoding="utf-8", errors="replace") as file:
            arguments = [word for word in file.read().split("\0") if word]
    except OSError:
        arguments = []
    if not arguments:
        return "unknown", "no-arguments"
    word = _WORD_OF_ROLE.get(role)
    program = os.path.basename(arguments[0])
    if role == "gateway" and program == "openclaw-gateway":
        return "alive", "arguments"
    openclaw = any("openclaw" in os.path.basename(part) or "/openclaw/" in part for part in arguments[:2])
    matches = openclaw and (word is None or word in arguments[1:])
    return ("alive", "arguments") if matches else ("dead", "not-openclaw")


def _read_lock(state_dir: str) -> LockPayload | str | None:
    """The lock of whichever user runs the gateway: a payload, why it is unreadable, or None."""
    folder = os.path.join(state_dir, "tmp")
    try:
        names = sorted(
            name for name in os.listdir(folder) if name == "openclaw" or name.startswith("openclaw-")
        )
    except OSError:
        return None
    for name in names:
        path = os.path.join(folder, name, LOCK_FILE)
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                return parse_lock(file.read()) or f"{path} is not a lock"
        except FileNotFoundError:
            continue
        except OSError as error:
            return f"{path}: {error.strerror}"
    return None


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


def _of(value: Any, kind: Any) -> Any:
    return value if isinstance(value, kind) and not isinstance(value, bool) else None
