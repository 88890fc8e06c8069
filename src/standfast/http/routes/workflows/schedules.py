"""Routes of schedules."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated
from uuid import UUID

import msgspec

from standfast.errors import RejectedError, StandfastError
from standfast.features.schedules.views import CatchUp, FireInfo, Overlap, Schedule
from standfast.http.requests.etags import tag_of
from standfast.http.requests.routing import (
    AnyCall,
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
from standfast.kernel.actor import SYSTEM, RequestContext

_CONFLICT = "version_conflict"
Seconds = Annotated[float, msgspec.Meta(ge=0, le=3_155_760_000)]


class PutScheduleRequest(RequestModel, frozen=True, kw_only=True):
    """A schedule: exactly one of `cron`, `every_seconds` and `at`."""

    workflow: str
    """Name of a workflow, its id such as `order-v1`, or a document type, of which each fire creates a document."""
    version: str = ""
    """The newest one at each time if it is empty."""
    input: dict[str, object] = msgspec.field(default_factory=dict)
    computed: dict[str, str] = msgspec.field(default_factory=dict)
    """Expressions that give more of the input, by name."""
    document_id: str = ""
    """The expression of a document's id; made of the schedule and the time if it is empty."""
    cron: str = ""
    time_zone: str = "UTC"
    every_seconds: Seconds | None = None
    at: datetime | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    jitter_seconds: Seconds = 0.0
    """Up to how much later each start is."""
    overlap: Overlap | None = None
    """`skip` if it is left out; of documents `allow_all` alone."""
    catch_up: CatchUp = "one"
    window_seconds: Seconds | None = None
    """Fires missed for longer are skipped."""
    note: str = ""


class TriggerRequest(RequestModel, frozen=True, kw_only=True):
    """The options of a trigger."""

    overlap: Overlap | None = None
    """Another policy than that of the schedule."""


class BackfillRequest(RequestModel, frozen=True, kw_only=True):
    """A period that is to be made up for."""

    start: datetime
    end: datetime
    at_once: bool = False
    """Whether all runs begin together, and not each when the one before has ended."""


class ScheduleQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of schedules."""

    workflow: str = ""


class TimesQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The range of times."""

    after: datetime | None = None
    """Only times after this instant; now by default."""
    limit: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 10


class ScheduleTimesAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The next times of a schedule."""

    times: list[datetime]


async def list_schedules(call: RouteCall[ScheduleQuery, None]) -> Listing[Schedule]:
    """List the schedules, newest first."""
    size = call.page(call.query.limit)
    place = cursors.read(call.query.cursor, UUID)
    last = None if place is None else cursors.resting(Schedule, instance=place)
    found = await call.calls.schedules.list(workflow=call.query.workflow, after=last, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.instance)


async def put_schedule(call: RouteCall[NoQuery, PutScheduleRequest]) -> RouteResponse:
    """Create or update a schedule; `If-Match` checks the revision, `"v0"` that there is none.

    It also takes `execution:start`, or `documents:write` if it creates documents; and `execution:cancel` for `cancel_running`.
    """
    asked, name = call.body, call.path["schedule"]
    calls = call.needing(await _start_of_plan(call), *_stops(asked.overlap))

    async def found_there() -> int:
        return (await call.calls.schedules.get(name)).revision

    expected = await call.replaced_version(found_there)
    try:
        found = await calls.schedules.put(
            name,
            asked.workflow,
            asked.input,
            version=asked.version,
            computed=asked.computed,
            cron=asked.cron,
            time_zone=asked.time_zone,
            every=asked.every_seconds,
            at=asked.at,
            start_at=asked.start_at,
            end_at=asked.end_at,
            jitter=asked.jitter_seconds,
            overlap=asked.overlap,
            catch_up=asked.catch_up,
            window=asked.window_seconds,
            document_id=asked.document_id,
            note=asked.note,
            expected_version=expected,
        )
    except RejectedError as error:
        raise _changed(error) from None
    return _shown(found)


async def get_schedule(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Get a schedule: its definition, its next time, and its runs."""
    return _shown(await call.calls.schedules.get(call.path["schedule"]))


async def delete_schedule(call: RouteCall[NoQuery, None]) -> None:
    """Delete a schedule; its runs continue."""
    try:
        await call.calls.schedules.delete(call.path["schedule"], expected_version=call.expected_version)
    except RejectedError as error:
        raise _changed(error) from None


async def pause_schedule(call: RouteCall[NoQuery, Reasoned]) -> RouteResponse:
    """Pause a schedule; fires during the pause are skipped."""
    return _shown(await call.calls.schedules.pause(call.path["schedule"], call.body.reason))


async def resume_schedule(call: RouteCall[NoQuery, Reasoned]) -> RouteResponse:
    """Resume a schedule with its next time."""
    return _shown(await call.calls.schedules.resume(call.path["schedule"], call.body.reason))


async def trigger_schedule(call: RouteCall[NoQuery, TriggerRequest]) -> FireInfo:
    """Trigger a schedule now, even if it is paused; its policy may skip or delay the fire.

    It also takes `execution:start`, or `documents:write` if it creates documents; and `execution:cancel` if the policy
    is `cancel_running`.
    """
    overlap = call.body.overlap or await _policy(call)
    calls = call.needing(await _start_of_schedule(call), *_stops(overlap))
    return await calls.schedules.trigger(call.path["schedule"], overlap=overlap, command_id=call.idempotency_key)


async def backfill_schedule(call: RouteCall[NoQuery, BackfillRequest]) -> RouteResponse:
    """Backfill a schedule for every time of a period, sequentially or in parallel.

    It also takes `execution:start`, or `documents:write` if it creates documents.
    """
    calls = call.needing(await _start_of_schedule(call))
    asked = call.body
    found = await calls.schedules.backfill(
        call.path["schedule"], asked.start, asked.end, at_once=asked.at_once, command_id=call.idempotency_key
    )
    return _shown(found)


async def stop_backfills(call: RouteCall[NoQuery, None]) -> RouteResponse:
    """Stop the backfills of a schedule; existing runs continue."""
    return _shown(await call.calls.schedules.stop_backfills(call.path["schedule"]))


async def list_fires(call: RouteCall[Paged, None]) -> Listing[FireInfo]:
    """List the fires of a schedule with their outcomes, the last one first."""
    size = call.page(call.query.limit)
    found = await call.calls.schedules.fires(
        call.path["schedule"], after=cursors.counted(call.query.cursor), limit=size + 1
    )
    return cursors.listing(found, size, lambda each: each.number)


async def list_times(call: RouteCall[TimesQuery, None]) -> ScheduleTimesAnswer:
    """List the next times of a schedule."""
    asked = call.query
    found = await call.calls.schedules.next_times(call.path["schedule"], after=asked.after, limit=asked.limit)
    return ScheduleTimesAnswer(times=found)


async def _start_of_plan(call: RouteCall[NoQuery, PutScheduleRequest]) -> str:
    """Return the permission that starting the schedule's target takes."""
    if call.identity.may(_START):
        return _START
    try:
        graph = await call.calls.definitions.get(call.body.workflow, call.body.version)
    except StandfastError:  # A caller who may start workflows gets the 404.
        return _START
    return _CREATE if graph.kind == "envelope" else _START


async def _start_of_schedule(call: AnyCall) -> str:
    """Return the permission that starting an existing schedule's target takes."""
    if call.identity.may(_START):
        return _START
    try:
        is_document = (await call.calls.schedules.get(call.path["schedule"])).is_document
    except StandfastError:  # A caller who may start workflows gets the 404.
        return _START
    return _CREATE if is_document else _START


def _stops(overlap: Overlap | None) -> tuple[str, ...]:
    """Returns the permission that it takes to cancel by oneself what a schedule cancels."""
    return (_CANCEL,) if overlap == "cancel_running" else ()


async def _policy(call: AnyCall) -> Overlap | None:
    """Returns the policy of a schedule for who may not cancel runs, so that they trigger it by that one; None if it is for the schedule to say.

    The engine looks itself: who may trigger a schedule need not be allowed to look at it.
    """
    if call.identity.may(_CANCEL):
        return None
    known = call.calls.request
    own = RequestContext(tenant=known.tenant, partition=known.partition, actor=SYSTEM, trace=known.trace)
    try:
        found = await call.engine.acting(own).schedules.get(call.path["schedule"])
    except StandfastError:  # A caller who may trigger schedules gets the 404.
        return None
    return None if found.is_document else found.overlap


def _shown(found: Schedule) -> RouteResponse:
    return RouteResponse(value=found, headers={"etag": tag_of(found, found.revision)})


def _changed(error: RejectedError) -> Exception:
    """Return the error of a failed condition."""
    if error.reason != _CONFLICT:
        return error
    return EdgeError(EdgeCode.CHANGED_MEANWHILE, str(error).removesuffix(f" [{_CONFLICT}]"))


_START, _CREATE, _CANCEL = "execution:start", "documents:write", "execution:cancel"
_SCHEDULES = Subject("schedules", "/api/v1/schedules", "schedule:read", "own")
_CHANGES = Subject("schedules", "/api/v1/schedules/{schedule}", "schedule:manage", "own")

ROUTES: tuple[Route, ...] = (
    _SCHEDULES.get("", list_schedules, query=ScheduleQuery, answer=Listing[Schedule]),
    _SCHEDULES.get("/{schedule}", get_schedule, answer=Schedule, also=(304,)),
    _CHANGES.put(
        "",
        put_schedule,
        body=PutScheduleRequest,
        answer=Schedule,
        takes_condition=True,
        example={
            "workflow": "order",
            "input": {"kind": "nightly"},
            "computed": {"day": "scheduled_on"},
            "cron": "0 2 * * *",
            "time_zone": "Europe/Berlin",
        },
    ),
    _CHANGES.delete("", delete_schedule, takes_condition=True),
    _CHANGES.post(
        "/pause", pause_schedule, body=Reasoned, answer=Schedule, example={"reason": "the printer is broken"}
    ),
    _CHANGES.post("/resume", resume_schedule, body=Reasoned, answer=Schedule, example={"reason": "it is mended"}),
    _CHANGES.post("/trigger", trigger_schedule, body=TriggerRequest, answer=FireInfo, takes_key=True, example={}),
    _CHANGES.post(
        "/backfill",
        backfill_schedule,
        body=BackfillRequest,
        answer=Schedule,
        takes_key=True,
        example={"start": "2026-03-01T00:00:00Z", "end": "2026-03-07T00:00:00Z"},
    ),
    _CHANGES.post("/stop-backfills", stop_backfills, answer=Schedule),
    _SCHEDULES.get("/{schedule}/fires", list_fires, query=Paged, answer=Listing[FireInfo]),
    _SCHEDULES.get("/{schedule}/times", list_times, query=TimesQuery, answer=ScheduleTimesAnswer),
)
