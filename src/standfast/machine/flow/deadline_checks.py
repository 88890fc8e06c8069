"""Whether something comes after its deadline: a decision, a signal or an event whose step has waited as long as it may.

The timer of the step may not have fired yet, because the run is paused, or because nobody works. What comes then is late all the same,
unless clocks stand still meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

from standfast.graph.index import GraphIndex
from standfast.graph.model import HumanOp
from standfast.kernel.decision import Rejection
from standfast.kernel.durations import later
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands.timers import DEADLINE, escalation_timer, step_timer, stood_still
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import RunState, StepState


def late_refusal(turn: DecisionBuilder, step: StepState, what: str) -> Rejection | None:
    """Why something comes too late for an open step; None if it is in time."""
    if not is_late(turn, step):
        return None
    return refused(Refusal.EXPIRED, f"{what} comes too late: the time of {step.node!r} is over")


def is_late(turn: DecisionBuilder, step: StepState, at: str = "") -> bool:
    """Whether the time of an open step, or of the whole run, is over, or was when something happened. Where clocks stand still, it is not."""
    moment = turn.moment
    when = datetime.fromisoformat(at) if at else moment.now
    return is_over(turn.routes, turn.state, step, when, pending=moment.pending_timers)


def is_over(
    routes: GraphIndex, state: RunState, step: StepState, when: datetime, *, pending: Mapping[str, datetime]
) -> bool:
    """Whether the time of an open step was over at an instant: by the timers that a pause of the run holds, by those that have not fired, or by its own that has."""
    if step.over_at and when > datetime.fromisoformat(step.over_at):
        return True
    pause = state.pause
    if pause is not None and pause.clock == "stand_still":
        return False
    due = pending if pause is None else pause.held
    if not due or min(due.values()) >= when:
        return False
    shift = timedelta(0) if pause is None else stood_still(pause.at, pending)
    return any(key in due and later(due[key], shift) < when for key in _ends(routes, state, step, due))


def _ends(routes: GraphIndex, state: RunState, step: StepState, due: Mapping[str, datetime]) -> Iterator[str]:
    """The timers by which the step ends. One that only has others asked besides ends nothing, nor does one behind an escalation that gives more time."""
    op = routes.node(step.node).op
    yield DEADLINE
    if not isinstance(op, HumanOp):
        yield step_timer(step.number)
        return
    ladder = () if op.times is None else op.times.escalation
    rung = ladder[step.level] if step.level < len(ladder) else None
    own, higher = step_timer(step.number), escalation_timer(step.number)
    is_put_off = (
        rung is not None and rung.timeout_ms is not None and higher in due and due[higher] < due.get(own, due[higher])
    )
    if not is_put_off and not (state.escalates and op.last_resort and not step.level):
        yield own
    if rung is not None and rung.outcome:
        yield higher
