"""Whether something comes after its deadline: a decision, a signal or an event whose step has waited as long as it may.

The timer of the step may not have fired yet, because the run is paused, or because nobody works. What comes then is late all the same,
unless clocks stand still meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime

from holdfast.kernel.decision import Rejection
from holdfast.machine.graphs.graph import Human
from holdfast.machine.runs.refusals import Refusal, refused
from holdfast.machine.runs.state import Step
from holdfast.machine.runs.timers import DEADLINE, escalation_timer, step_timer
from holdfast.machine.runs.turn import Turn


def late_refusal(turn: Turn, step: Step, what: str) -> Rejection | None:
    """Why something comes too late for an open step; None if it is in time."""
    if not is_late(turn, step):
        return None
    return refused(Refusal.EXPIRED, f"{what} comes too late: the time of {step.node!r} is over")


def is_late(turn: Turn, step: Step, at: str = "") -> bool:
    """Whether the time of an open step, or of the whole run, is over, or was when something happened. Where clocks stand still, it is not."""
    moment, pause = turn.moment, turn.state.pause
    if moment.is_shifting or (pause is not None and pause.clock == "stand_still"):
        return False
    due = moment.pending_timers if pause is None else pause.held
    if not due:
        return False
    when = datetime.fromisoformat(at) if at else moment.now
    return any(key in due and due[key] < when for key in _ends(turn, step))


def _ends(turn: Turn, step: Step) -> Iterator[str]:
    """The timers by which the step ends. One that only has others asked besides ends nothing."""
    op = turn.routes.node(step.node).op
    yield DEADLINE
    if not isinstance(op, Human):
        yield step_timer(step.number)
        return
    if not (turn.state.escalates and op.last_resort and not step.level):
        yield step_timer(step.number)
    ladder = () if op.times is None else op.times.escalation
    if step.level < len(ladder) and ladder[step.level].outcome:
        yield escalation_timer(step.number)
