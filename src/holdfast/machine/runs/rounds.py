"""Rounds: the ways of a document from a state to its rest."""

from __future__ import annotations

from holdfast.machine.graphs.graph import Rest
from holdfast.machine.runs.events import RoundStarted, StepCompleted
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.windows import document_of

AGAIN = "next_round"
"""What the step at the rest is left by."""


def begin_round(turn: Turn) -> None:
    """Wake a document that rests; one that does not stays as it is."""
    document = document_of(turn.state)
    if not document.is_resting:
        return
    for step in list(turn.state.open.values()):
        if isinstance(turn.routes.node(step.node).op, Rest):
            turn.emit(StepCompleted(step=step.number, outcome=AGAIN))
    turn.emit(RoundStarted(round=document.round + 1, status=document.status, by=turn.moment.actor.id))
