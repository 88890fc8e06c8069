"""Routes of human tasks: list, decide, claim and reassign them."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

import msgspec

from standfast.errors import NotFoundError
from standfast.features.runs.views import HumanTask
from standfast.features.tasks.views import DecidedTask, TaskCounts, TaskDecision, TaskDetails, TaskOutcome
from standfast.http.requests import streaming as streams
from standfast.http.requests.routing import (
    NoQuery,
    Paged,
    RequestModel,
    Route,
    RouteCall,
    Stream,
    Subject,
    run_id,
)
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing

_DIGITS = len(str(2**31))


class TaskQueryRequest(Paged, frozen=True, kw_only=True):
    """The filters of a task list."""

    mine: Literal["true", "false", "roles", "delegated"] = "true"
    """The caller's inbox, or a part of it; `false` for all tasks, which takes `execution:read`."""
    role: str | None = None
    requested_by_me: bool = False
    definition: str = ""
    key: str = ""
    overdue: bool = False


class OnBehalf(RequestModel, frozen=True, kw_only=True):
    """The principal of an action by a deputy."""

    on_behalf_of: str = ""


class Vote(OnBehalf, frozen=True, kw_only=True):
    """A decision: approve, reject or abstain."""

    comment: str = ""
    data: object = None
    document_version: str = ""
    """The version of the document that the approver has read."""
    stage: str = ""
    """The stage of the approval chain that the approver has seen; a decision for a past stage has no effect on another."""


class Decide(Vote, frozen=True, kw_only=True):
    """One of the task's outcomes."""

    decision: str


class SeenTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task, and the document version that the approver has read."""

    task: str
    document_version: str = ""
    stage: str = ""


class DecideMany(OnBehalf, frozen=True, kw_only=True):
    """One outcome, for many tasks."""

    tasks: Annotated[list[SeenTask], msgspec.Meta(max_length=1000)]
    decision: str
    comment: str = ""


class TaskOutcomes(msgspec.Struct, frozen=True, kw_only=True):
    """The outcomes of several tasks, in the order of the request."""

    items: list[TaskOutcome]


class TakeBack(OnBehalf, frozen=True, kw_only=True):
    """A decision or task to withdraw."""

    reason: str = ""


class Delegate(TakeBack, frozen=True, kw_only=True):
    """The new assignee."""

    to: str


class Reassign(RequestModel, frozen=True, kw_only=True):
    """The old and the new assignee."""

    to: str
    who: str = ""
    reason: str = ""


class AddApproverRequest(RequestModel, frozen=True, kw_only=True):
    """The additional approver."""

    person: str
    weight: Annotated[int, msgspec.Meta(ge=1, le=1_000_000)] = 1
    reason: str = ""


class Escalate(OnBehalf, frozen=True, kw_only=True):
    """The reason of an escalation."""

    reason: str = ""


class Say(OnBehalf, frozen=True, kw_only=True):
    """A comment on a task."""

    text: str


class AskedPlace(msgspec.Struct, frozen=True, array_like=True):
    """The position of a task in a list of open ones."""

    asked_at: datetime
    instance: UUID
    number: int


class _DecidedPlace(msgspec.Struct, frozen=True, array_like=True):
    decided_at: datetime
    instance: UUID
    number: int
    sequence: int


async def list_tasks(call: RouteCall[TaskQueryRequest, None]) -> Listing[HumanTask]:
    """List open tasks, oldest first; by default those in the caller's inbox."""
    asked, size = call.query, call.page(call.query.limit)
    place = cursors.read(asked.cursor, AskedPlace)
    behind = (
        None
        if place is None
        else cursors.resting(HumanTask, asked_at=place.asked_at, instance=place.instance, step_number=place.number)
    )
    is_mine = asked.role is None and not asked.requested_by_me
    found = await call.calls.tasks.list(
        mine=_MINE[asked.mine] if is_mine or asked.mine not in {"true", "false"} else False,
        role=asked.role,
        requested_by_me=asked.requested_by_me,
        definition=asked.definition,
        key=asked.key,
        is_overdue=asked.overdue,
        after=behind,
        limit=size + 1,
    )
    return cursors.listing(found, size, lambda each: [each.asked_at, each.instance, each.step_number])


async def count_tasks(call: RouteCall[NoQuery, None]) -> TaskCounts:
    """Count the caller's open tasks."""
    return await call.calls.tasks.counts()


async def list_decided(call: RouteCall[Paged, None]) -> Listing[DecidedTask]:
    """List the caller's decisions, newest first."""
    size, place = call.page(call.query.limit), cursors.read(call.query.cursor, _DecidedPlace)
    behind = (
        None
        if place is None
        else DecidedTask(
            task=cursors.resting(HumanTask, instance=place.instance, step_number=place.number),
            decision=cursors.resting(TaskDecision, decided_at=place.decided_at, sequence=place.sequence),
        )
    )
    found = await call.calls.tasks.decided(after=behind, limit=size + 1)

    def where(each: DecidedTask) -> object:
        return [each.decision.decided_at, each.task.instance, each.task.step_number, each.decision.sequence]

    return cursors.listing(found, size, where)


async def get_task(call: RouteCall[NoQuery, None]) -> TaskDetails:
    """Get a task with its current and past assignees, decisions, comments and form."""
    return await call.calls.tasks.get(_task(call.path["id"]))


async def decide_task(call: RouteCall[NoQuery, Decide]) -> None:
    """Decide a task by one of its outcomes."""
    asked = call.body
    await call.calls.tasks.decide(
        _task(call.path["id"]),
        asked.decision,
        comment=asked.comment,
        data=asked.data,
        on_behalf_of=asked.on_behalf_of,
        document_version=asked.document_version,
        stage=asked.stage,
    )


async def decide_tasks(call: RouteCall[NoQuery, DecideMany]) -> TaskOutcomes:
    """Decide many tasks by one outcome; a refused one does not affect the others."""
    asked = call.body
    found = await call.calls.tasks.decide_many(
        [(each.task, each.document_version, each.stage) for each in asked.tasks],
        asked.decision,
        comment=asked.comment,
        on_behalf_of=asked.on_behalf_of,
    )
    return TaskOutcomes(items=found)


async def approve_task(call: RouteCall[NoQuery, Vote]) -> None:
    """Approve a task, whatever the definition's name for that outcome."""
    asked = call.body
    await call.calls.tasks.approve(
        _task(call.path["id"]),
        comment=asked.comment,
        data=asked.data,
        on_behalf_of=asked.on_behalf_of,
        document_version=asked.document_version,
        stage=asked.stage,
    )


async def reject_task(call: RouteCall[NoQuery, Vote]) -> None:
    """Reject a task, whatever the definition's name for that outcome."""
    asked = call.body
    await call.calls.tasks.reject(
        _task(call.path["id"]),
        comment=asked.comment,
        data=asked.data,
        on_behalf_of=asked.on_behalf_of,
        document_version=asked.document_version,
        stage=asked.stage,
    )


async def abstain(call: RouteCall[NoQuery, Vote]) -> None:
    """Abstain from a decision, where the step allows it."""
    asked = call.body
    await call.calls.tasks.abstain(
        _task(call.path["id"]),
        comment=asked.comment,
        data=asked.data,
        on_behalf_of=asked.on_behalf_of,
        document_version=asked.document_version,
        stage=asked.stage,
    )


async def withdraw_decision(call: RouteCall[NoQuery, TakeBack]) -> None:
    """Withdraw the caller's decision, while the task is open."""
    asked = call.body
    await call.calls.tasks.withdraw_decision(_task(call.path["id"]), asked.reason, on_behalf_of=asked.on_behalf_of)


async def claim_task(call: RouteCall[NoQuery, OnBehalf]) -> None:
    """Claim a task: no other user can decide it then."""
    await call.calls.tasks.claim(_task(call.path["id"]), on_behalf_of=call.body.on_behalf_of)


async def release_task(call: RouteCall[NoQuery, OnBehalf]) -> None:
    """Release a claimed task."""
    await call.calls.tasks.release(_task(call.path["id"]), on_behalf_of=call.body.on_behalf_of)


async def delegate_task(call: RouteCall[NoQuery, Delegate]) -> None:
    """Delegate the caller's task to another user."""
    asked = call.body
    await call.calls.tasks.delegate(
        _task(call.path["id"]), asked.to, reason=asked.reason, on_behalf_of=asked.on_behalf_of
    )


async def reassign_task(call: RouteCall[NoQuery, Reassign]) -> None:
    """Reassign a task to another user; it takes `task:reassign`."""
    asked = call.body
    await call.calls.tasks.reassign(_task(call.path["id"]), asked.to, who=asked.who, reason=asked.reason)


async def add_approver(call: RouteCall[NoQuery, AddApproverRequest]) -> None:
    """Add an approver to a task; it takes `task:add_approver`."""
    asked = call.body
    await call.calls.tasks.add_approver(_task(call.path["id"]), asked.person, weight=asked.weight, reason=asked.reason)


async def escalate_task(call: RouteCall[NoQuery, Escalate]) -> None:
    """Escalate a task now."""
    asked = call.body
    await call.calls.tasks.escalate(_task(call.path["id"]), asked.reason, on_behalf_of=asked.on_behalf_of)


async def comment_on_task(call: RouteCall[NoQuery, Say]) -> None:
    """Comment on a task, or answer a question about it."""
    asked = call.body
    await call.calls.tasks.comment(_task(call.path["id"]), asked.text, on_behalf_of=asked.on_behalf_of)


async def ask_back(call: RouteCall[NoQuery, Say]) -> None:
    """Ask a question about a task before deciding it."""
    asked = call.body
    await call.calls.tasks.ask(_task(call.path["id"]), asked.text, on_behalf_of=asked.on_behalf_of)


async def withdraw_task(call: RouteCall[NoQuery, TakeBack]) -> None:
    """Withdraw a task: it needs no decision any longer.

    If no edge leads on from that, the run ends, and it also takes `execution:cancel`.
    """
    asked = call.body
    await call.calls.tasks.withdraw(_task(call.path["id"]), asked.reason, on_behalf_of=asked.on_behalf_of)


async def stream_inbox(call: RouteCall[NoQuery, None]) -> Stream:
    """Stream the number of the caller's open tasks, on every change, as server-sent events: `counts`."""
    return await streams.streamed(streams.inbox_events(call))


def _task(text: str) -> str:
    """Parse a task id in a path; NotFoundError if it is invalid."""
    instance, _, number = text.rpartition(":")
    if not (number.isascii() and number.isdecimal() and len(number) < _DIGITS):
        raise NotFoundError("task", text, hint="take it from a list of tasks")
    return f"{run_id(instance)}:{number}"


_MINE: dict[str, bool | Literal["roles", "delegated"]] = {
    "true": True, "false": False, "roles": "roles", "delegated": "delegated",
}  # fmt: skip
_TASKS = Subject("tasks", "/api/v1/tasks", "task:use", "run")
_NO = {"comment": "the amount is wrong"}

ROUTES: tuple[Route, ...] = (
    _TASKS.get("", list_tasks, reach="own", query=TaskQueryRequest, answer=Listing[HumanTask]),
    _TASKS.get("/counts", count_tasks, reach="own", answer=TaskCounts),
    _TASKS.get("/decided", list_decided, reach="own", query=Paged, answer=Listing[DecidedTask]),
    _TASKS.get("/events", stream_inbox, reach="own", answer=TaskCounts, media_type="text/event-stream"),
    _TASKS.post(
        "/decide",
        decide_tasks,
        reach="own",
        body=DecideMany,
        answer=TaskOutcomes,
        example={"tasks": [], "decision": "confirmed", "comment": "fine"},
    ),
    _TASKS.get("/{id}", get_task, answer=TaskDetails),
    _TASKS.post("/{id}/decide", decide_task, body=Decide, example={"decision": "confirmed", "comment": "fine"}),
    _TASKS.post("/{id}/approve", approve_task, body=Vote, example={"comment": "fine"}),
    _TASKS.post("/{id}/reject", reject_task, body=Vote, example=_NO),
    _TASKS.post("/{id}/abstain", abstain, body=Vote, example={"comment": "not my field"}),
    _TASKS.post(
        "/{id}/withdraw-decision", withdraw_decision, body=TakeBack, example={"reason": "looked at the wrong one"}
    ),
    _TASKS.post("/{id}/claim", claim_task, body=OnBehalf, example={}),
    _TASKS.post("/{id}/release", release_task, body=OnBehalf, example={}),
    _TASKS.post("/{id}/delegate", delegate_task, body=Delegate, example={"to": "bob", "reason": "away tomorrow"}),
    _TASKS.post("/{id}/reassign", reassign_task, body=Reassign, example={"to": "role:finance"}),
    _TASKS.post("/{id}/approvers", add_approver, body=AddApproverRequest, example={"person": "carol"}),
    _TASKS.post("/{id}/escalate", escalate_task, body=Escalate, example={"reason": "it is urgent"}),
    _TASKS.post("/{id}/comments", comment_on_task, body=Say, example={"text": "see page 3"}),
    _TASKS.post("/{id}/questions", ask_back, body=Say, example={"text": "which cost centre?"}),
    _TASKS.post("/{id}/withdraw", withdraw_task, body=TakeBack, example={"reason": "not needed any more"}),
)
