"""Drivers for the suites of the catalogs' checks (contract, upstream sections 16 to 16.4)."""

from __future__ import annotations

import base64
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from openclaw_state.upstream import claude, codex, opencode, pi
from openclaw_state.upstream.findings import Activity, Finding, Missing, Probe
from openclaw_state.upstream.opencode_cli import OpenCode

from .compare import difference
from .upstream_texts import link_of

Check = Callable[[], str | None]
_PROBE = ("host_id", "thread_id", "upstream_kind", "upstream_ref")


def both_modes(
    document: dict[str, Any], play: Callable[[dict[str, Any], bool], str | None]
) -> Iterator[tuple[str, Check]]:
    """Every case twice: as OpenClaw answers, and as this tool does by default."""
    for own in document["cases"]:
        case = document["defaults"] | {"clock_ms": document.get("clock_ms")} | own
        yield case["name"] + " (strict)", partial(play, case, True)
        yield case["name"], partial(play, case, False)


def probe_of(case: dict[str, Any], tick: dict[str, Any], **placeholders: str) -> Probe:
    ref = case["upstream_ref"]
    if isinstance(ref, dict):
        ref = {
            key: placeholders.get(value, value) if isinstance(value, str) else value
            for key, value in ref.items()
        }
    return Probe(link_of(case, ref, tick["marker_in"]), tuple(tick["own_recent_user_texts"]))


def compared(tick: dict[str, Any], strict: bool, finding: Finding) -> str | None:
    expected = tick["expect"] if strict else tick.get("expectDefault", tick["expect"])
    return difference(expected, words(finding), "outcome")


def words(finding: Finding) -> dict[str, Any]:
    """A finding in the words of the suites."""
    if isinstance(finding, Activity):
        return {
            "outcome": "activity",
            "humanTurns": finding.turns,
            "nextMarker": finding.next_marker,
            "occurredAt": finding.occurred_at,
            "dedupeId": finding.dedupe_id,
        }
    return {"outcome": "missing" if isinstance(finding, Missing) else "none"}


def transcripts(check: Callable[..., Finding]) -> Callable[[dict[str, Any]], Iterator[tuple[str, Check]]]:
    """The driver of a suite of transcript files."""

    def play(case: dict[str, Any], strict: bool) -> str | None:
        with tempfile.TemporaryDirectory() as folder:
            file = _File(Path(folder).resolve(), case.get("path_kind"))
            for number, tick in enumerate(case["ticks"]):
                file.write(tick)
                probe = probe_of(case, tick, **{"<FILE>": file.path})
                if found := compared(tick, strict, check(probe, strict=strict)):
                    return f"tick {number}: {found}"
        return None

    return partial(both_modes, play=play)


claude_suite = transcripts(claude.check)
pi_suite = transcripts(pi.check)


class _File:
    """The path of a case, as its kind asks, and what each tick leaves there."""

    def __init__(self, folder: Path, kind: str | None) -> None:
        self.path = str(folder / "t.jsonl")
        self._target = self.path
        match kind:
            case "parent-absent":
                self.path = str(folder / "absent" / "t.jsonl")
            case "directory":
                os.mkdir(self.path)
            case "dangling-symlink":
                os.symlink(folder / "nothing", self.path)
            case "symlink-loop":
                os.symlink(self.path, self.path)
            case "symlink":
                self._target = str(folder / "real.jsonl")
                os.symlink(self._target, self.path)
            case "under-file":
                (folder / "file").write_text("x")
                self.path = str(folder / "file" / "t.jsonl")
            case "name-too-long":
                self.path = str(folder / ("n" * 300))
            case "nul":
                self.path = str(folder / "t\0.jsonl")
        self._given = kind in (None, "symlink")

    def write(self, tick: dict[str, Any]) -> None:
        if not self._given:
            return
        content = tick["file_bytes"]
        if os.path.isdir(self._target):
            os.rmdir(self._target)
        elif os.path.lexists(self._target):
            os.unlink(self._target)
        if content is None:
            return
        if content.get("directory"):
            os.mkdir(self._target)
            return
        Path(self._target).write_bytes(_bytes(content))
        if "mtime_ns" in tick:
            os.utime(self._target, ns=(int(tick["mtime_ns"]),) * 2)


def _bytes(content: dict[str, Any]) -> bytes:
    if "utf8" in content:
        return str(content["utf8"]).encode("utf-8", "surrogatepass")
    if "base64" in content:
        return base64.b64decode(content["base64"])
    if "repeat" in content:
        return str(content["repeat"]).encode() * int(content["times"])
    return b"".join(map(_bytes, content["segments"]))


def _node(case: dict[str, Any], strict: bool) -> str | None:
    items = None if "read_error" in case else case["items_newest_first"]
    finding = claude.check_items(probe_of(case, case), items, clock=case["clock_ms"], strict=strict)
    return compared(case, strict, finding)


node_suite = partial(both_modes, play=_node)


def _codex(case: dict[str, Any], strict: bool) -> str | None:
    calls: list[str] = []

    def list_turns() -> Any:
        calls.append("thread/turns/list")
        return None if "turns_list_error" in case else case["turns_newest_first"]

    def read_thread() -> codex.RpcError | None:
        calls.append("thread/read")
        error = case.get("thread_read_error")
        return codex.RpcError(error["code"], error["message"]) if error and not error.get("plain") else None

    finding = codex.check(
        probe_of(case, case),
        case["connection_fingerprint"],
        list_turns,
        read_thread,
        clock=case["clock_ms"],
        strict=strict,
    )
    made = [call["method"] for call in case["rpc_calls"]]
    return compared(case, strict, finding) or difference(made, calls, "calls")


codex_suite = partial(both_modes, play=_codex)

_STAND_IN = """#!{python}
import json, sys
with open({calls!r}, "a") as file:
    file.write(json.dumps(sys.argv[1:]) + "\\n")
answer = {answers!r}[sys.argv[2]]
sys.stdout.buffer.write(answer["stdout"].encode("utf-8", "surrogatepass"))
sys.exit(answer["exit"])
"""


def _opencode(case: dict[str, Any], strict: bool) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        calls, command = Path(folder) / "calls", Path(folder) / "opencode"
        answers = {name: case[name] for name in ("db", "export")}
        command.write_text(
            _STAND_IN.format(python=sys.executable, calls=str(calls), answers=answers), "utf-8"
        )
        command.chmod(0o700)
        probe = probe_of(case, case, **{"<THREAD>": case["thread_id"]})
        [outcome] = opencode.check([probe], OpenCode(str(command)), strict=strict)
        made = calls.read_text("utf-8").splitlines() if calls.exists() else []
        used = [" ".join(json.loads(line)) for line in made]
        return compared(case, strict, outcome.finding) or difference(case["cli_calls"], used, "calls")


opencode_suite = partial(both_modes, play=_opencode)
