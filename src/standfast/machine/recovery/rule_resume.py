"""Rules that wait count as paused: at which steps they wait, and what the history tells when something lets them go on."""

from __future__ import annotations

from standfast.graph.model import HumanOp
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.commands import run_commands as c
from standfast.machine.model.commands.timers import RESUME
from standfast.machine.model.events import EventReceived, Trigger, WorkflowResumed
from standfast.machine.model.state import Data, StepState


def stations(turn: DecisionBuilder) -> list[StepState]:
    """The steps at which a run of rules waits and does nothing else; none if it does something, or is of another kind."""
    if turn.routes.graph.kind != "rules" or turn.state.status != "running":
        return []
    steps = list(turn.state.open.values())
    return steps if all(each.of is None and turn.kind(each).wait_kind for each in steps) else []


def resting_places(turn: DecisionBuilder) -> list[StepState]:
    """The steps at which a process waits for time or for an event, and for nothing else: it is suspended meanwhile."""
    if turn.routes.graph.kind != "process" or turn.state.status != "running":
        return []
    steps = list(turn.state.open.values())
    return steps if all(each.of is None and turn.kind(each).wait_kind in {"timer", "event"} for each in steps) else []


def waiting_since(turn: DecisionBuilder) -> str:
    """Since when a step waits that begins now, in rules, which are paused by it; empty for other kinds."""
    return turn.moment.now.isoformat() if turn.routes.graph.kind == "rules" else ""


def tell_of_waking(turn: DecisionBuilder, waited: list[StepState], command: c.Command) -> None:
    """A run of rules has waited at these steps: if it has left one of them and goes on, it was resumed by what it waited for."""
    left = next((each for each in waited if each.number not in turn.state.open), None)
    if left is None or not turn.state.may_begin:
        return
    trigger, name, told = _cause(turn, left, command)
    turn.emit(
        WorkflowResumed(
            request=str(turn.moment.derive_id(RESUME)),
            by=turn.moment.actor.id,
            trigger=trigger,
            trigger_id=name,
            told=told,
        )
    )


def _cause(turn: DecisionBuilder, step: StepState, command: c.Command) -> tuple[Trigger, str, Data | None]:
    """What has let a run go on, which one of its sort it was, and what it brought."""
    if isinstance(command, c.TakeEvents) and not command.is_over:
        taken = turn.latest(EventReceived)
        return "event", taken.id, {"name": taken.event, "payload": taken.payload}
    if isinstance(command, c.TimeOut | c.EscalateTask | c.TakeEvents):
        return "timeout", "", None
    trigger: Trigger = "approval" if isinstance(turn.routes.node(step.node).op, HumanOp) else "event"
    return trigger, f"{turn.moment.instance}:{step.number}", turn.state.decided.get(step.number)
