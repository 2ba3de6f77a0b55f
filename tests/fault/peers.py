"""Databases that OpenClaw wrote, where and in what state a second process finds them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from openclaw_state import SignalLog
from tests.cli.harness import Outcome
from tests.fault.console import invoke
from tests.support import (
    CHILD,
    PARENT,
    Clock,
    Script,
    change,
    copy_tree,
    goal,
    openclaw_file,
    unpack_state_directory,
)

# Half a day after the newest events of 2026.9.6, a month after those of the older releases.
NOW = 1_802_721_600_000
FILES = ("2026.7.2-beta.7", "2026.8.2", "2026.9.6", "2026.9.6-pending")
LATE = "agent:main:late"
BETA = "agent:main:subagent:beta"

# Commits rows that only the write-ahead log holds, then ends, waits or takes the write lock.
WRITER = """
import os, signal, sqlite3, sys
path, now, ending = sys.argv[1:]
connection = sqlite3.connect(path, isolation_level=None)
connection.execute("PRAGMA journal_mode = WAL")
connection.execute("PRAGMA wal_autocheckpoint = 0")

def record(key, kind, run, payload):
    sequence = connection.execute(
        "INSERT INTO session_state_events (session_key, agent_id, kind, actor_type, actor_id, run_id,"
        " occurred_at, summary, payload_json) VALUES (?, 'main', ?, 'human', 'telegram:7', ?, ?, 'late', ?)",
        (key, kind, run, now, payload)).lastrowid
    connection.execute(
        "INSERT INTO session_state_heads (session_key, agent_id, last_sequence, updated_at)"
        " VALUES (?, 'main', ?, ?) ON CONFLICT DO UPDATE SET last_sequence = ?",
        (key, sequence, now, sequence))
    return sequence

connection.execute("BEGIN IMMEDIATE")
first = record("agent:main:late", "goal_changed", None, '{"channel":"telegram"}')
record("agent:main:late", "run_failed", "late-run", '{"outcome":"error"}')
record("agent:main:subagent:beta", "human_direct_message", None, None)
connection.execute(
    "INSERT INTO session_watch_cursors (watcher_session_key, target_session_key, notified_sequence,"
    " material_sequence, updated_at) VALUES ('agent:main:main', 'agent:main:late', ?, ?, ?)",
    (first, first, now))
connection.execute("COMMIT")
if ending == "closed":
    connection.close()
elif ending.startswith("killed"):
    os.kill(os.getpid(), signal.SIGKILL)
elif ending == "locked":
    connection.execute("BEGIN IMMEDIATE")
    record("agent:main:uncommitted", "goal_changed", None, None)
print("ready", flush=True)
sys.stdin.read()
"""


class Found(NamedTuple):
    """A database as it was found: the options that choose it, and what stands around it."""

    path: Path
    options: tuple[str, ...]
    folder: Path
    state_dir: Path | None
    now: int

    def run(self, *argv: object) -> Outcome:
        """Run one command on it."""
        return invoke(*self.options, *argv, now=self.now)

    def look(self, *argv: object, status: int = 0) -> Outcome:
        """Run a command that may leave no trace, but for what SQLite puts beside a file in WAL mode."""
        before = self.trace()
        outcome = self.run(*argv)
        assert outcome.status == status, outcome
        assert self.trace() == before, "the command left a trace"
        return outcome

    def json(self, *argv: object, status: int = 0) -> Any:
        """The document of a look."""
        return self.look(*argv, "--json", status=status).document

    def trace(self) -> dict[str, Any]:
        """Every file of the folder by name: bytes, mode, time of change."""
        return {
            str(file.relative_to(self.folder)): (
                sha256(file.read_bytes()).hexdigest(),
                (status := file.stat()).st_mode,
                status.st_mtime_ns,
                status.st_size,
            )
            for file in sorted(self.folder.rglob("*"))
            if file.is_file() and not file.name.endswith("-shm") and not _is_empty_log(file)
        }


def _is_empty_log(file: Path) -> bool:
    return file.name.endswith("-wal") and not file.stat().st_size


def _own_file(path: Path) -> None:
    """A file like OpenClaw's, for clones without the shared material."""
    path.parent.mkdir(parents=True, exist_ok=True)
    openclaw_file(path)
    with SignalLog(path, change=True, clock=Clock(NOW - 60_000)) as log:
        log.watch(PARENT, CHILD, store_path="/srv/other/openclaw-agent.sqlite")
        log.child_spawned(BETA, requester=PARENT, run_id="run-1")
        goal(log, actor_id="user:1")
        goal(log, payload={"channel": "telegram"})


def _detached(source: Callable[[Path], None], folder: Path) -> Found:
    path = folder / "copy.sqlite"
    source(path)
    return Found(path, ("--db", str(path)), folder, None, NOW)


def _placed(source: Callable[[Path], None], folder: Path) -> Found:
    path = folder / "state" / "openclaw.sqlite"
    path.parent.mkdir()
    source(path)
    return Found(path, ("--state-dir", str(folder)), folder, folder, NOW)


def _live(peer: Path, folder: Path) -> Found:
    """A state directory as a running gateway left it, at that moment."""
    source = peer / "agent-loop-live"
    copy_tree(source / "statedir", folder)
    shutil.copyfile(source / "openclaw.json", folder / "openclaw.json")
    now = int((source / "taken-at-ms").read_text("utf-8"))
    return Found(folder / "state" / "openclaw.sqlite", ("--state-dir", str(folder)), folder, folder, now)


def _archived(peer: Path, folder: Path) -> Found:
    unpack_state_directory(peer / "peer-statedir.tar.gz", folder)
    return Found(folder / "state" / "openclaw.sqlite", ("--state-dir", str(folder)), folder, folder, NOW)


PLACES = (
    "own file",
    *FILES,
    "own file in a state directory",
    *(f"{name} in a state directory" for name in FILES),
    "live state directory",
    "archived state directory",
)


def find(place: str, folder: Path, request: pytest.FixtureRequest) -> Found:
    """Copy a database to an empty folder; skips where the shared material is needed and absent."""
    name, _, where = place.partition(" in a ")
    lay = _placed if where else _detached
    if name == "own file":
        return _touched(lay(_own_file, folder))
    peer: Path = request.getfixturevalue("peer")
    if name == "live state directory":
        return _touched(_live(peer, folder))
    if name == "archived state directory":
        return _touched(_archived(peer, folder))
    return _touched(lay(lambda path: _copy(peer / f"peer-state-{name}.sqlite", path), folder))


def _copy(source: Path, target: Path) -> None:
    shutil.copyfile(source, target)


def _touched(found: Found) -> Found:
    """An unusual mode and time, so that a change of either shows."""
    found.path.chmod(0o640)
    os.utime(found.path, ns=(1_000_000_001, 1_000_000_001))
    return found


STATES = ("as shipped", "closed", "killed", "live", "locked")
RARE_STATES = ("killed, no shm",)


@contextmanager
def in_state(found: Found, state: str) -> Iterator[Found]:
    """Bring a database into a state, for as long as the block takes."""
    if state == "as shipped":
        yield found
        return
    with Script(WRITER, found.path, found.now, state) as writer:
        if state.startswith("killed"):
            assert writer.rest() == []
        else:
            assert writer.line() == "ready"
        if state == "killed, no shm":
            found.path.with_name(found.path.name + "-shm").unlink()
        yield _touched(found)


def settle(found: Found) -> None:
    """Give any database the session of the writer, in rollback mode: something to change."""
    with Script(WRITER, found.path, found.now, "closed") as writer:
        assert writer.line() == "ready"
    change(found.path, "PRAGMA journal_mode = DELETE")
    _touched(found)
