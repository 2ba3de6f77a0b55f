"""One world for every test: an empty home, no settings from outside, UTC, 80 columns."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

ROOT = Path(__file__).resolve().parent.parent
# Read before the isolation below removes it.
SHARED = Path(os.environ.get("OPENCLAW_STATE_SHARED", ROOT.parent / "shared")).absolute()

_FOREIGN_PREFIXES = ("OPENCLAW_", "CLAUDE_", "CODEX_", "OPENCODE_", "PI_CODING_AGENT_", "XDG_")
# Rich and Typer also take these for a wish about colour, width or the kind of terminal.
_TERMINAL_WISHES = (
    "CLICOLOR",
    "CLICOLOR_FORCE",
    "COLORTERM",
    "FORCE_COLOR",
    "GITHUB_ACTIONS",
    "LINES",
    "NO_COLOR",
    "PY_COLORS",
    "TERMINAL_WIDTH",
    "TTY_COMPATIBLE",
    "TTY_INTERACTIVE",
)
_FIXED = {"TZ": "UTC", "COLUMNS": "80", "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}

# A slow machine is not a failure, and a failing example prints itself: nothing to keep on disk.
hypothesis.settings.register_profile("openclaw-state", deadline=None, database=None)
hypothesis.settings.load_profile("openclaw-state")


def pytest_report_header() -> str:
    """Name what results depend on and the version list does not show."""
    state = "present" if SHARED.is_dir() else "absent"
    return f"sqlite: {sqlite3.sqlite_version}, shared material: {state}"


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The empty home folder of this test, for its own process and for those that it starts."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            if name.startswith(_FOREIGN_PREFIXES) or name in _TERMINAL_WISHES:
                patch.delenv(name)
        for name, value in {**_FIXED, "HOME": str(folder)}.items():
            patch.setenv(name, value)
        time.tzset()
        yield folder
    time.tzset()


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of measured material; read only, copy a database before opening it."""
    if not SHARED.is_dir():
        pytest.skip(f"the shared material is not at {SHARED} (OPENCLAW_STATE_SHARED names another place)")
    return SHARED


@pytest.fixture(scope="session")
def peer(shared: Path) -> Path:
    """The folder of databases that OpenClaw itself wrote."""
    folder = shared / "peer"
    if not folder.is_dir():
        pytest.skip(f"there are no databases of OpenClaw in {shared}")
    return folder
