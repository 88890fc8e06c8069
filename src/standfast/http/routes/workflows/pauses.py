"""Routes of pauses of a definition, a version, a step or a tenant."""

from __future__ import annotations

from standfast.calls.operator_views import PauseInfo
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    Reasoned,
    Route,
    RouteCall,
    RouteResponse,
    Subject,
    TimedReason,
)
from standfast.http.routes.workflows.dead_letters import numbered
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing
from standfast.kernel.row_kinds.steps import PauseClock


class PauseQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of pauses."""

    with_ended: bool = False


class BeginPause(TimedReason, frozen=True, kw_only=True):
    """A pause to begin."""

    definition: str | None = None
    """All of the tenant if it is left out."""
    version: str | None = None
    step: str | None = None
    clock: PauseClock = "run_on"


async def list_pauses(call: RouteCall[PauseQuery, None]) -> Listing[PauseInfo]:
    """List current and past pauses, newest first."""
    size, last = call.page(call.query.limit), cursors.counted(call.query.cursor)
    found = await call.calls.pauses.list(with_ended=call.query.with_ended, before=last or None, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.id)


async def begin_pause(call: RouteCall[NoQuery, BeginPause]) -> RouteResponse:
    """Hold back a definition, a version, a step, or the whole tenant."""
    asked = call.body
    found = await call.calls.pauses.pause(
        asked.definition,
        version=asked.version,
        step=asked.step,
        reason=asked.reason,
        clock=asked.clock,
        until=asked.ending,
    )
    return RouteResponse(value=found, status=201, headers={"location": f"/api/v1/pauses/{found.id}"})


async def get_pause(call: RouteCall[NoQuery, None]) -> PauseInfo:
    """Get a pause: how much it holds."""
    return await call.calls.pauses.get(numbered(call.path["number"], "pause"))


async def end_pause(call: RouteCall[NoQuery, Reasoned]) -> PauseInfo:
    """End a pause."""
    return await call.calls.pauses.resume(numbered(call.path["number"], "pause"), reason=call.body.reason)


_PAUSES = Subject("pauses", "/api/v1/pauses", "execution:read", "tenant")

ROUTES: tuple[Route, ...] = (
    _PAUSES.get("", list_pauses, query=PauseQuery, answer=Listing[PauseInfo]),
    _PAUSES.post(
        "",
        begin_pause,
        permission="execution:pause",
        body=BeginPause,
        answer=PauseInfo,
        status=201,
        example={"definition": "order", "reason": "the warehouse moves"},
    ),
    _PAUSES.get("/{number}", get_pause, answer=PauseInfo),
    _PAUSES.post(
        "/{number}/resume",
        end_pause,
        permission="execution:resume",
        body=Reasoned,
        answer=PauseInfo,
        example={"reason": "it has moved"},
    ),
)
