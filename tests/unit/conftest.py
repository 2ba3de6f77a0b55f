"""An embedded signal log under a clock that stands still."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from openclaw_state import SignalLog
from tests.support import Clock


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
