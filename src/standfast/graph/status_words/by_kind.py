"""Selects the status names of a kind of workflow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from standfast.graph.status_words import document, process, rules, saga
from standfast.graph.status_words.protocol import StatusWords

_BY_KIND: Final[dict[str, StatusWords]] = {"saga": saga, "rules": rules, "process": process, "envelope": document}


def words_of(kind: str) -> StatusWords:
    """Return the status names of a kind, or those of sagas if it has none of its own."""
    return _BY_KIND.get(kind, saga)


def spoken(kinds: Iterable[str]) -> list[tuple[StatusWords, tuple[str, ...]]]:
    """Return the sets of status names of these kinds, each with the kinds that use it."""
    found: dict[int, tuple[StatusWords, tuple[str, ...]]] = {}
    for kind in kinds:
        words = words_of(kind)
        found[id(words)] = words, (*found.get(id(words), (words, ()))[1], kind)
    return list(found.values())
