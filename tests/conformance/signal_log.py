"""Driver for the suite `signal-log` (contract, signal-log section 18)."""

from __future__ import annotations

import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from openclaw_state import SignalLog
from openclaw_state.core.changes import parse_since
from openclaw_state.core.notices import decode_context_key
from openclaw_state.core.opening import create_embedded
from openclaw_state.core.producers import classify_actor
from openclaw_state.errors import StateError, UsageError
from openclaw_state.host.agentdb import default_store
from openclaw_state.host.surroundings import StateDirectory
from openclaw_state.model import Link
from openclaw_state.results import Wake

from .compare import difference

ROWS_SHOWN = 60
PLACEHOLDER = "$STATE_DIR"


def cases(document: dict[str, Any]) -> Iterator[tuple[str, Callable[[], str | None]]]:
    for scenario in document["scenarios"]:
        yield scenario["name"], partial(_play, scenario)


def _play(scenario: dict[str, Any]) -> str | None:
    with tempfile.TemporaryDirectory() as folder:
        player = Player(Path(folder).resolve())
        try:
            return _first_difference(scenario, player)
        finally:
            player.log.close()


def _first_difference(scenario: dict[str, Any], player: Player) -> str | None:
    for number, (step, expected) in enumerate(zip(scenario["steps"], scenario["expect"], strict=True)):
        # What OpenClaw says when it throws is its own English; only the fact counts.
        fact = {name: value for name, value in expected.items() if name != "message"}
        if found := difference(fact, player.play(step), "answer"):
            return f"step {number} ({step['op']}): {found}"
    return None


class Player:
    """Plays the steps of one scenario on a real file in a fresh state directory."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "state" / "openclaw.sqlite"
        self.now = 0
        create_embedded(str(self.path))
        self.log = self._open()

    def _open(self) -> SignalLog:
        return SignalLog(
            self.path,
            change=True,
            strict=True,
            auto_prune=True,
            surroundings=StateDirectory(str(self.folder), environ={}),
            clock=lambda: self.now,
        )

    def play(self, step: dict[str, Any]) -> dict[str, Any]:
        step = _decoded(step, str(self.folder))
        self.now = step.get("now", self.now)
        self.log.take_wakes()
        answer: dict[str, Any]
        try:
            answer = {"result": getattr(self, f"op_{step['op']}")(step)}
        except ThrownError:
            answer = {"throws": True}
        return _encoded(answer | {"state": self._state()}, str(self.folder))

    # Every op: the words of the step, to a call, to the words of the answer.

    def op_session_create(self, step: dict[str, Any]) -> None:
        key = step["sessionKey"]
        store = Path(default_store(str(self.folder), key.split(":")[1]))
        store.parent.mkdir(parents=True, exist_ok=True)
        with sqlite3.connect(store) as connection:
            connection.execute(
                "CREATE TABLE IF NOT EXISTS session_nodes (session_key TEXT PRIMARY KEY, status TEXT) STRICT"
            )
            connection.execute("INSERT INTO session_nodes (session_key) VALUES (?)", (key,))
        connection.close()

    def op_record(self, step: dict[str, Any]) -> Any:
        return _guarded(lambda: self._record(step["event"]))

    def op_record_many(self, step: dict[str, Any]) -> int:
        """A fixture: the same log-only event many times, without pruning."""
        fixture = SignalLog(self.path, change=True, strict=True, clock=lambda: self.now)
        start = self.now
        for index in range(step["count"]):
            self.now = start + index * step.get("stepMs", 0)
            self._record(step["event"], fixture)
        fixture.close()
        self.now = start
        return int(step["count"])

    def _record(self, event: dict[str, Any], log: SignalLog | None = None) -> Any:
        stored = (log or self.log).record(
            event["sessionKey"],
            event["kind"],
            agent_id=event["agentId"],
            actor_type=event["actorType"],
            summary=event["summary"],
            session_id=event.get("sessionId"),
            actor_id=event.get("actorId"),
            run_id=event.get("runId"),
            dedupe_key=event.get("dedupeKey"),
            payload=event.get("payload"),
            occurred_at=event.get("occurredAt"),
            watchers=event.get("watcherSessionKeys") or (),
        )
        return stored.event.view() if stored.event else None

    def op_spawn(self, step: dict[str, Any]) -> None:
        _guarded(
            lambda: self.log.child_spawned(
                step["childSessionKey"],
                requester=step["requesterSessionKey"],
                run_id=step["childRunId"],
                agent_id=step["agentId"],
            )
        )

    def op_terminal(self, step: dict[str, Any]) -> None:
        outcome = step["outcomeStatus"]
        _throwing(
            lambda: self.log.run_ended(
                step["childSessionKey"],
                run_id=step["runId"],
                requester=step["requesterSessionKey"],
                outcome=None if outcome == "ok" else outcome,
            )
        )

    def op_compacted(self, step: dict[str, Any]) -> None:
        if "sessionKey" not in step:
            return
        _throwing(
            lambda: self.log.compacted(
                step["sessionKey"],
                operation_id=step["operationId"],
                session_id=step.get("sessionId"),
                run_id=step.get("runId"),
                agent_id=step.get("agentId"),
            )
        )

    def op_goal(self, step: dict[str, Any]) -> None:
        entry, actor = step.get("entry", {}), step.get("actor", {})
        _guarded(
            lambda: self.log.goal_changed(
                step["sessionKey"],
                step["summary"],
                actor_type=actor.get("type", "system"),
                actor_id=actor.get("id"),
                session_id=entry.get("sessionId"),
                spawned_by=entry.get("spawnedBy"),
                parent=entry.get("parentSessionKey"),
            )
        )

    def op_created(self, step: dict[str, Any]) -> None:
        entry = step["entry"]
        if actor := entry.get("createdActor"):
            _guarded(
                lambda: self.log.session_created(
                    step["sessionKey"],
                    agent_id=step["agentId"],
                    session_id=entry["sessionId"],
                    actor_type=actor["type"],
                    actor_id=actor.get("id"),
                )
            )

    def op_human(self, step: dict[str, Any]) -> Any:
        entry, actor = step.get("entry", {}), step.get("actor", {})
        if actor.get("actorType", "human") != "human":
            return None
        stored = _throwing(
            lambda: self.log.human_message(
                step["sessionKey"],
                agent_id=step.get("agentId"),
                channel=step.get("channel"),
                spawned_by=entry.get("spawnedBy"),
                parent=entry.get("parentSessionKey"),
                actor_id=actor.get("actorId"),
                session_id=entry.get("sessionId"),
                run_id=step.get("runId"),
                dedupe_key=step.get("dedupeKey"),
                payload=step.get("payload"),
                occurred_at=step.get("occurredAt"),
            )
        )
        return stored.event.view() if stored.event else None

    def op_watch(self, step: dict[str, Any]) -> Any:
        watched = self.log.watch(
            step["watcherSessionKey"], step["targetSessionKey"], agent_id=step.get("targetAgentId")
        )
        return watched.watched

    def op_group_watch(self, step: dict[str, Any]) -> bool:
        return self.log.watch_group(
            step["sessionKey"],
            agent_id=step["agentId"],
            main_key=step.get("mainKey"),
            entry=step.get("entry"),
        ).watched

    def op_ack(self, step: dict[str, Any]) -> None:
        self.log.acknowledge(step["watcherSessionKey"], step["targetSessionKeys"])

    def op_drain(self, step: dict[str, Any]) -> list[str]:
        return [line.text for line in self.log.consume(step["watcherSessionKey"])]

    def op_notices(self, step: dict[str, Any]) -> list[str]:
        return [line.text for line in self.log.queued(step["watcherSessionKey"])]

    def op_sweep(self, step: dict[str, Any]) -> None:
        self.log.sweep()

    def op_restart(self, step: dict[str, Any]) -> None:
        self.log.close()
        self.log = self._open()

    def op_prune(self, step: dict[str, Any]) -> None:
        self.log.prune()

    def op_reset(self, step: dict[str, Any]) -> None:
        self.log.reset_watches(step["sessionKey"])

    def op_delete(self, step: dict[str, Any]) -> None:
        self.log.forget(step["sessionKey"], agent_id=step["agentId"])

    def op_changes(self, step: dict[str, Any]) -> Any:
        limit = {"limit": step["limit"]} if "limit" in step else {}
        try:
            found = self.log.changes_since(
                step["sessionKey"], step["since"], agent_id=step["agentId"], **limit
            )
        except UsageError:
            return {"events": [], "truncated": False, "earliestAvailableSequence": 0, "historyGap": False}
        return {
            "events": [event.view() for event in found.events],
            "truncated": found.truncated,
            "earliestAvailableSequence": found.earliest_available,
            "historyGap": found.history_gap,
        }

    def op_version(self, step: dict[str, Any]) -> int:
        return self.log.version(step["sessionKey"], agent_id=step["agentId"])

    def op_versions(self, step: dict[str, Any]) -> Any:
        return self.log.versions(ref["sessionKey"] for ref in step["refs"])

    def op_ambient_targets(self, step: dict[str, Any]) -> list[str]:
        found = self.log.cursors(watcher=step["watcherSessionKey"])
        return [report.cursor.target for report in found if report.cursor.ambient]

    def op_classify(self, step: dict[str, Any]) -> Any:
        opts = step["opts"]
        kind, actor_id = classify_actor(
            input_provenance=opts.get("inputProvenance"),
            internal_events=opts.get("internalEvents"),
            session_effects=opts.get("sessionEffects"),
            human_actor_id=opts.get("humanActorId"),
        )
        return {"actorType": kind} | ({"actorId": actor_id} if actor_id else {})

    def op_decode_context(self, step: dict[str, Any]) -> str | None:
        return decode_context_key(step["contextKey"])

    def op_store_config(self, step: dict[str, Any]) -> None:
        store = step.get("config", {}).get("session", {}).get("store")
        self.log.use_surroundings(StateDirectory(str(self.folder), store=store, environ={}))

    def op_upstream_upsert(self, step: dict[str, Any]) -> bool:
        link = step["link"]
        return self.log.upsert_link(
            link["sessionKey"],
            agent_id=link["agentId"],
            catalog_id=link["catalogId"],
            host_id=link["hostId"],
            thread_id=link["threadId"],
            upstream_kind=link["upstreamKind"],
            upstream_ref=link.get("upstreamRef"),
            marker=link.get("marker"),
            if_absent=step.get("ifAbsent", False),
        )

    def op_upstream_read(self, step: dict[str, Any]) -> Any:
        link = self.log.link(step["sessionKey"], agent_id=step["agentId"])
        return _link(link) if link else None

    def op_upstream_marker(self, step: dict[str, Any]) -> bool:
        return self.log.set_link_marker(
            step["sessionKey"],
            step["marker"],
            agent_id=step["agentId"],
            expected_updated_at=step.get("expectedUpdatedAt"),
        )

    def op_upstream_delete(self, step: dict[str, Any]) -> str:
        return self.log.delete_link(
            step["sessionKey"], agent_id=step["agentId"], expected_updated_at=step.get("expected")
        )

    def op_upstream_watched(self, step: dict[str, Any]) -> Any:
        return {
            catalog: [_link(link) for link in found] for catalog, found in self.log.watched_links().items()
        }

    def op_sql(self, step: dict[str, Any]) -> dict[str, int]:
        with sqlite3.connect(self.path) as connection:
            changed = connection.execute(step["sql"]).rowcount
        connection.close()
        return {"changes": changed}

    def op_status_tool(self, step: dict[str, Any]) -> dict[str, Any]:
        params = step["params"]
        key = params.get("sessionKey", step["requesterSessionKey"])
        since = _throwing(lambda: parse_since(params.get("changesSince", params.get("changes_since"))))
        answer: dict[str, Any] = {"stateVersion": self.log.version(key), "hasChangesBlock": since is not None}
        if since is not None:
            answer["stateChanges"] = self.log.changes_since(key, since).view()
        return answer

    def _state(self) -> dict[str, Any]:
        connection = sqlite3.connect(self.path)
        connection.row_factory = sqlite3.Row

        def rows(table: str, order: str) -> list[dict[str, Any]]:
            return [dict(row) for row in connection.execute(f"SELECT * FROM {table} ORDER BY {order}")]

        sequence = connection.execute(
            "SELECT seq FROM sqlite_sequence WHERE name = 'session_state_events'"
        ).fetchone()
        state: dict[str, Any] = {
            "events": _shortened(rows("session_state_events", "sequence")),
            "heads": rows("session_state_heads", "session_key, agent_id"),
            "cursors": rows("session_watch_cursors", "watcher_session_key, target_session_key"),
            "autoincrement": sequence["seq"] if sequence else 0,
            "queues": {
                watcher: [
                    {"text": line.text, "contextKey": line.context_key} for line in self.log.queued(watcher)
                ]
                for watcher in self.log.queued_watchers()
            },
            "wakes": sorted(
                map(_wake, self.log.take_wakes()), key=lambda wake: (wake["sessionKey"], wake["reason"])
            ),
        }
        if links := rows("session_upstream_links", "session_key, agent_id"):
            state["upstreamLinks"] = links
        connection.close()
        return state


class ThrownError(Exception):
    """An error that OpenClaw lets through to its caller."""


def _guarded(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except StateError:
        return None


def _throwing(call: Callable[[], Any]) -> Any:
    try:
        return call()
    except UsageError as error:
        raise ThrownError(str(error)) from error


def _wake(wake: Wake) -> dict[str, Any]:
    names = {"session_key": "sessionKey", "coalesce_ms": "coalesceMs"}
    return {names.get(name, name): value for name, value in wake._asdict().items()}


def _link(link: Link) -> dict[str, Any]:
    words = {
        "sessionKey": link.session_key,
        "agentId": link.agent_id,
        "catalogId": link.catalog_id,
        "hostId": link.host_id,
        "threadId": link.thread_id,
        "upstreamKind": link.upstream_kind,
        "upstreamRef": link.upstream_ref,
        "marker": link.marker,
        "createdAt": link.created_at,
        "updatedAt": link.updated_at,
    }
    if link.last_scanned_at is not None:
        words["lastScannedAt"] = link.last_scanned_at
    return words


def _shortened(rows: list[dict[str, Any]]) -> Any:
    if len(rows) <= ROWS_SHOWN:
        return rows
    return {
        "count": len(rows),
        "minSequence": rows[0]["sequence"],
        "maxSequence": rows[-1]["sequence"],
        "first": rows[:2],
        "last": rows[-2:],
    }


def _decoded(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return (
            float(value["$num"])
            if value.keys() == {"$num"}
            else {k: _decoded(v, folder) for k, v in value.items()}
        )
    if isinstance(value, list):
        return [_decoded(item, folder) for item in value]
    return value.replace(PLACEHOLDER, folder) if isinstance(value, str) else value


def _encoded(value: Any, folder: str) -> Any:
    if isinstance(value, dict):
        return {k: _encoded(v, folder) for k, v in value.items()}
    if isinstance(value, list):
        return [_encoded(item, folder) for item in value]
    return value.replace(folder, PLACEHOLDER) if isinstance(value, str) else value
