"""Routes of runs: finding them, looking at them, waiting for them."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from standfast.errors import DeadlockError, WorkflowFailedError
from standfast.features.deciders.verification import Verification
from standfast.features.runs.audit_entries import AuditEntry
from standfast.features.runs.explain import RunExplanation
from standfast.features.runs.history import PastState
from standfast.features.runs.pauses.views import ResumeOption, ResumeRequest
from standfast.features.runs.views import HistoryEntry, HumanTask, InstanceSummary, Step, WorkflowInstance
from standfast.http.requests import streaming as streams
from standfast.http.requests.etags import tag_of
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    Route,
    RouteCall,
    RouteResponse,
    Stream,
    Subject,
)
from standfast.http.requests.streaming import StreamQuery
from standfast.http.wire import paging as cursors
from standfast.http.wire.broadcaster import Changed
from standfast.http.wire.paging import Listing


class ListQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of runs."""

    definition: str = ""
    version: str = ""
    status: list[str] = msgspec.field(default_factory=list)
    """One or several words of any kind of workflow."""
    active: bool | None = None
    """Only runs that have not ended, or only those that have."""
    key: str = ""
    parent: UUID | None = None
    created_after: datetime | None = None
    created_before: datetime | None = None
    sort: Literal["-created_at", "created_at"] = "-created_at"
    """Newest first, or oldest first; use the same order for all pages of a list."""


class PausedQueryRequest(Paged, frozen=True, kw_only=True):
    """The filters of a list of paused runs."""

    definition: str = ""
    reason: str = ""
    next_step: str = ""
    """Only runs that go on with this step."""
    since: datetime | None = None
    before: datetime | None = None


class ResumableQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of runs that resume soon."""

    definition: str = ""


class HistoryQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The page of a history."""

    after: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)] = 0
    """The last sequence of the page before."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=10_000)] = 100
    """The number of entries of a page; reduced to the server's limit, so that only an empty page is the end."""


class PointQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which point of a history is meant."""

    at: Annotated[int, msgspec.Meta(ge=1, le=2**31 - 1)]
    """The sequence of an event."""


class DiagramQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The format of a diagram."""

    format: Literal["mermaid", "dot", "json"] = "mermaid"


class WaitQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How long a request waits."""

    wait: Annotated[float, msgspec.Meta(ge=0, le=3600)] = 0.0
    """Seconds to wait for the end; the server waits for less if this is more than it allows."""


class RunStatus(msgspec.Struct, frozen=True, kw_only=True):
    """The status of a run, in short."""

    id: UUID
    status: str
    reason: str
    paused_at: datetime | None
    paused_by: str
    paused_reason: str
    paused_step_id: str
    next_step_id: str
    resume_attempted_at: datetime | None
    resume_error_message: str
    updated_at: datetime
    ended_at: datetime | None


class RunResult(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a run, or its status if it has not ended."""

    id: UUID
    is_finished: bool
    status: str
    result: object
    """Null until it is completed."""
    error: str
    """Why it did not end well, or where it stands."""


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """A drawing as text."""

    format: str
    source: str


class _PausedPlace(msgspec.Struct, frozen=True, array_like=True):
    paused_at: datetime
    id: UUID


async def list_executions(call: RouteCall[ListQuery, None]) -> Listing[InstanceSummary]:
    """List runs, newest first unless `sort` says otherwise."""
    asked = call.query
    page = await call.calls.runs.list(
        definition=asked.definition,
        version=asked.version,
        status=asked.status,
        is_active=asked.active,
        key=asked.key,
        parent=asked.parent,
        created_after=asked.created_after,
        created_before=asked.created_before,
        oldest_first=asked.sort == "created_at",
        cursor=cursors.read(asked.cursor, UUID),
        limit=call.page(asked.limit),
    )
    return Listing(items=page.items, next=None if page.next is None else cursors.written(page.next))


async def list_paused(call: RouteCall[PausedQueryRequest, None]) -> Listing[InstanceSummary]:
    """List runs that are paused or wait for an operator, those that were paused last first."""
    asked, size = call.query, call.page(call.query.limit)
    found = await call.calls.runs.paused(
        definition=asked.definition,
        reason=asked.reason,
        next_step=asked.next_step,
        since=asked.since,
        before=asked.before,
        after=_paused_behind(asked.cursor),
        limit=size + 1,
    )
    return cursors.listing(found, size, lambda each: [each.paused_at, each.id])


async def list_resumable(call: RouteCall[ResumableQuery, None]) -> Listing[InstanceSummary]:
    """List paused runs that are about to go on."""
    asked, size = call.query, call.page(call.query.limit)
    behind = _paused_behind(asked.cursor)
    found = await call.calls.runs.resumable(definition=asked.definition, after=behind, limit=size + 1)
    return cursors.listing(found, size, lambda each: [each.paused_at, each.id])


async def list_stuck(call: RouteCall[Paged, None]) -> Listing[InstanceSummary]:
    """List runs that nothing can ever wake; there should never be any."""
    page = await call.calls.runs.stuck(cursor=cursors.read(call.query.cursor, UUID), limit=call.page(call.query.limit))
    return Listing(items=page.items, next=None if page.next is None else cursors.written(page.next))


async def get_execution(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Get a run, with its input, data and result."""
    found = await call.run.describe()
    return RouteResponse(value=found, headers={"etag": tag_of(found, found.version)})


async def get_status(call: RouteCall[NoQuery, None]) -> RunStatus:
    """Get the status of a run: whether it is paused, why, and where it continues."""
    found = await call.run.describe()
    return RunStatus(
        id=found.id,
        status=found.status,
        reason=found.reason,
        paused_at=found.paused_at,
        paused_by=found.paused_by,
        paused_reason=found.paused_reason,
        paused_step_id=found.paused_step,
        next_step_id=found.next_step,
        resume_attempted_at=found.resume_attempted_at,
        resume_error_message=found.resume_error,
        updated_at=found.updated_at,
        ended_at=found.ended_at,
    )


async def list_steps(call: RouteCall[NoQuery, None]) -> list[Step]:
    """List the steps of a run, in the order in which they began."""
    return await call.run.steps()


async def get_state_at(call: RouteCall[PointQuery, None]) -> PastState:
    """A run as it was after an event of its history: how it stood, its data, its steps."""
    return await call.calls.runs.state_at(call.run_id, call.query.at)


async def get_trace(call: RouteCall[NoQuery, None]) -> list[Step]:
    """Get the trace of a run: its steps with input and output."""
    return await call.run.steps()


async def list_history(call: RouteCall[HistoryQuery, None]) -> list[HistoryEntry]:
    """List the history of a run, in order; the sequence of the last entry is `after` of the next page."""
    return await call.run.history(after=call.query.after, limit=call.page(call.query.limit))


async def explain(call: RouteCall[NoQuery, None]) -> RunExplanation:
    """Explain why a run does not progress, and list the remedies."""
    return await call.run.why()


async def list_run_audit(call: RouteCall[Paged, None]) -> Listing[AuditEntry]:
    """List the calls on a run in order: actor, principal, reason, and the values before and after."""
    size, last = call.page(call.query.limit), cursors.counted(call.query.cursor)
    return cursors.listing(await call.run.audit(after=last, limit=size + 1), size, lambda each: each.sequence)


async def list_run_tasks(call: RouteCall[NoQuery, None]) -> list[HumanTask]:
    """List the human tasks of a run, decided ones included."""
    return await call.run.tasks()


async def draw_execution(call: RouteCall[DiagramQuery, None]) -> Drawing:
    """A drawing of a run with its live state."""
    return Drawing(format=call.query.format, source=await call.run.diagram(format=call.query.format))


async def verify_execution(call: RouteCall[NoQuery, None]) -> Verification:
    """Fold the history of a run again, and compare it with the stored state."""
    return await call.run.verify()


async def list_resume_options(call: RouteCall[NoQuery, None]) -> list[ResumeOption]:
    """List the actions that would resume a run, with the required rights; empty if there are none."""
    return await (await call.resumable()).resume_options()


async def list_resume_requests(call: RouteCall[NoQuery, None]) -> list[ResumeRequest]:
    """List all resume requests of a run, refused ones included."""
    return await (await call.resumable()).resume_requests()


async def await_result(call: RouteCall[WaitQuery, None]) -> RouteResponse:
    """Return the result of a run; `wait` waits for its end. Status 202 if it has not ended by then."""
    found = await call.run.describe()
    seconds = min(call.query.wait, call.server.options.longest_wait.total_seconds())
    if not found.is_terminal and seconds > 0:
        # The current status follows below. An engine without threads cannot be waited for.
        with call.server.waits.place(call.identity.account), suppress(TimeoutError, WorkflowFailedError, DeadlockError):
            await call.server.hub.waited(call.run.result(timeout=seconds))
        await call.revisit()  # The credential may have been revoked meanwhile.
        found = await call.run.describe()
    told = RunResult(
        id=found.id,
        is_finished=found.is_terminal,
        status=found.status,
        result=found.result,
        error=found.error,
    )
    return RouteResponse(value=told, status=200 if found.is_terminal else 202)


async def stream_execution(call: RouteCall[StreamQuery, None]) -> Stream:
    """Stream the history of a run as server-sent events: `entry`, `resync`, and `end` when it has ended."""
    return await streams.streamed(streams.run_events(call))


async def stream_executions(call: RouteCall[StreamQuery, None]) -> Stream:
    """Stream changed runs of the tenant, or of the caller's partition, as server-sent events: `changed`, and `resync` for clients that are too far behind."""
    return await streams.streamed(streams.list_events(call))


def _paused_behind(cursor: str) -> InstanceSummary | None:
    place = cursors.read(cursor, _PausedPlace)
    return None if place is None else cursors.resting(InstanceSummary, id=place.id, paused_at=place.paused_at)


_RUNS = Subject("executions", "/api/v1/executions", "execution:read", "tenant")
_RUN = Subject("executions", "/api/v1/executions/{id}", "execution:read", "run")
_SSE = "text/event-stream"

ROUTES: tuple[Route, ...] = (
    _RUNS.get("", list_executions, answer=Listing[InstanceSummary], query=ListQuery, reach="own"),
    _RUNS.get("/paused", list_paused, reach="own", answer=Listing[InstanceSummary], query=PausedQueryRequest),
    _RUNS.get("/resumable", list_resumable, reach="own", answer=Listing[InstanceSummary], query=ResumableQuery),
    _RUNS.get("/stuck", list_stuck, reach="own", answer=Listing[InstanceSummary], query=Paged),
    _RUNS.get("/events", stream_executions, reach="own", query=StreamQuery, answer=Changed, media_type=_SSE),
    _RUN.get("", get_execution, answer=WorkflowInstance, also=(304,)),
    _RUN.get("/status", get_status, answer=RunStatus),
    _RUN.get("/steps", list_steps, answer=list[Step]),
    _RUN.get("/state", get_state_at, query=PointQuery, answer=PastState),
    _RUN.get("/trace", get_trace, answer=list[Step]),
    _RUN.get("/history", list_history, answer=list[HistoryEntry], query=HistoryQuery),
    _RUN.get("/why", explain, answer=RunExplanation),
    _RUN.get("/audit", list_run_audit, query=Paged, answer=Listing[AuditEntry]),
    _RUN.get("/tasks", list_run_tasks, answer=list[HumanTask]),
    _RUN.get("/diagram", draw_execution, answer=Drawing, query=DiagramQuery),
    _RUN.get("/verification", verify_execution, answer=Verification),
    _RUN.get("/resume-options", list_resume_options, answer=list[ResumeOption]),
    _RUN.get("/resume-requests", list_resume_requests, answer=list[ResumeRequest]),
    _RUN.get("/result", await_result, answer=RunResult, query=WaitQuery, also=(202,)),
    _RUN.get("/events", stream_execution, query=StreamQuery, answer=HistoryEntry, media_type=_SSE),
)
