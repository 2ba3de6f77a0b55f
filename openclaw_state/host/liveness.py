"""Is a gateway alive? Decided from its lease, its lock file and the process; never from age alone.

Contract, agent-loop sections 3.3 and 3.4.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import NamedTuple

from .gateway_lock import LockFile, OwnerStatus, owner_status, process_status, read_locks
from .payload import as_integer, as_number, as_text, read_object
from .processes import SYSTEM, Processes

FRESH_HEARTBEAT_MS = 60_000

_CAUTION = {"dead": 0, "unknown": 1, "alive": 2}


class Lease(NamedTuple):
    """The `gateway-owner` row of state_leases; times are epoch ms, start_time clock ticks.

    What its payload does not say, or says in a wrong type, is None.
    """

    owner: str
    host: str | None
    pid: int | None
    start_time: float | None
    port: int | None
    heartbeat_at: int | None
    expires_at: int | None


class Gateway(NamedTuple):
    """The verdict: state is alive, dead or unknown; reason is one stable word; detail a sentence."""

    state: str
    reason: str
    pid: int | None
    port: int | None
    detail: str

    @property
    def maybe_alive(self) -> bool:
        """Unknown counts as alive wherever a live gateway could be harmed."""
        return self.state != "dead"


def find_gateway(
    state_dir: str,
    lease: Lease | None,
    *,
    now: int,
    hostname: str | None = None,
    processes: Processes = SYSTEM,
) -> Gateway:
    """The gateway of a state directory, as its files show it; now is epoch ms.

    The lease decides, and where its owner is dead, also a lock that another owner took since.
    Without a lease the locks decide; of several, the one that asks for most caution.
    """
    locks = read_locks(state_dir)
    if lease is None:
        nothing = Gateway("dead", "none", None, None, "no lock file and no lease")
        return _most_cautious([_by_lock(lock, processes) for lock in locks] or [nothing])
    verdict = _by_lease(lease, now, _hostname() if hostname is None else hostname, processes)
    if verdict.state != "dead":
        return verdict
    successors = [lock for lock in locks if lock.payload and lock.payload.owner_id != lease.owner]
    return _most_cautious([verdict, *(_by_lock(lock, processes) for lock in successors)])


def living_since(state_dir: str, gateway: Gateway) -> int | None:
    """When this life of a gateway began (epoch ms), by the lock that names its pid; None: unknown."""
    from datetime import datetime

    for lock in read_locks(state_dir):
        if lock.payload and lock.payload.pid == gateway.pid:
            try:
                return round(datetime.fromisoformat(lock.payload.created_at).timestamp() * 1000)
            except (ValueError, OverflowError, OSError):
                continue
    return None


def read_lease(connection: sqlite3.Connection) -> Lease | None:
    """The gateway's lease; None where there is none, or no table of leases. Raises sqlite3.Error."""
    if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'state_leases'").fetchone():
        return None
    row = connection.execute(
        "SELECT owner, payload_json, heartbeat_at, expires_at FROM state_leases"
        " WHERE scope = 'gateway-owner' AND lease_key = 'global'"
    ).fetchone()
    return parse_lease(*row) if row else None


def parse_lease(
    owner: str, payload_json: str | None, heartbeat_at: int | None, expires_at: int | None
) -> Lease:
    """A lease from the columns of its row."""
    payload = read_object(payload_json or "") or {}
    holder = payload.get("owner")
    holder = holder if isinstance(holder, dict) else {}
    return Lease(
        owner=owner,
        host=as_text(holder.get("host")),
        pid=as_integer(holder.get("pid")),
        start_time=as_number(holder.get("startedAt")),
        port=as_integer(payload.get("port")),
        heartbeat_at=heartbeat_at,
        expires_at=expires_at,
    )


def _by_lease(lease: Lease, now: int, hostname: str, processes: Processes) -> Gateway:
    if lease.host is None or lease.pid is None:
        status = OwnerStatus("unknown", "unreadable")
        detail = "its lease does not say which process on which host holds it"
    elif lease.host != hostname:
        status = OwnerStatus("unknown", "other-host")
        detail = f"its lease is held on another host ({lease.host})"
    else:
        status = process_status(lease.pid, lease.start_time, processes=processes)
        if status.reason in ("exited", "pid-reused") and _is_fresh(lease, now):
            status = OwnerStatus("unknown", "other-namespace")
        detail = _sentence(status, lease.pid)
    return Gateway(*status, lease.pid, lease.port, detail)


def _is_fresh(lease: Lease, now: int) -> bool:
    return lease.heartbeat_at is not None and now - lease.heartbeat_at <= FRESH_HEARTBEAT_MS


def _by_lock(lock: LockFile, processes: Processes) -> Gateway:
    status = owner_status(lock.payload, processes)
    if lock.payload is None:
        return Gateway(*status, None, None, f"{lock.path} cannot be read: {lock.problem}")
    pid, role = as_integer(lock.payload.pid), lock.payload.role
    port = lock.payload.port if role == "gateway" else None  # nobody else listens there
    return Gateway(*status, pid, port, _sentence(status, pid, role))


def _sentence(status: OwnerStatus, pid: int | None, role: str = "gateway") -> str:
    if status.state == "alive":
        return f"running as pid {pid}" if role == "gateway" else f"held by {role}, running as pid {pid}"
    return {
        "exited": f"its process (pid {pid}) is gone",
        "pid-reused": f"pid {pid} is another process by now",
        "argv": f"pid {pid} runs another program",
        "impossible-pid": "its lock names a pid that no process can have",
        "no-pid": "its lock names no process",
        "argv-unreadable": f"pid {pid} is there, but does not show what it runs",
        "other-namespace": f"here pid {pid} is not it, but its heartbeat is fresh: maybe in a container",
    }[status.reason]


def _most_cautious(verdicts: Sequence[Gateway]) -> Gateway:
    return max(verdicts, key=lambda verdict: _CAUTION[verdict.state])


def _hostname() -> str:
    import socket

    return socket.gethostname()
