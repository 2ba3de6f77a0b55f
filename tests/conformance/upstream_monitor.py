"""Driver for the suite `upstream-monitor` (contract, upstream section 16.7)."""

from __future__ import annotations

import json
import re
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

from openclaw_state import SignalLog
from openclaw_state.core.opening import create_embedded
from openclaw_state.model import Link
from openclaw_state.results import Streak, StreakKey
from openclaw_state.upstream import claude
from openclaw_state.upstream.findings import Activity, Finding, Missing, Outcome, Probe
from openclaw_state.upstream.links import KEEP
from openclaw_state.upstream.monitor import Catalog, Monitor

from .compare import difference

Check = Callable[[], str | None]

_TABLES = {
    "links": ("session_upstream_links", ("session_key", "agent_id")),
    "events": ("session_state_events", ("sequence",)),
    "heads": ("session_state_heads", ("session_key", "agent_id")),
    "cursors": ("session_watch_cursors", ("watcher_session_key", "target_session_key")),
}
_COUNT_KEY = ("session_key", "agent_id", "source_key")


def cases(document: dict[str, Any]) -> Iterator[tuple[str, Check]]:
    for trace in document["traces"]:
        yield trace["name"] + " (strict)", partial(_play, trace, True)
        yield trace["name"], partial(_play, trace, False)


def _play(trace: dict[str, Any], strict: bool) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        world = World(Path(folder).resolve(), trace, strict)
        try:
            return _first_difference(trace, world, strict)
        finally:
            world.log.close()


def _first_difference(trace: dict[str, Any], world: World, strict: bool) -> str | None:
    deviating = trace.get("expectDefault", {}).get("steps") if not strict else None
    for number, step in enumerate(trace["steps"]):
        expected = {name: step[name] for name in ("missing_counts", "after", "provider_calls")}
        if deviating:
            expected = {name: deviating[number][name] for name in ("missing_counts", "after")}
        world.tick(step)
        answer = {
            "missing_counts": world.missing_counts(),
            "after": world.rows(expected["after"]),
            "provider_calls": world.calls,
        }
        expected["missing_counts"] = sorted(
            expected["missing_counts"], key=lambda count: [count[name] for name in _COUNT_KEY]
        )
        answer = world.masked({name: answer[name] for name in expected})
        if found := difference(expected, answer, f"step {number}"):
            return found
    return None


class World:
    """A state database and what stands around it: sessions, own texts, runs, providers."""

    def __init__(self, folder: Path, trace: dict[str, Any], strict: bool) -> None:
        self.folder = folder
        self.path = folder / "state.sqlite"
        self.now = 0
        self.strict = strict
        self.masks = "<DIR>" in json.dumps(trace)
        self.streaks: dict[StreakKey, Streak] = {}
        self.calls: list[dict[str, Any]] = []
        self.inputs: dict[str, Any] = {}
        self.reads: dict[str, int] = {}
        initial = self._placed(trace["initial"])
        self.entries_now = {(e["session_key"], e["agent_id"]): e for e in initial["entries"]}
        self.own_now = {(o["session_key"], o["agent_id"]): o for o in initial["own"]}
        self.active = set(initial["runActive"])
        for file in initial["files"]:
            Path(file["path"]).write_text(file["utf8"], "utf-8")
        create_embedded(str(self.path))
        for name, (table, _) in _TABLES.items():
            for row in initial[name]:
                marks = ", ".join("?" * len(row))
                self._sql(f"INSERT INTO {table} ({', '.join(row)}) VALUES ({marks})", list(row.values()))
        self.log = SignalLog(self.path, change=True, strict=strict, auto_prune=True, clock=lambda: self.now)

    def tick(self, step: dict[str, Any]) -> None:
        self.inputs = self._placed(step["inputs"])
        self.calls, self.reads, self.now = [], {}, step["now"]
        self.edit(self.inputs.get("before", ()))
        catalogs = {
            name: Catalog(None if words.get("noCheck") else partial(self._provide, name, words))
            for name, words in self.inputs["providers"].items()
            if not words.get("absent")
        }
        Monitor(self.log, self, catalogs, kept=self.streaks, clock=lambda: self.now).tick()
        self.edit(self.inputs.get("afterTick", ()))

    # What the monitor asks about sessions.

    def entries(self, links: Iterable[Link]) -> dict[tuple[str, str], str | Exception]:
        found: dict[tuple[str, str], str | Exception] = {}
        for link in links:
            entry = self.entries_now.get((link.session_key, link.agent_id))
            if entry:
                found[link.session_key, link.agent_id] = (
                    RuntimeError(entry["throws"]) if "throws" in entry else entry["session_id"]
                )
        return found

    def own_texts(self, link: Link, session_id: str) -> tuple[str, ...]:
        key = link.session_key
        self.reads[key] = self.reads.get(key, 0) + 1
        if self.reads[key] == 2:
            self.edit(e for e in self.inputs.get("duringReread", ()) if e["for_session_key"] == key)
        own = self.own_now.get((key, link.agent_id), {"texts": []})
        if "throws" in own:
            raise RuntimeError(own["throws"])
        return tuple(own["texts"])

    def run_active(self, session_id: str) -> bool:
        return session_id in self.active

    def close(self) -> None:
        return None

    def _provide(self, catalog: str, words: dict[str, Any], probes: Sequence[Probe]) -> list[Outcome]:
        self.calls.append({"catalog": catalog, "probes": [_probe_words(probe) for probe in probes]})
        self.edit(e for e in self.inputs.get("duringScan", ()) if e["catalog"] == catalog)
        if "throws" in words:
            raise RuntimeError(words["throws"])
        if "check" in words:
            return [Outcome(p.link.session_key, claude.check(p, strict=self.strict)) for p in probes]
        return [Outcome(each["sessionKey"], _finding(each)) for each in words["outcomes"]]

    # Edits of the world.

    def edit(self, edits: Iterable[dict[str, Any]]) -> None:
        for edit in edits:
            getattr(self, f"op_{edit['op']}")(edit)

    def op_sql(self, edit: dict[str, Any]) -> None:
        self._sql(edit["sql"], edit.get("params", []))

    def op_upsertLink(self, edit: dict[str, Any]) -> None:  # noqa: N802 - the suite's own word
        link = dict(edit["link"])
        self._at(edit["now"], lambda: self.log.upsert_link(link.pop("session_key"), **link))

    def op_deleteLink(self, edit: dict[str, Any]) -> None:  # noqa: N802
        self.log.delete_link(edit["session_key"], agent_id=edit["agent_id"])

    def op_watch(self, edit: dict[str, Any]) -> None:
        watcher, target = edit["watcher_session_key"], edit["target_session_key"]
        self._at(edit["now"], lambda: self.log.watch(watcher, target))

    def op_setEntry(self, edit: dict[str, Any]) -> None:  # noqa: N802
        self.entries_now[edit["session_key"], edit["agent_id"]] = edit

    def op_setOwn(self, edit: dict[str, Any]) -> None:  # noqa: N802
        self.own_now[edit["session_key"], edit["agent_id"]] = edit

    def op_setRunActive(self, edit: dict[str, Any]) -> None:  # noqa: N802
        self.active = set(edit["session_ids"])

    def op_appendFile(self, edit: dict[str, Any]) -> None:  # noqa: N802
        with open(edit["path"], "a", encoding="utf-8") as file:
            file.write(edit["utf8"])

    def op_removeFile(self, edit: dict[str, Any]) -> None:  # noqa: N802
        Path(edit["path"]).unlink()

    def _at(self, now: int, call: Callable[[], Any]) -> None:
        before, self.now = self.now, now
        call()
        self.now = before

    def _sql(self, sql: str, values: Any = ()) -> None:
        with closing(sqlite3.connect(self.path)) as connection, connection:
            connection.execute(sql, values)

    # What a step leaves.

    def missing_counts(self) -> list[dict[str, Any]]:
        return [
            key._asdict() | {"count": streak.misses, "link_updated_at": streak.link_updated_at}
            for key, streak in sorted(self.streaks.items())
        ]

    def rows(self, expected: dict[str, Any]) -> dict[str, Any]:
        """All rows of the four tables, with the columns that are expected."""
        found = {}
        with closing(sqlite3.connect(self.path)) as connection:
            connection.row_factory = sqlite3.Row
            for name, (table, key) in _TABLES.items():
                shown = set(expected[name][0]) if expected[name] else None
                found[name] = [
                    {column: value for column, value in dict(row).items() if shown is None or column in shown}
                    for row in connection.execute(f"SELECT * FROM {table} ORDER BY {', '.join(key)}")
                ]
        return found

    def masked(self, answer: dict[str, Any]) -> Any:
        if not self.masks:
            return answer
        text = json.dumps(answer).replace(str(self.folder), "<DIR>")
        text = re.sub(r"(?<=:)[0-9a-f]{16}(?=:)", "<16hex>", text)
        return json.loads(re.sub(r'("source_key": )"[0-9a-f]{16}"', r'\1"<16hex>"', text))

    def _placed(self, value: Any) -> Any:
        """A part of a trace with the real directory and the real numbers in it."""
        if isinstance(value, dict):
            if value.keys() == {"$num"}:
                return float(value["$num"])
            return {key: self._placed(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self._placed(item) for item in value]
        return value.replace("<DIR>", str(self.folder)) if isinstance(value, str) else value


def _probe_words(probe: Probe) -> dict[str, Any]:
    link = probe.link
    return {
        "session_key": link.session_key,
        "agent_id": link.agent_id,
        "host_id": link.host_id,
        "thread_id": link.thread_id,
        "upstream_kind": link.upstream_kind,
        "upstream_ref": link.upstream_ref,
        "marker": link.marker,
        "own_recent_user_texts": list(probe.own_texts),
    }


def _finding(words: dict[str, Any]) -> Finding:
    if words["kind"] == "missing":
        return Missing()
    return Activity(
        words["humanTurns"], words.get("nextMarker", KEEP), words["occurredAt"], words["dedupeId"]
    )
