"""Hash chain over a history, to detect rewriting.

Each event has a leaf, the leaves are chained, and a seal stores the end of the chain.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple

from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId


class Replaced(NamedTuple):
    """An event that was rewritten by a redaction: its former leaf and the current one."""

    before: str
    after: str


class Sealed(NamedTuple):
    """A seal: the length of a history and the end of its chain there."""

    instance: InstanceId
    version: int
    digest: str


def leaf_of(event: StoredEvent) -> str:
    """Return the hash of an event with all its stored fields except its position among the events of others."""
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
    """Compute the chain of a history. Yield for each event its number, the chain value, and whether it matches its last redaction.

    For a redacted event the chain uses its original leaf, so that earlier seals stay valid.
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
    """Format a time for hashing."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")
