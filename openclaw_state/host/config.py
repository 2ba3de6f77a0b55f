"""openclaw.json, whole: JSON5, with its includes and the environment's values put in.

What OpenClaw would refuse stops the command that needs the configuration; what it only no longer
reads is a warning.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.javascript import trim
from ..errors import AccessError, ConfigurationError
from .json5 import read_json5
from .location import absolute
from .substitution import Substitution

MAX_INCLUDES = 10
_INCLUDE = "$include"
# A setting that 2026.9 no longer takes, and the one that replaced it.
_RETIRED = {
    "session.idleMinutes": "session.reset.idleMinutes",
    "session.resetByType.dm": "session.resetByType.direct",
    "session.writeLock": None,
}
# Where a variable that is not set would change what this tool answers.
_READ_HERE = ("agents", "bindings", "session")


class Config(NamedTuple):
    """The configuration of a state directory; data is empty where no file stands at path."""

    data: dict[str, Any]
    path: str
    warnings: tuple[str, ...] = ()


def config_path(state_dir: str, environ: Mapping[str, str]) -> str:
    """Where the configuration of a state directory stands."""
    named = trim(environ.get("OPENCLAW_CONFIG_PATH", ""))
    return absolute(named, environ) if named else os.path.join(state_dir, "openclaw.json")


def load(state_dir: str, environ: Mapping[str, str]) -> Config:
    """The configuration of a state directory; a missing file is an empty one.

    Raises ConfigurationError, with line and column where the text is not JSON5, and AccessError.
    """
    return load_file(config_path(state_dir, environ), environ, required=False)


def load_file(path: str, environ: Mapping[str, str], *, required: bool = True) -> Config:
    """The configuration in one file. Raises as `load` does, also for a missing file if required."""
    if not required and not os.path.lexists(path):
        return Config({}, path)
    data = _read(path, depth=0)
    if not isinstance(data, dict):
        raise ConfigurationError(f"{path} holds no object", hint="openclaw.json is one { ... }")
    filled = Substitution(data, environ)
    unset = [
        f"{path}: {place} names ${{{name}}}, which is not set here"
        for place, name in filled.unset
        if place.split(".")[0].split("[")[0] in _READ_HERE
    ]
    return Config(filled.data, path, (*unset, *_retired(filled.data, path)))


def _read(path: str, *, depth: int) -> Any:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            text = file.read()
    except PermissionError as error:
        raise AccessError(f"{path} cannot be read: permission denied") from error
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}") from error
    return _included(read_json5(text, path), path, depth)


def _included(value: Any, path: str, depth: int) -> Any:
    """A value with every `$include` in it replaced; what stands beside one goes before it."""
    if isinstance(value, list):
        return [_included(item, path, depth) for item in value]
    if not isinstance(value, dict):
        return value
    own = {name: _included(item, path, depth) for name, item in value.items() if name != _INCLUDE}
    if _INCLUDE not in value:
        return own
    if depth >= MAX_INCLUDES:
        raise ConfigurationError(f"{path} includes files more than {MAX_INCLUDES} deep")
    named = value[_INCLUDE]
    files = named if isinstance(named, list) else [named]
    if not all(isinstance(file, str) for file in files):
        raise ConfigurationError(f"{path}: $include is not the name of a file, or a list of them")
    merged: Any = {}
    for file in files:
        merged = _merged(merged, _read(os.path.join(os.path.dirname(path), file), depth=depth + 1))
    return _merged(merged, own) if own else merged


def _merged(under: Any, over: Any) -> Any:
    """Objects member by member, lists one after the other, of other values the later."""
    if isinstance(under, dict) and isinstance(over, dict):
        shared = {name: _merged(under[name], over[name]) for name in over if name in under}
        return under | over | shared
    if isinstance(under, list) and isinstance(over, list):
        return under + over
    return over


def _retired(data: Mapping[str, Any], path: str) -> list[str]:
    found = dict(_RETIRED)
    diagnostics = data.get("diagnostics")
    for name in diagnostics if isinstance(diagnostics, dict) else ():
        if name.startswith("stuckSession"):
            found[f"diagnostics.{name}"] = None
    return [
        f"{path}: {place} is retired in 2026.9; {f'{new} replaces it' if new else 'nothing replaces it'}"
        for place, new in found.items()
        if _stands(data, place)
    ]


def _stands(data: Any, place: str) -> bool:
    for name in place.split("."):
        if not isinstance(data, dict) or name not in data:
            return False
        data = data[name]
    return True
