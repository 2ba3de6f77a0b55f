"""One small log, made once and copied."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.adopted import adopt_blocked
from tests.support import CHILD, PARENT, Clock, goal, note


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Where the database is meant to be; nothing stands there yet."""
    return tmp_path / "openclaw.sqlite"


@pytest.fixture(scope="session")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A log of several pages, cleanly closed: PARENT watches CHILD and has a notice, and a blocked link."""
    path = tmp_path_factory.mktemp("whole") / "openclaw.sqlite"
    with SignalLog(path, change=True, create=True, clock=Clock()) as log:
        log.watch(PARENT, CHILD)
        for _ in range(40):
            note(log, payload={"channel": "x" * 400})
        goal(log)
        adopt_blocked(log, path.with_name("session.jsonl"))
    return path.read_bytes()


@pytest.fixture
def log(path: Path, whole: bytes) -> Path:
    """That log, in place."""
    path.write_bytes(whole)
    return path
