"""Cancelling and aborting: everything that is open ends, all branches at once."""

from __future__ import annotations

from holdfast.machine.branches import STOPPED
from holdfast.machine.commands import WithdrawnStep
from holdfast.machine.events import StepFailed
from holdfast.machine.state import ROOT, Step
from holdfast.machine.turn import Turn

MESSAGE = "Stopped due to workflow cancellation/abort"


def skip(turn: Turn, step: Step, error: str = MESSAGE) -> None:
    """End an open step that is not wanted any more; a late answer of its handler counts for nothing."""
    turn.stop(step)
    turn.emit(StepFailed(step=step.number, error=error, reason=STOPPED))


def stop_everything(turn: Turn, *, will_undo: bool) -> None:
    """End all open steps. Those of branches that will be undone are undone only after their handlers came back."""
    state = turn.state
    for step in [*state.open.values(), *state.frozen.values(), *state.dead.values()]:
        if will_undo and _must_come_back(turn, step):
            assert step.effect is not None
            turn.recall(step.effect, WithdrawnStep(step=step.number), stop=True)
            turn.emit(StepFailed(step=step.number, error=MESSAGE, reason=STOPPED, awaits_stop=True))
        else:
            skip(turn, step)


def _must_come_back(turn: Turn, step: Step) -> bool:
    is_under_way = step.effect is not None and step.number in turn.state.open and step.of is None
    return is_under_way and step.token != ROOT and turn.routes.node(step.node).compensation is not None
