"""Which database is meant, and by which rule (design section 4; contract, signal-log section 1)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import NamedTuple

from ..core.javascript import trim
from ..errors import UsageError

DATABASE = os.path.join("state", "openclaw.sqlite")


class Location(NamedTuple):
    """A database path (absolute), the rule that chose it, and what it belongs to.

    state_dir is the OpenClaw state directory around it, None for a file on its own;
    embedded tells that the rule chose the tool's own file.
    """

    path: str
    via: str
    state_dir: str | None = None
    embedded: bool = False
    warnings: tuple[str, ...] = ()


def locate(
    *,
    db: str | None = None,
    state_dir: str | None = None,
    profile: str | None = None,
    environ: Mapping[str, str] | None = None,
    cwd: str | None = None,
) -> Location:
    """The first rule that matches wins; nothing is opened or created.

    Raises UsageError for a blank option or an impossible profile name.
    """
    environ = os.environ if environ is None else environ
    cwd = os.getcwd() if cwd is None else cwd
    for option, value in (("--db", db), ("--state-dir", state_dir), ("--profile", profile)):
        if value is not None and not trim(value):
            raise UsageError(f"{option} is blank", hint="leave it out, or name a place")
    if db is not None:
        return _file(_absolute(db, environ, cwd), "--db")
    if state_dir is not None:
        return _in_directory(_absolute(state_dir, environ, cwd), "--state-dir")
    if named := trim(environ.get("OPENCLAW_STATE_DB", "")):
        return _file(_absolute(named, environ, cwd), "OPENCLAW_STATE_DB")
    if profile is not None:
        return _profile(profile, environ, cwd)
    directory, via = openclaw_state_dir(environ, cwd)
    if os.path.isfile(os.path.join(directory, DATABASE)):
        found = _in_directory(directory, via)
        return found._replace(warnings=tuple(_other_trees(directory, environ, cwd)))
    missed = f"OPENCLAW_STATE_DIR names {directory}, which holds no {DATABASE}; using the tool's own file"
    return Location(
        _embedded_path(), "embedded", embedded=True, warnings=(missed,) if via == "OPENCLAW_STATE_DIR" else ()
    )


def openclaw_state_dir(environ: Mapping[str, str], cwd: str) -> tuple[str, str]:
    """OpenClaw's state directory by its own rules, and the rule: it need not exist."""
    if named := trim(environ.get("OPENCLAW_STATE_DIR", "")):
        return _absolute(named, environ, cwd), "OPENCLAW_STATE_DIR"
    home = effective_home(environ, cwd)
    via = "OPENCLAW_HOME" if _home_value(environ, "OPENCLAW_HOME") else "default"
    current, legacy = os.path.join(home, ".openclaw"), os.path.join(home, ".clawdbot")
    if not os.path.exists(current) and os.path.exists(legacy):
        return legacy, "legacy"
    return current, via


def effective_home(environ: Mapping[str, str], cwd: str) -> str:
    """OPENCLAW_HOME, else the home directory of the operating system; absolute."""
    own = _os_home(environ)
    named = _home_value(environ, "OPENCLAW_HOME")
    return _normal(_expand(named, own) if named else own, cwd)


def _os_home(environ: Mapping[str, str]) -> str:
    for name in ("HOME", "USERPROFILE"):
        if value := _home_value(environ, name):
            return value
    termux = environ.get("PREFIX", "")
    if "com.termux" in termux:
        return os.path.join(os.path.dirname(termux), "home")
    return os.path.expanduser("~")


def _home_value(environ: Mapping[str, str], name: str) -> str:
    value = trim(environ.get(name, ""))
    return "" if value in ("undefined", "null") else value


def _expand(path: str, home: str) -> str:
    """`~`, `~/…` and `~\\…` mean home; `~bob` is an ordinary name."""
    return home + path[1:].replace("\\", "/", 1) if path == "~" or path[:2] in ("~/", "~\\") else path


def _absolute(path: str, environ: Mapping[str, str], cwd: str) -> str:
    return _normal(_expand(trim(path), effective_home(environ, cwd)), cwd)


def _normal(path: str, cwd: str) -> str:
    return os.path.normpath(os.path.join(cwd, path))


def _file(path: str, via: str) -> Location:
    folder, name = os.path.split(path)
    parent, state = os.path.split(folder)
    belongs = (state, name) == os.path.split(DATABASE)
    return Location(path, via, state_dir=parent if belongs else None)


def _in_directory(directory: str, via: str) -> Location:
    return Location(os.path.join(directory, DATABASE), via, state_dir=directory)


def _profile(name: str, environ: Mapping[str, str], cwd: str) -> Location:
    import re

    name = trim(name)
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise UsageError(
            f"{name!r} is not a profile name",
            hint="letters, digits, - and _, at most 64, beginning with one of the first two",
        )
    folder = ".openclaw" if name.lower() == "default" else f".openclaw-{name}"
    directory = os.path.join(effective_home(environ, cwd), folder)
    found = _in_directory(directory, "--profile")
    named = trim(environ.get("OPENCLAW_STATE_DIR", ""))
    if named and (other := _absolute(named, environ, cwd)) != directory:
        note = f"OPENCLAW_STATE_DIR names {other}; OpenClaw would use that, not the profile"
        return found._replace(warnings=(note,))
    return found


def _other_trees(chosen: str, environ: Mapping[str, str], cwd: str) -> list[str]:
    home = effective_home(environ, cwd)
    others = (os.path.join(home, name) for name in (".openclaw", ".clawdbot"))
    return [
        f"there is a second state directory: {other} (reading {chosen})"
        for other in others
        if os.path.isfile(os.path.join(other, DATABASE))
        and os.path.realpath(other) != os.path.realpath(chosen)
    ]


def _embedded_path() -> str:
    import platformdirs

    return os.path.join(platformdirs.user_data_dir("openclaw-state", appauthor=False), "openclaw.sqlite")
