"""Whether something comes after its deadline: a decision, a signal or an event whose step has waited as long as it may.

The timer of the step may not have fired yet, because the run is paused, or because nobody works. What comes then is late all the same,
unless clocks stand still meanwhile.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from holdfast.kernel.decision import Rejection
from holdfast.machine.graphs.graph import Human
from holdfast.machine.graphs.index import GraphIndex
from holdfast.machine.runs.refusals import Refusal, refused
from holdfast.machine.runs.state import State, Step
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
    if moment.is_shifting:
        return False
    when = datetime.fromisoformat(at) if at else moment.now
    if pause is not None:
        return is_over(turn.routes, turn.state, step, when)
    due = moment.pending_timers
    return bool(due) and any(key in due and due[key] < when for key in _ends(turn.routes, turn.state, step, due))


def is_over(routes: GraphIndex, state: State, step: Step, when: datetime) -> bool:
    """Whether the time of an open step of a run that is paused was over at an instant."""
    pause = state.pause
    if pause is None or pause.clock == "stand_still":
        return False
    held = pause.held
    return any(key in held and held[key] < when for key in _ends(routes, state, step, held))


def _ends(routes: GraphIndex, state: State, step: Step, due: Mapping[str, datetime]) -> Iterator[str]:
    """The timers by which the step ends. One that only has others asked besides ends nothing, nor does one behind an escalation that gives more time."""
    op = routes.node(step.node).op
    yield DEADLINE
    if not isinstance(op, Human):
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
