"""Save points and points of no return mark the way.

Entered when: a token arrives. May do: nothing. Left when: at once. On compensation: a rollback after a failure stops at a save point; no rollback
goes back beyond a point of no return.
"""

from __future__ import annotations

from holdfast.machine.events import StepCompleted
from holdfast.machine.graph import OK, Node
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn


class MarkerKind:
    """Marks the way."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Pass."""
        visit = token.visits.get(node.id, 0) + 1
        turn.emit(StepCompleted(step=turn.next_number(), node=node.id, token=token.id, visit=visit))
        turn.leave(token.id, node.id, OK)

    def stop(self, turn: Turn, step: Step) -> None:
        """A marker is never open."""
