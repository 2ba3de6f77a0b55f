"""Keeping a signal log: retention, endings, upstream links."""

from __future__ import annotations

from typing import Any

from ..core import lifecycle, retention
from ..errors import RefusedError
from ..model import Limits, Link
from ..results import Adopted, Forgotten, Pruned
from ..upstream import links
from .opened import Opened


class Keeping(Opened):
    """The methods that remove, and those that keep links (contract, signal-log sections 12, 14, 15)."""

    def prune(self, limits: Limits | None = None) -> Pruned:
        """Apply retention; limits default to OpenClaw's 30 days and 50,000 rows (section 12)."""
        return retention.apply(self._database, limits or self._limits, now=self._clock())

    def forget(self, session_key: str, *, agent_id: str | None = None) -> Forgotten:
        """Delete a session's log, head, link and every watch by or on it (section 14)."""
        with self._database.writing() as connection:
            return lifecycle.forget(connection, session_key, self._agent(session_key, agent_id))

    def upsert_link(
        self,
        session_key: str,
        *,
        catalog_id: str,
        host_id: str,
        thread_id: str,
        upstream_kind: str,
        upstream_ref: Any = None,
        marker: Any = None,
        agent_id: str | None = None,
        if_absent: bool = False,
    ) -> bool:
        """Store the link of an adopted session; True when a row was written (section 15)."""
        with self._database.writing() as connection:
            return links.upsert(
                connection,
                session_key=session_key,
                agent_id=self._agent(session_key, agent_id),
                catalog_id=catalog_id,
                host_id=host_id,
                thread_id=thread_id,
                upstream_kind=upstream_kind,
                upstream_ref=upstream_ref,
                marker=marker,
                if_absent=if_absent,
                now=self._clock(),
            )

    def adopt(self, link: Link) -> Adopted:
        """Store the link of an adopted session and record the adoption, both or neither.

        The times of the link given are not looked at. Raises UsageError for keys that no session
        can have.
        """
        from ..core import events, producers
        from .recording import check_draft

        agent = self._agent(link.session_key, link.agent_id)
        draft = producers.adopted(link.session_key, agent, catalog_id=link.catalog_id, host_id=link.host_id)
        if not self._strict:
            check_draft(draft)
        now = self._clock()
        with self._database.writing() as connection:
            before = links.read(connection, link.session_key, agent)
            links.upsert(
                connection,
                session_key=link.session_key,
                agent_id=agent,
                catalog_id=link.catalog_id,
                host_id=link.host_id,
                thread_id=link.thread_id,
                upstream_kind=link.upstream_kind,
                upstream_ref=link.upstream_ref,
                marker=link.marker,
                now=now,
            )
            stored = links.read(connection, link.session_key, agent) or link
            done = events.append(
                connection, self._database.shape, self._surroundings, draft, now=now, strict=self._strict
            )
        rebased = before is None or not links.same_source(before, link)
        return Adopted(stored, before, rebased, done.event, done.duplicate)

    def note_own_text(self, session_key: str, text: str, *, agent_id: str | None = None) -> int:
        """Remember what a session of the tool's own file sent, so that its echo upstream is no person's.

        Only hashes of the ten newest are kept, in the sidecar; a blank text is none. Returns how
        many are kept. Raises RefusedError for OpenClaw's file, StorageError.
        """
        from ..sidecar import Sidecar
        from ..upstream.embedded import digest_of
        from ..upstream.own_texts import MOST

        if not self.embedded:
            raise RefusedError(
                f"{self.path} is OpenClaw's: what its sessions sent is in the agents' own databases",
                hint="the monitor reads it there; nothing has to be noted",
            )
        agent, digest = self._agent(session_key, agent_id), digest_of(text)
        sidecar = Sidecar()
        if digest is None:
            return len(sidecar.own_texts(self.path, session_key, agent))
        return sidecar.add_own_text(self.path, session_key, agent, digest, most=MOST)

    def set_link_marker(
        self,
        session_key: str,
        marker: Any,
        *,
        agent_id: str | None = None,
        expected_updated_at: int | None = None,
    ) -> bool:
        """Move a link's marker; False when the link is gone or was changed meanwhile."""
        with self._database.writing() as connection:
            return links.set_marker(
                connection,
                session_key,
                self._agent(session_key, agent_id),
                marker,
                expected_updated_at=expected_updated_at,
                now=self._clock(),
            )

    def delete_link(
        self, session_key: str, *, agent_id: str | None = None, expected_updated_at: int | None = None
    ) -> str:
        """Remove a link: `deleted`, or with expected_updated_at also `absent` or `changed`."""
        with self._database.writing() as connection:
            return links.delete(
                connection,
                session_key,
                self._agent(session_key, agent_id),
                expected_updated_at=expected_updated_at,
            )
