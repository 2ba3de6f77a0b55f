"""A following command on a file, and a program that writes what it follows."""

from __future__ import annotations

from pathlib import Path

from tests.cli.harness import Cli
from tests.following import Following


def running(*argv: object, db: Path, before: tuple[str, ...] = (), **env: str) -> Following:
    """A following command in a process of its own."""
    return Following(Cli(db), *argv, env=env, before=before)


# Commits so many events in bursts and prints the sequence of each; every so often it empties the
# write-ahead log, as a gateway does.
BURSTS = """
import random, sqlite3, sys, time
from openclaw_state import SignalLog
path, key, count, every, seed = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4]), sys.argv[5]
chance = random.Random(seed)
emptier = sqlite3.connect(path, timeout=5)
with SignalLog(path, change=True) as log:
    for number in range(1, count + 1):
        done = log.record(key, "goal_changed", actor_type="human", summary=f"{key} {number}")
        print(done.event.sequence, flush=True)
        if every and number % every == 0:
            emptier.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if chance.random() < 0.05:
            time.sleep(chance.random() * 0.02)
    emptier.close()
"""
