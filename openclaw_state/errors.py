"""Every way the tool can fail: one class per cause, carrying its words and its exit status.

The class is the contract: `code` is the stable word in JSON, `status` the exit status,
the message says what happened, `hint` what to do next, and `details` adds JSON members.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Any, ClassVar


class ExitStatus(IntEnum):
    """The exit statuses of the command line (design section 5)."""

    OK = 0
    FINDINGS = 1
    USAGE = 2
    HISTORY_GAP = 3
    NOT_FOUND = 4
    AHEAD = 5
    RUN_FAILED = 6
    RUN_ORPHANED = 7
    CRITICAL = 8
    REFUSED = 9
    BAD_DATABASE = 65
    NO_DATABASE = 66
    UNAVAILABLE = 69
    BUG = 70
    IO_ERROR = 74
    BUSY = 75
    PERMISSION = 77
    CONFIGURATION = 78
    TIMED_OUT = 124
    HUNG_UP = 129
    INTERRUPTED = 130
    TERMINATED = 143


class StateError(Exception):
    """Base of every expected failure."""

    code: ClassVar[str] = "error"
    status: ClassVar[ExitStatus] = ExitStatus.BUG

    def __init__(self, message: str, *, hint: str | None = None, **details: Any) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.details = details


class UsageError(StateError):
    """The caller's arguments cannot mean anything."""

    code = "usage"
    status = ExitStatus.USAGE


class NotFoundError(StateError):
    """No event, head, cursor, link or session row has exactly that key."""

    code = "not_found"
    status = ExitStatus.NOT_FOUND


class HistoryGapError(StateError):
    """Events that were asked for were pruned before they could be read."""

    code = "history_gap"
    status = ExitStatus.HISTORY_GAP


class AheadError(StateError):
    """A version was asked for that the session has not reached."""

    code = "ahead_of_head"
    status = ExitStatus.AHEAD


class RefusedError(StateError):
    """A rule forbids it: supervision, a watch rule, a confirmation not given."""

    code = "refused"
    status = ExitStatus.REFUSED


class BadDatabaseError(StateError):
    """Not a database, corrupt, or without the tables of the signal log."""

    code = "bad_database"
    status = ExitStatus.BAD_DATABASE


class NewerSchemaError(BadDatabaseError):
    """The file was written by a release newer than this tool knows."""

    code = "newer_schema"


class NoDatabaseError(StateError):
    """The database file is missing, or was replaced while in use."""

    code = "no_database"
    status = ExitStatus.NO_DATABASE


class StorageError(StateError):
    """The disk failed or is full."""

    code = "io_error"
    status = ExitStatus.IO_ERROR


class BusyError(StateError):
    """Another process held the lock for longer than we may wait."""

    code = "busy"
    status = ExitStatus.BUSY


class AccessError(StateError):
    """The operating system does not let this user read or write the file."""

    code = "permission"
    status = ExitStatus.PERMISSION


class ConfigurationError(StateError):
    """The surroundings lack something that the command needs."""

    code = "configuration"
    status = ExitStatus.CONFIGURATION


class AgentSelectionError(ConfigurationError):
    """No agent of the configuration is meant, or one that it does not have."""


class HookError(StateError):
    """A command run for an event or a notice failed."""

    code = "command_failed"
    status = ExitStatus.UNAVAILABLE


class UpstreamError(StateError):
    """A catalog could not be checked at all: its program did not answer, or nothing of it can be read."""

    code = "upstream_failed"
    status = ExitStatus.UNAVAILABLE


class StopError(BaseException):
    """A signal asked for the end, which is no failure; note says where it stopped.

    stuck: nobody takes the output, so that nothing more can be written to it.
    """

    def __init__(self, number: int, *, stuck: bool = False) -> None:
        super().__init__(number)
        self.number = number
        self.stuck = stuck
        self.note = ""


class TimedOutError(StateError):
    """`--timeout` passed before the awaited thing happened."""

    code = "timed_out"
    status = ExitStatus.TIMED_OUT
