"""A split sends a token down every branch whose condition holds, or one for each item of a list.

Entered when: a token arrives; it then waits for the branches. May do: begin branches, at most `limit` at a time. Left when: the branches
meet at the join, or have ended; by `error` if no condition holds or one cannot be answered, and if there are no items where some are needed.
On compensation: nothing to undo itself.

A join waits for the branches of its split. A branch that was refused, where no approval lies behind the join, ends all of them: the slot is left by a rejection.
"""

from __future__ import annotations

from standfast.errors import ExpressionError, indefinite
from standfast.graph.model import BRANCH, OK, Edge, Node, SplitOp
from standfast.graph.nodes.parallel import ABORT, ACCEPT
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.node_kind import Kind
from standfast.machine.flow.routing import abort_branches, complete_at_once, end, look_at_branches, pass_through
from standfast.machine.flow.slots import refuse_in_branch
from standfast.machine.model.events import BranchesOpened, JoinArrived, TokenEnded
from standfast.machine.model.state import Token


class SplitKind(Kind):
    """Begins branches."""

    def enter(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
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
        assert isinstance(node.op, SplitOp)
        if node.op.most is not None and len(items) > node.op.most:
            self.fail(turn, token, node, f"{node.id!r} takes at most {node.op.most} items, and there are {len(items)}")
            return
        if not items and node.op.on_empty == "fail":
            told = f"the list of {node.id!r} has no items, so that none of its branches would begin"
            self.fail(turn, token, node, f"{told}; give it items, or say `on_empty: skip` where that is meant")
            return
        if self._has_room(turn, token, node, min(len(items), node.op.limit or len(items))):
            number = complete_at_once(turn, token, node)
            turn.emit(BranchesOpened(step=number, items=items))
            look_at_branches(turn, number)

    def _has_room(self, turn: DecisionBuilder, token: Token, node: Node, count: int) -> bool:
        """Whether the run may have so many more tokens; the step has failed if not."""
        most, there = turn.routes.policies.max_tokens, len(turn.state.tokens) + len(turn.state.parked)
        if most is None or there + count <= most:
            return True
        told = f"{node.id!r} would go on in {count} branches, and a run has at most {most} tokens; it has {there}"
        self.fail(turn, token, node, told)
        return False

    def _begin_all(self, turn: DecisionBuilder, token: Token, node: Node) -> None:
        ways = dict(enumerate(turn.routes.ways(node.id, BRANCH), start=1))
        is_choosy = any(edge.when is not None for edge in ways.values())
        if is_choosy:
            try:
                ways = self._open(turn, token, node, ways)
            except ExpressionError as error:
                self.fail(turn, token, node, str(error))
                return
            if not ways:
                told = f"no condition of the branches of {node.id!r} holds, so that none of them begins"
                self.fail(turn, token, node, f"{told}; give it a branch without a condition where that is meant")
                return
        if not self._has_room(turn, token, node, len(ways)):
            return
        number = complete_at_once(turn, token, node, BRANCH if is_choosy else OK)
        turn.emit(BranchesOpened(step=number, branches=len(ways), taken=list(ways) if is_choosy else []))
        for place, edge in ways.items():
            turn.move(f"{token.id}/{number}.{place}", edge.target)

    def _open(self, turn: DecisionBuilder, token: Token, node: Node, ways: dict[int, Edge]) -> dict[int, Edge]:
        """The branches whose conditions hold, by their places; ExpressionError if one cannot be answered, which is not a no."""
        asked, found = turn.data_for(token, node.id), {}
        for place, edge in ways.items():
            guard = turn.routes.guard(edge)
            try:
                if guard is None or guard.holds(asked):
                    found[place] = edge
            except ExpressionError as error:
                told = f"the condition of the branch to {edge.target!r} cannot be answered: {error}"
                raise ExpressionError(told, reason=error.reason) from error
        return found


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
        if refuse_in_branch(turn, token, node):
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
