"""Lists that branches are under way for: where a change gives a document another list, its branches end, and it is entered again."""

from __future__ import annotations

from collections.abc import Iterable

from standfast.errors import ExpressionError
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.routing import end_branches
from standfast.machine.flow.slots import void
from standfast.machine.model.events import BranchesClosed
from standfast.machine.model.queries.branches import lies_below
from standfast.machine.model.queries.edit_windows import document_of
from standfast.machine.model.queries.fields import is_same
from standfast.machine.model.state import BranchScope

Lists = dict[int, object]
"""What each list is, by the step that has begun its branches; None for one that cannot be evaluated."""


def lists_of_document(turn: DecisionBuilder) -> Lists:
    """Evaluates the lists whose branches are under way; none where a run is no document, and nobody approves a version of it."""
    found: Lists = {}
    if turn.state.document is None:
        return found
    for number, scope in turn.state.scopes.items():
        expression = turn.routes.items(scope.node)
        if expression is not None:
            try:
                found[number] = expression.evaluate(turn.data_for(turn.state.parked[scope.parent], scope.node))
            except ExpressionError:
                found[number] = None
    return found


def enter_changed(turn: DecisionBuilder, before: Lists, fields: Iterable[str], *, told: str, by: str = "") -> None:
    """Ends the branches of each list that is not as it was, and enters the list again. Nothing of what they did is undone.

    A step in one of its branches has changed its list `by` a token: its own branches go on.
    """
    for number, items in lists_of_document(turn).items() if before else ():
        scope = turn.state.scopes.get(number)
        is_own = scope is not None and any(lies_below(by, each) for each in scope.live)
        if scope is not None and not is_own and not is_same(items, before[number]):
            _end(turn, scope, fields, told)
            turn.move(scope.parent, scope.node, is_asked=not by)


def _end(turn: DecisionBuilder, scope: BranchScope, fields: Iterable[str], told: str) -> None:
    below = f"{scope.parent}/{scope.step}."
    approvals = document_of(turn.state).approvals.items()
    asked = [step for step, each in approvals if each.token.startswith(below) and each.verdict != "declined"]
    void(turn, asked, "entered_again", fields=fields)
    end_branches(turn, list(scope.live), error=told)
    turn.emit(BranchesClosed(step=scope.step))
