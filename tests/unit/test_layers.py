"""Who may import whom (the layers of the package), read from the source of every module."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

PACKAGE = "openclaw_state"
ROOT = Path(__file__).resolve().parents[2] / PACKAGE
MODULES = sorted(ROOT.rglob("*.py"))

_GROUND = {"errors", "model", "results", "timespec"}
_RULES = _GROUND | {"core", "host"}
ALLOWED = {
    "errors": set(),
    "model": {"errors"},
    "results": {"errors", "model"},
    "timespec": {"errors"},
    "core": _GROUND,
    "host": _GROUND | {"core"},
    "upstream": _RULES,
    "sessions": _RULES,
    "runs": _RULES,
    "sidecar": {"errors", "model", "results"},
    "report": {"errors", "model", "results", "timespec"},
    "log": _RULES | {"sidecar", "upstream"},
    "__init__": _RULES | {"log", "sessions", "upstream"},
    "cli": _RULES | {"__init__", "log", "report", "runs", "sessions", "sidecar", "upstream"},
    "__main__": {"cli"},
}

HEAVY = {"backports", "platformdirs", "psycopg", "pydantic", "pyjson5", "rich", "sqlite_utils"}
MAY_LOAD_HEAVY = {"report/live.py", "sidecar.py"}
MOST_LINES = 400


@dataclass(frozen=True, slots=True)
class Import:
    """One imported module, its full dotted name, and whether importing the file loads it."""

    name: str
    at_start: bool

    @property
    def top(self) -> str:
        return self.name.partition(".")[0]

    @property
    def layer(self) -> str:
        """The layer of a module of this package; a name of the package itself is `__init__`."""
        part = self.name.split(".")[1] if "." in self.name else "__init__"
        return part if part in ALLOWED else "__init__"


def imports_of(source: str, module: str) -> list[Import]:
    """The imports of a module, whose dotted name ends in `__init__` where it is a package."""
    return list(_imports(ast.parse(source), module.split(".")[:-1], at_start=True))


def _imports(node: ast.AST, package: list[str], *, at_start: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import():
                yield from (Import(alias.name, at_start) for alias in child.names)
            case ast.ImportFrom():
                base = package[: len(package) - child.level + 1] if child.level else []
                origin = ".".join([*base, *filter(None, [child.module])])
                if origin == PACKAGE:
                    yield from (Import(f"{origin}.{alias.name}", at_start) for alias in child.names)
                else:
                    yield Import(origin, at_start)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                yield from _imports(child, package, at_start=False)
            case ast.If(test=ast.Name("TYPE_CHECKING") | ast.Attribute(attr="TYPE_CHECKING")):
                yield from _imports(child, package, at_start=False)
            case _:
                yield from _imports(child, package, at_start=at_start)


def layer_breaches(source: str, module: str) -> list[str]:
    """Imports that the table does not allow, as `layer -> module`."""
    layer = module.split(".")[1]
    return [
        f"{layer} -> {found.name}"
        for found in imports_of(source, module)
        if found.top == PACKAGE and found.layer != layer and found.layer not in ALLOWED[layer]
    ]


def heavy_at_start(source: str, module: str) -> list[str]:
    """Heavy libraries that importing the module would load."""
    return [found.name for found in imports_of(source, module) if found.at_start and found.top in HEAVY]


def sidecar_at_start(source: str, module: str) -> list[str]:
    """Imports of the sidecar, which loads a heavy library, that importing the module would load."""
    return [
        found.name
        for found in imports_of(source, module)
        if found.at_start and found.top == PACKAGE and found.layer == "sidecar"
    ]


def outside_standard_library(source: str, module: str) -> list[str]:
    """Modules, wherever imported, that neither Python nor this package brings."""
    return [
        found.name
        for found in imports_of(source, module)
        if found.top != PACKAGE and found.top not in sys.stdlib_module_names
    ]


def dotted(path: Path) -> str:
    return ".".join([PACKAGE, *path.relative_to(ROOT).with_suffix("").parts])


def relative(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


every_module = pytest.mark.parametrize("path", MODULES, ids=relative)


@every_module
def test_module_belongs_to_a_layer_and_keeps_to_it(path: Path) -> None:
    module = dotted(path)
    assert module.split(".")[1] in ALLOWED, "the design names no such layer"
    assert layer_breaches(path.read_text("utf-8"), module) == []


@pytest.mark.parametrize("path", [p for p in MODULES if relative(p).startswith("core/")], ids=relative)
def test_core_needs_only_the_standard_library(path: Path) -> None:
    assert outside_standard_library(path.read_text("utf-8"), dotted(path)) == []


@pytest.mark.parametrize("path", [p for p in MODULES if relative(p) not in MAY_LOAD_HEAVY], ids=relative)
def test_heavy_libraries_wait_until_they_are_used(path: Path) -> None:
    assert heavy_at_start(path.read_text("utf-8"), dotted(path)) == []


@pytest.mark.parametrize("path", [p for p in MODULES if relative(p) not in MAY_LOAD_HEAVY], ids=relative)
def test_the_sidecar_waits_until_it_is_used(path: Path) -> None:
    assert sidecar_at_start(path.read_text("utf-8"), dotted(path)) == []


@every_module
def test_module_says_why_it_exists_and_stays_readable(path: Path) -> None:
    source = path.read_text("utf-8")
    assert ast.get_docstring(ast.parse(source)), "no module docstring"
    lines = source.count("\n")
    assert lines <= MOST_LINES, "split it by meaning"


@pytest.mark.parametrize(
    ("source", "module", "breaches"),
    [
        ("from ..host import location", "core.events", ["core -> openclaw_state.host"]),
        ("from openclaw_state.cli import app", "log", ["log -> openclaw_state.cli"]),
        ("from .. import sidecar", "report.text", ["report -> openclaw_state.sidecar"]),
        ("from .core.events import record", "report", ["report -> openclaw_state.core.events"]),
        ("def f():\n    from ..upstream import links", "core.events", ["core -> openclaw_state.upstream"]),
        ("from .. import errors\nfrom . import schema\nfrom ..model import Event", "core.events", []),
        ("from .log import SignalLog", "__init__", []),
        ("from .. import __version__", "cli.app", []),
    ],
)
def test_a_breach_is_seen_however_it_is_written(source: str, module: str, breaches: list[str]) -> None:
    assert layer_breaches(source, f"{PACKAGE}.{module}") == breaches


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import rich.console", ["rich.console"]),
        ("try:\n    import platformdirs\nexcept ImportError:\n    pass", ["platformdirs"]),
        ("class A:\n    from sqlite_utils import Database", ["sqlite_utils"]),
        ("def f():\n    import rich", []),
        ("if TYPE_CHECKING:\n    from rich.console import Console", []),
        ("import richer", []),
    ],
)
def test_only_what_a_start_loads_counts_as_heavy(source: str, found: list[str]) -> None:
    assert heavy_at_start(source, f"{PACKAGE}.host.location") == found


def test_a_third_party_import_in_a_function_of_the_core_is_seen() -> None:
    source = "import json\ndef f():\n    import typer"
    assert outside_standard_library(source, f"{PACKAGE}.core.events") == ["typer"]
