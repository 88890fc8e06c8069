"""Batches as callers see them."""

from __future__ import annotations

from collections import Counter
from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from standfast.features.batches.model.messages import BatchState, Item, ItemStatus, Verb
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import InstanceHeader

__all__ = ["Batch", "BatchCounts", "BatchItem", "BatchVerb", "ItemStatus", "batch_of", "items_of"]

BatchVerb = Literal["cancel", "abort", "pause", "resume", "retry", "requeue", "discard", "start"]
"""What can be done to many: `retry` requeues all that gave up of runs, `requeue` and `discard` are about one dead letter each."""


class BatchCounts(msgspec.Struct, frozen=True, kw_only=True):
    """How many items have come to what."""

    waiting: int = 0
    """Not tried yet."""
    accepted: int = 0
    """Taken, and not yet what was wanted."""
    done: int = 0
    """What was wanted."""
    failed: int = 0
    """Taken, and come to something else."""
    refused: int = 0
    """Not taken."""
    dropped: int = 0
    """Never tried, because the batch was cancelled."""


class Batch(msgspec.Struct, frozen=True, kw_only=True):
    """One thing done to many runs: how far it is."""

    id: str
    verb: Verb
    reason: str
    definition: str
    """What is started, if something is."""
    cause: str = ""
    """The fingerprint of the dead letters that it is about, if that is how they were chosen."""
    status: Literal["running", "completed", "cancelled"]
    """`completed` says that nothing is left to try or to wait for, `cancelled` that nothing more is tried. What became of the items, the counts say."""
    total: int
    counts: BatchCounts
    is_clean: bool
    """Whether every item is what was wanted."""
    per_second: float
    follow_until: datetime | None
    """Until when it is looked what became of those that were taken; None while not all were tried."""
    owner: str
    cancelled_by: str
    cancel_reason: str
    created_at: datetime
    ended_at: datetime | None
    partition: str
    instance: InstanceId
    """The instance that it is stored as: the parent of the runs that it starts."""


class BatchItem(msgspec.Struct, frozen=True, kw_only=True):
    """One of those that something is done to."""

    number: int
    run: InstanceId | None
    letter: int | None
    """The dead letter that it is about, if it is."""
    status: ItemStatus
    detail: str
    """Why it was refused, what it came to instead, or what is waited for."""


def batch_of(header: InstanceHeader, state: BatchState) -> Batch:
    """A batch from its state."""
    order = state.order
    assert order is not None
    counts = Counter(each.status for each in state.items)
    return Batch(
        id=header.key,
        verb=order.verb,
        reason=order.reason,
        definition=order.definition,
        cause=order.cause,
        status="cancelled" if state.cancelled_by else "completed" if state.is_over else "running",
        total=len(state.items),
        counts=BatchCounts(**{str(word): count for word, count in counts.items()}),
        is_clean=counts["done"] == len(state.items),
        per_second=order.per_second,
        follow_until=state.follow_until,
        owner="system" if state.owner is None else state.owner.id,
        cancelled_by=state.cancelled_by,
        cancel_reason=state.cancel_reason,
        created_at=header.created_at,
        ended_at=header.ended_at,
        partition=header.partition,
        instance=header.id,
    )


def items_of(items: list[Item]) -> list[BatchItem]:
    """Items as callers see them."""
    return [
        BatchItem(
            number=each.number,
            run=InstanceId(UUID(each.run)) if each.run else None,
            letter=each.letter or None,
            status=each.status,
            detail=each.detail,
        )
        for each in items
    ]
