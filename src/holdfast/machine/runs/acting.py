"""In whose name the steps of a document's workflow act."""

from __future__ import annotations

from holdfast.kernel.actor import SYSTEM, Actor
from holdfast.machine.runs.turn import Turn
from holdfast.machine.runs.windows import document_of

AS_SYSTEM = "system"


def acting(turn: Turn, run_as: str) -> Actor:
    """As whom a step acts: whoever asked for the transition, the engine, or a service account, whose step its publishers have allowed."""
    if run_as == AS_SYSTEM:
        return SYSTEM
    if run_as:
        return Actor(id=run_as, kind="service", capabilities=frozenset({"*"}))
    intent = document_of(turn.state).intent
    return turn.moment.actor if intent is None else intent.actor
