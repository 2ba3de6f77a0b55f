"""Which database is meant, and by which rule (design section 4; contract, signal-log section 1)."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
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
    for option, value in (("--db", db), ("--state-dir", state_dir), ("--profile", profile)):
        if value is not None and not trim(value):
            raise UsageError(f"{option} is blank", hint="leave it out, or name a place")
    if profile is not None:
        _check_profile(trim(profile))
    if db is not None:
        return _file(absolute(db, environ, cwd), "--db")
    if state_dir is not None:
        return _in_directory(absolute(state_dir, environ, cwd), "--state-dir")
    if named := trim(environ.get("OPENCLAW_STATE_DB", "")):
        found = _file(absolute(named, environ, cwd), "OPENCLAW_STATE_DB")
        passed = ("OPENCLAW_STATE_DB is set and goes before --profile",) if profile is not None else ()
        return found._replace(warnings=passed)
    if profile is not None:
        return _profile(trim(profile), environ, cwd)
    directory, via = openclaw_state_dir(environ, cwd)
    others = tuple(_other_trees(directory, environ, cwd))
    if _holds_database(directory):
        return _in_directory(directory, via)._replace(warnings=others)
    missed = f"{via} leads to {directory}, which holds no {DATABASE}; using the tool's own file"
    warnings = (missed, *others) if via.startswith("OPENCLAW_") else others
    return Location(_embedded_path(), "embedded", embedded=True, warnings=warnings)


def openclaw_state_dir(environ: Mapping[str, str], cwd: str | None = None) -> tuple[str, str]:
    """OpenClaw's state directory by its own rules, and the rule: it need not exist."""
    if named := trim(environ.get("OPENCLAW_STATE_DIR", "")):
        return absolute(named, environ, cwd), "OPENCLAW_STATE_DIR"
    home = effective_home(environ, cwd)
    current, legacy = os.path.join(home, ".openclaw"), os.path.join(home, ".clawdbot")
    moved = "OPENCLAW_HOME" if _home_value(environ, "OPENCLAW_HOME") else None
    if not os.path.exists(current) and os.path.exists(legacy):
        return legacy, moved or "legacy"
    return current, moved or "default"


def effective_home(environ: Mapping[str, str], cwd: str | None = None) -> str:
    """OPENCLAW_HOME, else the home directory of the operating system; absolute."""
    own = _os_home(environ)
    named = _home_value(environ, "OPENCLAW_HOME")
    return _normal(_expand(named, own) if named else own, cwd)


def _os_home(environ: Mapping[str, str]) -> str:
    for name in ("HOME", "USERPROFILE"):
        if value := _home_value(environ, name):
            return value
    prefix = trim(environ.get("PREFIX", "")).rstrip("/")
    if prefix.endswith("com.termux/files/usr"):
        return os.path.join(os.path.dirname(prefix), "home")
    return _account_home()


def _account_home() -> str:
    """The home that the user database names; empty, which then means here, where it names none."""
    try:
        import pwd

        return pwd.getpwuid(os.getuid()).pw_dir
    except (ImportError, KeyError):
        return ""


def _home_value(environ: Mapping[str, str], name: str) -> str:
    value = trim(environ.get(name, ""))
    return "" if value in ("undefined", "null") else value


def _expand(path: str, home: str) -> str:
    """A leading `~` means home before a slash, a backslash or the end; `~bob` is an ordinary name."""
    return home + path[1:] if path == "~" or path.startswith(("~/", "~\\")) else path


def absolute(path: str, environ: Mapping[str, str], cwd: str | None = None) -> str:
    """A path as OpenClaw takes it: a leading `~` is the effective home."""
    if path.startswith("~"):
        path = _expand(path, effective_home(environ, cwd))
    return _normal(path, cwd)


def _normal(path: str, cwd: str | None) -> str:
    """Absolute, without `.`, `..` and needless slashes; symbolic links stay as they are."""
    if not os.path.isabs(path):
        path = os.path.join(_here(path) if cwd is None else cwd, path)
    path = os.path.normpath(path)
    return path[1:] if path.startswith("//") else path


def _here(path: str) -> str:
    # Asked only for a relative path: a job whose directory was deleted can still name absolute ones.
    try:
        return os.getcwd()
    except OSError as error:
        raise UsageError(
            f"{path!r} is a relative path, and the current directory cannot be told ({error.strerror})",
            hint="give the absolute path",
        ) from error


def _file(path: str, via: str) -> Location:
    directory = os.path.dirname(os.path.dirname(path))
    belongs = path == os.path.join(directory, DATABASE)
    return Location(path, via, state_dir=directory if belongs else None)


def _in_directory(directory: str, via: str) -> Location:
    return Location(os.path.join(directory, DATABASE), via, state_dir=directory)


def _check_profile(name: str) -> None:
    import re

    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", name):
        raise UsageError(
            f"{name!r} is not a profile name",
            hint="letters, digits, - and _, at most 64, beginning with one of the first two",
        )


def _profile(name: str, environ: Mapping[str, str], cwd: str | None) -> Location:
    folder = ".openclaw" if name.lower() == "default" else f".openclaw-{name}"
    directory = os.path.join(effective_home(environ, cwd), folder)
    found = _in_directory(directory, "--profile")
    named = trim(environ.get("OPENCLAW_STATE_DIR", ""))
    if named and not _same(other := absolute(named, environ, cwd), directory):
        note = f"OPENCLAW_STATE_DIR names {other}; OpenClaw itself would use that, not the profile"
        return found._replace(warnings=(note,))
    return found


def _holds_database(directory: str) -> bool:
    """A file that cannot be looked at counts as there: opening it tells why, and nothing else is read."""
    try:
        os.lstat(os.path.join(directory, DATABASE))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _other_trees(chosen: str, environ: Mapping[str, str], cwd: str | None) -> Iterator[str]:
    """A warning for every other state directory in the usual places that holds a database."""
    homes = (effective_home(environ, cwd), _normal(_os_home(environ), cwd))
    usual = (os.path.join(home, name) for home in homes for name in (".openclaw", ".clawdbot"))
    for other in dict.fromkeys(usual):
        path = os.path.join(other, DATABASE)
        if os.path.isfile(path) and not _same(path, os.path.join(chosen, DATABASE)):
            yield f"there is a second state directory: {other} (the rules chose {chosen})"


def _same(one: str, other: str) -> bool:
    return os.path.realpath(one) == os.path.realpath(other)


def _embedded_path() -> str:
    import platformdirs

    return os.path.join(platformdirs.user_data_dir("openclaw-state", appauthor=False), "openclaw.sqlite")
