"""Opening a signal log: what every part of the API stands on."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Self

from ..core import cursors, keys
from ..core.database import Database
from ..core.opening import DEFAULT_LOCK_WAIT_MS, create_embedded, is_blank
from ..core.surroundings import Detached, Embedded, Surroundings, delivery
from ..errors import BadDatabaseError, NoDatabaseError, RefusedError
from ..host.location import Location, locate
from ..model import Cursor, Limits


def _system_clock() -> int:
    return time.time_ns() // 1_000_000


def _missing(location: Location) -> NoDatabaseError:
    """The file is not there: say which rule led to it, and what else may have been meant."""
    if location.embedded:
        hint = (
            "record, run, cursors add and links add create the tool's own file; or name a database with --db"
        )
    else:
        hint = "check the path; nothing was created"
    return NoDatabaseError(
        f"there is no database at {location.path} (chosen by {location.via})",
        hint="; ".join((*location.warnings, hint)),
        database={"path": location.path, "via": location.via},
    )


class Opened:
    """An open database with its surroundings and its clock."""

    def __init__(
        self,
        path: str | os.PathLike[str] | Location | None = None,
        *,
        change: bool = False,
        create: bool = False,
        surroundings: Surroundings | None = None,
        strict: bool = False,
        auto_prune: bool = False,
        best_effort: bool = False,
        limits: Limits | None = None,
        lock_wait_ms: int = DEFAULT_LOCK_WAIT_MS,
        clock: Callable[[], int] = _system_clock,
    ) -> None:
        """Open the log at a path, or the one that the environment selects (design section 4).

        change: allow writing; the embedded file is then created where it is missing.
        create: with change, create a missing file at any path outside an OpenClaw directory.
        strict: follow OpenClaw also where this tool does better on purpose.
        auto_prune: recording applies retention, at most hourly, as a gateway does.
        best_effort: recording logs a failure and returns, instead of raising.
        limits: retention limits of auto_prune; OpenClaw's own file has fixed ones.
        lock_wait_ms: how long a write waits for another writer.
        Raises NoDatabaseError, BadDatabaseError, NewerSchemaError, AccessError,
        ConfigurationError, RefusedError.
        """
        if isinstance(path, Location):
            self.location = path
        else:
            self.location = locate(db=os.fspath(path) if path is not None else None)
        creates = change and (create or self.location.embedded) and self.location.state_dir is None
        self._database = self._open(change, lock_wait_ms, creates)
        self._surroundings = surroundings or self._default_surroundings()
        if limits is not None and not self.embedded:
            self.close()
            raise RefusedError("OpenClaw's own file keeps OpenClaw's retention limits")
        self._limits = limits or Limits()
        self._strict = strict
        self._auto_prune = auto_prune
        self._best_effort = best_effort
        self._clock = clock
        self._pruned_at = 0
        self._prepare()

    def _prepare(self) -> None:
        """What a subclass needs besides; nothing for reading."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections of every thread."""
        self._database.close()

    def release(self) -> None:
        """Close this thread's connection for a pause; the next use opens another to the same file."""
        self._database.release()

    @property
    def embedded(self) -> bool:
        """Is this the tool's own file (no OpenClaw behind it)?"""
        return isinstance(self._surroundings, Embedded)

    @property
    def path(self) -> str:
        return self.location.path

    @property
    def warnings(self) -> list[str]:
        """What a reader should know about the file that was opened."""
        found = list(self.location.warnings)
        if self._database.shape.warning:
            found.append(self._database.shape.warning)
        if self._database.immutable:
            found.append(
                f"{self.path} was opened immutable: its directory is not writable and there is no -wal file"
            )
        return found

    def _open(self, change: bool, lock_wait_ms: int, creates: bool) -> Database:
        """The database; where it is missing or blank and may be created, it is created first."""
        try:
            return Database(self.path, writable=change, lock_wait_ms=lock_wait_ms)
        except (NoDatabaseError, BadDatabaseError) as error:
            if creates and is_blank(self.path):
                create_embedded(self.path)
                return Database(self.path, writable=change, lock_wait_ms=lock_wait_ms)
            if isinstance(error, NoDatabaseError):
                raise _missing(self.location) from error
            raise

    def _default_surroundings(self) -> Surroundings:
        if self.location.state_dir is not None:
            from ..host.surroundings import StateDirectory

            return StateDirectory(self.location.state_dir)
        return Embedded() if self._database.shape.embedded else Detached()

    def _agent(self, session_key: str, agent_id: str | None) -> str:
        return agent_id or keys.owner(session_key, None)

    def _raised(self, found: Iterable[Cursor]) -> list[cursors.Raised]:
        return [
            cursors.Raised(cursor, delivery(cursor, self._database.shape, self._surroundings), opened=False)
            for cursor in found
            if cursor.pending
        ]
