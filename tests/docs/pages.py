"""Reading the manual pages: what they say exists, and the commands that they show.

Conventions: a long option is `.Fl -name`; in EXAMPLES, `$ ` begins a command, what follows it in a
literal block is its output, and a comment that begins with `$ ` is a command that is only run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.docs.examples import Example, in_block

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "man").glob("*.[1-9]"))
MAIN, PYTHON, FORMATS = (ROOT / "man" / f"openclaw-state.{section}" for section in "135")
FAMILIES = [page for page in PAGES if page.suffix == ".1" and page != MAIN]

_ESCAPES = {r"\-": "-", r"\e": "\\", r"\&": ""}


@dataclass(frozen=True)
class Option:
    """One option of one command: its names, the word for its value, and whether it must be given."""

    names: frozenset[str]
    value: str | None
    required: bool = False


@dataclass
class Usage:
    """What the synopsis says of one command."""

    options: set[Option] = field(default_factory=set)
    arguments: list[str] = field(default_factory=list)


def section(page: Path, name: str) -> list[str]:
    """The source lines of one section, without its heading."""
    parts = re.split(r"^\.Sh (.+)\n", page.read_text("utf-8"), flags=re.M)
    return dict(zip(parts[1::2], parts[2::2], strict=True)).get(name, "").splitlines()


def plain(line: str) -> str:
    """A line of text without the escapes of the page."""
    return re.sub(r"\\[-e&]", lambda match: _ESCAPES[match[0]], line)


def usages(page: Path) -> dict[str, Usage]:
    """Command name -> what the synopsis says of it."""
    found: dict[str, Usage] = {}
    current = Usage()
    for line in section(page, "SYNOPSIS"):
        macro, _, rest = line.partition(" ")
        if macro == ".Nm":
            current = Usage()
        elif macro == ".Cm":
            current = found.setdefault(rest, Usage())
        elif macro == ".Ar" or line.startswith(".Op Ar "):
            current.arguments.append(rest.removeprefix("Ar ").split()[0])
        elif macro == ".Fl" or line.startswith(".Op Fl "):
            current.options.add(_option(line, required=macro == ".Fl"))
    return found


def _option(macros: str, *, required: bool) -> Option:
    value = re.search(r"\bAr (\S+)", macros)
    return Option(frozenset(flags(macros)), value[1] if value else None, required)


def flags(line: str) -> list[str]:
    """The option names on a line, with their dashes."""
    return ["-" + name for name in re.findall(r"\bFl (-?[a-z][a-z-]*)", line)]


def listed_options(page: Path) -> list[Option]:
    """Each option that the OPTIONS section explains."""
    lines = section(page, "OPTIONS")
    return [_option(line, required=False) for line in lines if line.startswith(".It Fl")]


def mentioned_flags(page: Path) -> set[str]:
    """Every option name anywhere on a page."""
    return {name for line in page.read_text("utf-8").splitlines() for name in flags(line)}


def listed(page: Path, name: str, macro: str) -> list[str]:
    """What follows a macro in a section: `.Ss` gives its subsections, `.It Cm` its commands."""
    return [line.removeprefix(f"{macro} ") for line in section(page, name) if line.startswith(f"{macro} ")]


def statuses(page: Path) -> list[int]:
    """The exit statuses that a page lists, in its order."""
    return [int(line[4:]) for line in section(page, "EXIT STATUS") if line.startswith(".It ")]


def members(page: Path, section_name: str) -> dict[str, set[str]]:
    """Subsection -> the names that it lists with `.It Va`."""
    found: dict[str, set[str]] = {}
    current: set[str] = set()
    for line in section(page, section_name):
        if line.startswith(".Ss "):
            current = found.setdefault(line[4:], set())
        elif line.startswith(".It Va "):
            current.update(line[7:].replace(",", " ").split())
    return found


def examples(page: Path) -> Iterator[Example]:
    """The commands of the EXAMPLES section in order, those in comments too."""
    block: list[str] | None = None
    for line in section(page, "EXAMPLES"):
        if line.startswith((r".\" $ ", ".Dl $ ")):
            yield Example(plain(line[6:]), None)
        elif line.startswith(".Bd -literal"):
            block = []
        elif line == ".Ed" and block is not None:
            yield from in_block(block)
            block = None
        elif block is not None:
            block.append(plain(line))


def literal_blocks(page: Path) -> list[str]:
    """The text of each literal block of the EXAMPLES section."""
    text = "\n".join(section(page, "EXAMPLES"))
    return [plain(found) for found in re.findall(r"\.Bd -literal.*?\n(.*?)^\.Ed", text, flags=re.S | re.M)]
