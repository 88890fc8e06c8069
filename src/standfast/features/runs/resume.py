"""What becomes of requests to let a run go on that no commit tells of: those that are refused, and those that are left for later."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final, cast, get_args
from uuid import UUID

import msgspec
from msgspec.structs import replace

from standfast.calls.authorization import permit
from standfast.calls.context import CallContext
from standfast.calls.handlers.step_handlers import plain
from standfast.engine.concurrency.replies import Reply
from standfast.engine.loops.resume import ResumeSubmission, Resumption
from standfast.errors import NotFoundError, PayloadError, RejectedError
from standfast.features.runs.pauses.views import ResumeRequest, resume_request
from standfast.features.runs.reads import folded_workflow, graph_of, workflow_row
from standfast.kernel.actor import OWN, request_bytes, request_of
from standfast.kernel.decision import Rejection
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.kernel.row_kinds.steps import PauseClock, ResumeTrigger
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.machine import GraphMachine
from standfast.machine.model.commands.run_commands import ExpirePause, ResumeWorkflow
from standfast.machine.model.queries.authorization import OVERRIDE, RESUME, resume_refusal
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import RunState
from standfast.machine.nodes import kind_of
from standfast.machine.recovery.pause import waited_for
from standfast.store.ports import maintenance as resuming
from standfast.store.ports.reading import TenantReader

_MILLISECOND = timedelta(milliseconds=1)
_CLOCKS: tuple[str, ...] = get_args(PauseClock)
_TRIGGERS: tuple[str, ...] = get_args(ResumeTrigger)


def noting_refusal(desk: CallContext, instance: InstanceId, command: ResumeWorkflow, told: Reply[None]) -> Reply[None]:
    """The same answer; one that is a refusal is written down before it is given."""
    if desk.is_within:  # The caller's transaction is open, and the row would wait for it.
        return told
    reply: Reply[None] = desk.reply()

    def settle() -> None:
        error = told.exception()
        if error is None:
            reply.set_result(None)
        elif isinstance(error, RejectedError):
            refusal = error
            desk.read(lambda: _note(desk, instance, command, refusal), reply)
        else:
            reply.set_error(error)

    told.when_brought(settle)
    return reply


def _note(desk: CallContext, instance: InstanceId, command: ResumeWorkflow, refusal: RejectedError) -> None:
    """Write a refusal down, and raise it."""
    request = _stored(desk, instance, command, outcome="refused", error=str(refusal))
    desk.service.operate(lambda parts: parts.resumes().record(request), may_repeat=False)
    raise refusal


def requested(desk: CallContext, instance: InstanceId, command: ResumeWorkflow) -> ResumeRequest:
    """Write a request down that is to be carried out later. What would be refused for want of a right is refused now."""
    request = _stored(desk, instance, command, outcome="open")
    with desk.reader.look() as reader:
        graph = graph_of(desk, workflow_row(reader, instance))
        permit(resume_refusal(graph, desk.looked_up().request.actor))
        request = _meant(desk, reader, request)
        permit(_later_refusal(desk, reader, request))

    def check(acting: CallContext) -> None:
        permit(resume_refusal(graph, acting.request.actor))

    if not desk.operate(lambda parts: parts.resumes().record(request), may_repeat=False, check=check):
        raise NotFoundError("workflow instance", instance)
    return resume_request(request)


def _meant(
    desk: CallContext, reader: TenantReader, request: resuming.ResumeRequestRecord
) -> resuming.ResumeRequestRecord:
    """The request with what the run waits for now, which alone it is about."""
    tracked = folded_workflow(desk, reader, request.instance)
    decider, state = tracked.program.decider, tracked.state
    assert isinstance(decider, GraphMachine)
    assert isinstance(state, RunState)
    moment = Moment(now=request.requested_at, instance=request.instance)
    return replace(request, about=waited_for(DecisionBuilder(decider.routes_of(state), state, moment, kind_of)))


def _later_refusal(desk: CallContext, reader: TenantReader, request: resuming.ResumeRequestRecord) -> Rejection | None:
    """Why the worker could not let the run go on, as it stands now, because somebody else has to decide first."""
    tracked, told = folded_workflow(desk, reader, request.instance), _requested(request)
    header, now = tracked.header, desk.service.shared.clock.now()
    actor, facts = replace(told.request.actor, capabilities=frozenset({RESUME})), desk.facts(header)
    moment = Moment(now=now, instance=header.id, actor=actor, version=header.version, facts=facts)
    answer = tracked.program.answer(tracked.state, told.command, moment)
    if not isinstance(answer, Rejection) or answer.code not in {Refusal.NOT_ALLOWED, Refusal.PROTECTED}:
        return None
    if answer.code == Refusal.NOT_ALLOWED and desk.looked_up().request.actor.may(OVERRIDE):
        words = "a request that is left for later never goes past an open question; go past it with `resume` now, or have it decided"
        return refused(Refusal.NOT_ALLOWED, words)
    return answer


def _stored(
    desk: CallContext, instance: InstanceId, command: ResumeWorkflow, *, outcome: str, error: str = ""
) -> resuming.ResumeRequestRecord:
    shared, actor = desk.service.shared, desk.request.actor
    now = shared.clock.now()
    return resuming.ResumeRequestRecord(
        id=UUID(int=shared.chance.new_id(now).int),
        instance=instance,
        tenant=desk.tenant,
        triggered_by=command.trigger,
        triggered_by_id=command.trigger_id or actor.id,
        trigger_data=None if command.data is None else msgspec.json.encode(command.data),
        reason=command.reason or desk.request.reason,
        requested_by=actor.id,
        requested_at=now,
        outcome=cast("resuming.Outcome", outcome),
        error_message=error,
        on_behalf_of=actor.on_behalf_of,
        context=request_bytes(desk.asked, trace=desk.asked.trace),
    )


def _requested(request: resuming.ResumeRequestRecord) -> ResumeSubmission:
    """Whoever asked was allowed to, and must be when it is carried out: with the key, the roles and the rights that they came with, as far as these hold."""
    is_named = request.triggered_by_id != request.requested_by
    command = ResumeWorkflow(
        reason=request.reason,
        trigger=request.triggered_by,
        trigger_id=request.triggered_by_id if is_named else str(request.id),
        data=None if request.trigger_data is None else msgspec.json.decode(request.trigger_data),
        request=str(request.id),
        about=request.about,
    )
    kept = request_of(request.context)
    actor = kept.actor
    if actor.kind == "system":
        return ResumeSubmission(command, replace(kept, tenant=request.tenant))
    # It is the right to resume that they use, and no other that they came with.
    came = frozenset({RESUME}) if actor.may(RESUME) else frozenset[str]()
    actor = replace(actor, capabilities=came, on_behalf_of=request.on_behalf_of)
    return ResumeSubmission(command, replace(kept, tenant=request.tenant, actor=actor, is_late=True))


RESUMPTION: Final = Resumption(
    requested=_requested,
    decided=lambda: ResumeSubmission(ResumeWorkflow(trigger="approval"), OWN),
    expired=lambda after: ResumeSubmission(ExpirePause(after_ms=after // _MILLISECOND), OWN),
    expiring="rules",
)
"""What the worker says to runs that are to go on, or have been paused for too long."""


def checked_clock(given: object) -> PauseClock | None:
    """What becomes of timers during a pause."""
    if given is None or given in _CLOCKS:
        return cast("PauseClock | None", given)
    raise PayloadError(f"the clock of a pause is one of {', '.join(_CLOCKS)}, not {given!r}")


def checked_trigger(given: object) -> ResumeTrigger:
    """What has a run go on."""
    if given in _TRIGGERS:
        return cast("ResumeTrigger", given)
    raise PayloadError(f"a resume is triggered by one of {', '.join(_TRIGGERS)}, not {given!r}")


def checked_until(given: object, now: datetime) -> datetime | None:
    """When a pause ends by itself."""
    if given is None:
        return None
    try:
        at = now + given if isinstance(given, timedelta) else given
    except OverflowError as error:
        raise PayloadError(f"the pause would end after the last day of the calendar: {given}") from error
    if not isinstance(at, datetime) or at.tzinfo is None:
        raise PayloadError(
            f"`until` is an instant with a time zone, such as datetime(..., tzinfo=UTC), or a timedelta from now on, not {given!r}"
        )
    try:
        return at.astimezone(UTC)
    except OverflowError:
        raise PayloadError(f"`until` is {at}, outside of the years 1 to 9999, counted in UTC") from None


def checked_data(given: object, *, limit: int) -> dict[str, object] | None:
    """What a resume brings along: names with values, made plain."""
    if given is None:
        return None
    made = plain(given, what="data", limit=limit)
    if not isinstance(made, dict):
        raise PayloadError(f"the data of a resume are names with values, as a dict, not {given!r}")
    return made
