"""OpenCode: which messages of a session a person wrote (contract, upstream section 9).

OpenCode is asked through its own command line: once for all links whether their sessions
exist and moved, then once for each that did.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..core.javascript import code_units, is_finite, safe_count, trim
from ..core.jsontext import json_value
from ..model import Link
from ..results import Verdict
from . import opencode_text
from .findings import QUIET, Activity, Finding, Missing, Outcome, Probe, Silence, judged, latest, unusable

KIND = "opencode-cli"
HOST = "gateway"
AT_ONCE = 4
REPLAY_WINDOW = 50

_ID = re.compile(r"(?!-)[A-Za-z0-9._:-]{1,256}")
_EXISTENCE = (
    "SELECT s.id AS id, es.seq AS seq FROM session AS s"
    " LEFT JOIN event_sequence AS es ON es.aggregate_id = s.id WHERE s.id IN ({})"
)

# Runs the command line with some arguments; its standard output, or CommandError.
Command = Callable[[Sequence[str]], str]


class CommandError(Exception):
    """OpenCode's command line failed, was not there or answered too much."""


class Marker(NamedTuple):
    """Where a link stopped: the session's sequence, and the greatest id of a human message."""

    seq: int
    last_human: str | None


class Message(NamedTuple):
    """A message that can be judged; created is epoch ms, None when it does not say."""

    id: str
    role: str
    created: float | None
    parts: tuple[dict[str, Any], ...]


class _Moved(NamedTuple):
    """A session that moved on behind its marker: its export must be read."""

    probe: Probe
    marker: Marker
    seq: int


def check(probes: Sequence[Probe], run: Command, *, strict: bool = False) -> list[Outcome]:
    """Check every link: one query, then an export of each session that moved, four at once.

    strict keeps the fraction of a time.
    """
    refusals = [_refusal(probe.link) for probe in probes]
    asked = [probe.link.thread_id for probe, refusal in zip(probes, refusals, strict=True) if not refusal]
    sequences = _sequences(asked, run) if asked else {}
    found = [
        refusal or _without_export(probe, sequences) for probe, refusal in zip(probes, refusals, strict=True)
    ]
    judged_exports = iter(_judge_exports([each for each in found if isinstance(each, _Moved)], run, strict))
    return [
        Outcome(probe.link.session_key, next(judged_exports) if isinstance(each, _Moved) else each)
        for probe, each in zip(probes, found, strict=True)
    ]


def baseline(link: Link, run: Command) -> dict[str, Any] | Silence | Missing:
    """The marker of a link that begins at the present end of its session, or why there is none."""
    if refusal := _refusal(link):
        return refusal
    sequences = _sequences([link.thread_id], run)
    if isinstance(sequences, Silence):
        return sequences
    if link.thread_id not in sequences:
        return Missing()
    messages = _export(link.thread_id, run)
    if isinstance(messages, Silence):
        return messages
    marker: dict[str, Any] = classify(
        messages, Marker(0, None), (), seq=sequences[link.thread_id]
    ).next_marker
    return marker


def _refusal(link: Link) -> Silence | None:
    """Why OpenCode is not asked about a link."""
    if link.upstream_kind != KIND or link.host_id != HOST:
        return unusable(f"the link is of kind {link.upstream_kind} on {link.host_id}, not {KIND} on {HOST}")
    named = link.upstream_ref.get("threadId") if isinstance(link.upstream_ref, dict) else None
    if named != link.thread_id or not _ID.fullmatch(link.thread_id):
        return unusable("the link names no session of OpenCode")
    return None


def _sequences(ids: Sequence[str], run: Command) -> dict[str, int] | Silence:
    """The sequence of every session that exists among these; one bad row spoils the answer."""
    query = _EXISTENCE.format(", ".join(f"'{each}'" for each in ids))
    try:
        text = run(["--pure", "db", query, "--format", "json"])
        rows = json_value(text) if trim(text) else []
    except CommandError as error:
        return Silence(Verdict.UNREADABLE, str(error))
    except ValueError:
        rows = None
    if not isinstance(rows, list):
        return Silence(Verdict.UNREADABLE, "OpenCode's answer is no list of sessions")
    found: dict[str, int] = {}
    for row in rows:
        session, seq = _row(row)
        if session is None or seq is None:
            return Silence(Verdict.UNREADABLE, "OpenCode's list of sessions holds a bad row")
        found[session] = seq
    return found


def _row(row: Any) -> tuple[str | None, int | None]:
    """(session id, sequence) of one row; a sequence of null is 0, and None stands for what is bad."""
    if not isinstance(row, dict) or "seq" not in row:
        return None, None
    session, seq = row.get("id"), row["seq"]
    known = isinstance(session, str) and _ID.fullmatch(session)
    return session if known else None, 0 if seq is None else safe_count(seq)


def _without_export(probe: Probe, sequences: dict[str, int] | Silence) -> Finding | _Moved:
    """The finding where it needs no export."""
    if isinstance(sequences, Silence):
        return sequences
    seq = sequences.get(probe.link.thread_id)
    if seq is None:
        return Missing()
    marker = _marker(probe.link.marker)
    if marker is None:
        return unusable("the marker holds no sequence")
    if seq == marker.seq:
        return QUIET
    return Activity(0, _next(seq, marker.last_human)) if seq < marker.seq else _Moved(probe, marker, seq)


def _marker(marker: Any) -> Marker | None:
    if not isinstance(marker, dict):
        return None
    seq, last = safe_count(marker.get("seq")), marker.get("lastHumanMessageId", 0)
    if seq is None or not (last is None or isinstance(last, str)):
        return None
    return Marker(seq, last)


def _next(seq: int, last_human: str | None) -> dict[str, Any]:
    return {"seq": seq, "lastHumanMessageId": last_human}


def _judge_exports(moved: Sequence[_Moved], run: Command, strict: bool) -> list[Finding]:
    if not moved:
        return []
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(lambda each: _judge_export(each, run, strict), moved))


def _judge_export(moved: _Moved, run: Command, strict: bool) -> Finding:
    messages = _export(moved.probe.link.thread_id, run)
    if isinstance(messages, Silence):
        return messages
    return classify(messages, moved.marker, moved.probe.own_texts, seq=moved.seq, strict=strict)


def _export(session: str, run: Command) -> list[Message] | Silence:
    try:
        document = json_value(run(["--pure", "export", session]))
    except CommandError as error:
        return Silence(Verdict.UNREADABLE, str(error))
    except ValueError:
        document = None
    found = document.get("messages") if isinstance(document, dict) else None
    if not isinstance(found, list):
        return Silence(Verdict.UNREADABLE, f"OpenCode's export of {session} holds no messages")
    return sorted(filter(None, map(_message, found)), key=_place)


def _message(value: Any) -> Message | None:
    info = value.get("info") if isinstance(value, dict) else None
    parts = value.get("parts") if isinstance(value, dict) else None
    if not isinstance(info, dict) or not isinstance(parts, list):
        return None
    name, role, time = info.get("id"), info.get("role"), info.get("time")
    if not isinstance(name, str) or not isinstance(role, str):
        return None
    created = time.get("created") if isinstance(time, dict) else None
    shaped = tuple(part for part in parts if isinstance(part, dict) and isinstance(part.get("type"), str))
    return Message(name, role, created if is_finite(created) else None, shaped)


def _place(message: Message) -> tuple[Any, ...]:
    """The order of messages: by time, those without one first, then by id as a dictionary would."""
    letters = [_letter(one) for one in message.id]
    cases = [one.isupper() for one in message.id]
    return message.created is not None, message.created or 0, letters, cases


def _letter(one: str) -> tuple[int, int]:
    mark = "_-:.".find(one)
    return (0, mark) if mark >= 0 else (1 if one.isdigit() else 2, ord(one.lower()[0]))


def classify(
    messages: Sequence[Message], marker: Marker, own: tuple[str, ...], *, seq: int, strict: bool = False
) -> Activity:
    """Count the new human messages of a session, given all its messages in order."""
    before: deque[str] = deque(maxlen=REPLAY_WINDOW)
    last = marker.last_human
    human: list[tuple[str, float]] = []
    counted = None
    for message in messages:
        if message.role != "user":
            continue
        text = opencode_text.human_text(message.parts)
        if _is_after(message.id, marker.last_human) and text and message.created is not None:
            last = message.id if _is_after(message.id, last) else last
            if text not in before:
                human.append((text, message.created))
                counted = counted if text in own else message.id
        before.append(opencode_text.replay_text(message.parts))
    times, echoes = judged(human, own)
    occurred_at = latest(times, strict=strict) if times else None
    return Activity(len(times), _next(seq, last), occurred_at, counted, echoes)


def _is_after(name: str, last: str | None) -> bool:
    return last is None or code_units(name) > code_units(last)
