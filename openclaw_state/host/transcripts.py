"""Where the transcript of a session is kept, and how large it is; its contents are never read."""

from __future__ import annotations

import os
from contextlib import closing
from typing import NamedTuple

from ..core.failures import translated
from .agentrows import open_store, probe_store

# Beside the directory of an agent's database: transcripts of older releases, and imported ones.
_FOLDERS = ("sessions", "session-sqlite-import-archive")


class TranscriptFile(NamedTuple):
    """A file that belongs to a session's transcript; modified_at is epoch ms."""

    path: str
    size: int
    modified_at: int


class TranscriptRows(NamedTuple):
    """A transcript in the database: its rows and bytes, and when the first and last came (epoch ms)."""

    rows: int
    bytes: int
    first_at: int | None
    last_at: int | None


def transcript_rows(path: str, session_id: str) -> TranscriptRows | None:
    """What the database holds of a transcript; None where it keeps none. Raises as `open_store`."""
    with translated(path), closing(open_store(path)) as connection:
        shape = probe_store(connection)
        if not shape.has_transcripts:
            return None
        packed = (
            "coalesce(length(event_zstd), 0)" if "event_zstd" in shape.tables["transcript_events"] else "0"
        )
        return TranscriptRows(
            *connection.execute(
                "SELECT count(*), coalesce(sum(coalesce(length(CAST(event_json AS BLOB)), 0)"
                f" + {packed}), 0), min(created_at), max(created_at)"
                " FROM transcript_events WHERE session_id = ?",
                (session_id,),
            ).fetchone()
        )


def transcript_files(store_path: str, session_id: str) -> list[TranscriptFile]:
    """The files named after a session in its agent's directory, by path."""
    agent = os.path.dirname(os.path.dirname(store_path))
    found = []
    for folder in _FOLDERS:
        directory = os.path.join(agent, folder)
        names = os.listdir(directory) if session_id and os.path.isdir(directory) else []
        for name in names:
            path = os.path.join(directory, name)
            if session_id in name and os.path.isfile(path):
                status = os.stat(path)
                found.append(TranscriptFile(path, status.st_size, status.st_mtime_ns // 1_000_000))
    return sorted(found)
