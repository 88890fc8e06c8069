"""A condition asks a question of the token's data.

Entered when: a token arrives. May do: nothing but ask. Left when: at once, by `true` or `false`; a question that cannot be answered is a
failure of the step. On compensation: nothing to undo.
"""

from __future__ import annotations

from holdfast.errors import ExpressionError
from holdfast.machine.events import StepCompleted
from holdfast.machine.failing import fail_at_once
from holdfast.machine.graph import Node
from holdfast.machine.state import Step, Token
from holdfast.machine.turn import Turn


class ConditionKind:
    """Asks a question."""

    def enter(self, turn: Turn, token: Token, node: Node) -> None:
        """Ask, and go the way of the answer."""
        number = turn.next_number()
        visit = token.visits.get(node.id, 0) + 1
        try:
            holds = turn.routes.condition(node.id).holds(turn.data_for(token, node.id))
        except ExpressionError as error:
            fail_at_once(turn, token, node, str(error))
            return
        outcome = "true" if holds else "false"
        turn.emit(StepCompleted(step=number, outcome=outcome, node=node.id, token=token.id, visit=visit))
        turn.leave(token.id, node.id, outcome)

    def stop(self, turn: Turn, step: Step) -> None:
        """A condition is never open."""
