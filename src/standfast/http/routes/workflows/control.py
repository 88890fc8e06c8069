"""Routes that start, tell, stop, pause and resume runs."""

from __future__ import annotations

from typing import Annotated, Literal
from uuid import UUID

import msgspec

from standfast.features.runs.pauses.views import ResumeRequest
from standfast.http.requests.routing import (
    NoQuery,
    Reasoned,
    RequestModel,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
    TimedReason,
)
from standfast.kernel.row_kinds.steps import PauseClock

_BASE = "/api/v1/executions"


class StartRequest(RequestModel, frozen=True, kw_only=True):
    """A workflow to start."""

    definition: str
    """Name of a workflow, or its id such as `order-v1`."""
    input: dict[str, object] = msgspec.field(default_factory=dict)
    version: str = ""
    """The newest one if it is empty."""
    key: str = ""
    """A business key: there can be one run with it, ever."""
    delay_seconds: Annotated[float, msgspec.Meta(ge=0, le=3_155_760_000)] = 0.0
    """How long the first step is put off."""
    comment: str = ""


class Started(msgspec.Struct, frozen=True, kw_only=True):
    """A run that is stored."""

    id: UUID


class Signal(RequestModel, frozen=True, kw_only=True):
    """A signal."""

    name: str
    payload: object = None
    command_id: str = ""
    """A deduplication id: a repeated delivery counts once; `Idempotency-Key` does the same."""


class PauseRequest(TimedReason, frozen=True, kw_only=True):
    """The mode and the end of a pause."""

    clock: PauseClock | None = None
    """Whether its timers run on, or stand still."""


class Resume(Reasoned, frozen=True, kw_only=True):
    """The options of a resume."""

    metadata: dict[str, object] | None = None
    """Conditions find it under `resume` from then on."""
    override: bool = False
    """Whether it goes past an open question."""
    task: str | None = None
    """Which one, of several."""


class ResumeLater(Reasoned, frozen=True, kw_only=True):
    """A request to resume a run at the next check of the resume worker."""

    metadata: dict[str, object] | None = None


class Stopped(msgspec.Struct, frozen=True, kw_only=True):
    """The outcome of stopping a run."""

    id: UUID
    status: str
    """The final status, or the current one while the run is stopping."""
    is_finished: bool


async def start_execution(call: RouteCall[NoQuery, StartRequest]) -> RouteResponse:
    """Start a run; it is stored when this answers. The same `Idempotency-Key` gives the same run, with status 200."""
    asked, key = call.body, call.idempotency_key
    run = await call.calls.start(
        asked.definition,
        asked.input,
        version=asked.version,
        key=asked.key,
        idempotency_key=call.idempotency_key,
        delay=asked.delay_seconds,
        comment=asked.comment,
    )
    is_new = (
        not key
        or (await call.server.engine.aio.as_tenant(call.identity.tenant).run(run.id).history(limit=1))[0].trace
        == call.trace
    )
    headers = {"location": f"{_BASE}/{run.id}"}
    return RouteResponse(value=Started(id=run.id), status=201 if is_new else 200, headers=headers)


async def signal_execution(call: RouteCall[NoQuery, Signal]) -> None:
    """Send a signal to a run; if no step waits for it yet, it is stored."""
    asked = call.body
    await call.run.signal(asked.name, asked.payload, command_id=asked.command_id or call.idempotency_key)


async def cancel_execution(call: RouteCall[NoQuery, Reasoned]) -> RouteResponse:
    """Cancel a run and run its compensations. Status 202 if they are still running."""
    return await _stopped(call, "cancel")


async def abort_execution(call: RouteCall[NoQuery, Reasoned]) -> RouteResponse:
    """Abort a run immediately, without compensations."""
    return await _stopped(call, "abort")


async def pause_execution(call: RouteCall[NoQuery, PauseRequest]) -> None:
    """Pause a run: running handlers finish, and later steps are held."""
    asked = call.body
    await call.run.pause(asked.reason, clock=asked.clock, until=asked.ending)


async def resume_execution(call: RouteCall[NoQuery, Resume]) -> None:
    """Resume a run that is paused or waits for an operator; `override` also takes `execution:override`."""
    asked = call.body
    await (await call.resumable()).resume(
        asked.reason,
        data=asked.metadata,
        override=asked.override,
        task=asked.task,
        triggered_by_id=call.idempotency_key,
    )


async def request_resume(call: RouteCall[NoQuery, ResumeLater]) -> ResumeRequest:
    """Request that the resume worker resumes a run."""
    asked = call.body
    run = await call.resumable()
    return await run.request_resume(asked.reason, data=asked.metadata, triggered_by_id=call.idempotency_key)


async def _stopped(call: RouteCall[NoQuery, Reasoned], how: Literal["cancel", "abort"]) -> RouteResponse:
    """Wait a moment for the end; handlers may take longer to stop than a client should wait."""
    run = call.run
    stop = run.cancel if how == "cancel" else run.abort
    try:
        status = await stop(call.body.reason, timeout=_PATIENCE_SECONDS)
    except TimeoutError:
        return RouteResponse(value=Stopped(id=run.id, status="cancelling", is_finished=False), status=202)
    return RouteResponse(value=Stopped(id=run.id, status=status, is_finished=True))


_PATIENCE_SECONDS = 2.0


_RUNS = Subject("executions", _BASE, "", "run")
_WHY = {"reason": "the supplier is closed until Monday"}

ROUTES: tuple[Route, ...] = (
    _RUNS.post(
        "",
        start_execution,
        permission="execution:start",
        body=StartRequest,
        reach="own",
        answer=Started,
        status=201,
        also=(200,),
        takes_key=True,
        example={"definition": "order", "input": {"sku": "lamp"}, "key": "order-4711"},
    ),
    _RUNS.post(
        "/{id}/signal",
        signal_execution,
        permission="execution:signal",
        body=Signal,
        takes_key=True,
        example={"name": "paid", "payload": {"amount": 1200}},
    ),
    _RUNS.post(
        "/{id}/cancel",
        cancel_execution,
        permission="execution:cancel",
        body=Reasoned,
        answer=Stopped,
        also=(202,),
        example=_WHY,
    ),
    _RUNS.post(
        "/{id}/abort",
        abort_execution,
        permission="execution:abort",
        body=Reasoned,
        answer=Stopped,
        also=(202,),
        example=_WHY,
    ),
    _RUNS.post("/{id}/pause", pause_execution, permission="execution:pause", body=PauseRequest, example=_WHY),
    _RUNS.post(
        "/{id}/resume",
        resume_execution,
        permission="execution:resume",
        body=Resume,
        takes_key=True,
        example={"reason": "they are open again", "metadata": {"supplier": "open"}},
    ),
    _RUNS.post(
        "/{id}/resume-requests",
        request_resume,
        permission="execution:resume",
        body=ResumeLater,
        answer=ResumeRequest,
        example={"reason": "tonight will do"},
    ),
)
