"""An end says how the run ends.

Entered when: a token arrives. May do: nothing. Left when: never; the token's way is over. On compensation: nothing to undo.
"""

from __future__ import annotations

from holdfast.machine.events import StepCompleted
from holdfast.machine.failing import fail_at_once
from holdfast.machine.graph import End, Node
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn


class EndKind:
    """Ends a token's way."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """End."""
        assert isinstance(node.op, End)
        if node.op.status == "failed":
            fail_at_once(turn, token, node, f"the run ended at {node.id!r}")
            return
        visit = token.visits.get(node.id, 0) + 1
        turn.emit(StepCompleted(step=turn.next_number(), node=node.id, token=token.id, visit=visit))
        turn.end(token.id)

    def stop(self, turn: Turn, step: Step) -> None:
        """An end is never open."""
