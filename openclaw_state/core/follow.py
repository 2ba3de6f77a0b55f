"""Ordered batches of the log after a sequence, and the gaps that retention tore into them.

Each batch is one read transaction; nothing is held while the caller works or waits
(design section 6; contract, signal-log sections 4, 12 and 13).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

from ..errors import AheadError, HistoryGapError
from ..model import Event
from . import changes
from .listing import BATCH_ROWS, EventFilter, events_between
from .waker import Waker


class Gap(NamedTuple):
    """A session of which events after the position are gone: up to watermark, of version."""

    session_key: str
    agent_id: str
    watermark: int
    version: int

    def view(self) -> dict[str, Any]:
        """The gap as JSON shows it."""
        return {
            "sessionKey": self.session_key,
            "agentId": self.agent_id,
            "prunedMaxSequence": self.watermark,
            "stateVersion": self.version,
        }


class Batch(NamedTuple):
    """What the log holds after a position.

    position is the sequence up to which the batch covers the log, also where events did not
    match; newest is the log's newest sequence; gaps were found on the way.
    """

    events: tuple[Event, ...]
    position: int
    newest: int
    gaps: tuple[Gap, ...] = ()


class Follower:
    """Reads on from a position, batch by batch, as the log grows."""

    def __init__(
        self,
        reading: Callable[[], AbstractContextManager[sqlite3.Connection]],
        waker: Waker,
        chosen: EventFilter,
        *,
        position: int,
        on_gap: str = "fail",
        gaps_from: int = 0,
    ) -> None:
        """chosen selects events; its own bounds of the sequence do not count.

        gaps_from: events up to this sequence may be gone without a word.
        """
        self._reading = reading
        self.waker = waker
        self._chosen = chosen
        self._on_gap = on_gap
        self._gaps_from = gaps_from
        self._told: dict[tuple[str, str], int] = {}
        self.position = position

    def read(self) -> Batch:
        """What is there now after the position, at most 500 events; the position moves behind it.

        Raises HistoryGapError when events after the position are gone and on_gap is `fail`,
        AheadError when the log has not reached the position, BusyError, NoDatabaseError when the
        file was removed or replaced.
        """
        batch = self.waker.look(self._read)
        self._told.update({(gap.session_key, gap.agent_id): gap.watermark for gap in batch.gaps})
        if batch.gaps and self._on_gap == "fail":
            raise _gone(batch.gaps, self.position)
        self.position = batch.position
        return batch

    def wait(self, timeout: float | None = None, also: Iterable[int] = ()) -> bool:
        """Wait until the log may have grown; see Waker.wait."""
        return self.waker.wait(timeout, also)

    def _read(self) -> Batch:
        with self._reading() as connection:
            newest = changes.newest_sequence(connection)
            require_reached(self.position, newest)
            if newest == self.position:
                return Batch((), newest, newest)
            found = events_between(connection, self._chosen, self.position, newest)
            position = found[-1].sequence if len(found) == BATCH_ROWS else newest
            return Batch(found, position, newest, self._gaps(connection))

    def _gaps(self, connection: sqlite3.Connection) -> tuple[Gap, ...]:
        found = gaps_after(connection, self._chosen, max(self.position, self._gaps_from))
        return tuple(
            gap for gap in found if gap.watermark > self._told.get((gap.session_key, gap.agent_id), 0)
        )


def gaps_after(connection: sqlite3.Connection, chosen: EventFilter, after: int) -> list[Gap]:
    """The chosen sessions whose events after a sequence were pruned, in part or all."""
    where, values = EventFilter(session_keys=chosen.session_keys, agent_id=chosen.agent_id).where()
    rows = connection.execute(
        "SELECT session_key, agent_id, pruned_max_sequence, last_sequence FROM session_state_heads"
        f" WHERE {where} AND pruned_max_sequence > ? ORDER BY pruned_max_sequence",
        (*values, after),
    )
    return [Gap(*row) for row in rows]


def _gone(gaps: tuple[Gap, ...], position: int) -> HistoryGapError:
    first, others = gaps[0], len(gaps) - 1
    more = f" and {others} more session{'s' * (others > 1)}" if others else ""
    return HistoryGapError(
        f"events after {position} are gone for {first.session_key}{more}: retention overtook this position",
        hint=f"read these sessions again, then go on with --since {gaps[-1].watermark}"
        " (--on-gap snapshot or skip goes on by itself)",
        position=position,
        gaps=[gap.view() for gap in gaps],
    )


def require_reached(position: int, newest: int) -> None:
    """Raise AheadError when the log's newest sequence lies behind a position that was read."""
    if newest < position:
        raise AheadError(
            f"the log has only reached sequence {newest}, {position} lies ahead of it",
            hint="was an older copy restored? read the sessions again, then follow from the new head",
            requested=position,
            head=newest,
        )
