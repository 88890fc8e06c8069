"""A join waits for the branches of its split.

Entered when: a branch arrives. May do: end the branches that are no longer needed (`any`, `count`), and have undone what they did. Left when:
enough branches have arrived; the token that was split goes on with the answers of the branches. On compensation: nothing to undo itself.
"""

from __future__ import annotations

from holdfast.machine.graphs.graph import Node
from holdfast.machine.runs.events import JoinArrived, TokenEnded
from holdfast.machine.runs.leaving import look_at_branches, pass_through
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.state import Token
from holdfast.machine.runs.turn import Turn


class JoinKind(Kind):
    """Waits for branches."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """A branch is there; one that the others have not waited for has come to its end."""
        if token.retry_of is not None:  # Its branches have met, and there was no room for their answers.
            pass_through(turn, token, node)
            return
        assert token.scope is not None, "the compiler lets only branches of its split reach a join"
        if token.scope not in turn.state.scopes:
            turn.emit(TokenEnded(token=token.id))
            return
        turn.emit(JoinArrived(token=token.id))
        look_at_branches(turn, token.scope)
