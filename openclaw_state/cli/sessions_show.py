"""sessions show: everything that is stored of one session, but not what was said in it."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

import typer

from ..core.keys import fold
from ..errors import NotFoundError, StateError, UsageError
from ..host.transcripts import transcript_files, transcript_rows
from ..report.session_text import shown_lines
from ..sessions.kinds import chat_type
from ..sessions.listing import LEVELS, WANTED, reply_route
from .look import style_of
from .options import Call, Result, command
from .sessions_filters import Candidate
from .sessions_list import LISTED_FIELDS, Judge, stored_row
from .sessions_stores import ReadStores, Surroundings, read_stores, surroundings

SHOWN_FIELDS = (*LISTED_FIELDS, "chatType", "contextTokensSource", "levels", "replyRoute", "transcript")


@command("agent", fields=SHOWN_FIELDS)
def show(
    call: Call,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The session, under its exact key.")],
) -> Result:
    """Show one stored session: reply route, model, context, levels, and its transcript's files."""
    around = surroundings(call, key=key)
    done = read_stores(around, wanted=WANTED, key=key, sizes=True)
    one = _only(around, done, key)
    judge = Judge(call, around)
    row = _shown(one, around, judge, call.now)
    return Result(
        "sessions show",
        {"session": row, "storePath": one.store.path},
        text=shown_lines(row, style_of(call)),
        rows=[row],
        place=around.place,
        warnings=[
            *around.warnings,
            *done.remarks,
            *judge.warnings,
            *(problem.message for problem in done.problems),
        ],
    )


def _only(around: Surroundings, done: ReadStores, key: str) -> Candidate:
    """Raises NotFoundError, with close keys, or what kept the only store from being read."""
    found = [Candidate(row, store, contents) for store, contents in done.contents for row in contents.rows]
    if len(found) > 1:
        agents = [one.store.agent_id for one in found]
        raise UsageError(
            f"several agents have the key {key}: {', '.join(agents)}", hint=f"choose with --agent {agents[0]}"
        )
    if found:
        return found[0]
    done.require_one()
    if done.problems:
        raise NotFoundError(done.problems[0].message, hint=done.problems[0].hint, sessionKey=key)
    known = [row.key for _, contents in read_stores(around, wanted=()).contents for row in contents.rows]
    close = [other for other in known if fold(other) == fold(key)]
    close = list(dict.fromkeys([*close, *difflib.get_close_matches(key, known, n=3)]))[:3]
    agents = [store.agent_id for store in around.stores]
    raise NotFoundError(
        f"agent {', '.join(agents)} has no session under the key {key}",
        hint=f"did you mean {', '.join(close)}?" if close else "openclaw-state sessions list shows them",
        sessionKey=key,
        similar=close,
    )


def _shown(one: Candidate, around: Surroundings, judge: Judge, now: int) -> dict[str, Any]:
    entry = one.row.entry
    defaults = around.defaults()
    row = stored_row(one, around, defaults, judge, now)
    limit = defaults.models(around.listed(one.row, one.store.agent_id)).limit
    recorded = entry.get("chatType")
    by_key = chat_type(one.row.key)
    route = reply_route(entry)
    row |= {
        "chatType": recorded or (None if by_key == "unknown" else by_key),
        "contextTokensSource": limit.source,
        "levels": {name.removesuffix("Level"): entry[name] for name in LEVELS if entry.get(name) is not None},
        "replyRoute": {
            "kind": route.kind,
            "channel": route.channel,
            "accountId": route.account_id,
            "to": route.to,
            "threadId": route.thread_id,
            "source": route.source,
        },
        "transcript": _transcript(one),
    }
    return row


def _transcript(one: Candidate) -> dict[str, Any]:
    try:
        rows = transcript_rows(one.store.path, one.row.session_id)
    except StateError:
        rows = None
    return {
        "rows": rows.rows if rows else None,
        "bytes": rows.bytes if rows else None,
        "firstAt": rows.first_at if rows else None,
        "lastAt": rows.last_at if rows else None,
        "files": [
            {"path": file.path, "size": file.size, "modifiedAt": file.modified_at}
            for file in transcript_files(one.store.path, one.row.session_id)
        ],
    }
