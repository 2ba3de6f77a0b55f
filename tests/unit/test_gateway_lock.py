"""Lock files of gateways: which are readable, and whose owner lives."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from openclaw_state.host.gateway_lock import LockPayload, OwnerStatus, owner_status, parse_lock, read_locks
from tests.support import needs_permissions
from tests.unit.processes import GATEWAY, OPENCLAW, PID, STARTED, Host, payload, put_lock

# The payload


def test_a_lock_is_read_with_what_it_says() -> None:
    text = json.dumps(
        payload(
            ownerId="o",
            cronOwnerProjection="dynamic-default-v1",
            port=18977,
            stateDir="/s",
            startTime=STARTED,
            role="agent-embedded",
            later=None,
        ),
        indent=2,
    )
    lock = LockPayload(
        PID, "2026-11-30T20:49:07.691Z", "/c", "o", 18977, "/s", STARTED, role="agent-embedded"
    )
    assert parse_lock(text) == lock
    assert parse_lock(f"{text}\n\t\t \t  \t\n") == lock


def test_a_lock_may_say_little() -> None:
    assert parse_lock(json.dumps(payload())) == LockPayload(
        PID, "2026-11-30T20:49:07.691Z", "/c", None, None, None, None, "gateway"
    )


@pytest.mark.parametrize("name", ["pid", "createdAt", "configPath"])
def test_a_lock_without_a_required_key_is_unreadable(name: str) -> None:
    found = payload()
    del found[name]
    assert parse_lock(json.dumps(found)) is None


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("pid", [None, True, "1", [], {}]),
        ("createdAt", [None, 1, False, []]),
        ("configPath", [None, 1, {}]),
        ("ownerId", [None, "", 1]),
        ("cronOwnerProjection", [None, "", "dynamic-default-v2", 1]),
        ("port", [None, "1", True, 0, -1, 65_536, 1.5, 1e400]),
        ("stateDir", [None, 1]),
        ("startTime", [None, "1", True, []]),
        ("role", [None, "", "Gateway", "doctor", [], {}]),
    ],
)
def test_one_wrong_type_makes_the_whole_lock_unreadable(name: str, wrong: list[Any]) -> None:
    for value in wrong:
        text = json.dumps(payload(**{name: value})).replace("Infinity", "1e999")
        assert parse_lock(text) is None, value


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("pid", 0),
        ("pid", -3),
        ("pid", 1.5),
        ("createdAt", ""),
        ("configPath", ""),
        ("port", 1),
        ("port", 65_535),
        ("port", 18_789.0),
        ("stateDir", ""),
        ("startTime", 0),
        ("startTime", -1.5),
        ("role", "gateway"),
        ("role", "skill-workshop-apply"),
        ("role", "sqlite-maintenance"),
    ],
)
def test_an_unusual_value_of_the_right_type_is_read(name: str, value: object) -> None:
    assert parse_lock(json.dumps(payload(**{name: value}))) is not None


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t",
        "{",
        "null",
        "[]",
        '"text"',
        "1",
        "[" * 100_000,
        json.dumps(payload()) + "x",
        json.dumps(payload()) + "\n{}",
        json.dumps(payload())[:-1] + ",}",
        "\ufeff" + json.dumps(payload()),
        json.dumps(payload(other=float("nan"))),
        json.dumps(payload(pid=float("inf"))),
        json.dumps(payload()) + " // note",
    ],
)
def test_what_is_not_strictly_json_is_unreadable(text: str) -> None:
    assert parse_lock(text) is None


def test_of_two_equal_keys_the_last_counts() -> None:
    text = json.dumps(payload())[:-1] + ', "pid": 9}'
    lock = parse_lock(text)
    assert lock is not None
    assert lock.pid == 9


# The owner


def lock_of(**changes: Any) -> LockPayload:
    lock = parse_lock(json.dumps(payload(**changes)).replace("Infinity", "1e999"))
    assert lock is not None
    return lock


@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"startTime": STARTED}, ("alive", "start-time-equal")),
        ({"startTime": STARTED + 0.5}, ("dead", "pid-reused")),
        ({"startTime": STARTED + 4242}, ("dead", "pid-reused")),
        ({"startTime": STARTED, "role": "sqlite-maintenance"}, ("alive", "start-time-equal")),
        ({}, ("alive", "argv")),
        ({"pid": float(PID)}, ("alive", "argv")),
        ({"role": "agent-embedded"}, ("alive", "argv")),
        ({"role": "sqlite-maintenance"}, ("dead", "argv")),
        ({"pid": 0}, ("unknown", "no-pid")),
        ({"pid": -0.0}, ("unknown", "no-pid")),
        ({"pid": -3}, ("dead", "impossible-pid")),
        ({"pid": 2727.5}, ("dead", "impossible-pid")),
        ({"pid": float("inf")}, ("dead", "impossible-pid")),
        ({"pid": 1e300}, ("dead", "exited")),
        ({"pid": 1}, ("dead", "exited")),
        ({"pid": 1, "startTime": STARTED}, ("dead", "exited")),
    ],
)
def test_the_start_time_decides_before_the_command_line(
    host: Host, changes: dict[str, Any], status: OwnerStatus
) -> None:
    host.start(PID, *GATEWAY)
    assert owner_status(lock_of(**changes), host.processes) == status


def test_an_unreadable_lock_has_an_unknown_owner() -> None:
    assert owner_status(None) == ("unknown", "unreadable")


@pytest.mark.parametrize(
    ("role", "argv", "alive"),
    [
        ("gateway", GATEWAY, True),
        ("gateway", ("openclaw-gateway",), True),
        ("gateway", ("/usr/bin/openclaw-gateway",), True),
        ("gateway", ("/usr/bin/OpenClaw-Gateway",), True),
        ("gateway", ("my-openclaw-gateway",), False),
        ("gateway", ("sleep", "openclaw-gateway"), False),
        ("gateway", (*OPENCLAW, "gateway"), True),
        ("gateway", (*OPENCLAW, " GATEWAY "), True),
        ("gateway", OPENCLAW, False),
        ("gateway", (*OPENCLAW, "gateway-status"), False),
        ("gateway", ("sleep", "gateway"), False),
        ("gateway", (), False),
        ("agent-embedded", OPENCLAW, True),
        ("agent-embedded", ("openclaw-gateway",), False),
        ("sqlite-maintenance", (*OPENCLAW, "doctor"), True),
        ("sqlite-maintenance", (*OPENCLAW, "skills"), False),
        ("skill-workshop-apply", (*OPENCLAW, "skills"), True),
        ("skill-workshop-apply", (*OPENCLAW, "doctor"), False),
    ],
)
def test_without_a_start_time_the_command_line_must_fit_the_role(
    host: Host, role: str, argv: tuple[str, ...], alive: bool
) -> None:
    host.start(PID, *argv)
    expected = ("alive" if alive else "dead", "argv")
    assert owner_status(lock_of(role=role), host.processes) == expected
    host.forget(PID, "stat")
    assert owner_status(lock_of(role=role, startTime=STARTED), host.processes) == expected


def test_a_zombie_is_dead_whatever_is_recorded_but_not_while_a_thread_runs(host: Host) -> None:
    host.start(1, state="Z", threads=1)
    host.start(2, state="Z", threads=2)
    assert owner_status(lock_of(pid=1, startTime=STARTED), host.processes) == ("dead", "exited")
    assert owner_status(lock_of(pid=2, startTime=STARTED), host.processes) == ("alive", "start-time-equal")
    assert owner_status(lock_of(pid=2), host.processes) == ("dead", "argv")


def test_a_process_that_shows_nothing_is_unknown(host: Host) -> None:
    host.hidden.add(PID)
    assert owner_status(lock_of(startTime=STARTED), host.processes) == ("unknown", "argv-unreadable")


def made_up(host: Host, name: object) -> object:
    """The pid of a process named as in the measured cases."""
    pids = {"dead": 1, "zombie": 2, "zombie-leader": 3, "live-other": 4}
    argv = {
        "live-gateway": ("openclaw-gateway",),
        "live-openclaw": OPENCLAW,
        "live-openclaw-gateway": (*OPENCLAW, "gateway"),
        "live-openclaw-doctor": (*OPENCLAW, "doctor"),
        "live-other": ("sleep", "60"),
    }
    if not isinstance(name, str):
        return name
    pid = pids.get(name, PID)
    if name != "dead":
        state = "Z" if name.startswith("zombie") else "S"
        host.start(pid, *argv.get(name, ()), state=state, threads=2 if name == "zombie-leader" else 1)
    return pid


def test_the_owner_of_every_measured_lock_is_judged_as_openclaw_does(host: Host, shared: Path) -> None:
    cases = json.loads((shared / "vectors" / "write-lock.json").read_text("utf-8"))["cases"]
    wrong = []
    for case in (case for case in cases if case["kind"] == "gateway-lock"):
        content, expected = case["input"]["content"], case["expect"]
        if isinstance(content, dict):
            content["pid"] = made_up(host, content["pid"])
            content.setdefault("createdAt", "2026-11-30T20:49:07.691Z")
            times = {"same": STARTED, "other": STARTED + 4242}
            if content.get("startTime") in times:
                content["startTime"] = times[content["startTime"]]
            content = json.dumps(content) + ("\n\t \t" if content.pop("trailingNonce", False) else "")
        lock = parse_lock(content)
        if (lock is not None, owner_status(lock, host.processes).state) != (
            expected["parses"],
            expected["ownerStatus"],
        ):
            wrong.append(case["id"])
        shutil.rmtree(host.folder, ignore_errors=True)
    assert wrong == []


# The files of a state directory


def test_the_locks_of_every_user_are_found(state_dir: Path) -> None:
    places = [
        "openclaw/gateway.state.lock",
        "openclaw-0/gateway.0a1b2c3d.lock",
        "openclaw-0/gateway.state.lock",
        "openclaw-1000/gateway.state.lock",
    ]
    others = [
        "openclaw-0/gateway.state.lock.sqlite",
        "openclaw-0/other.lock",
        "other/gateway.state.lock",
        "openclawed/gateway.state.lock",
    ]
    for place in [*places, *others]:
        put_lock(state_dir, at=place)
    locks = read_locks(str(state_dir))
    assert [lock.path for lock in locks] == [str(state_dir / "tmp" / place) for place in places]
    assert all(lock.payload and lock.problem is None for lock in locks)


def test_a_state_directory_without_locks_has_none(state_dir: Path) -> None:
    assert read_locks(str(state_dir)) == []
    state_dir.mkdir()
    assert read_locks(str(state_dir)) == []
    (state_dir / "tmp").write_text("a file")
    assert read_locks(str(state_dir)) == []


def test_a_lock_that_makes_no_sense_says_so(state_dir: Path) -> None:
    path = put_lock(state_dir, "{")
    assert read_locks(str(state_dir)) == [(str(path), None, "not what a gateway writes")]


def test_a_lock_that_cannot_be_read_says_why(state_dir: Path) -> None:
    folder = state_dir / "tmp" / "openclaw-0"
    (folder / "gateway.state.lock").mkdir(parents=True)
    (state_dir / "tmp" / "openclaw-1").write_text("a file")
    assert [(lock.payload, lock.problem) for lock in read_locks(str(state_dir))] == [
        (None, "Is a directory"),
        (None, "Not a directory"),
    ]


@needs_permissions
@pytest.mark.parametrize("closed", ["tmp", "tmp/openclaw-0", "tmp/openclaw-0/gateway.state.lock"])
def test_a_place_that_may_not_be_read_is_no_absence_of_locks(state_dir: Path, closed: str) -> None:
    put_lock(state_dir)
    (state_dir / closed).chmod(0)
    try:
        locks = read_locks(str(state_dir))
    finally:
        (state_dir / closed).chmod(0o700)
    assert locks == [(str(state_dir / closed), None, "Permission denied")]
