"""The limits of session maintenance, as `session.maintenance` sets them.

Contract, sessions section 6.1. OpenClaw refuses the whole configuration for one bad value, so
reading it fails here too: half a policy must not delete anything.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from ..core.javascript import is_finite, trim
from ..errors import ConfigurationError
from .document import Document, member, section, text_of
from .peers import DM_SCOPES, check_scope
from .rules import CURRENT, JULY, RuleSet, check_rules

DAY_MS = 86_400_000
MODES = ("enforce", "warn")
DEFAULT_PRUNE_AFTER_MS = 30 * DAY_MS
DEFAULT_DASHBOARD_MS = 7 * DAY_MS
_MAX_ENTRIES = {CURRENT: 5_000, JULY: 500}
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": DAY_MS}
_NUMBER = r"\d+(?:\.\d+)?"
_PART = re.compile(rf"({_NUMBER})(ms|s|m|h|d)", re.ASCII)
_DURATION = re.compile(rf"(?:{_PART.pattern})+", re.ASCII)


class MaintenancePolicy(NamedTuple):
    """The limits in force (contract, sessions section 6.1); a limit of None is off.

    mode is `enforce` or `warn`; durations are milliseconds; dm_scope is the configured
    `session.dmScope`, on which `--fix-dm-scope` depends.
    """

    rules: RuleSet = CURRENT
    mode: str = "enforce"
    prune_after_ms: int = DEFAULT_PRUNE_AFTER_MS
    archive_dashboard_after_ms: int | None = DEFAULT_DASHBOARD_MS
    max_entries: int = 5_000
    preserve_recent_ms: int | None = None
    dm_scope: str = "main"

    @property
    def high_water(self) -> int:
        """The count from which an ordinary write cleans up."""
        most = self.max_entries
        if most <= 0:
            return 1
        return most + 1 if most <= 49 else most + max(25, -(-most // 10))


def maintenance_policy(
    session: Document, *, rules: str = CURRENT, allow_no_entries: bool = False
) -> MaintenancePolicy:
    """The limits by the `session` object of openclaw.json.

    allow_no_entries takes a maxEntries of 0, which OpenClaw's configuration may not hold. Raises
    ConfigurationError, naming the setting, for a value that OpenClaw refuses, and UsageError
    for an unknown rule set.
    """
    known = check_rules(rules)
    settings = section(session, "maintenance")
    if "maintenance" in session and not isinstance(session["maintenance"], Mapping):
        raise _refused("", session["maintenance"], "an object")
    _optional_duration(settings, "resetArchiveRetention", None)
    scope = member(session, "dmScope")
    return MaintenancePolicy(
        rules=known,
        mode=_mode(settings),
        prune_after_ms=_required_duration(settings, "pruneAfter", DEFAULT_PRUNE_AFTER_MS),
        archive_dashboard_after_ms=_dashboards(settings) if known == CURRENT else None,
        max_entries=_max_entries(settings, known, 0 if allow_no_entries else 1),
        preserve_recent_ms=_optional_duration(settings, "preserveRecent", None),
        dm_scope=check_scope("main" if scope is None else scope, DM_SCOPES, "session.dmScope"),
    )


def duration_ms(value: Any) -> int | None:
    """Milliseconds of OpenClaw's own durations: `1h30m`, a bare number as days; None for others."""
    text = text_of(value).lower()
    if re.fullmatch(_NUMBER, text, re.ASCII):
        text += "d"
    if not _DURATION.fullmatch(text):
        return None
    total = sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(text))
    rounded = math.floor(total + 0.5) if math.isfinite(total) else 0
    return rounded or None


def _mode(settings: Document) -> str:
    mode = settings.get("mode", MODES[0])
    if mode not in MODES:
        raise _refused("mode", mode, " or ".join(MODES))
    return str(mode)


def _required_duration(settings: Document, name: str, default: int) -> int:
    if name not in settings:
        return default
    found = duration_ms(settings[name])
    if found is None:
        raise _refused(name, settings[name], "a duration, such as 30d")
    return found


def _optional_duration(settings: Document, name: str, default: int | None) -> int | None:
    """As a duration, and false is off."""
    if name not in settings:
        return default
    return None if settings[name] is False else _required_duration(settings, name, 0)


def _dashboards(settings: Document) -> int | None:
    """The number 0 is off as well, but not the text."""
    name = "archiveDashboardAfter"
    value = settings.get(name)
    if is_finite(value) and value == 0:
        return None
    return _optional_duration(settings, name, DEFAULT_DASHBOARD_MS)


def _max_entries(settings: Document, rules: RuleSet, least: int) -> int:
    value = settings.get("maxEntries", _MAX_ENTRIES[rules])
    if not is_finite(value) or value != math.floor(value) or value < least:
        raise _refused("maxEntries", value, "a whole number above 0")
    return int(value)


def _refused(name: str, value: Any, wanted: str) -> ConfigurationError:
    path = ".".join(filter(None, ("session.maintenance", name)))
    shown = trim(value) if isinstance(value, str) else value
    return ConfigurationError(f"{path} is {shown!r}", hint=f"OpenClaw takes {wanted}")
