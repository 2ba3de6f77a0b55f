"""Which reset policy is in force for a chat, and which block of the configuration said so.

Contract, sessions sections 3.1 and 3.2, and for 2026.7 section 11.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.javascript import is_finite, to_number, trim
from ..errors import ConfigurationError, UsageError
from .document import Document, member
from .rules import CURRENT, JULY, RuleSet, check_rules

MODES = ("none", "daily", "idle")
RESET_TYPES = ("direct", "group", "thread")
DEFAULT_HOUR = 4
_CHANNEL_ALIASES = {
    "lark": "feishu",
    "gchat": "googlechat",
    "google-chat": "googlechat",
    "imsg": "imessage",
    "internet-relay-chat": "irc",
    "teams": "msteams",
    "nc": "nextcloud-talk",
    "nc-talk": "nextcloud-talk",
    "twitch-chat": "twitch",
    "zl": "zalo",
    "zlu": "zalouser",
}
_DEFAULT = "default"


class Ignored(NamedTuple):
    """A setting that stands in the configuration and does not count here, and why."""

    path: str
    reason: str


class ResetPolicy(NamedTuple):
    """When a session starts over (contract, sessions section 3.2).

    mode is `none`, `daily` or `idle`; at_hour is local; idle_minutes None or 0 never expires.
    configured tells whether a block stands for this chat, and blocks which ones; the sources are
    the setting that gave each value, or `default`.
    """

    mode: str
    at_hour: int
    idle_minutes: int | None
    configured: bool
    rules: RuleSet
    reset_type: str
    blocks: tuple[str, ...]
    mode_source: str
    at_hour_source: str
    idle_source: str
    ignored: tuple[Ignored, ...] = ()


class _Block(NamedTuple):
    """A block of the configuration; settings None where it is missing."""

    path: str
    settings: Document | None

    def setting(self, name: str) -> tuple[Any, str] | None:
        value = self.settings.get(name) if self.settings is not None else None
        return None if value is None else (value, f"{self.path}.{name}")


def reset_policy(
    session: Document, reset_type: str, *, channel: str | None = None, rules: str = CURRENT
) -> ResetPolicy:
    """The policy in force, by the `session` object of openclaw.json.

    reset_type is `direct`, `group` or `thread`. Raises UsageError for another type or an unknown
    rule set, and ConfigurationError for a mode that OpenClaw does not know.
    """
    if reset_type not in RESET_TYPES:
        raise UsageError(f"{reset_type!r} is no type of chat", hint=f"one of {', '.join(RESET_TYPES)}")
    known = check_rules(rules)
    base, kind = _blocks(session, reset_type, channel_id(channel), known)
    blocks = tuple(block.path for block in (base, kind) if block.settings is not None)
    ignored = tuple(_ignored(session, blocks, reset_type, known))
    if not blocks and known == JULY:
        return _july_default(session, reset_type, ignored)
    mode, mode_source = _mode(base, kind)
    hour, hour_source = kind.setting("atHour") or base.setting("atHour") or (DEFAULT_HOUR, _DEFAULT)
    idle, idle_source = kind.setting("idleMinutes") or base.setting("idleMinutes") or (None, _DEFAULT)
    return ResetPolicy(
        mode=mode,
        at_hour=_hour(hour),
        idle_minutes=_minutes(idle) if idle is not None else 0 if mode == "idle" else None,
        configured=bool(blocks),
        rules=known,
        reset_type=reset_type,
        blocks=blocks,
        mode_source=mode_source,
        at_hour_source=hour_source,
        idle_source=idle_source,
        ignored=ignored,
    )


def channel_id(channel: str | None) -> str:
    """A channel's one name: trimmed, lower-cased, without aliases; blank for none."""
    name = trim(channel or "").lower()
    return _CHANNEL_ALIASES.get(name, name)


def _blocks(session: Document, reset_type: str, channel: str, rules: RuleSet) -> tuple[_Block, _Block]:
    """The base block and the one for the type; a channel's block replaces both."""
    nothing = _Block("", None)
    own = _block(session, "resetByChannel", channel) if channel else nothing
    if own.settings is not None:
        return own, nothing
    kind = _block(session, "resetByType", reset_type)
    if kind.settings is None and reset_type == "direct" and rules == JULY:
        kind = _block(session, "resetByType", "dm")
    return _block(session, "reset"), kind


def _block(session: Document, *path: str) -> _Block:
    found = member(session, *path)
    return _Block(".".join(("session", *path)), found if isinstance(found, Mapping) else None)


def _mode(base: _Block, kind: _Block) -> tuple[str, str]:
    """Beside a block for the type, a base of `none` does not count."""
    own, general = kind.setting("mode"), base.setting("mode")
    if kind.settings is not None and general and general[0] == "none":
        general = None
    chosen = own or general
    if chosen is None:
        path = kind.path if kind.settings is not None else base.path
        present = kind.settings is not None or base.settings is not None
        return ("daily", f"{path} without a mode") if present else ("none", _DEFAULT)
    mode, source = chosen
    if mode not in MODES:
        raise ConfigurationError(f"{source} is {mode!r}", hint=f"it is one of {', '.join(MODES)}")
    return mode, source


def _hour(value: Any) -> int:
    return min(23, max(0, math.floor(value))) if is_finite(value) else DEFAULT_HOUR


def _minutes(value: Any) -> int | None:
    number = to_number(value)
    return max(0, math.floor(number)) if math.isfinite(number) else None


def _july_default(session: Document, reset_type: str, ignored: tuple[Ignored, ...]) -> ResetPolicy:
    """Nothing is configured for the chat: the old idleMinutes alone, else daily at four."""
    alone = member(session, "reset") is None and member(session, "resetByType") is None
    given = member(session, "idleMinutes")
    minutes = _minutes(given) if alone and given is not None else None
    is_idle, path = minutes is not None, "session.idleMinutes"
    return ResetPolicy(
        mode="idle" if is_idle else "daily",
        at_hour=DEFAULT_HOUR,
        idle_minutes=minutes,
        configured=is_idle,
        rules=JULY,
        reset_type=reset_type,
        blocks=(path,) if is_idle else (),
        mode_source=path if is_idle else _DEFAULT,
        at_hour_source=_DEFAULT,
        idle_source=path if is_idle else _DEFAULT,
        ignored=tuple(one for one in ignored if not (is_idle and one.path == path)),
    )


def _ignored(session: Document, blocks: tuple[str, ...], reset_type: str, rules: RuleSet) -> list[Ignored]:
    """Settings that look as if they counted for this chat, and do not."""
    replaced = next((path for path in blocks if path.startswith("session.resetByChannel.")), None)
    retired = None if rules == JULY else f"not read by the rules of {rules}"
    reasons: dict[str, str | None] = {
        "reset": replaced and f"{replaced} replaces it",
        f"resetByType.{reset_type}": replaced and f"{replaced} replaces it",
        "idleMinutes": retired or "it counts only where no reset is configured",
    }
    if reset_type == "direct" and "session.resetByType.dm" not in blocks:
        instead = replaced or "session.resetByType.direct"
        reasons["resetByType.dm"] = retired or f"{instead} replaces it"
    return [
        Ignored(f"session.{path}", reason)
        for path, reason in reasons.items()
        if reason and member(session, *path.split(".")) is not None
    ]
