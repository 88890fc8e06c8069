"""Routes to repair runs. Each takes a reason, which the history keeps."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

import msgspec

from standfast.errors import NotFoundError
from standfast.features.runs.fork import ForkPreview
from standfast.http.requests.routing import NoQuery, RequestModel, Route, RouteCall, RouteResponse, Subject
from standfast.http.routes.workflows.control import Started, Stopped

_DIGITS = len(str(2**31))
_PATIENCE_SECONDS = 2.0


class RunRepairRequest(RequestModel, frozen=True, kw_only=True):
    """Why something is repaired."""

    reason: str


class RetryRequest(RunRepairRequest, frozen=True, kw_only=True):
    """A step that is to be called now."""

    input: dict[str, object] | None = None
    """Another input, for a step that gave up."""


class Skip(RunRepairRequest, frozen=True, kw_only=True):
    """A step that is to be left without its work."""

    outcome: str = ""
    """By which outcome; as if it had ended well if this is empty."""


class Complete(RunRepairRequest, frozen=True, kw_only=True):
    """A step that was done by other means."""

    output: object = None


class ChangeDataRequest(RunRepairRequest, frozen=True, kw_only=True):
    """A merge patch over the data of a run."""

    patch: dict[str, object]
    token: str = ""
    """Of one token only; of all if this is empty."""


class CancelBranchRequest(RunRepairRequest, frozen=True, kw_only=True):
    """A branch that is to end."""

    token: str
    """As the steps of the run name it."""


class MoveBackRequest(RunRepairRequest, frozen=True, kw_only=True):
    """The save point to roll back to."""

    save_point: str = ""
    """The last one if this is empty."""


class Fork(RunRepairRequest, frozen=True, kw_only=True):
    """The start of a fork."""

    at: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
    """The sequence of the last event that it takes over."""
    data: dict[str, object] = msgspec.field(default_factory=dict)
    """A merge patch over its data."""
    key: str = ""
    """Its business key."""


class ForkQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The start of a fork to preview."""

    at: Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]


async def retry_step(call: RouteCall[NoQuery, RetryRequest]) -> None:
    """Retry a step now that failed or waits for its next attempt."""
    await call.run.retry(_step(call.path["number"]), reason=call.body.reason, input=call.body.input)


async def reenqueue_step(call: RouteCall[NoQuery, RunRepairRequest]) -> None:
    """Take a step from a lost worker, and queue it again."""
    await call.run.reenqueue(_step(call.path["number"]), reason=call.body.reason)


async def skip_step(call: RouteCall[NoQuery, Skip]) -> None:
    """Skip a step, without its work."""
    await call.run.skip(_step(call.path["number"]), reason=call.body.reason, outcome=call.body.outcome)


async def complete_step(call: RouteCall[NoQuery, Complete]) -> None:
    """Complete a step with a result that was obtained by other means."""
    await call.run.complete_step(_step(call.path["number"]), call.body.output, reason=call.body.reason)


async def change_data(call: RouteCall[NoQuery, ChangeDataRequest]) -> None:
    """Lay a JSON merge patch over the data of a run."""
    await call.run.change_data(call.body.patch, reason=call.body.reason, token=call.body.token)


async def cancel_branch(call: RouteCall[NoQuery, CancelBranchRequest]) -> None:
    """Cancel one of several branches; the others continue, and the join does not wait for it."""
    await call.run.cancel_branch(call.body.token, reason=call.body.reason)


async def move_back(call: RouteCall[NoQuery, MoveBackRequest]) -> None:
    """Roll a run back to a save point and continue from there."""
    await call.run.move_back(call.body.save_point, reason=call.body.reason)


async def fail_execution(call: RouteCall[NoQuery, RunRepairRequest]) -> RouteResponse:
    """Fail a run, with its compensations. Status 202 if they are still running."""
    run = call.run
    try:
        status = await run.fail(call.body.reason, timeout=_PATIENCE_SECONDS)
    except TimeoutError:
        return RouteResponse(value=Stopped(id=run.id, status="failing", is_finished=False), status=202)
    return RouteResponse(value=Stopped(id=run.id, status=status, is_finished=True))


async def preview_fork(call: RouteCall[ForkQuery, None]) -> ForkPreview:
    """Preview a fork: what the new run takes over, and what it runs again."""
    return await call.run.fork_preview(call.query.at)


async def fork_execution(call: RouteCall[NoQuery, Fork]) -> RouteResponse:
    """Start a new run of the same version where this one was; this one stays as it is."""
    asked = call.body
    born = await call.run.fork(asked.at, reason=asked.reason, data=asked.data, key=asked.key)
    headers = {"location": f"/api/v1/executions/{born.id}"}
    return RouteResponse(value=Started(id=UUID(str(born.id))), status=201, headers=headers)


def _step(text: str) -> int:
    """Return the step number in the path."""
    if not (text.isascii() and text.isdecimal() and len(text) < _DIGITS):
        raise NotFoundError("step", text, hint="take its number from the steps of the run")
    return int(text)


_REPAIRS = Subject("repairs", "/api/v1/executions/{id}", "execution:repair", "run")
_WHY = {"reason": "the carrier confirmed by phone"}

ROUTES: tuple[Route, ...] = (
    _REPAIRS.post("/steps/{number}/retry", retry_step, body=RetryRequest, example=_WHY),
    _REPAIRS.post("/steps/{number}/requeue", reenqueue_step, body=RunRepairRequest, example=_WHY),
    _REPAIRS.post("/steps/{number}/skip", skip_step, body=Skip, example=_WHY),
    _REPAIRS.post("/steps/{number}/complete", complete_step, body=Complete, example={**_WHY, "output": {"parcel": 77}}),
    _REPAIRS.post(
        "/data", change_data, body=ChangeDataRequest, example={**_WHY, "patch": {"address": {"city": "Bern"}}}
    ),
    _REPAIRS.post("/cancel-branch", cancel_branch, body=CancelBranchRequest, example={**_WHY, "token": "0/2.1"}),
    _REPAIRS.post("/move-back", move_back, body=MoveBackRequest, example={**_WHY, "save_point": "packed"}),
    _REPAIRS.post("/fail", fail_execution, body=RunRepairRequest, answer=Stopped, also=(202,), example=_WHY),
    _REPAIRS.get("/fork-preview", preview_fork, permission="execution:read", query=ForkQuery, answer=ForkPreview),
    _REPAIRS.post("/fork", fork_execution, body=Fork, answer=Started, status=201, example={**_WHY, "at": 3}),
)
