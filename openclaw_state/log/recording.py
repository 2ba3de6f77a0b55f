"""Recording events: raw, or one method per kind."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..core import cursors, keys, notices, producers, retention
from ..core.events import Draft, append
from ..errors import StateError, UsageError
from ..model import Link
from ..results import Pruned, Recorded
from ..upstream import links
from .changing import Changing

_CONTROL = "[\x00-\x1f\x7f-\x9f]"


@dataclass
class ChildRun:
    """A run in progress; outcome is None for success, else error, timeout or cancelled.

    known tells, once it has ended, that the log held an end of this run already.
    """

    run_id: str
    outcome: str | None = None
    known: bool = False


class Recording(Changing):
    """The methods that append to the log (contract, signal-log sections 5 and 6)."""

    def record(
        self,
        session_key: str,
        kind: str,
        *,
        actor_type: str,
        summary: str,
        agent_id: str | None = None,
        session_id: str | None = None,
        actor_id: str | None = None,
        run_id: str | None = None,
        dedupe_key: str | None = None,
        payload: Any = None,
        occurred_at: float | None = None,
        watchers: Iterable[str] = (),
    ) -> Recorded:
        """Append one event as it is given, by the gateway's rules (contract, signal-log section 6).

        occurred_at is epoch ms, held to the last 24 hours. Raises UsageError for keys that no
        session can have, BusyError, RefusedError, StorageError.
        """
        return self._append(
            lambda: Draft(
                session_key,
                self._owner(session_key, agent_id),
                kind,
                actor_type,
                summary,
                session_id,
                actor_id,
                run_id,
                dedupe_key,
                payload,
                occurred_at,
                tuple(watchers),
            )
        )

    def append(self, draft: Draft, *, only_if_watched: bool = False) -> Recorded:
        """Append a draft made by `core.producers`.

        only_if_watched records nothing (event None) when no watcher is named or registered.
        """
        return self._append(lambda: draft, only_if_watched=only_if_watched and not draft.watchers)

    def human_message(
        self,
        session_key: str,
        *,
        agent_id: str | None = None,
        channel: str | None = None,
        spawned_by: str | None = None,
        parent: str | None = None,
        actor_id: str | None = None,
        session_id: str | None = None,
        run_id: str | None = None,
        dedupe_key: str | None = None,
        payload: Any = None,
        occurred_at: float | None = None,
    ) -> Recorded:
        """A person wrote to the session directly.

        Recorded only where somebody is to hear of it: the session has a lineage (spawned_by,
        else parent, becomes a watcher) or is watched. Otherwise the event is None.
        """
        lineage = producers.lineage_watcher(spawned_by, parent)
        return self._append(
            lambda: producers.human_message(
                session_key,
                self._owner(session_key, agent_id),
                channel=channel,
                watchers=lineage,
                actor_id=actor_id,
                session_id=session_id,
                run_id=run_id,
                dedupe_key=dedupe_key,
                payload=payload,
                occurred_at=occurred_at,
            ),
            only_if_watched=not lineage,
        )

    def goal_changed(
        self,
        session_key: str,
        summary: str,
        *,
        agent_id: str | None = None,
        actor_type: str = "system",
        actor_id: str | None = None,
        spawned_by: str | None = None,
        parent: str | None = None,
        session_id: str | None = None,
    ) -> Recorded:
        """The session's goal changed; the lineage watcher hears of it."""
        return self._append(
            lambda: producers.goal_changed(
                session_key,
                self._owner(session_key, agent_id),
                summary=summary,
                watchers=producers.lineage_watcher(spawned_by, parent),
                actor_type=actor_type,
                actor_id=actor_id,
                session_id=session_id,
            )
        )

    def session_created(
        self,
        session_key: str,
        *,
        session_id: str,
        actor_type: str,
        actor_id: str | None = None,
        agent_id: str | None = None,
    ) -> Recorded:
        """A session began, by a known creator; once per session id."""
        return self._append(
            lambda: producers.session_created(
                session_key,
                self._owner(session_key, agent_id),
                session_id=session_id,
                actor_type=actor_type,
                actor_id=actor_id,
            )
        )

    def child_spawned(
        self, child: str, *, requester: str, run_id: str, agent_id: str | None = None
    ) -> Recorded:
        """A session started a child; the requester watches it from here on. Once per run."""
        return self._append(
            lambda: producers.child_spawned(
                child, self._owner(child, agent_id), requester=requester, run_id=run_id
            )
        )

    def run_ended(
        self,
        child: str,
        *,
        run_id: str,
        outcome: str | None = None,
        requester: str | None = None,
        agent_id: str | None = None,
    ) -> Recorded:
        """A child run ended: outcome None is success, else error, timeout or cancelled. Once per run."""
        return self._append(
            lambda: producers.run_ended(
                child, self._owner(child, agent_id), run_id=run_id, outcome=outcome, requester=requester
            )
        )

    def compacted(
        self,
        session_key: str,
        *,
        operation_id: str,
        session_id: str | None = None,
        run_id: str | None = None,
        agent_id: str | None = None,
    ) -> Recorded:
        """The session's context was compacted; once per operation."""
        return self._append(
            lambda: producers.compacted(
                session_key,
                self._owner(session_key, agent_id),
                operation_id=operation_id,
                session_id=session_id,
                run_id=run_id,
            )
        )

    def adopted(
        self, session_key: str, *, catalog_id: str, host_id: str, agent_id: str | None = None
    ) -> Recorded:
        """A person took over a session from another program's catalog; once per session."""
        return self._append(
            lambda: producers.adopted(
                session_key, self._owner(session_key, agent_id), catalog_id=catalog_id, host_id=host_id
            )
        )

    def upstream_missing(self, link: Link) -> Recorded:
        """The source of an adopted session disappeared; once per generation of the link."""
        return self._append(lambda: producers.upstream_missing(link, links.source_key(link)))

    @contextmanager
    def child_run(
        self, parent: str, child: str, *, run_id: str | None = None, agent_id: str | None = None
    ) -> Iterator[ChildRun]:
        """Record a child's spawn, run the block, record how it ended.

        A TimeoutError (also of subprocess) ends the run as `timeout`, an interrupt or a
        cancellation as `cancelled`, any other exception as `error`; all are raised on. A block
        that ends by itself may say otherwise in the run's `outcome`.
        """
        run = ChildRun(run_id or _new_run_id())
        self.child_spawned(child, requester=parent, run_id=run.run_id, agent_id=agent_id)
        try:
            yield run
        except BaseException as error:
            run.outcome = producers.outcome_of(error)
            raise
        finally:
            ended = self.run_ended(
                child, run_id=run.run_id, outcome=run.outcome, requester=parent, agent_id=agent_id
            )
            run.known = ended.duplicate

    def _owner(self, session_key: str, agent_id: str | None) -> str:
        if self._strict and agent_id is not None:
            return agent_id
        return keys.owner(session_key, agent_id)

    def _append(self, draft_of: Callable[[], Draft], *, only_if_watched: bool = False) -> Recorded:
        try:
            return self._append_now(draft_of(), only_if_watched)
        except StateError as error:
            if not self._best_effort:
                raise
            _log("signal not recorded", error)
            return Recorded(None, False, ())

    def _append_now(self, draft: Draft, only_if_watched: bool) -> Recorded:
        if not self._strict:
            check_draft(draft)
        now = self._clock()
        with self._database.writing() as connection:
            if only_if_watched and not cursors.is_watched(connection, draft.session_key):
                return Recorded(None, False, ())
            appended = append(
                connection, self._database.shape, self._surroundings, draft, now=now, strict=self._strict
            )
        self._push(appended.raised)
        opened = tuple(
            notices.build(
                item.cursor,
                item.delivery,
                head=item.cursor.material,
                kind=draft.kind,
                since=appended.event.occurred_at if appended.event else None,
            )
            for item in appended.raised
            if item.opened
        )
        return Recorded(appended.event, appended.duplicate, opened, self._prune_hourly(now))

    def _prune_hourly(self, now: int) -> Pruned | None:
        """The event is stored by now: a failure here is logged, because raising would deny that."""
        if not self._auto_prune or now - self._pruned_at <= retention.HOURLY_MS:
            return None
        self._pruned_at = now
        try:
            return retention.apply(self._database, self._limits, now=now)
        except StateError as error:
            _log("retention not applied", error)
            return None


def _log(what: str, error: StateError) -> None:
    import logging

    logging.getLogger("openclaw_state").warning("%s: %s", what, error.message)


def check_draft(draft: Draft) -> None:
    """Raise UsageError for keys and words that no event can have."""
    for name, value in (
        ("session key", draft.session_key),
        ("kind", draft.kind),
        ("actor type", draft.actor_type),
    ):
        if not value.strip():
            raise UsageError(f"the {name} is blank")
    for text in (draft.session_key, draft.agent_id, *draft.watchers):
        if re.search(_CONTROL, text):
            raise UsageError(f"the key {text!r} contains control characters")
    try:
        "".join(text for text in draft if isinstance(text, str)).encode()
    except UnicodeEncodeError as error:
        raise UsageError(f"the database does not accept this value: {error.reason}") from error


def _new_run_id() -> str:
    import uuid

    return str(uuid.uuid4())
