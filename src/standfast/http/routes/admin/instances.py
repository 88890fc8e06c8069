"""Routes of maintenance: instances of any kind, accepted commands, and the comparison after a restore."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from standfast.calls.operator_views import InboxMessage, InstanceInfo
from standfast.calls.references import written_attribute
from standfast.features.operations.restore import MOST_KEYS, SentEffect
from standfast.http.requests.routing import NoQuery, Paged, RequestModel, Route, RouteCall, Subject
from standfast.http.routes.workflows.dead_letters import numbered
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing


class InstanceQueryRequest(Paged, frozen=True, kw_only=True):
    """The filters of a list of instances."""

    definition: str = ""
    version: str = ""
    kind: str = ""
    """Such as `decider` or `saga`."""
    status: list[str] = msgspec.field(default_factory=list)
    """One or several words as they are stored: those of a decider are its own."""
    key: str = ""
    parent: UUID | None = None
    attribute: list[str] = msgspec.field(default_factory=list)
    """Values that decisions gave them to be found by, each as `name=value`."""
    created_after: datetime | None = None
    created_before: datetime | None = None


class DeleteQuery(NoQuery, frozen=True, kw_only=True):
    """How an instance is deleted."""

    force: bool = False
    """Delete it even if some of its data is still needed."""


class InboxQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of commands."""

    definition: str = ""
    type: str = ""
    """The name of a command."""


class Received(RequestModel, frozen=True, kw_only=True):
    """The effects that receivers have seen."""

    keys: Annotated[list[str], msgspec.Meta(max_length=MOST_KEYS)]
    """Idempotency keys of effects, as receivers have kept them."""


async def list_instances(call: RouteCall[InstanceQueryRequest, None]) -> Listing[InstanceInfo]:
    """List instances of any kind, deciders included, newest first."""
    asked, size = call.query, call.page(call.query.limit)
    found = await call.calls.instances.list(
        definition=asked.definition,
        version=asked.version,
        kind=asked.kind,
        status=asked.status,
        key=asked.key,
        parent=asked.parent,
        attributes=dict(map(written_attribute, asked.attribute)),
        created_after=asked.created_after,
        created_before=asked.created_before,
        before=cursors.read(asked.cursor, UUID),
        limit=size + 1,
    )
    return cursors.listing(found, size, lambda each: each.id)


async def delete_instance(call: RouteCall[DeleteQuery, None]) -> None:
    """Delete an ended instance with its history."""
    await call.calls.instances.delete(call.run_id, force=call.query.force)


async def compare_sent(call: RouteCall[NoQuery, Received]) -> list[SentEffect]:
    """Compare effects that receivers have seen with a restored database: which will be sent again, and which were lost."""
    return await call.calls.instances.sent(call.body.keys)


async def list_inbox(call: RouteCall[InboxQuery, None]) -> Listing[InboxMessage]:
    """List accepted commands that wait, in order."""
    asked, size = call.query, call.page(call.query.limit)
    found = await call.calls.inbox.list(
        definition=asked.definition, type=asked.type, after=cursors.counted(asked.cursor), limit=size + 1
    )
    return cursors.listing(found, size, lambda each: each.id)


async def bury_message(call: RouteCall[NoQuery, None]) -> None:
    """Move a waiting command to the dead letters, where it can be discarded or requeued."""
    await call.calls.inbox.bury(numbered(call.path["number"], "message"))


_INSTANCES = Subject("instances", "/api/v1/instances", "execution:read", "own")
_INBOX = Subject("instances", "/api/v1/inbox", "execution:read", "own")
_REPAIR = "execution:repair"

ROUTES: tuple[Route, ...] = (
    _INSTANCES.get("", list_instances, query=InstanceQueryRequest, answer=Listing[InstanceInfo]),
    _INSTANCES.post(
        "/sent-effects",
        compare_sent,
        is_look=True,
        body=Received,
        answer=list[SentEffect],
        example={"keys": ["0193a2b4-0000-7000-8000-000000000001:1"]},
    ),
    _INSTANCES.delete("/{id}", delete_instance, permission=_REPAIR, reach="run", query=DeleteQuery),
    _INBOX.get("", list_inbox, query=InboxQuery, answer=Listing[InboxMessage]),
    _INBOX.post("/{number}/bury", bury_message, permission=_REPAIR, reach="run"),
)
