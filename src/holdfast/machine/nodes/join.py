"""A join waits for the branches of its split.

Entered when: a branch arrives. May do: end the branches that are no longer needed (`any`, `count`). Left when: enough branches have arrived; the
token that was split goes on with the answers of the branches. On compensation: nothing to undo itself.
"""

from __future__ import annotations

from holdfast.machine.branches import on_scope_changed
from holdfast.machine.events import JoinArrived
from holdfast.machine.graph import Node
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn


class JoinKind:
    """Waits for branches."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """A branch is there."""
        assert token.scope is not None, "the compiler lets only branches of its split reach a join"
        turn.emit(JoinArrived(token=token.id, join=node.id))
        on_scope_changed(turn, token.scope)

    def stop(self, turn: Turn, step: Step) -> None:
        """A join is never open: its branches are."""
