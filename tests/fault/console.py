"""One command line run here, and what every failure of one promises."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from openclaw_state.cli.run import run
from openclaw_state.cli.terminal import Terminal
from tests.cli.harness import Outcome, Stream, check_document
from tests.support import T

_FAILURE = re.compile(r"error: [^\n]*[^\n.]\n(?:  next: [^\n]+\n)?")


def invoke(*argv: object, now: int = T, env: Mapping[str, str] | None = None) -> Outcome:
    """Run one command line, under a clock that stands still."""
    words = [str(word) for word in argv]
    out, err = Stream(), Stream()
    environ = {**os.environ, "OPENCLAW_STATE_NOW": str(now), **(env or {})}
    status = run(words, Terminal(Stream(), out, err, environ))
    return Outcome(int(status), out.getvalue(), err.getvalue())


def assert_fails(outcome: Outcome, status: int, words: str) -> None:
    """The status, one sentence on stderr (perhaps with a hint), and nothing but a document on stdout."""
    assert outcome.status == status, outcome
    assert _FAILURE.fullmatch(outcome.err), outcome.err
    assert re.search(words, outcome.err), outcome.err
    if outcome.out:
        assert outcome.document["ok"] is False
        check_document(outcome.document)
