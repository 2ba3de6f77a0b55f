"""What tests of links ask: the one link there is, how it stands, and every row of the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.cli.harness import Cli
from tests.support import query

TABLES = ("session_upstream_links", "session_state_events", "session_state_heads", "session_watch_cursors")


def tables(path: Path) -> list[Any]:
    """Every row of a signal log."""
    return [query(path, f"SELECT * FROM {table} ORDER BY 1, 2") for table in TABLES]


def only(cli: Cli, **options: Any) -> Any:
    """The one row of `links list`."""
    (row,) = cli.json("links", "list", **options)["links"]
    return row


def state(cli: Cli, **options: Any) -> tuple[str, bool | None]:
    """What that row says of the health of the link."""
    row = only(cli, **options)
    return row["health"], row["healthy"]
