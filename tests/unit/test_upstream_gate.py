"""The process-home gate: which states may look at the account's own files."""

from __future__ import annotations

from pathlib import Path

import pytest

from openclaw_state.upstream import gate


@pytest.fixture
def home(tmp_path: Path) -> Path:
    (tmp_path / "home" / ".openclaw").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "home")
    return tmp_path / "home"


@pytest.mark.parametrize(
    ("environ", "state", "allowed"),
    [
        ({}, "home/.openclaw", True),
        ({"HOME": "{}/home"}, "home/.openclaw", True),
        ({"HOME": "{}/link"}, "link/.openclaw", True),
        ({"HOME": "{}/home"}, "elsewhere", False),
        ({"HOME": "{}/elsewhere"}, "home/.openclaw", False),
        ({"USERPROFILE": "{}/elsewhere"}, "home/.openclaw", False),
        ({"OPENCLAW_PROFILE": "work"}, "home/.openclaw", False),
        ({"OPENCLAW_PROFILE": " Default "}, "home/.openclaw", True),
        ({"OPENCLAW_HOME": "{}/home"}, "home/.openclaw", False),
        ({"OPENCLAW_HOME": " undefined "}, "home/.openclaw", True),
        ({"OPENCLAW_CONFIG_PATH": "{}/elsewhere/openclaw.json"}, "home/.openclaw", False),
        ({"OPENCLAW_CONFIG_PATH": "{}/home/.openclaw/openclaw.json"}, "home/.openclaw", True),
        ({"OPENCLAW_CONFIG_PATH": "  "}, "home/.openclaw", True),
    ],
)
def test_only_the_accounts_own_state_is_allowed(
    tmp_path: Path, home: Path, environ: dict[str, str], state: str, allowed: bool
) -> None:
    filled = {name: value.format(tmp_path) for name, value in environ.items()}
    assert gate.is_home_allowed(filled, str(home), str(tmp_path / state)) is allowed


def test_an_account_without_a_home_is_not_allowed() -> None:
    assert not gate.is_home_allowed({}, None, "/s/.openclaw")


@pytest.mark.parametrize(("value", "allowed"), [(None, False), ("  ", False), ("/c", True)])
def test_a_directory_of_its_own_opens_claude(value: str | None, allowed: bool) -> None:
    environ = {} if value is None else {"CLAUDE_CONFIG_DIR": value}
    assert gate.is_claude_allowed(environ, allowed=False) is allowed
    assert gate.is_claude_allowed(environ, allowed=True)


@pytest.mark.parametrize("name", ["PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR"])
def test_a_directory_of_its_own_opens_pi(home: Path, name: str) -> None:
    environ = {"HOME": str(home)}
    assert not gate.is_pi_allowed(environ, allowed=False)
    assert not gate.is_pi_allowed(environ | {name: " "}, allowed=False)
    assert gate.is_pi_allowed(environ | {name: "/p"}, allowed=False)
    assert gate.is_pi_allowed(environ, allowed=True)


@pytest.mark.parametrize(
    ("settings", "allowed"),
    [('{"sessionDir":"/p"}', True), ('{"sessionDir":""}', False), ("[]", False), ("no json", False)],
)
def test_settings_that_move_pis_sessions_open_it(home: Path, settings: str, allowed: bool) -> None:
    (home / ".pi" / "agent").mkdir(parents=True)
    (home / ".pi" / "agent" / "settings.json").write_text(settings)
    assert gate.is_pi_allowed({"HOME": str(home)}, allowed=False) is allowed


def test_the_account_has_a_home_whatever_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    found = gate.account_home()
    monkeypatch.setenv("HOME", "/nowhere")
    assert gate.account_home() == found
