"""Is a gateway alive? The lease, the locks and the process, against processes made up on disk."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openclaw_state.host.gateway_lock import read_locks
from openclaw_state.host.liveness import (
    FRESH_HEARTBEAT_MS,
    Gateway,
    Lease,
    find_gateway,
    parse_lease,
    read_lease,
)
from openclaw_state.host.processes import Processes
from tests.support import T, change, copy_tree
from tests.unit.processes import GATEWAY, OPENCLAW, PID, STARTED, Host, needs_proc, payload, put_lock

# The lease


LEASE = Lease("o", "here", PID, STARTED, 18_977, T, T + 300_000)


def lease_json(**owner: Any) -> str:
    whole = {"pid": PID, "host": "here", "startedAt": STARTED, **owner}
    return json.dumps({"owner": whole, "port": 18_977, "mode": "foreground", "supervisor": None})


def test_a_lease_is_read_with_what_it_says() -> None:
    assert parse_lease("o", lease_json(), T, T + 300_000) == LEASE


@pytest.mark.parametrize(
    ("text", "host", "pid", "start_time", "port"),
    [
        (lease_json(startedAt=None), "here", PID, None, 18_977),
        (lease_json(startedAt="1"), "here", PID, None, 18_977),
        (lease_json(pid="1"), "here", None, STARTED, 18_977),
        (lease_json(pid=True), "here", None, STARTED, 18_977),
        (lease_json(pid=1.5), "here", None, STARTED, 18_977),
        (lease_json(host=None), None, PID, STARTED, 18_977),
        ('{"owner": []}', None, None, None, None),
        ('{"port": "x"}', None, None, None, None),
        ("[]", None, None, None, None),
        ("{", None, None, None, None),
        ("", None, None, None, None),
        (None, None, None, None, None),
    ],
)
def test_what_a_lease_does_not_say_is_none(
    text: str | None, host: str | None, pid: int | None, start_time: float | None, port: int | None
) -> None:
    assert parse_lease("o", text, None, None) == Lease("o", host, pid, start_time, port, None, None)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(tmp_path / "openclaw.sqlite")) as connection:
        yield connection


def test_a_file_without_leases_has_no_lease(database: sqlite3.Connection) -> None:
    assert read_lease(database) is None


def test_only_the_row_of_the_gateway_is_its_lease(database: sqlite3.Connection) -> None:
    database.execute(
        "CREATE TABLE state_leases (scope TEXT NOT NULL, lease_key TEXT NOT NULL, owner TEXT NOT NULL,"
        " expires_at INTEGER, heartbeat_at INTEGER, payload_json TEXT, PRIMARY KEY (scope, lease_key)) STRICT"
    )
    rows = [
        ("core:plugin-lifecycle", "global", "a", 1, 1, lease_json()),
        ("gateway-owner", "other", "b", 1, 1, lease_json()),
    ]
    insert = "INSERT INTO state_leases VALUES (?, ?, ?, ?, ?, ?)"
    database.executemany(insert, rows)
    assert read_lease(database) is None
    database.execute(insert, ("gateway-owner", "global", "o", T + 300_000, T, lease_json()))
    assert read_lease(database) == LEASE


# The verdict


@pytest.fixture
def judge(state_dir: Path, host: Host) -> Any:
    def judge(lease: Lease | None, *, now: int = T) -> Gateway:
        return find_gateway(str(state_dir), lease, now=now, hostname="here", processes=host.processes)

    return judge


STALE = T + FRESH_HEARTBEAT_MS + 1


def test_without_lock_and_lease_there_is_no_gateway(judge: Any) -> None:
    found = judge(None)
    assert found == ("dead", "none", None, None, "no lock file and no lease")
    assert not found.maybe_alive


def test_a_lease_of_another_host_is_unknown_whatever_runs_here(judge: Any, host: Host) -> None:
    other = LEASE._replace(host="elsewhere")
    assert judge(other, now=STALE)[:2] == ("unknown", "other-host")
    host.start(PID, *GATEWAY)
    found = judge(other)
    assert found == ("unknown", "other-host", PID, 18_977, "its lease is held on another host (elsewhere)")
    assert found.maybe_alive


@pytest.mark.parametrize("lease", [LEASE._replace(host=None), LEASE._replace(pid=None)])
def test_a_lease_that_names_no_owner_is_unknown(judge: Any, host: Host, lease: Lease) -> None:
    assert judge(lease, now=STALE)[:2] == ("unknown", "unreadable")


def test_an_equal_start_time_is_life_however_old_the_heartbeat(judge: Any, host: Host) -> None:
    host.start(PID, "anything")
    found = judge(LEASE, now=T + 10**9)
    assert found == ("alive", "start-time-equal", PID, 18_977, "running as pid 2727")
    assert found.maybe_alive


@pytest.mark.parametrize(
    ("now", "fresh"),
    [(T, True), (T - 10**9, True), (T + FRESH_HEARTBEAT_MS, True), (STALE, False)],
)
@pytest.mark.parametrize(
    ("process", "reason"),
    [
        (None, "exited"),
        ({"state": "Z", "threads": 1}, "exited"),
        ({"started": STARTED + 1}, "pid-reused"),
    ],
)
def test_a_process_that_is_not_here_is_dead_once_its_heartbeat_is_old(
    judge: Any, host: Host, process: dict[str, Any] | None, reason: str, now: int, fresh: bool
) -> None:
    if process is not None:
        host.start(PID, *GATEWAY, **process)
    expected = ("unknown", "other-namespace") if fresh else ("dead", reason)
    assert judge(LEASE, now=now)[:2] == expected


def test_a_lease_without_a_heartbeat_is_not_fresh(judge: Any) -> None:
    assert judge(LEASE._replace(heartbeat_at=None))[:2] == ("dead", "exited")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [(GATEWAY, ("alive", "argv")), (OPENCLAW, ("dead", "argv")), (("sleep", "9"), ("dead", "argv"))],
)
def test_a_lease_without_a_start_time_is_judged_by_the_command_line(
    judge: Any, host: Host, argv: tuple[str, ...], expected: tuple[str, str]
) -> None:
    host.start(PID, *argv)
    assert judge(LEASE._replace(start_time=None), now=STALE)[:2] == expected


def test_a_system_that_shows_no_process_leaves_a_living_pid_unknown(judge: Any, host: Host) -> None:
    host.hidden.add(PID)
    assert judge(LEASE, now=STALE)[:2] == ("unknown", "argv-unreadable")


def test_the_lease_decides_over_the_lock_of_the_same_owner(judge: Any, host: Host, state_dir: Path) -> None:
    host.start(PID, *GATEWAY, started=STARTED + 1)
    put_lock(state_dir, json.dumps(payload(ownerId="o")))
    assert judge(LEASE, now=STALE)[:2] == ("dead", "pid-reused")
    put_lock(state_dir, "{")
    assert judge(LEASE, now=STALE)[:2] == ("dead", "pid-reused")


def test_a_lock_that_another_owner_took_since_outlives_a_dead_lease(
    judge: Any, host: Host, state_dir: Path
) -> None:
    host.start(31, *GATEWAY)
    put_lock(state_dir, json.dumps(payload(pid=31, ownerId="p", port=1, startTime=STARTED)))
    assert judge(LEASE, now=STALE) == ("alive", "start-time-equal", 31, 1, "running as pid 31")
    assert judge(LEASE)[:2] == ("unknown", "other-namespace")


@pytest.mark.parametrize(
    ("role", "argv", "expected", "port", "detail"),
    [
        ("gateway", GATEWAY, ("alive", "argv"), 7, "running as pid 2727"),
        (
            "sqlite-maintenance",
            (*OPENCLAW, "doctor"),
            ("alive", "argv"),
            None,
            "held by sqlite-maintenance, running as pid 2727",
        ),
        ("gateway", ("vi",), ("dead", "argv"), 7, "pid 2727 runs another program"),
    ],
)
def test_without_a_lease_the_lock_decides(
    judge: Any,
    host: Host,
    state_dir: Path,
    role: str,
    argv: tuple[str, ...],
    expected: tuple[str, str],
    port: int | None,
    detail: str,
) -> None:
    host.start(PID, *argv)
    put_lock(state_dir, json.dumps(payload(role=role, port=7)))
    assert judge(None) == (*expected, PID, port, detail)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (json.dumps(payload(pid=0)), ("unknown", "no-pid", 0)),
        (json.dumps(payload(pid=-3)), ("dead", "impossible-pid", -3)),
        (json.dumps(payload(pid=1.5)), ("dead", "impossible-pid", None)),
        (json.dumps(payload()), ("dead", "exited", PID)),
        ("", ("unknown", "unreadable", None)),
    ],
)
def test_a_lock_alone_names_the_reason(
    judge: Any, state_dir: Path, text: str, expected: tuple[str, str, int | None]
) -> None:
    put_lock(state_dir, text)
    found = judge(None)
    assert found[:3] == expected
    assert found.detail


def test_an_unreadable_lock_is_named_in_the_detail(judge: Any, state_dir: Path) -> None:
    path = put_lock(state_dir, "{")
    assert judge(None).detail == f"{path} cannot be read: not what a gateway writes"


def test_of_the_locks_of_several_users_the_living_one_decides(
    judge: Any, host: Host, state_dir: Path
) -> None:
    host.start(31, *GATEWAY)
    put_lock(state_dir, at="openclaw-0/gateway.state.lock")
    assert judge(None)[:2] == ("dead", "exited")
    put_lock(state_dir, "{", at="openclaw-1/gateway.state.lock")
    assert judge(None)[:2] == ("unknown", "unreadable")
    alive = json.dumps(payload(pid=31, startTime=STARTED))
    put_lock(state_dir, alive, at="openclaw-1000/gateway.state.lock")
    assert judge(None)[:3] == ("alive", "start-time-equal", 31)


@needs_proc
def test_this_host_and_its_processes_are_asked_when_none_are_given(state_dir: Path) -> None:
    lease = LEASE._replace(
        host=os.uname().nodename, pid=os.getpid(), start_time=Processes().start_time(os.getpid())
    )
    found = find_gateway(str(state_dir), lease, now=time.time_ns() // 1_000_000)
    assert found[:3] == ("alive", "start-time-equal", os.getpid())


# What a gateway of 2026.9.6 left


@pytest.fixture
def live(peer: Path, tmp_path: Path) -> Path:
    """A copy of the state directory of a gateway that was running when it was taken."""
    return copy_tree(peer / "agent-loop-live", tmp_path / "live")


def lease_in(path: Path) -> Lease | None:
    with closing(sqlite3.connect(path)) as connection:
        return read_lease(connection)


def test_the_traces_of_a_real_gateway_are_read(live: Path) -> None:
    lease = lease_in(live / "statedir/state/openclaw.sqlite")
    [lock] = read_locks(str(live / "statedir"))
    assert lock.payload is not None
    assert lease is not None
    assert lease[1:5] == ("vm", PID, STARTED, 18_977)
    assert lock.payload[0] == PID
    assert lock.payload[4:] == (18_977, "/srv/al/state", STARTED, "gateway")
    assert (lock.payload.owner_id, lease.expires_at) == (lease.owner, lease.heartbeat_at + 300_000)


@pytest.mark.parametrize(
    ("hostname", "later", "running", "expected"),
    [
        ("vm", 0, True, ("alive", "start-time-equal")),
        ("vm", 10**9, True, ("alive", "start-time-equal")),
        ("vm", 0, False, ("unknown", "other-namespace")),
        ("vm", 60_000, False, ("dead", "exited")),
        ("other", 10**9, False, ("unknown", "other-host")),
    ],
)
def test_a_real_gateway_is_judged(
    live: Path, host: Host, hostname: str, later: int, running: bool, expected: tuple[str, str]
) -> None:
    taken = int((live / "taken-at-ms").read_text())
    if running:
        host.start(PID, *GATEWAY)
    found = find_gateway(
        str(live / "statedir"),
        lease_in(live / "statedir/state/openclaw.sqlite"),
        now=taken + later,
        hostname=hostname,
        processes=host.processes,
    )
    assert (found[:2], found.pid, found.port) == (expected, PID, 18_977)


def test_a_stopped_gateway_leaves_no_lease(peer: Path, tmp_path: Path) -> None:
    files = sorted(peer.glob("peer-state-*.sqlite"))
    assert [lease_in(Path(shutil.copy(file, tmp_path))) for file in files] == [None] * len(files)


def test_a_lease_without_the_lock_file_still_decides(live: Path, host: Host) -> None:
    shutil.rmtree(live / "statedir/tmp")
    path = live / "statedir/state/openclaw.sqlite"
    change(path, "UPDATE state_leases SET heartbeat_at = NULL WHERE scope = 'gateway-owner'")
    found = find_gateway(
        str(live / "statedir"), lease_in(path), now=T, hostname="vm", processes=host.processes
    )
    assert found[:2] == ("dead", "exited")
