"""A join waits for the branches of its split.

Entered when: a branch arrives. May do: end the branches that are no longer needed (`any`, `count`). Left when: enough branches have arrived; the
token that was split goes on with the answers of the branches. On compensation: nothing to undo itself.
"""

from __future__ import annotations

from holdfast.machine.events import JoinArrived
from holdfast.machine.graph import Node
from holdfast.machine.moving import look_at_branches
from holdfast.machine.nodes.kind import Kind
from holdfast.machine.state import Token
from holdfast.machine.turn import Turn


class JoinKind(Kind):
    """Waits for branches."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:  # noqa: ARG002 - where it is, the scope knows
        """A branch is there."""
        assert token.scope is not None, "the compiler lets only branches of its split reach a join"
        turn.emit(JoinArrived(token=token.id))
        look_at_branches(turn, token.scope)
