"""Dead letters that say the same, put together: a fault that buries a thousand pieces of work is one thing to look at."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import datetime
from hashlib import sha256

import msgspec

from standfast.kernel.row_kinds.steps import DeadLetterSource
from standfast.store.records.instances import DeadLetterRecord

_VARYING = re.compile(r"0x[0-9a-f]+|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d+|'[^']*'|\"[^\"]*\"", re.IGNORECASE)
"""What differs between errors that have the same cause: numbers, ids, quoted values."""


class LetterGroup(msgspec.Struct, frozen=True, kw_only=True):
    """Dead letters of one source that gave up for the same reason with the same words, but for numbers, ids and quoted values."""

    fingerprint: str
    source: DeadLetterSource
    definition: str
    name: str
    """Handler of an effect or step, key of a timer, target of a message."""
    reason: str
    error: str
    """What the last of them said."""
    count: int
    first_id: int
    last_id: int
    first_at: datetime
    last_at: datetime


class LetterGroups(msgspec.Struct, frozen=True, kw_only=True):
    """All dead letters in groups, the largest first."""

    items: list[LetterGroup]
    is_complete: bool
    """Whether all letters were looked at; of very many only the oldest are."""


def fingerprint(letter: DeadLetterRecord) -> str:
    """The same for letters that say the same."""
    said = _VARYING.sub("#", letter.error)
    text = f"{letter.source}\x1f{letter.definition}\x1f{letter.name}\x1f{letter.reason}\x1f{said}"
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def grouped(letters: Iterable[DeadLetterRecord]) -> list[LetterGroup]:
    """Letters in groups, oldest letters first given; the largest group first."""
    found: dict[str, LetterGroup] = {}
    for letter in letters:
        mark = fingerprint(letter)
        before = found.get(mark)
        found[mark] = LetterGroup(
            fingerprint=mark,
            source=letter.source,
            definition=letter.definition,
            name=letter.name,
            reason=letter.reason,
            error=letter.error,
            count=1 if before is None else before.count + 1,
            first_id=letter.id if before is None else before.first_id,
            last_id=letter.id,
            first_at=letter.created_at if before is None else before.first_at,
            last_at=letter.created_at,
        )
    return sorted(found.values(), key=lambda each: (-each.count, each.first_id))
