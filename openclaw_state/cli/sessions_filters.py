"""The filters of sessions list: what each means, and how many sessions it left out."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from ..core.javascript import is_finite
from ..core.keys import list_kind
from ..errors import UsageError
from ..host.agentdb import Store
from ..host.agentrows import StoreContents, StoreRow
from ..sessions.listing import is_internal
from ..sessions.protection import activity
from ..timespec import parse_duration, whole_number

KINDS = ("direct", "group", "cron", "spawn-child", "global", "unknown")
MINUTE_MS = 60_000
_UNITS = {"": 1, "b": 1, "k": 1024, "kb": 1024, "m": 1024**2, "mb": 1024**2, "g": 1024**3, "gb": 1024**3}


class Candidate(NamedTuple):
    """A stored session with the store that it is from."""

    row: StoreRow
    store: Store
    contents: StoreContents

    @property
    def updated_at(self) -> int | float:
        at = self.row.entry.get("updatedAt")
        return at if is_finite(at) else 0

    @property
    def is_archived(self) -> bool:
        return self.row.entry.get("archivedAt") is not None


class Filters(NamedTuple):
    """What was asked for; None where it was not. Ages are milliseconds, sizes bytes."""

    active_minutes: int | None
    archived: bool
    kind: str | None
    older_than: int | None
    larger_than: int | None

    def apply(self, stored: list[Candidate], now: int) -> tuple[list[Candidate], dict[str, int]]:
        """What passes every filter, and how many each took from those that the earlier ones left."""
        counts: dict[str, int] = {}
        for name, test in self._tests(now).items():
            left = [one for one in stored if test(one)]
            counts[name] = len(stored) - len(left)
            stored = left
        return stored, counts

    def _tests(self, now: int) -> dict[str, Callable[[Candidate], bool]]:
        tests: dict[str, Callable[[Candidate], bool]] = {"internal": lambda one: not is_internal(one.row.key)}
        if self.active_minutes is not None:
            since = now - self.active_minutes * MINUTE_MS
            tests["active"] = lambda one: one.updated_at >= since
        if self.archived:
            tests["archived"] = lambda one: one.is_archived
        if self.kind is not None:
            tests["kind"] = lambda one: list_kind(one.row.key, one.row.entry) == self.kind
        if (age := self.older_than) is not None:
            tests["olderThan"] = lambda one: now - activity(one.row.entry) > age
        if (size := self.larger_than) is not None:
            tests["largerThan"] = lambda one: (one.row.transcript_bytes or 0) > size
        return tests


def parse_filters(
    *, active: str | None, archived: bool, kind: str | None, older_than: str | None, larger_than: str | None
) -> Filters:
    """Raises UsageError for a value that cannot mean anything."""
    if kind is not None and kind not in KINDS:
        raise UsageError(f"--kind is one of {', '.join(KINDS)}, not {kind!r}")
    return Filters(
        None if active is None else positive(active, "--active"),
        archived,
        kind,
        None if older_than is None else parse_duration(older_than),
        None if larger_than is None else _size(larger_than),
    )


def positive(text: str, option: str, more: str = "") -> int:
    """A whole number from 1 on; more names what else the option takes."""
    number = whole_number(text)
    if not number:
        raise UsageError(f"{option} is a whole number from 1 on{more}, not {text!r}")
    return number


def _size(text: str) -> int:
    found = re.fullmatch(r"(\d{1,15})([a-z]*)", text.strip().lower(), re.ASCII)
    if not found or found[2] not in _UNITS:
        raise UsageError(f"{text!r} is no size", hint="for example 500kb or 10mb")
    return int(found[1]) * _UNITS[found[2]]
