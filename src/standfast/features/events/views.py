"""Published events as callers see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from standfast.features.events.model import PublicationState
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.events import StoredPublication
from standfast.machine.model.messages import PublishedMessage
from standfast.store.records.instances import InstanceHeader

_decode = msgspec.json.Decoder(PublishedMessage).decode


class PublishedEvent(msgspec.Struct, frozen=True, kw_only=True):
    """An event that was published."""

    id: str
    event: str
    key: str
    """What it was published for; empty if for nothing in particular."""
    payload: object
    publisher: str
    """Who published it."""
    published_at: datetime
    expires_at: datetime | None
    """Until when it is kept; None if it was not kept at all."""
    match_one: bool
    """Whether it is for one taker alone."""
    status: Literal["kept", "over"]
    """Whether those who begin to wait now can still get it."""
    taken_by: InstanceId | None = None
    """The run that has it, of one for one taker alone."""
    started: list[InstanceId] = []
    """The runs that it started."""
    failures: list[str] = []
    """Why others could not be started."""
    instance: InstanceId
    """The instance that it is stored as."""


def kept_event(row: StoredPublication) -> PublishedEvent:
    """An event from its row."""
    return _event(_decode(row.data), row.instance, row.published_at)


def published_event(header: InstanceHeader, state: PublicationState) -> PublishedEvent:
    """An event from its state."""
    assert state.published is not None
    taken = state.taken_by
    return msgspec.structs.replace(
        _event(state.published, header.id, header.created_at),
        status="over" if state.is_over else "kept",
        taken_by=None if taken is None else InstanceId(UUID(taken.instance)),
        started=[InstanceId(UUID(each)) for each in state.started],
        failures=state.failures,
    )


def _event(published: PublishedMessage, instance: InstanceId, at: datetime) -> PublishedEvent:
    return PublishedEvent(
        id=published.id,
        event=published.event,
        key=published.key,
        payload=published.payload,
        publisher=published.actor.id,
        published_at=at,
        expires_at=datetime.fromisoformat(published.expires_at) if published.expires_at else None,
        match_one=published.match_one,
        status="kept",
        instance=instance,
    )
