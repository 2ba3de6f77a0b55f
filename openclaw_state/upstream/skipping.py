"""The row that blocks a link, to be passed by explicit order."""

from __future__ import annotations

from ..errors import AccessError, RefusedError
from ..model import Link
from ..results import Verdict
from . import transcripts
from .findings import Missing, Probe, Silence
from .monitor import Catalog
from .transcripts import Row


def blocking_row(link: Link, catalog: Catalog | None) -> tuple[str, Row]:
    """The transcript of a blocked link and the row at its marker.

    Raises RefusedError when the link is not blocked or the row is still being written, AccessError.
    """
    if catalog is None or catalog.check is None or catalog.source is None:
        raise RefusedError(f"{link.session_key} is not blocked: it has no transcript that is read here")
    found = catalog.source(link)
    if isinstance(found, Silence):
        raise RefusedError(f"{link.session_key} is not blocked: {found.reason}")
    (outcome,) = catalog.check([Probe(link)])
    finding = outcome.finding
    if not isinstance(finding, Silence) or finding.verdict is not Verdict.BLOCKED:
        raise RefusedError(f"{link.session_key} is not blocked: {_words(finding)}")
    path, offset = found
    try:
        row = transcripts.measure_row(path, offset)
    except OSError as error:
        raise AccessError(f"{path} cannot be read: {error.strerror}") from error
    if not row.ended:
        raise RefusedError(
            f"the row at offset {offset} has no end yet ({row.length} bytes so far)",
            hint="try again when it is complete",
        )
    return path, row


def _words(finding: object) -> str:
    if isinstance(finding, Silence):
        return finding.reason or str(finding.verdict)
    return finding.reason if isinstance(finding, Missing) else "there are rows that the monitor can read"
