"""An embedded signal log under a clock that stands still; a host of made-up processes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.support import Clock
from tests.unit.processes import Host


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "own" / "openclaw.sqlite"


@pytest.fixture
def log(path: Path, clock: Clock) -> Iterator[SignalLog]:
    with SignalLog(path, change=True, create=True, clock=clock) as log:
        yield log


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path / "proc")


@pytest.fixture
def state_dir(tmp_path: Path) -> Path:
    return tmp_path / "oc"
