"""Routes of processes, as end users see them: start, advance, look, cancel."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any
from uuid import UUID

import msgspec

from standfast.errors import RejectedError
from standfast.features.processes.views import (
    ExpiredProcess,
    ProcessDescriptor,
    ProcessEvent,
    ProcessInstance,
    ProcessSummary,
)
from standfast.http.requests.etags import tag_of
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
from standfast.http.wire.problems import EdgeCode, EdgeError

_BASE = "/ui/workflows"
_PATIENCE = 5.0
_CONFLICT = "VERSION_CONFLICT"


class Advance(RequestModel, frozen=True, kw_only=True):
    """By which event the current step is left."""

    event: str
    input: dict[str, object] | None = None
    """The data of its form; null means none."""
    comment: str = ""
    on_behalf_of: str = ""
    """The principal, if the caller is the deputy of several assignees."""


class StartQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a start, besides its input."""

    version: str = ""
    key: str = ""
    """A business key."""
    comment: str = ""


class ProcessQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of processes."""

    status: list[str] = msgspec.field(default_factory=list)
    """One or several of `active`, `suspended`, `completed`, `failed` and `cancelled`."""
    workflow_id: str = ""
    key: str = ""
    subject_id: str = ""
    role: str | None = None
    """At a step that asks this role."""
    mine: bool = False
    """At a step that asks the caller."""
    exact_total: bool = False
    """Whether all are counted; otherwise no more than a thousand."""


class ExpiredQueryRequest(Paged, frozen=True, kw_only=True):
    """A filter of expired processes."""

    before: datetime | None = None
    """Only deadlines before this instant; the default is now."""


class PatienceQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a request waits for the result."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=3600)] = _PATIENCE
    """Seconds to wait for automatic steps that follow; the server waits for less if this is more than it allows."""


class TrailQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page of a trail."""

    lifecycle: Annotated[bool, msgspec.Meta(description="With what happened to the instance itself.")] = False


class ProcessListing(msgspec.Struct, frozen=True, kw_only=True):
    """A page of processes."""

    items: list[ProcessSummary]
    total: int
    """Number of items on all pages, as far as they were counted."""
    is_total_exact: bool
    """Whether that is all of them: no more than a thousand are counted, unless `exact_total` asks for it."""
    next: str | None
    """Give it as `cursor` for the next page."""


class _ExpiredPlace(msgspec.Struct, frozen=True, array_like=True):
    expires_at: Annotated[datetime, msgspec.Meta(tz=True)]
    id: UUID


async def list_processes(call: RouteCall[ProcessQuery, None]) -> ProcessListing:
    """List processes of the caller's tenant and partition, newest first."""
    asked = call.query
    page = await call.calls.processes.list(
        status=asked.status,
        workflow_id=asked.workflow_id,
        key=asked.key,
        subject_id=asked.subject_id,
        role=asked.role,
        mine=asked.mine,
        exact_total=asked.exact_total,
        cursor=cursors.read(asked.cursor, UUID),
        limit=call.page(asked.limit),
    )
    further = None if page.next is None else cursors.written(page.next)
    return ProcessListing(items=page.items, total=page.total, is_total_exact=page.is_total_exact, next=further)


async def list_expired(call: RouteCall[ExpiredQueryRequest, None]) -> Listing[ExpiredProcess]:
    """List active processes whose deadline has passed, the longest overdue first."""
    asked, size = call.query, call.page(call.query.limit)
    place = cursors.read(asked.cursor, _ExpiredPlace)
    behind = None if place is None else cursors.resting(ExpiredProcess, id=place.id, expires_at=place.expires_at)
    found = await call.calls.processes.expired(before=asked.before, after=behind, limit=size + 1)
    return cursors.listing(found, size, lambda each: [each.expires_at, each.id])


async def start_process(call: RouteCall[StartQuery, dict[str, object]]) -> RouteResponse:
    """Start a process; the body is its input. The same `Idempotency-Key` gives the same instance, with status 200."""
    asked = call.query
    found = await call.calls.processes.start(
        call.path["workflow_id"],
        call.body,
        version=asked.version,
        key=asked.key,
        idempotency_key=call.idempotency_key,
        comment=asked.comment,
        patience=_PATIENCE,
    )
    is_new = not call.idempotency_key or await _began_it(call, found.id)
    headers = {"location": f"{_BASE}/{found.id}", "etag": _tag(found.version)}
    return RouteResponse(value=found, status=201 if is_new else 200, headers=headers)


async def get_process(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Get a process for a front end: its step, the form, and the events by which the caller may advance it."""
    found = await call.calls.processes.get(call.run_id)
    return RouteResponse(value=found, headers={"etag": tag_of(found, found.instance.version)})


async def list_trail(call: RouteCall[TrailQuery, None]) -> list[ProcessEvent]:
    """List the trail of a process: the history of its steps."""
    return await call.calls.processes.events(call.run_id, with_lifecycle=call.query.lifecycle)


async def advance_process(call: RouteCall[PatienceQuery, Advance]) -> RouteResponse:
    """Leave the current step by an event; automatic steps that follow are done. `If-Match` makes sure of the version."""
    asked, expected = call.body, call.expected_version
    with _Condition(expected):
        found = await call.calls.processes.advance(
            call.run_id,
            asked.event,
            asked.input or {},
            comment=asked.comment,
            on_behalf_of=asked.on_behalf_of,
            expected_version=expected,
            patience=_patience(call),
        )
    return _changed(found)


async def cancel_process(call: RouteCall[NoQuery, Reasoned]) -> RouteResponse:
    """Cancel a process, without compensations."""
    expected = call.expected_version
    with _Condition(expected):
        found = await call.calls.processes.cancel(call.run_id, call.body.reason, expected_version=expected)
    return _changed(found)


async def resume_process(call: RouteCall[PatienceQuery, Reasoned]) -> RouteResponse:
    """Resume a suspended process: a failed step is retried. To leave a wait, `If-Match` must name the version."""
    expected = call.expected_version
    with _Condition(expected):
        found = await call.calls.processes.resume(
            call.run_id, call.body.reason, expected_version=expected, patience=_patience(call)
        )
    return _changed(found)


def _patience(call: RouteCall[PatienceQuery, Any]) -> float:
    return min(call.query.wait, call.server.options.longest_wait.total_seconds())


class _Condition:
    """Reports a failed `If-Match` condition."""

    def __init__(self, expected: int | None) -> None:
        self._expected = expected

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._expected is not None and isinstance(error, RejectedError) and error.reason == _CONFLICT:
            raise EdgeError(EdgeCode.CHANGED_MEANWHILE, str(error).removesuffix(f" [{_CONFLICT}]")) from None


async def _began_it(call: RouteCall[StartQuery, dict[str, object]], identity: UUID) -> bool:
    """Return whether this request started the instance, and not an earlier one with the same key."""
    first = await call.server.engine.aio.as_tenant(call.identity.tenant).run(identity).history(limit=1)
    return first[0].trace == call.trace


def _changed(found: ProcessInstance) -> RouteResponse:
    return RouteResponse(value=found, headers={"etag": _tag(found.version)})


def _tag(version: int) -> str:
    return f'"v{version}"'


_PROCESSES = Subject("processes", _BASE, "process:use", "run")

ROUTES: tuple[Route, ...] = (
    _PROCESSES.get("", list_processes, answer=ProcessListing, query=ProcessQuery, reach="own"),
    _PROCESSES.get(
        "/expired",
        list_expired,
        answer=Listing[ExpiredProcess],
        query=ExpiredQueryRequest,
        reach="own",
        permission="execution:read",
    ),
    _PROCESSES.post(
        "/{workflow_id}/start",
        start_process,
        body=dict[str, object],
        answer=ProcessInstance,
        query=StartQuery,
        reach="own",
        status=201,
        also=(200,),
        takes_key=True,
        example={"order_id": "ord-123", "total": 50},
    ),
    _PROCESSES.get("/{id}", get_process, answer=ProcessDescriptor, also=(304,)),
    _PROCESSES.get("/{id}/events", list_trail, answer=list[ProcessEvent], query=TrailQuery),
    _PROCESSES.post(
        "/{id}/advance",
        advance_process,
        query=PatienceQuery,
        body=Advance,
        answer=ProcessInstance,
        takes_condition=True,
        example={"event": "approved", "input": {"approval_notes": "fine"}},
    ),
    _PROCESSES.post(
        "/{id}/cancel",
        cancel_process,
        body=Reasoned,
        answer=ProcessInstance,
        takes_condition=True,
        example={"reason": "ordered twice"},
    ),
    _PROCESSES.post(
        "/{id}/resume",
        resume_process,
        query=PatienceQuery,
        body=Reasoned,
        answer=ProcessInstance,
        takes_condition=True,
        example={"reason": "repaired"},
    ),
)
