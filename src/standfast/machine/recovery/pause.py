"""Pausing a run, and letting it go on.

A pause lets running handlers finish and holds what follows: tokens stay before the next node, timers are taken away, and a step that
gives up meanwhile has no consequences yet. Decisions of people are taken. All of that goes on when the run does.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

import msgspec

from standfast.graph.model import OK, HumanOp, Kind
from standfast.kernel.actor import SYSTEM
from standfast.kernel.decision import Answer, Ignored, Rejection
from standfast.kernel.durations import later
from standfast.kernel.row_kinds.steps import PauseClock
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.failures import give_up
from standfast.machine.flow.handler_calls import call_again
from standfast.machine.flow.node_kind import answer_of, no_transition
from standfast.machine.flow.process_answers import keep_answers
from standfast.machine.flow.rollback import NOT_UNDONE, roll_back
from standfast.machine.flow.routing import (
    end,
    finish,
    is_barred,
    leave_by,
    look_at_branches,
    stay_or_end,
    way_out,
)
from standfast.machine.model.commands.run_commands import (
    AnswerStep,
    EndGrace,
    ExpirePause,
    PauseWorkflow,
    ResumeWorkflow,
)
from standfast.machine.model.commands.timers import CLOCK, FAR, RESUME, command_of, stood_still
from standfast.machine.model.events import (
    PauseReason,
    StepAnswered,
    WorkflowPaused,
    WorkflowResumed,
)
from standfast.machine.model.queries.authorization import (
    OVERRIDE,
    override_refusal,
    pause_refusal,
    resume_refusal,
)
from standfast.machine.model.queries.eligibility import separation_refusal
from standfast.machine.model.queries.outputs import answer_found, fits, is_within, judged, too_large
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import PauseState, Resumed, RunState, Stay, StepState, Token
from standfast.machine.recovery.human_decisions import awaits_event
from standfast.machine.recovery.protection import is_protected
from standfast.machine.recovery.rule_resume import resting_places, stations

REQUESTED: Final = "requested"
APPROVED: Final = "approved"
DRIFTED: Final = "drift"
HELD: Final = frozenset({REQUESTED, DRIFTED})
"""Why a run is paused that goes on as soon as it is resumed."""

OF_A_STEP: Final = frozenset({"dlq", "step_failed"})
"""Why a run is paused whose step gave up."""

_MILLISECOND = timedelta(milliseconds=1)

REPEATED = Ignored(reason="this request was carried out before")
OVERDUE_MS: Final = 60_000
"""What is left to a run whose deadline passed while it waited for an operator, once it goes on."""
_LATE = Ignored(reason="the pause has ended already")
_EARLY = Ignored(reason="clocks have stood still meanwhile")

CLOCKS: Final[dict[Kind, PauseClock]] = {"saga": "run_on", "process": "run_on", "rules": "run_on", "envelope": "run_on"}
"""What becomes of timers if a pause does not say."""


def is_halted(state: RunState) -> bool:
    """Whether a run has ended on its way back, because something could not be undone."""
    return state.status == "failed" and state.rollback is not None and state.rollback.stuck is not None


def is_repeated(known: Resumed, command: object) -> bool:
    """Whether this very request to go on was carried out before."""
    return isinstance(command, ResumeWorkflow) and command.trigger_id in known.triggers


# -- pausing


def pause(turn: DecisionBuilder, command: PauseWorkflow) -> Rejection | None:
    """Hold what follows, and the timers."""
    moment = turn.moment
    barred = pause_refusal(turn.routes.graph, moment.actor) or not_pausable(turn)
    if barred is not None:
        return barred
    if command.until is not None and command.until <= moment.now:
        told = f"{command.until} is over already; give a later instant, or none for a pause that only a resume ends"
        return refused(Refusal.TIME_PASSED, told)
    hold_run(turn, REQUESTED, command)
    if command.until is not None:
        turn.set_timer_at(RESUME, command.until, ResumeWorkflow(trigger="timeout"))
    return None


def hold_answered(turn: DecisionBuilder, step: StepState) -> None:
    """A question of a workflow of rules is decided: leave it to whoever lets such workflows go on."""
    is_over = step.number not in turn.state.open
    if turn.routes.graph.kind == "rules" and is_over and turn.state.may_begin:
        hold_run(turn, APPROVED, PauseWorkflow(reason=f"{step.node!r} is decided"))


def hold_run(turn: DecisionBuilder, reason: PauseReason, command: PauseWorkflow) -> None:
    """Pause a run, and take its timers away."""
    moment = turn.moment
    held = dict(moment.pending_timers)
    for key in held:
        turn.cancel_timer(key)
    clock = command.clock or CLOCKS[turn.routes.graph.kind]
    turn.halt(
        WorkflowPaused(
            reason=reason,
            error=command.reason,
            at=moment.now,
            by=SYSTEM.id if reason == DRIFTED else moment.actor.id,
            clock=clock,
            until=command.until,
            held=held,
            place=moment.version,
        )
    )
    may_expire = turn.routes.graph.kind == "rules"
    if clock == "run_on" and (held or may_expire):
        turn.set_timer_at(CLOCK, later(moment.now, FAR), EndGrace())


def not_pausable(turn: DecisionBuilder) -> Rejection | None:
    """Why a run cannot be paused: it is, or undoes what it did."""
    state = turn.state
    if state.status == "paused":
        pause = state.pause
        if pause is None:
            return refused(Refusal.ALREADY_PAUSED, f"it waits for an operator already: {state.reason}")
        told = f"it is paused already, by {pause.by!r} since {pause.since}: {state.error or state.reason}"
        return refused(Refusal.ALREADY_PAUSED, f"{told}; pause it again once that pause has ended")
    if state.rollback is not None:
        return refused(Refusal.ROLLBACK_IN_PROGRESS, "it undoes what it did; wait for its end, or abort it")
    if waited := stations(turn):
        told = (
            f"it is paused already, because {waited[0].node!r} waits; what would let it go on, `resume_options` tells"
        )
        return refused(Refusal.ALREADY_PAUSED, told)
    return None


# -- going on


def resume(turn: DecisionBuilder, command: ResumeWorkflow) -> Answer | None:
    """Go on, if the run is paused and may; or past a question that is open, if that is asked for."""
    barred = resume_refusal(turn.routes.graph, turn.moment.actor)
    barred = barred or _not_meant(turn, command) or _not_undone(turn.state)
    if barred is not None:
        return barred
    is_paused = turn.state.status == "paused"
    station = _station(turn, command) if command.trigger == "manual" else None
    if isinstance(station, Rejection):
        return station
    refusal = _unresumable(turn, command, station)
    if refusal is not None:
        return refusal
    event = _resumed(turn, command)
    if is_paused:
        go_on(turn, event)
        if turn.state.pause is not None:  # For what another system told meanwhile.
            return None
    else:
        turn.emit(event)
    if station is not None and station.number in turn.state.open:  # Unless a failure that was held has ended it.
        _pass(turn, station, command)
    return None


def _unresumable(turn: DecisionBuilder, command: ResumeWorkflow, station: StepState | None) -> Answer | None:
    state = turn.state
    if state.status != "paused" and station is None:
        told = "the run itself is not paused; what it waits for, or what holds it, `resume_options` tells"
        return _LATE if turn.moment.fired_timer == RESUME else refused(Refusal.NOT_PAUSED, told)
    if state.dead and state.pause is None:
        steps = ", ".join(repr(step.node) for step in state.dead.values())
        return refused(Refusal.DEAD_LETTERS, f"steps gave up and have to be requeued first: {steps}")
    if command.data is not None and not is_within(turn.routes, command.data):
        return too_large(turn.routes, "what the resume brings along")
    return None if station is None else _stuck_refusal(turn, station, command)


def _stuck_refusal(turn: DecisionBuilder, station: StepState, command: ResumeWorkflow) -> Rejection | None:
    """Returns why a step cannot be left by the resume: there is no room for the answer, or no way is open to the actor."""
    token, outcome, answer = turn.state.tokens[station.token], OK, None
    if _is_question(turn, station):
        told = _answer(turn, station, command)
        outcome, answer = told.outcome, answer_found(turn.routes, station.node, told)
        if not fits(turn.routes, token.data, station.node, answer):
            return too_large(turn.routes, f"the answer to {station.node!r}")
    data = judged(turn.routes, token.data, station.node, answer)
    is_closed = is_barred(turn, token, station.node, outcome, data=data, answer=answer)
    return no_transition(station.node, outcome, turn.moment.actor.id) if is_closed else None


def waited_for(turn: DecisionBuilder) -> str:
    """What a run waits for that a resume would end, so that one which is carried out later can tell whether it still does; empty for nothing."""
    state = turn.state
    if state.pause is not None:
        told = f"{state.reason} {state.pause.since.isoformat()} {state.pause.by}"
        return f"{told} {state.pause.place}" if state.pause.place else told
    if state.status == "paused":
        return f"{state.reason} {state.next_step}"
    return " ".join(str(each.number) for each in stations(turn))


def _not_meant(turn: DecisionBuilder, command: ResumeWorkflow) -> Rejection | None:
    """Why a request of before does not count: what it was made for is over, or others are to decide."""
    if command.about is None:
        return None
    waited = waited_for(turn)
    if waited and waited != command.about:
        told = "what this was asked for is over, and the run waits for something else since; resume it, if that is to end too"
        return refused(Refusal.NOT_PAUSED, told)
    if any(_is_question(turn, each) for each in stations(turn)):
        told = f"people are asked, and a request that is carried out later goes past no question; resume it at once, which takes {OVERRIDE!r}"
        return refused(Refusal.NOT_ALLOWED, told)
    return None


def _not_undone(state: RunState) -> Rejection | None:
    """Returns why a run that waits because a compensation gave up is not resumed: a resume ends a pause, and waives nothing."""
    halted = state.rollback or state.dropped
    is_waiting = is_halted(state) or (state.status == "paused" and state.pause is None and state.reason == NOT_UNDONE)
    if not is_waiting or halted is None or halted.stuck is None:
        return None
    node = state.executed[halted.stuck].node
    told = f"a resume ends a pause, and this run waits because {node!r} could not be undone; retry its compensation, or have it undone where it was done"
    return refused(Refusal.NOT_PAUSED, f"{told}. If you undid it by hand, skip step {halted.stuck}")


def _resumed(turn: DecisionBuilder, command: ResumeWorkflow) -> WorkflowResumed:
    moment, state = turn.moment, turn.state
    name, told = command.trigger_id, None
    if command.trigger == "approval" and not name and state.reason == APPROVED and state.decided:
        decided = next(reversed(state.decided))  # It was left to whoever resumes when this was answered.
        name, told = f"{moment.instance}:{decided}", state.decided[decided]
    return WorkflowResumed(
        request=command.request or str(moment.derive_id(RESUME)),
        by=moment.actor.id,
        reason=command.reason,
        trigger=command.trigger,
        trigger_id=name,
        data=command.data,
        told=told,
    )


def _holds_for_drift(turn: DecisionBuilder, request: str) -> bool:
    """Whether the run is held once more, for what another system told while it was paused. The clocks are held from where that pause has held them."""
    state = turn.state
    document, pause = state.document, state.pause
    if document is None or not document.drift:
        return False
    turn.cancel_timer(RESUME)
    if pause is None:
        hold_run(turn, DRIFTED, PauseWorkflow(reason=document.drift))
        return True
    turn.emit(
        WorkflowPaused(
            reason=DRIFTED,
            error=document.drift,
            at=pause.at,
            by=SYSTEM.id,
            clock=pause.clock,
            held=dict(pause.held),
            since=document.drift_at,
            request=request,
            place=turn.moment.version,
        )
    )
    return True


def go_on(turn: DecisionBuilder, event: WorkflowResumed | None = None) -> None:
    """What was taken back is called again, tokens that were held go on, and branches are looked at that ended meanwhile.

    Unless the run is held for something else by now.
    """
    state = turn.state
    if _holds_for_drift(turn, "" if event is None else event.request):
        return
    pause, overdue = state.pause, list(state.held)
    held = [(token, token.stay) for token in state.tokens.values() if token.stay is not None]
    shift = _standstill(turn, pause)
    turn.cancel_timer(RESUME)
    turn.cancel_timer(CLOCK)
    event = event or WorkflowResumed()
    turn.emit(msgspec.structs.replace(event, shift_ms=shift // _MILLISECOND) if shift else event)
    _set_timers(turn, pause, shift, overdue)
    failed = [step for step in state.frozen.values() if step.has_failed]
    for step in list(state.frozen.values()):
        if not step.has_failed:
            call_again(turn, step)
    for token, stay in held:
        if stay.target:
            turn.move(token.id, stay.target, is_asked=pause is None)
        elif state.rollback is None:
            _leave(turn, token, stay, is_decided=pause is None)
    for step in failed:
        if step.number in state.frozen:  # Unless the failure of another one has ended it.
            give_up(turn, step, step.error, was_called=step.effect is None or step.made == step.attempt)
    for number in list(state.scopes):
        look_at_branches(turn, number)
    _resume_questions(turn)


def _resume_questions(turn: DecisionBuilder) -> None:
    for number in list(turn.state.questions):
        asking = turn.state.open.get(number)
        if asking is not None:
            turn.kind(asking).resume(turn, asking)


def _standstill(turn: DecisionBuilder, pause: PauseState | None) -> timedelta:
    """How long the clocks have stood still: because of the pause, or of pauses of wider scopes meanwhile."""
    if pause is None:
        return timedelta(0)
    moment = turn.moment
    return moment.now - pause.at if pause.clock == "stand_still" else stood_still(pause.at, moment.pending_timers)


def _set_timers(turn: DecisionBuilder, pause: PauseState | None, shift: timedelta, overdue: list[str]) -> None:
    """Set the timers again that the pause took away: due when they were, or as much later as the pause was long. And those that came due in vain."""
    for key, due_at in ({} if pause is None else pause.held).items():
        turn.set_timer_at(key, later(due_at, shift), command_of(key))
    for key in overdue:
        turn.set_timer(key, OVERDUE_MS, command_of(key))


def _leave(turn: DecisionBuilder, token: Token, stay: Stay, *, is_decided: bool) -> None:
    """A token that no edge led on from. If none does now, its way is over, provided that an operator has seen that and wants it to go on.

    A document is not over by that, nor is it approved by those alone whom a way was open to: its token waits until one is.
    """
    edge = way_out(turn, token, stay.node, stay.outcome)
    if edge is not None:
        leave_by(turn, token, edge)
    elif is_decided and turn.routes.documents is None:
        end(turn, token)
    else:
        stay_or_end(turn, token, stay.node, stay.outcome)


# -- past what it waits for


def _station(turn: DecisionBuilder, command: ResumeWorkflow) -> StepState | Rejection | None:
    """The step that somebody wants to go past: a question, or what a run waits for that counts as paused by it. None if there is none."""
    waits, state = _waits(turn, command), turn.state
    if not command.override and not waits:
        return None
    asked = waits or [each for each in state.open.values() if _is_question(turn, each)]
    if any(is_protected(turn.routes.node(each.node)) for each in asked):
        told = "an approval of a document counts by whoever decides it on the version that is asked about, and nobody goes past it"
        return refused(Refusal.PROTECTED, told)
    wanted = [each for each in asked if command.step in {None, each.number}]
    if command.override or any(_is_for_others(turn, each) for each in wanted):
        barred = override_refusal(turn.routes.graph, turn.moment.actor)
        if barred is not None:
            return barred
    if len(wanted) == 1:
        is_asked = _is_question(turn, wanted[0])
        barred = separation_refusal(turn.routes, turn.state, wanted[0], turn.moment.actor) if is_asked else None
        return barred or wanted[0]
    if wanted:
        steps = ", ".join(f"{each.number} ({each.node!r})" for each in wanted)
        return refused(Refusal.NOT_WAITING, f"several questions are open; name the step of one of them: {steps}")
    if command.step is not None:
        return refused(
            Refusal.NOT_WAITING, f"step {command.step} asks nobody anything; leave it out, or name one that does"
        )
    if state.status != "paused":
        return refused(Refusal.NOT_PAUSED, "it is not paused, and no question is open that a resume could go past")
    return None


def _waits(turn: DecisionBuilder, command: ResumeWorkflow) -> list[StepState]:
    """What the run waits for that a command goes past: rules count as paused by it, a process is led past it by whoever says so, and others never are."""
    if command.past_wait:
        return resting_places(turn)
    return stations(turn) if command.past_wait is None else []


def _is_for_others(turn: DecisionBuilder, step: StepState) -> bool:
    """Whether somebody else was to say that a step is left: people who are asked, or in a process whoever tells of the event."""
    is_event = turn.routes.graph.kind == "process" and awaits_event(turn.routes.node(step.node))
    return is_event or _is_question(turn, step)


def _is_question(turn: DecisionBuilder, step: StepState) -> bool:
    return step.of is None and isinstance(turn.routes.node(step.node).op, HumanOp)


def _pass(turn: DecisionBuilder, step: StepState, command: ResumeWorkflow) -> None:
    """Go past a step. A question is taken as approved, and its task closed with the name of whoever did that, and the reason."""
    turn.cancel_step_timer(step)
    if not _is_question(turn, step):
        finish(turn, step)
        return
    answer = _answer(turn, step, command)
    keep_answers(turn, step)
    turn.emit(answer)
    finish(turn, step, answer.outcome, answer_found(turn.routes, step.node, answer))


def _answer(turn: DecisionBuilder, step: StepState, command: ResumeWorkflow) -> StepAnswered:
    """Yes, from an operator who was not asked. What the resume brings stays apart from the answer: no form has judged it."""
    op = turn.routes.node(step.node).op
    assert isinstance(op, HumanOp)
    told = AnswerStep(step=step.number, outcome=op.approval, comment=command.reason)
    return msgspec.structs.replace(answer_of(turn, step, told, None), overridden=True)


# -- a pause that lasted too long


def expire(turn: DecisionBuilder, command: ExpirePause) -> Answer | None:
    """A pause has lasted longer than it may: the run fails, and undoes what it did."""
    pause, moment = turn.state.pause, turn.moment
    if pause is None:
        return _LATE
    lasts = timedelta(milliseconds=command.after_ms) + stood_still(pause.at, moment.pending_timers)
    if command.after_ms and moment.now < later(pause.since, lasts):
        return _EARLY
    roll_back(turn, "pause timeout")
    return None
