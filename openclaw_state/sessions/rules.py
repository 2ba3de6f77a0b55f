"""Which release's rules hold for an agent's sessions (contract, sessions section 11)."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from ..errors import UsageError

RuleSet = Literal["2026.7", "2026.9"]
JULY: RuleSet = "2026.7"
CURRENT: RuleSet = "2026.9"
RULE_SETS: tuple[RuleSet, ...] = (JULY, CURRENT)

_LAST_OF_JULY = (2026, 7, 1)
_FIRST_OF_CURRENT = (2026, 9, 0)
_RELEASE = re.compile(r"(\d{1,6})\.(\d{1,6})(?:\.(\d{1,6}))?(?:[-+].*)?", re.ASCII)


class ChosenRules(NamedTuple):
    """The rule sets for resets and for maintenance, why these, and a warning if it is a guess."""

    reset: RuleSet
    maintenance: RuleSet
    reason: str
    warning: str | None = None


def check_rules(rules: str) -> RuleSet:
    """The rule set of that name. Raises UsageError when there is none."""
    for known in RULE_SETS:
        if rules == known:
            return known
    raise UsageError(f"{rules!r} is no rule set", hint=f"there are {' and '.join(RULE_SETS)}")


def choose_rules(
    wanted: str = "auto",
    *,
    app_version: str | None = None,
    has_session_table: bool = True,
    has_legacy_store: bool = False,
) -> ChosenRules:
    """The rule sets for one agent: the wanted one, or by what its files say.

    app_version is `schema_meta.app_version` of the agent database, has_session_table whether
    that database has one, has_legacy_store whether a sessions.json stands there. Raises
    UsageError for a name that is neither a rule set nor `auto`.
    """
    if wanted != "auto":
        rules = check_rules(wanted)
        return ChosenRules(rules, rules, "as asked for")
    release = _release(app_version)
    if release is None and has_legacy_store and not has_session_table:
        return ChosenRules(JULY, JULY, "the sessions are in a sessions.json, and in no database")
    if release is None:
        known = "no release" if app_version is None else f"the release {app_version!r}, which cannot be read"
        reason = f"the agent database names {known}"
        return ChosenRules(CURRENT, CURRENT, reason, f"{reason}; the rules of {CURRENT} are assumed")
    reason = f"the agent database was written by {app_version}"
    if release <= _LAST_OF_JULY:
        return ChosenRules(JULY, JULY, reason)
    if release >= _FIRST_OF_CURRENT:
        return ChosenRules(CURRENT, CURRENT, reason)
    return ChosenRules(CURRENT, JULY, reason, "release between the two rule sets")


def _release(app_version: str | None) -> tuple[int, int, int] | None:
    """Year, month and patch; a suffix such as `-beta.7` does not count."""
    found = _RELEASE.fullmatch(app_version.strip()) if app_version else None
    return (int(found[1]), int(found[2]), int(found[3] or 0)) if found else None
