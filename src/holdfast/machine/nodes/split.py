"""A split sends a token down every branch, or one for each item of a list.

Entered when: a token arrives; it then waits for the branches. May do: begin branches, at most `limit` at a time. Left when: at once, as far as the
split is concerned; the branches meet at the join. On compensation: nothing to undo itself.
"""

from __future__ import annotations

from holdfast.errors import ExpressionError
from holdfast.machine.branches import begin_items, on_scope_changed
from holdfast.machine.events import StepCompleted, TokenMoved
from holdfast.machine.failing import fail_at_once
from holdfast.machine.graph import Node
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn

BRANCH = "branch"


class SplitKind:
    """Begins branches."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Begin the branches."""
        expression = turn.routes.items(node.id)
        if expression is None:
            self._begin_all(turn, token, node)
            return
        try:
            items = expression.evaluate(turn.data_for(token, node.id))
        except ExpressionError as error:
            fail_at_once(turn, token, node, str(error))
            return
        if not isinstance(items, list):
            fail_at_once(turn, token, node, f"{node.id!r} needs a list of items, not a {type(items).__name__}")
            return
        self._begin_items(turn, token, node, items)

    def _begin_all(self, turn: Turn, token: Token, node: Node) -> None:
        number = turn.next_number()
        visit = token.visits.get(node.id, 0) + 1
        turn.emit(StepCompleted(step=number, node=node.id, token=token.id, visit=visit))
        for place, edge in enumerate(turn.routes.ways(node.id, BRANCH), start=1):
            child = f"{token.id}/{number}.{place}"
            turn.emit(TokenMoved(token=child, target=edge.target, parent=token.id, scope=number))
            turn.move(child, edge.target)

    def _begin_items(self, turn: Turn, token: Token, node: Node, items: list[object]) -> None:
        number = turn.next_number()
        visit = token.visits.get(node.id, 0) + 1
        turn.emit(StepCompleted(step=number, node=node.id, token=token.id, visit=visit, output=items))
        begin_items(turn, turn.state.scopes[number])
        on_scope_changed(turn, number)

    def stop(self, turn: Turn, step: Step) -> None:
        """A split is never open."""
