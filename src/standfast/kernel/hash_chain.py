"""What tells whether a history was rewritten: each event has a leaf, the leaves are chained, and whoever seals a history keeps the end of the chain."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId


class Replaced(NamedTuple):
    """An event that was rewritten with leave: what its leaf was, and what it is since."""

    before: str
    after: str


class Sealed(NamedTuple):
    """How far a history went, and the end of its chain there."""

    instance: InstanceId
    version: int
    digest: str


def leaf_of(event: StoredEvent) -> str:
    """The hash of one event with all that is stored of it; its place among the events of others is no part of it."""
    return canonical_hash(
        [
            str(event.instance),
            event.sequence,
            event.type,
            event.version,
            hashlib.sha256(event.data).hexdigest(),
            told_at(event.at),
            event.actor,
            event.comment,
            event.cause,
            event.tenant,
            event.on_behalf_of,
            event.trace,
        ]
    )


def digests_of(
    events: Iterable[StoredEvent], replaced: Mapping[int, Sequence[Replaced]]
) -> Iterator[tuple[int, str, bool]]:
    """The chain of a history: for each event its number, the end of the chain there, and whether it is as its last redaction left it.

    For an event that was rewritten with leave, the leaf that it had at first is a link of the chain: what was sealed before stays so.
    """
    digest = ""
    for event in events:
        leaf, is_kept = leaf_of(event), True
        for each in reversed(replaced.get(event.sequence, ())):
            is_kept = is_kept and leaf == each.after
            leaf = each.before if is_kept else leaf
        digest = hashlib.sha256(f"{digest} {leaf}".encode()).hexdigest()
        yield event.sequence, digest, is_kept


def told_at(at: datetime) -> str:
    """An instant as it is hashed."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")
