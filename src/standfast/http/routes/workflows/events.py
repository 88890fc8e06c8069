"""Routes by which the world tells the engine that something happened: published events, and deliveries of other systems."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from standfast.features.events.views import PublishedEvent
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
)
from standfast.http.wire import paging as cursors
from standfast.http.wire.body import check_depth, decoded
from standfast.http.wire.paging import Listing
from standfast.http.wire.problems import EdgeError
from standfast.http.wire.webhooks import unsigned
from standfast.kernel.actor import Actor, RequestContext


class Publish(RequestModel, frozen=True, kw_only=True):
    """An event to publish."""

    event: str
    key: str = ""
    """The correlation key; subscribers with another key do not get the event."""
    payload: object = None
    event_id: str = ""
    """A deduplication id of the event; `Idempotency-Key` does the same."""
    ttl_seconds: Annotated[float, msgspec.Meta(ge=0, le=3_155_760_000)] | None = None
    """How long to keep the event for later subscribers."""
    match_one: bool = False
    """Whether only one subscriber gets the event."""


class PublishedEventAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """An event that is stored."""

    id: str


class EventQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of events."""

    event: str = ""


class _Place(msgspec.Struct, frozen=True, array_like=True):
    published_at: datetime
    instance: UUID


async def publish_event(call: RouteCall[NoQuery, Publish]) -> RouteResponse:
    """Publish an event to all waiting subscribers."""
    asked = call.body
    identity = await call.calls.events.publish(
        asked.event,
        asked.key,
        asked.payload,
        event_id=asked.event_id or call.idempotency_key,
        ttl=asked.ttl_seconds,
        match_one=asked.match_one,
    )
    return RouteResponse(value=PublishedEventAnswer(id=identity), status=201)


async def list_events(call: RouteCall[EventQuery, None]) -> Listing[PublishedEvent]:
    """List the events that are kept, oldest first."""
    size, place = call.page(call.query.limit), cursors.read(call.query.cursor, _Place)
    behind = (
        None
        if place is None
        else cursors.resting(PublishedEvent, published_at=place.published_at, instance=place.instance)
    )
    found = await call.calls.events.list(event=call.query.event, after=behind, limit=size + 1)
    return cursors.listing(found, size, lambda each: [each.published_at, each.instance])


async def get_event(call: RouteCall[NoQuery, None]) -> PublishedEvent:
    """Get an event, with its receivers and the runs that it started."""
    return await call.calls.events.get(call.path["event_id"])


async def receive_delivery(call: RouteCall[NoQuery, object]) -> RouteResponse:
    """Receive a webhook delivery, signed by the rules of Standard Webhooks; repeated deliveries are one event."""
    hook = call.server.hooks.get(call.path["hook"])
    try:
        if hook is None:
            raise unsigned()
        identity = hook.check(call.headers, call.raw, call.server.now())
    except EdgeError:
        call.server.door.blame(call.client, "hooks ")  # A signature that holds is never refused for its address.
        raise
    declared = hook.declared
    check_depth(call.raw, call.server.options.max_depth)
    delivered = decoded(call.raw, object)
    sender = Actor(id=f"hook:{declared.name}", kind="service")
    calls = call.engine.acting(RequestContext(tenant=declared.tenant, actor=sender, trace=call.trace))
    published = await calls.events.publish(
        declared.event, hook.key_of(delivered), delivered, event_id=f"hook:{declared.name}:{identity}"
    )
    return RouteResponse(value=PublishedEventAnswer(id=published), status=202)


_EVENTS = Subject("events", "/api/v1/events", "execution:read", "own")

ROUTES: tuple[Route, ...] = (
    _EVENTS.post(
        "",
        publish_event,
        permission="event:publish",
        body=Publish,
        answer=PublishedEventAnswer,
        status=201,
        takes_key=True,
        example={"event": "payment.received", "key": "order-4711", "payload": {"amount": 1200}},
    ),
    _EVENTS.get("", list_events, query=EventQuery, answer=Listing[PublishedEvent]),
    _EVENTS.get("/{event_id}", get_event, reach="run", answer=PublishedEvent),
    Subject("events", "/hooks", "", "public").post(
        "/{hook}",
        receive_delivery,
        body=object,
        is_signed=True,
        answer=PublishedEventAnswer,
        status=202,
        example={"type": "payment.received", "data": {"order_id": "order-4711"}},
    ),
)
