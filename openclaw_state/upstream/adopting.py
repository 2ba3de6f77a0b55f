"""How a link begins: what it refers to, and the marker at the present end of its source.

Only what is written from here on is ever counted (contract, upstream section 1.1).
"""

from __future__ import annotations

import os
from typing import Any

from ..errors import AccessError, NotFoundError, RefusedError, UpstreamError, UsageError
from ..model import Link
from . import claude, opencode, pi, transcripts
from .findings import Missing, Silence
from .monitor import Catalog

# Of each catalog that can be checked here: the kind of its links, and the host they are usually on.
KINDS = {
    "claude": (claude.KIND, claude.HOST),
    "opencode": (opencode.KIND, opencode.HOST),
    "pi": (pi.KIND, pi.HOST),
}
_FILES = {"claude": claude.source, "pi": pi.source}


def begin(
    session_key: str,
    agent_id: str,
    *,
    catalog_id: str,
    thread_id: str,
    host_id: str | None,
    upstream_ref: Any,
    catalogs: dict[str, Catalog],
    run_opencode: opencode.Command,
) -> Link:
    """A link from the present end of its source on; its times are 0 until it is stored.

    Raises UsageError, RefusedError for what only a gateway can begin, NotFoundError,
    AccessError, UpstreamError.
    """
    if catalog_id not in catalogs:
        raise UsageError(f"there is no catalog {catalog_id!r}", hint=f"catalogs: {', '.join(catalogs)}")
    kind, usual_host = KINDS.get(catalog_id, ("", ""))
    ref = {"threadId": thread_id} if upstream_ref is None and catalog_id == "opencode" else upstream_ref
    link = Link(session_key, agent_id, catalog_id, host_id or usual_host, thread_id, kind, ref, None, 0, 0)
    elsewhere = catalogs[catalog_id].elsewhere
    if elsewhere is not None and elsewhere(link):
        where = f" on {host_id}" if host_id else ""
        raise RefusedError(
            f"only a gateway can follow {catalog_id}{where}: it alone has the connection",
            hint="continue the session once from its catalog in OpenClaw",
        )
    if catalog_id in _FILES:
        return _of_file(link)
    marker = opencode.baseline(link, run_opencode)
    if isinstance(marker, Missing):
        raise NotFoundError(f"OpenCode has no session {thread_id}")
    if isinstance(marker, Silence):
        raise UpstreamError(f"where the session ends cannot be told: {marker.reason}")
    return link._replace(marker=marker)


def _of_file(link: Link) -> Link:
    found = _FILES[link.catalog_id](link._replace(marker={"offset": 0}))
    if isinstance(found, Silence):
        raise UsageError(found.reason, hint="name the transcript with --file")
    path = found[0]
    size = transcripts.size_of(path)
    if size is None:
        raise UsageError(f"there is no transcript at {path}, or it is no ordinary file")
    if not os.access(path, os.R_OK):
        raise AccessError(f"{path} cannot be read", hint="check its owner and mode")
    return link._replace(marker={"offset": size})
