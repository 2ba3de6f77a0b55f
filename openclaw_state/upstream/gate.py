"""The process-home gate: an isolated OpenClaw state does not look at the account's own files.

A second state (another profile, a test directory) must not report what people do in the
programs of the account's home (contract, upstream section 5). The tool's own file is not gated.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from ..core.javascript import trim
from ..core.jsontext import json_or_none

_UNSET_WORDS = ("", "undefined", "null")


def account_home() -> str | None:
    """The home directory of the account that runs this process, whatever HOME says."""
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return None


def is_home_allowed(environ: Mapping[str, str], home: str | None, state_dir: str) -> bool:
    """Does this state belong to the account's home? home is the account's, state_dir the one in use."""
    if home is None:
        return False
    own_state = os.path.join(home, ".openclaw")
    config = environ.get("OPENCLAW_CONFIG_PATH", "")
    return (
        trim(environ.get("OPENCLAW_PROFILE", "")).lower() in ("", "default")
        and trim(environ.get("OPENCLAW_HOME", "")) in _UNSET_WORDS
        and _is_same(environ.get("HOME") or environ.get("USERPROFILE") or home, home)
        and _is_same(state_dir, own_state)
        and (not trim(config) or _is_same(config, os.path.join(own_state, "openclaw.json")))
    )


def is_claude_allowed(environ: Mapping[str, str], *, allowed: bool) -> bool:
    """May local Claude links be checked? allowed is what is_home_allowed said."""
    return allowed or bool(trim(environ.get("CLAUDE_CONFIG_DIR", "")))


def is_pi_allowed(environ: Mapping[str, str], *, allowed: bool) -> bool:
    """May Pi links be checked? Yes also where Pi's store is not the one in the account's home."""
    agent_dir = trim(environ.get("PI_CODING_AGENT_DIR", ""))
    if allowed or agent_dir or trim(environ.get("PI_CODING_AGENT_SESSION_DIR", "")):
        return True
    home = environ.get("HOME") or environ.get("USERPROFILE") or ""
    return any(
        _names_session_dir(os.path.join(folder, "settings.json"))
        for folder in (".pi", os.path.join(home, ".pi", "agent"))
    )


def _is_same(path: str, other: str) -> bool:
    return os.path.realpath(trim(path)) == os.path.realpath(other)


def _names_session_dir(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            settings = json_or_none(file.read())
    except OSError:
        return False
    named = settings.get("sessionDir") if isinstance(settings, dict) else None
    return isinstance(named, str) and bool(trim(named))
