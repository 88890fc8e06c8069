"""Rounds: the ways of a document from a state to its rest, and how it is led from one to another."""

from __future__ import annotations

from standfast.graph.model import RestOp
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.events import RoundStarted, StepCompleted, TokenHeld
from standfast.machine.model.queries.edit_windows import document_of
from standfast.machine.model.state import ROOT
from standfast.machine.recovery.pause import go_on

AGAIN = "next_round"
"""What the step at the rest is left by."""


def begin_round(turn: DecisionBuilder) -> None:
    """Wake a document that rests; one that does not stays as it is."""
    document = document_of(turn.state)
    if not document.is_resting:
        return
    for step in list(turn.state.open.values()):
        if isinstance(turn.routes.node(step.node).op, RestOp):
            turn.emit(StepCompleted(step=step.number, outcome=AGAIN))
    turn.emit(RoundStarted(round=document.round + 1, status=document.status, by=turn.moment.actor.id))


def lead(turn: DecisionBuilder, target: str) -> None:
    """Send the only token of a document that is left to a node, and nowhere else: also not to where it was to go on once an operator had seen to it.

    A run that has waited for an operator goes on: what had it wait is ended.
    """
    if turn.state.status == "paused" and turn.state.pause is None:
        turn.emit(TokenHeld(token=ROOT, target=target))
        go_on(turn)
    else:
        turn.move(ROOT, target, is_asked=True)
