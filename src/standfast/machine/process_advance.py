"""Advancing a process: the step that it is at is found, and the event judged, on the state that the commit has in hand."""

from __future__ import annotations

from msgspec.structs import replace

from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp
from standfast.kernel.decision import Answer, Rejection
from standfast.kernel.moment import Moment
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands.run_commands import AdvanceProcess, AnswerStep
from standfast.machine.model.queries.eligibility import question_of
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import RunState, StepState
from standfast.machine.nodes import kind_of
from standfast.machine.recovery.repair import AGAIN, may_be_repeated
from standfast.machine.status import status_of
from standfast.machine.tasks.assignment import NO_APPROVER
from standfast.machine.tasks.completion import answer_step
from standfast.machine.tasks.entitlement import decider_refusal


def inactive(routes: GraphIndex, state: RunState, command: AdvanceProcess, moment: Moment) -> Rejection | None:
    """Why a run cannot be advanced at all: the caller sees no process there, or it is not active."""
    if routes.graph.kind != "process" or command.partition not in {None, moment.partition}:
        return refused(Refusal.NOT_STARTED, "there is no such process")
    status = status_of(routes, state)
    if status.word == "running":
        return None
    if status.word == "paused" and is_undecided(state) and _can_decide(DecisionBuilder(routes, state, moment, kind_of)):
        return None
    if status.word == "paused":
        return refused(Refusal.NOT_ACTIVE, "the instance is suspended; resume it first")
    word = "cancelled" if status.word == "aborted" else status.word
    return refused(Refusal.NOT_ACTIVE, f"the instance is {word}; it has ended")


def is_undecided(state: RunState) -> bool:
    """Whether a run is suspended for one thing alone: when it was looked, nobody could decide its question. Whoever can by now decides it."""
    return state.status == "paused" and state.pause is None and state.reason == NO_APPROVER


def _can_decide(turn: DecisionBuilder) -> bool:
    step = next(iter(turn.state.open.values()), None)
    is_asking = step is not None and isinstance(turn.routes.node(step.node).op, HumanOp)
    return step is not None and is_asking and decider_refusal(turn, step) is None


def advance(turn: DecisionBuilder, command: AdvanceProcess) -> Answer | None:
    """Refused in this order: the actor is not asked, it was changed since, no transition leads on; and then as any answer is.

    Whoever is not asked learns nothing of versions.
    """
    step = next(iter(turn.state.open.values()), None)
    is_asking = step is not None and isinstance(turn.routes.node(step.node).op, HumanOp)
    if command.expected is not None:
        barred = _outdated(turn, command.expected, step if is_asking else None)
        if barred is not None:
            return barred
    if step is None or not (is_asking or _may_repeat(turn, step, command.event)):
        at = "a step" if step is None else repr(step.node)
        return refused(Refusal.NO_TRANSITION, f"{at} is left by itself, and not by {command.event!r}")
    given = AnswerStep(step=step.number, outcome=command.event, comment=command.comment, data=command.data)
    if is_asking and command.expected is not None:  # The caller has seen the stage that is asked.
        given = replace(given, stage=question_of(turn.routes, turn.state, step).stage_asked)
    return answer_step(turn, given)


def _outdated(turn: DecisionBuilder, expected: int, asking: StepState | None) -> Rejection | None:
    barred = None if asking is None else decider_refusal(turn, asking)
    if barred is not None or expected == turn.moment.commits:
        return barred
    told = f"it has version {turn.moment.commits} by now, not {expected}; look at it again"
    return refused(Refusal.VERSION_CONFLICT, told)


def _may_repeat(turn: DecisionBuilder, step: StepState, event: str) -> bool:
    """Whether an event has the call of a step made again."""
    return event == AGAIN and step.effect is not None and may_be_repeated(turn.routes, turn.routes.node(step.node))
