"""A split sends a token down every branch, or one for each item of a list.

Entered when: a token arrives; it then waits for the branches. May do: begin branches, at most `limit` at a time. Left when: the branches
meet at the join, or have ended. On compensation: nothing to undo itself.
"""

from __future__ import annotations

from holdfast.errors import ExpressionError, indefinite
from holdfast.machine.graphs.graph import BRANCH, Node, Split
from holdfast.machine.runs.events import BranchesOpened
from holdfast.machine.runs.leaving import complete_at_once, look_at_branches
from holdfast.machine.runs.nodes.kind import Kind
from holdfast.machine.runs.state import Token
from holdfast.machine.runs.turn import Turn


class SplitKind(Kind):
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
            self.fail(turn, token, node, str(error))
            return
        if not isinstance(items, list):
            self.fail(turn, token, node, f"{node.id!r} needs a list of items, not {indefinite(type(items))}")
            return
        assert isinstance(node.op, Split)
        if node.op.most is not None and len(items) > node.op.most:
            self.fail(turn, token, node, f"{node.id!r} takes at most {node.op.most} items, and there are {len(items)}")
            return
        if self._has_room(turn, token, node, min(len(items), node.op.limit or len(items))):
            number = complete_at_once(turn, token, node)
            turn.emit(BranchesOpened(step=number, items=items))
            look_at_branches(turn, number)

    def _has_room(self, turn: Turn, token: Token, node: Node, count: int) -> bool:
        """Whether the run may have so many more tokens; the step has failed if not."""
        most, there = turn.routes.policies.max_tokens, len(turn.state.tokens) + len(turn.state.parked)
        if most is None or there + count <= most:
            return True
        told = f"{node.id!r} would go on in {count} branches, and a run has at most {most} tokens; it has {there}"
        self.fail(turn, token, node, told)
        return False

    def _begin_all(self, turn: Turn, token: Token, node: Node) -> None:
        ways = turn.routes.ways(node.id, BRANCH)
        if not self._has_room(turn, token, node, len(ways)):
            return
        number = complete_at_once(turn, token, node)
        turn.emit(BranchesOpened(step=number, branches=len(ways)))
        for place, edge in enumerate(ways, start=1):
            turn.move(f"{token.id}/{number}.{place}", edge.target)
