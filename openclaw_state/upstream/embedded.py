"""The sessions of the tool's own file: no session store, and own texts of which only hashes are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any, SupportsIndex, overload

from ..core.javascript import collapse
from ..model import Link
from .sessions import LinkKey, link_key


def digest(text: str) -> str:
    """What stands for a normalised own text."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def digest_of(message: str) -> str | None:
    """The digest of a message that a session sent; None for a blank one, which nothing repeats."""
    text = collapse(message)
    return digest(text) if text else None


class HashedTexts(tuple[str, ...]):
    """Own texts known by their digests alone; asked whether they hold a text as if they were texts."""

    __slots__ = ()

    def __contains__(self, text: object) -> bool:
        return isinstance(text, str) and bool(self) and super().__contains__(digest(text))

    def index(self, text: Any, start: SupportsIndex = 0, stop: SupportsIndex = 2**63 - 1) -> int:
        return super().index(digest(text), start, stop)

    @overload
    def __getitem__(self, place: SupportsIndex) -> str: ...

    @overload
    def __getitem__(self, place: slice) -> HashedTexts: ...

    def __getitem__(self, place: SupportsIndex | slice) -> str | HashedTexts:
        found = super().__getitem__(place)
        return found if isinstance(found, str) else HashedTexts(found)


class EmbeddedSessions:
    """A session exists if a link names it, and its key is its id; no run of it can be seen.

    digests_of gives the digests of the newest texts that a session said it sent, oldest first.
    """

    def __init__(self, digests_of: Callable[[str, str], Iterable[str]] = lambda *_: ()) -> None:
        self._digests_of = digests_of

    def entries(self, links: Iterable[Link]) -> dict[LinkKey, str | Exception]:
        return {link_key(link): link.session_key for link in links}

    def own_texts(self, link: Link, session_id: str) -> HashedTexts:
        return HashedTexts(self._digests_of(link.session_key, link.agent_id))

    def run_active(self, session_id: str) -> bool:
        return False

    def close(self) -> None:
        return None
