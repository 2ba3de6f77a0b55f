"""Codex: which messages of a thread a person wrote (contract, upstream section 10).

Pure functions: only a gateway has the connection that these answers come from.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..core.javascript import collapse, is_finite, safe_count
from ..results import Echo, Verdict
from .findings import QUIET, Activity, Finding, Missing, Probe, Silence, unusable, whole

KIND = "codex-app-server"

_NOT_LOADED = -32_600


class RpcError(NamedTuple):
    """An error that the app-server answered with."""

    code: Any
    message: Any


class _MalformedError(Exception):
    """Something that is looked at has no shape that OpenClaw could judge."""


def is_of(probe: Probe, fingerprint: str) -> bool:
    """Does the link belong to the connection with this fingerprint? Nothing is asked otherwise."""
    ref = probe.link.upstream_ref
    named = ref.get("connectionFingerprint") if isinstance(ref, dict) else None
    return probe.link.upstream_kind == KIND and isinstance(named, str) and named == fingerprint


def check(
    probe: Probe,
    fingerprint: str,
    list_turns: Callable[[], Sequence[Any] | None],
    read_thread: Callable[[], RpcError | None],
    *,
    clock: float,
    strict: bool = False,
) -> Finding:
    """Classify the newest turns of a thread.

    list_turns gives them newest first, None when that failed; read_thread is asked after an
    empty list and gives the error of the RPC, None for success and for any other failure.
    strict keeps the fraction of a time.
    """
    if not is_of(probe, fingerprint):
        return unusable("the link belongs to another connection")
    turns = list_turns()
    if turns is None:
        return Silence(Verdict.UNREADABLE, "the turns could not be listed")
    marker = _marker(probe.link.marker)
    if marker is None:
        return unusable("the marker holds no turn")
    if not turns:
        gone = RpcError(_NOT_LOADED, f"thread not loaded: {probe.link.thread_id}")
        return Missing() if read_thread() == gone else Silence(Verdict.QUIET, "the thread has no turns")
    newest = turns[0].get("id") if isinstance(turns[0], dict) else None
    if not newest:
        return Silence(Verdict.UNREADABLE, "the newest turn has no id")
    try:
        return _classified(turns, newest, *marker, own=probe.own_texts, clock=clock, strict=strict)
    except _MalformedError as error:
        return Silence(Verdict.UNREADABLE, str(error))


def _marker(marker: Any) -> tuple[str | None, int | None] | None:
    """(turn id, user messages counted; None in old markers), or None when it is unusable."""
    if not isinstance(marker, dict) or "turnId" not in marker:
        return None
    turn = marker["turnId"]
    count = safe_count(marker.get("userMessageCount"))
    if (turn is not None and not isinstance(turn, str)) or ("userMessageCount" in marker and count is None):
        return None
    return turn, count


def _classified(
    turns: Sequence[Any],
    newest: Any,
    marker: str | None,
    counted: int | None,
    *,
    own: tuple[str, ...],
    clock: float,
    strict: bool,
) -> Finding:
    if newest == marker and counted is not None and len(_user_messages(turns[0])) <= counted:
        return QUIET
    found, occurred_at = 0, clock
    echoes: list[Echo] = []
    for turn, messages in _looked_at(turns, marker, counted):
        verdicts = [_echo(message, own) for message in messages]
        external = verdicts.count(None)
        if external and not found:
            occurred_at = _time_of(turn, clock)
        found += external
        echoes += [echo for echo in verdicts if echo is not None]
    total = len(_user_messages(turns[0]))
    return Activity(
        found,
        {"turnId": newest, "userMessageCount": total},
        whole(occurred_at, strict=strict) if found else None,
        f"{newest}:{total}" if found else None,
        tuple(echoes),
    )


def _looked_at(
    turns: Sequence[Any], marker: str | None, counted: int | None
) -> Iterator[tuple[Any, list[dict[str, Any]]]]:
    """Each turn that may hold something new, newest first, with its user messages not counted yet.

    A marker turn outside the page makes the whole page new.
    """
    for turn in turns:
        messages = _user_messages(turn)
        if marker is not None and turn.get("id") == marker:
            yield turn, messages[counted:] if counted is not None else []
            return
        yield turn, messages


def _user_messages(turn: Any) -> list[dict[str, Any]]:
    items = turn.get("items") if isinstance(turn, dict) else None
    if not isinstance(items, list) or any(item is None for item in items):
        raise _MalformedError("a turn cannot be read")
    return [item for item in items if isinstance(item, dict) and item.get("type") == "userMessage"]


def _echo(message: dict[str, Any], own: tuple[str, ...]) -> Echo | None:
    """The own text that the message repeats; None when a person wrote it."""
    texts = _texts(message)
    joined = " ".join(texts)
    if joined in own:
        return Echo(own.index(joined) + 1, len(own))
    if len(texts) > 1 and all(text in own for text in texts):
        return Echo(own.index(texts[0]) + 1, len(own))
    return None


def _texts(message: dict[str, Any]) -> list[str]:
    content = message.get("content")
    if content is not None and not isinstance(content, list):
        raise _MalformedError("the content of a message is no list")
    texts = []
    for entry in content or []:
        if entry is None:
            raise _MalformedError("an input of a message is null")
        if isinstance(entry, dict) and entry.get("type") == "text":
            if not isinstance(entry.get("text"), str):
                raise _MalformedError("a text input has no text")
            texts.append(collapse(entry["text"]))
    if found := [text for text in texts if text]:
        return found
    text = message.get("text")
    if text is not None and not isinstance(text, str):
        raise _MalformedError("the text of a message is no text")
    return [collapse(text or "")]


def _time_of(turn: dict[str, Any], clock: float) -> float:
    """When a turn ended, else began: seconds in ms, never raised to 0; the clock when it says neither."""
    seconds = turn.get("completedAt")
    if seconds is None:
        seconds = turn.get("startedAt")
    return seconds * 1000 if is_finite(seconds) else clock
