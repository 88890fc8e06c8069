"""A join waits for the branches of its split.

Entered when: a branch arrives. May do: end a branch that it does not accept; end the branches that are no longer needed (`any`, `count`), and
have undone what they did. Left when: enough branches have arrived; by `none` if all have ended and it accepted none; by `abort` as soon as one
arrives that ends it for all; the token that was split goes on with the answers of the branches. On compensation: nothing to undo itself.
"""

from __future__ import annotations

from standfast.errors import ExpressionError
from standfast.graph.model import Node
from standfast.graph.nodes.parallel import ABORT, ACCEPT
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import abort_branches, end, look_at_branches, pass_through
from standfast.machine.model.events import JoinArrived, TokenEnded
from standfast.machine.model.state import Token


class JoinKind(Kind):
    """Waits for branches."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        """A branch is there; one that the others have not waited for has come to its end."""
        if token.retry_of is not None:  # Its branches have met, and there was no room for their answers.
            pass_through(turn, token, node)
            return
        assert token.scope is not None, "the compiler lets only branches of its split reach a join"
        if token.scope not in turn.state.scopes:
            turn.emit(TokenEnded(token=token.id))
            return
        try:
            is_accepted = self._says(turn, token, node, ACCEPT, otherwise=True)
            is_last = self._says(turn, token, node, ABORT, otherwise=False)
        except ExpressionError as error:
            self.fail(turn, token, node, f"{node.id!r} cannot judge a branch: {error}")
            return
        if not is_accepted and not is_last:
            end(turn, token)
            return
        turn.emit(JoinArrived(token=token.id))
        if is_last:
            abort_branches(turn, token.scope)
        else:
            look_at_branches(turn, token.scope)

    def _says(self, turn: DecisionBuilder, token: Token, node: Node, name: str, *, otherwise: bool) -> bool:
        """What the join says of a branch; ExpressionError if it cannot tell."""
        asked = turn.routes.arrival(node.id, name)
        return otherwise if asked is None else asked.holds(turn.data_for(token, node.id))
