"""Which words a workflow is told in: those of the front end that made it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from standfast.graph.status_words import document, process, rules, saga
from standfast.graph.status_words.protocol import StatusWords

_BY_KIND: Final[dict[str, StatusWords]] = {"saga": saga, "rules": rules, "process": process, "envelope": document}


def words_of(kind: str) -> StatusWords:
    """The words of a kind of workflow; those of sagas where a kind has none of its own."""
    return _BY_KIND.get(kind, saga)


def spoken(kinds: Iterable[str]) -> list[tuple[StatusWords, tuple[str, ...]]]:
    """Whose words there are among these kinds of workflows: each front end's with the kinds that are told in them."""
    found: dict[int, tuple[StatusWords, tuple[str, ...]]] = {}
    for kind in kinds:
        words = words_of(kind)
        found[id(words)] = words, (*found.get(id(words), (words, ()))[1], kind)
    return list(found.values())
