"""A shell for the commands that documents show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.examples import Shell


@pytest.fixture
def shell(home: Path, tmp_path: Path) -> Shell:
    return Shell(home, tmp_path)
