"""The lock files of gateways: what they say, and whether their owner lives.

Contract, agent-loop section 3.1.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from .payload import as_integer, as_number, as_text, read_object
from .processes import SYSTEM, Processes, is_openclaw, is_program

# The argument that tells an OpenClaw process of each role; None where any OpenClaw will do.
_ARGUMENT = {
    "gateway": "gateway",
    "agent-embedded": None,
    "skill-workshop-apply": "skills",
    "sqlite-maintenance": "doctor",
}


class LockPayload(NamedTuple):
    """What a lock file says about its owner; created_at is its text, start_time clock ticks."""

    pid: float
    created_at: str
    config_path: str
    owner_id: str | None
    port: int | None
    state_dir: str | None
    start_time: float | None
    role: str


class LockFile(NamedTuple):
    """A lock file, or a folder of them that cannot be listed: its payload, or why there is none."""

    path: str
    payload: LockPayload | None
    problem: str | None = None


class OwnerStatus(NamedTuple):
    """state is alive, dead or unknown; reason is one stable word."""

    state: str
    reason: str


def read_locks(state_dir: str) -> list[LockFile]:
    """The gateway lock files of every user of a state directory, by folder and name."""
    tmp = os.path.join(state_dir, "tmp")
    try:
        users = [name for name in os.listdir(tmp) if name == "openclaw" or name.startswith("openclaw-")]
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        return [LockFile(tmp, None, error.strerror)]
    return [lock for name in sorted(users) for lock in _read_folder(os.path.join(tmp, name))]


def parse_lock(text: str) -> LockPayload | None:
    """The payload of a lock file; one wrong type makes the whole of it unreadable.

    The white space that OpenClaw appends to make each lock differ is allowed, as in any JSON.
    """
    found = read_object(text)
    if found is None or not found.keys() >= {"pid", "createdAt", "configPath"}:
        return None
    if not all(fits(found[name]) for name, fits in _FITS.items() if name in found):
        return None
    return LockPayload(
        pid=found["pid"],
        created_at=found["createdAt"],
        config_path=found["configPath"],
        owner_id=found.get("ownerId"),
        port=as_integer(found.get("port")),
        state_dir=found.get("stateDir"),
        start_time=found.get("startTime"),
        role=found.get("role", "gateway"),
    )


def owner_status(lock: LockPayload | None, processes: Processes = SYSTEM) -> OwnerStatus:
    """Does the owner of a lock live? None is an unreadable lock; age is no argument."""
    if lock is None:
        return OwnerStatus("unknown", "unreadable")
    if lock.pid == 0:
        return OwnerStatus("unknown", "no-pid")
    pid = as_integer(lock.pid)
    if pid is None or pid < 0:
        return OwnerStatus("dead", "impossible-pid")
    return process_status(pid, lock.start_time, lock.role, processes)


def process_status(
    pid: int, start_time: float | None, role: str = "gateway", processes: Processes = SYSTEM
) -> OwnerStatus:
    """The same for a recorded process: by its start time, or else by its command line."""
    if not processes.lives(pid):
        return OwnerStatus("dead", "exited")
    started = processes.start_time(pid)
    if start_time is not None and started is not None:
        same = start_time == started
        return OwnerStatus("alive", "start-time-equal") if same else OwnerStatus("dead", "pid-reused")
    arguments = processes.arguments(pid)
    if arguments is None:
        return OwnerStatus("unknown", "argv-unreadable")
    return OwnerStatus("alive" if _plays(role, arguments) else "dead", "argv")


def _plays(role: str, arguments: Sequence[str]) -> bool:
    if role == "gateway" and is_program(arguments, "openclaw-gateway"):
        return True
    return is_openclaw(arguments) and _ARGUMENT[role] in (None, *arguments)


def _read_folder(folder: str) -> list[LockFile]:
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        return [LockFile(folder, None, error.strerror)]
    locks = (
        _read(os.path.join(folder, name))
        for name in names
        if name.startswith("gateway.") and name.endswith(".lock")
    )
    return [lock for lock in locks if lock]


def _read(path: str) -> LockFile | None:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            payload = parse_lock(file.read())
    except FileNotFoundError:
        return None
    except OSError as error:
        return LockFile(path, None, error.strerror)
    return LockFile(path, payload, None if payload else "not what a gateway writes")


def _is_port(value: Any) -> bool:
    port = as_integer(value)
    return port is not None and 0 < port < 65_536


# The keys that are looked at, and what each must hold where it is there.
_FITS: dict[str, Callable[[Any], bool]] = {
    "pid": lambda value: as_number(value) is not None,
    "createdAt": lambda value: as_text(value) is not None,
    "configPath": lambda value: as_text(value) is not None,
    "ownerId": lambda value: bool(as_text(value)),
    "cronOwnerProjection": lambda value: value == "dynamic-default-v1",
    "port": _is_port,
    "stateDir": lambda value: as_text(value) is not None,
    "startTime": lambda value: as_number(value) is not None,
    "role": lambda value: as_text(value) in _ARGUMENT,
}
