"""The catalogs that this tool can check, and those that only a gateway can."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from ..model import Link
from ..results import Verdict
from . import claude, gate, opencode, pi
from .findings import Finding, Missing, Outcome, Probe, Silence
from .monitor import Catalog
from .opencode_cli import OpenCode

_ISOLATED = Silence(Verdict.ISOLATED, "isolated state")
_NODE = "node:"


class _Transcripts(Protocol):
    """What the module of a catalog of transcript files offers."""

    def check(self, probe: Probe, *, strict: bool = False) -> Finding: ...

    def peek(self, link: Link) -> Silence | Missing | None: ...

    def source(self, link: Link) -> tuple[str, int] | Silence: ...


def standard_catalogs(
    environ: Mapping[str, str],
    *,
    home_allowed: bool = True,
    strict: bool = False,
    run_opencode: opencode.Command | None = None,
) -> dict[str, Catalog]:
    """The providers by catalog id. home_allowed is the gate of section 5 (`gate.is_home_allowed`).

    run_opencode runs OpenCode's command line; by default the `opencode` in the PATH of environ.
    """
    run = run_opencode or OpenCode(environ=environ)
    return {
        "claude": _of_files(
            claude,
            strict=strict,
            allowed=gate.is_claude_allowed(environ, allowed=home_allowed),
            elsewhere=lambda link: link.host_id.startswith(_NODE),
        ),
        "codex": Catalog(lambda _: (), elsewhere=lambda _: True),
        "opencode": Catalog(lambda probes: opencode.check(probes, run, strict=strict)),
        "pi": _of_files(pi, strict=strict, allowed=gate.is_pi_allowed(environ, allowed=home_allowed)),
    }


def _of_files(
    files: _Transcripts,
    *,
    strict: bool,
    allowed: bool,
    elsewhere: Callable[[Link], bool] | None = None,
) -> Catalog:
    """A catalog of transcript files, each looked at by itself."""

    def check_all(probes: Sequence[Probe]) -> list[Outcome]:
        return [
            Outcome(probe.link.session_key, files.check(probe, strict=strict) if allowed else _ISOLATED)
            for probe in probes
        ]

    if not allowed:
        return Catalog(check_all, lambda _: _ISOLATED, elsewhere)
    return Catalog(check_all, files.peek, elsewhere, files.source)
