"""Routes of the workflows of documents: taken out of use and put back, and documents that are moved from one version to another."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from standfast.features.documents.content.views import DocumentMoves
from standfast.features.documents.publishing.views import WorkflowSuspension
from standfast.http.requests.routing import NoQuery, Paged, RequestModel, Route, RouteCall, Subject
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing
from standfast.kernel.ids import InstanceId


class SuspensionQuery(Paged, frozen=True, kw_only=True):
    """Which suspensions are listed."""

    type: str = ""
    """Only those of one document type."""


class Suspend(RequestModel, frozen=True, kw_only=True):
    """A workflow, and why something is done about it."""

    workflow: str
    """Its version, such as `2-org`."""
    reason: str


class Move(RequestModel, frozen=True, kw_only=True):
    """Which documents are to follow another version."""

    workflow: str
    """The version that they follow."""
    to: str
    reason: str
    nodes: dict[str, str] = {}  # noqa: RUF012 - every struct gets one of its own
    """The new names of renamed nodes."""
    documents: list[str] | None = None
    """Their ids; all active documents if omitted."""
    dry_run: bool = False
    """Only report what would be done."""
    cursor: UUID | None = None
    """`next` of the page before."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=500)] = 100


async def suspend_workflow(call: RouteCall[NoQuery, Suspend]) -> WorkflowSuspension:
    """Suspend a workflow: new documents use the previous one, and active documents are paused in batches."""
    return await call.calls.workflows.suspend(call.path["type"], call.body.workflow, call.body.reason)


async def lift_suspension(call: RouteCall[NoQuery, Suspend]) -> WorkflowSuspension:
    """Lift a suspension; the documents that it paused continue."""
    return await call.calls.workflows.lift(call.path["type"], call.body.workflow, call.body.reason)


async def list_suspensions(call: RouteCall[SuspensionQuery, None]) -> Listing[WorkflowSuspension]:
    """List suspended and reinstated workflows, oldest first."""
    found = await call.calls.workflows.suspensions(call.query.type)
    return cursors.sliced(found, call.query.cursor, call.page(call.query.limit))


async def move_documents(call: RouteCall[NoQuery, Move]) -> DocumentMoves:
    """Migrate documents to another version of their workflow, at their current step, or report which could migrate."""
    asked = call.body
    return await call.calls.workflows.move(
        call.path["type"],
        asked.workflow,
        asked.to,
        nodes=asked.nodes,
        documents=asked.documents,
        reason=asked.reason,
        dry_run=asked.dry_run,
        cursor=None if asked.cursor is None else InstanceId(asked.cursor),
        limit=asked.limit,
    )


_READ = Subject("bodies", "/api/v1", "bodies:read", "own")
_PUBLISH = Subject("bodies", "/api/v1", "bodies:publish", "tenant")
_TYPE = "/bodies/{type}"

ROUTES: tuple[Route, ...] = (
    _READ.get("/suspensions", list_suspensions, query=SuspensionQuery, answer=Listing[WorkflowSuspension]),
    _PUBLISH.post(
        f"{_TYPE}/suspend",
        suspend_workflow,
        body=Suspend,
        answer=WorkflowSuspension,
        example={"workflow": "1-org", "reason": "it lets everything through"},
    ),
    _PUBLISH.post(
        f"{_TYPE}/lift",
        lift_suspension,
        body=Suspend,
        answer=WorkflowSuspension,
        example={"workflow": "1-org", "reason": "it was not so bad"},
    ),
    _PUBLISH.post(
        f"{_TYPE}/move",
        move_documents,
        permission="execution:repair",
        body=Move,
        answer=DocumentMoves,
        example={"workflow": "1-org", "to": "1-org", "reason": "two people now", "dry_run": True},
    ),
)
