"""status without a key: which database, which gateway, what is pending, what changed last."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..host.liveness import Gateway, find_gateway, read_lease
from ..log.reading import Reading
from ..report.escape import escape
from ..report.lines import event_line
from ..report.text import plural
from ..report.views import event_view, notice_view
from .look import LATEST, style_of
from .options import Call, Result


def gateway_of(log: Reading, now: int) -> Gateway | None:
    """The gateway of the state directory that the database belongs to; None without one."""
    root = log.location.state_dir
    return None if root is None else find_gateway(root, log.inspect(read_lease), now=now)


def queue_warnings(call: Call, log: Reading) -> list[str]:
    """What an acknowledgement cannot reach: the memory of a gateway that may be alive."""
    gateway = gateway_of(log, call.now)
    if gateway is None or not gateway.maybe_alive:
        return []
    return ["a line that the live gateway has queued already stays in its queue"]


def gateway_view(gateway: Gateway | None) -> dict[str, Any] | None:
    if gateway is None:
        return None
    return {
        "state": gateway.state,
        "reason": gateway.reason,
        "pid": gateway.pid,
        "port": gateway.port,
        "detail": gateway.detail,
    }


def overview(call: Call) -> Result:
    """The answer of `status` without a key."""
    log = call.read()
    gateway = gateway_of(log, call.now)
    pending = log.notices()
    latest = list(log.events(newest=LATEST))
    sessions, newest = log.count_sessions(), log.newest_sequence()
    body: dict[str, Any] = {
        "embedded": log.embedded,
        "gateway": gateway_view(gateway),
        "newestSequence": newest,
        "sessions": sessions,
        "pendingNotices": len(pending),
        "notices": [notice_view(notice) for notice in pending],
        "latest": [event_view(event) for event in latest],
    }

    def text() -> Iterator[str]:
        style = style_of(call)
        yield f"database  {escape(log.path)} ({log.location.via})"
        if gateway is None:
            yield "gateway   none: " + ("the tool's own file" if log.embedded else "a file on its own")
        else:
            yield f"gateway   {gateway.state}: {escape(gateway.detail)}"
        yield f"log       {plural(sessions, 'session')}, newest sequence {newest}"
        yield f"notices   {len(pending)} pending" + (" (see: openclaw-state notices)" if pending else "")
        if latest:
            yield ""
            yield style.palette.head("latest changes")
            yield from (event_line(event, style) for event in latest)

    return Result("status", body, text=text(), log=log)
