"""Routes of batches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated
from urllib.parse import quote
from uuid import UUID

import msgspec

from standfast.features.batches.views import Batch, BatchItem, BatchVerb, ItemStatus
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    Reasoned,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
)
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing


class BeginBatchRequest(RequestModel, frozen=True, kw_only=True):
    """An operation on many runs."""

    verb: BatchVerb
    runs: list[UUID] | None = None
    letters: list[Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]] | None = None
    inputs: list[dict[str, object]] | None = None
    """Of a start: each is one run."""
    definition: str = ""
    """The workflow to start; or, without other filters, whose runs or dead letters are selected."""
    version: str = ""
    status: list[str] | None = None
    """Which runs of the definition; those that have not ended if this is left out."""
    cause: str = ""
    """Of a requeue or a discard: all dead letters with this fingerprint, which `/api/v1/dead-letters/groups` tells."""
    reason: str = ""
    per_second: Annotated[float, msgspec.Meta(ge=0, le=10_000)] = 0.0
    """Items per second; 0 means no limit."""
    follow_seconds: Annotated[float, msgspec.Meta(ge=0, le=3_155_760_000)] = 3600.0
    """How long to track the outcome of submitted items."""
    batch_id: str = ""
    """A deduplication id of the batch; `Idempotency-Key` does the same."""


class ItemQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of items."""

    status: ItemStatus | None = None


async def begin_batch(call: RouteCall[NoQuery, BeginBatchRequest]) -> RouteResponse:
    """Begin a batch operation on many runs; its items report each outcome.

    Start, cancel and abort take the permission of the single call.
    """
    asked = call.body
    alone = _ALONE.get(asked.verb, "")
    calls = call.needing(alone) if alone else call.calls
    found = await calls.batches.begin(
        asked.verb,
        asked.runs,
        letters=asked.letters,
        inputs=asked.inputs,
        definition=asked.definition,
        version=asked.version,
        status=asked.status,
        cause=asked.cause,
        reason=asked.reason,
        per_second=asked.per_second,
        follow=asked.follow_seconds,
        batch_id=asked.batch_id or call.idempotency_key,
    )
    return RouteResponse(value=found, status=202, headers={"location": f"/api/v1/batches/{quote(found.id, safe='')}"})


async def list_batches(call: RouteCall[Paged, None]) -> Listing[Batch]:
    """List the batches, the newest first."""
    size = call.page(call.query.limit)
    place = cursors.read(call.query.cursor, UUID)
    last = None if place is None else cursors.resting(Batch, instance=place)
    found = await call.calls.batches.list(after=last, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.instance)


async def get_batch(call: RouteCall[NoQuery, None]) -> Batch:
    """Get a batch: its progress, and the number of items by outcome."""
    return await call.calls.batches.get(call.path["batch"])


async def list_batch_items(call: RouteCall[ItemQuery, None]) -> Listing[BatchItem]:
    """List the items with their outcomes."""
    size, asked = call.page(call.query.limit), call.query
    found = await call.calls.batches.items(
        call.path["batch"], status=asked.status, after=cursors.counted(asked.cursor), limit=size + 1
    )
    return cursors.listing(found, size, lambda each: each.number)


async def cancel_batch(call: RouteCall[NoQuery, Reasoned]) -> Batch:
    """Cancel a batch: the remaining items are skipped; completed items stay as they are."""
    return await call.calls.batches.cancel(call.path["batch"], call.body.reason)


_BATCHES = Subject("batches", "/api/v1/batches", "batch:read", "own")
_MANAGE = "batch:manage"
_ALONE: Mapping[BatchVerb, str] = {
    "start": "execution:start",
    "cancel": "execution:cancel",
    "abort": "execution:abort",
}
"""The permissions of the single calls. For all other operations the engine checks each item."""

ROUTES: tuple[Route, ...] = (
    _BATCHES.post(
        "",
        begin_batch,
        permission=_MANAGE,
        body=BeginBatchRequest,
        answer=Batch,
        status=202,
        takes_key=True,
        example={"verb": "cancel", "definition": "order", "reason": "the shop closes", "per_second": 10},
    ),
    _BATCHES.get("", list_batches, query=Paged, answer=Listing[Batch]),
    _BATCHES.get("/{batch}", get_batch, answer=Batch),
    _BATCHES.get("/{batch}/items", list_batch_items, query=ItemQuery, answer=Listing[BatchItem]),
    _BATCHES.post(
        "/{batch}/cancel",
        cancel_batch,
        permission=_MANAGE,
        body=Reasoned,
        answer=Batch,
        example={"reason": "they were the wrong ones"},
    ),
)
