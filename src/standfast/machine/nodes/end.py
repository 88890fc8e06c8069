"""An end says how a token's way ends, and with `failed` or `cancelled` how the whole run does.

Entered when: a token arrives. May do: nothing. Left when: never; the token's way is over. On compensation: nothing to undo.
"""

from __future__ import annotations

from standfast.graph.model import OK, EndOp, Node
from standfast.kernel.actor import SYSTEM
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.rollback import cancel, roll_back
from standfast.machine.flow.routing import complete_at_once, end
from standfast.machine.model.state import Token


class EndKind(Kind):
    """Ends a token's way."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """End."""
        assert isinstance(node.op, EndOp)
        if node.op.status == "failed" and turn.routes.graph.kind == "process":
            complete_at_once(
                turn, token, node, node.op.outcome or OK
            )  # It has failed by what it says, and not for an operator.
            roll_back(turn, f"the run ended at {node.id!r}")
            return
        if node.op.status == "failed":
            self.fail(turn, token, node, f"the run ended at {node.id!r}")
            return
        complete_at_once(turn, token, node, node.op.outcome or OK)
        if node.op.status == "cancelled":
            cancel(turn, SYSTEM.id, f"the run ended at {node.id!r}")
        else:
            end(turn, token, node.op.outcome, node.op.reason)
