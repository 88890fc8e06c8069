"""In whose name the steps of a document's workflow act."""

from __future__ import annotations

from holdfast.kernel.actor import SYSTEM, Actor
from holdfast.machine.runs.events import TransitionRequested
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


def take_over(turn: Turn) -> None:
    """Have the way of the document gone in the name of whoever acts now: they may do what was denied to whoever asked for it."""
    intent, actor = document_of(turn.state).intent, turn.moment.actor
    turn.emit(
        TransitionRequested(
            transition="" if intent is None else intent.transition,
            by=actor.id,
            kind=actor.kind,
            on_behalf_of=actor.on_behalf_of,
            roles=sorted(actor.roles),
            capabilities=sorted(actor.capabilities),
            reason="" if intent is None else intent.reason,
            again=True,
        )
    )
