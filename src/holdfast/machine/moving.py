"""How tokens leave nodes, and what becomes of the branches of a split: when they meet, which are no longer needed, when nothing is left of them."""

from __future__ import annotations

from holdfast.errors import ExpressionError
from holdfast.expressions import Expression
from holdfast.machine.events import (
    BranchesClosed,
    BranchesMet,
    DataAssigned,
    ItemsBegun,
    StepCompleted,
    TokenEnded,
    TokenHeld,
)
from holdfast.machine.evolving import merged
from holdfast.machine.graph import BRANCH, OK, Edge, Join, Node, Split
from holdfast.machine.rollback import roll_back
from holdfast.machine.state import Scope, Step, Token
from holdfast.machine.stopping import NOT_NEEDED, stop_step, unended
from holdfast.machine.turn import Turn

_ENOUGH = "another branch was enough"

# -- leaving a node


def finish(turn: Turn, step: Step, outcome: str = OK, output: object = None) -> None:
    """An open step ended well: its token moves on."""
    token = turn.state.tokens[step.token]
    edge, to = _choose(turn, token, step.node, outcome, output=output)
    turn.emit(StepCompleted(step=step.number, outcome=outcome, output=output, to=to))
    _take(turn, token, edge, node=step.node, outcome=outcome)


def pass_through(turn: Turn, token: Token, node: Node, outcome: str = OK, *, output: object = None) -> None:
    """A node that takes no time is done: the token moves on."""
    edge, to = _choose(turn, token, node.id, outcome, output=output)
    complete_at_once(turn, token, node, outcome, output=output, to=to)
    _take(turn, token, edge, node=node.id, outcome=outcome)


def complete_at_once(
    turn: Turn, token: Token, node: Node, outcome: str = OK, *, output: object = None, to: str = ""
) -> int:
    """A node that takes no time is done, and its token does not move on by itself; the number of the step."""
    number = turn.next_step
    turn.emit(
        StepCompleted(
            step=number,
            outcome=outcome,
            output=output,
            to=to,
            node=node.id,
            token=token.id,
            visit=token.visits.get(node.id, 0) + 1,
            retry_of=token.retry_of,
        )
    )
    return number


def way_out(turn: Turn, token: Token, node: str, outcome: str, *, gained: object = None) -> Edge | None:
    """The edge that a token would leave a node by; None if none leads on."""
    return _choose(turn, token, node, outcome, output=gained)[0]


def leave_by(turn: Turn, token: Token, edge: Edge) -> None:
    """A token moves on from a node whose end is told already."""
    _take(turn, token, edge, node=edge.source, outcome=edge.on)


def _choose(turn: Turn, token: Token, node: str, outcome: str, *, output: object = None) -> tuple[Edge | None, str]:
    """The first edge of this outcome whose condition holds, and where it leads if there was a choice."""
    ways = turn.routes.ways(node, outcome)
    if len(ways) == 1 and ways[0].when is None:
        return ways[0], ""
    data = turn.data_for(token, node)
    data["input"] = merged(token.data, node, output)
    for edge in ways:
        guard = turn.routes.guard(edge)
        try:
            if guard is None or guard.holds(data):
                return edge, edge.target
        except ExpressionError:
            continue  # A condition that cannot be answered lets nobody through.
    return None, ""


def _take(turn: Turn, token: Token, edge: Edge | None, *, node: str, outcome: str) -> None:
    if turn.state.rollback is not None or turn.state.is_terminal:
        return
    if edge is None:
        _stay_or_end(turn, token, node, outcome)
        return
    assigns = turn.routes.assigns(edge)
    if assigns:
        data = turn.data_for(token, node)
        turn.emit(DataAssigned(token=token.id, data={name: _value(each, data) for name, each in assigns.items()}))
    turn.move(token.id, edge.target)


def _value(expression: Expression, data: dict[str, object]) -> object:
    try:
        return expression.evaluate(data)
    except ExpressionError:
        return None  # What is not there is nothing; the edge was taken and cannot fail any more.


def _stay_or_end(turn: Turn, token: Token, node: str, outcome: str) -> None:
    """No edge leads on."""
    match turn.routes.policies.on_no_edge:
        case "complete":
            end(turn, token)
        case "pause":
            turn.pause("no_edge", f"no edge leads on from {node!r} by {outcome!r}")
            turn.emit(TokenHeld(token=token.id, node=node, outcome=outcome))
        case "fail":
            roll_back(turn, f"no edge leads on from {node!r} by {outcome!r}")


def end(turn: Turn, token: Token) -> None:
    """A token's way is over."""
    turn.emit(TokenEnded(token=token.id))
    if token.scope is not None:
        look_at_branches(turn, token.scope)


# -- branches


def begin_items(turn: Turn, scope: Scope) -> None:
    """Begin branches for as many items as may run now."""
    op = turn.routes.node(scope.node).op
    assert isinstance(op, Split)
    waiting = len(scope.items or ())
    room = waiting if op.limit is None else op.limit - (len(scope.live) - len(scope.arrived))
    count = min(waiting, room)
    if count < 1:
        return
    begun = scope.begun
    turn.emit(ItemsBegun(step=scope.step, count=count))
    target = turn.routes.ways(scope.node, BRANCH)[0].target
    for place in range(begun + 1, begun + count + 1):
        turn.move(f"{scope.parent}/{scope.step}.{place}", target)


def look_at_branches(turn: Turn, number: int) -> None:
    """A branch has arrived or ended: look whether enough have met, or whether nothing is left of them."""
    scope = turn.state.scopes.get(number)
    if scope is None or not turn.state.may_begin:
        return
    if scope.items:
        begin_items(turn, scope)
    join = turn.routes.join_of(scope.node)
    if join is not None and _have_met(scope, join):
        _meet(turn, scope, join)
    elif not scope.items and not scope.live:
        _close(turn, scope)


def _have_met(scope: Scope, join: Node) -> bool:
    assert isinstance(join.op, Join)
    if join.op.strategy != "all" and len(scope.arrived) >= _needed(join.op):
        return True
    everybody_is_there = not scope.items and len(scope.arrived) == len(scope.live)
    return everybody_is_there and (bool(scope.arrived) or not scope.begun)


def _needed(op: Join) -> int:
    return op.count if op.strategy == "count" else 1


def _meet(turn: Turn, scope: Scope, join: Node) -> None:
    """Enough branches are there: the others end, and the token that was split goes on."""
    for branch in [name for name in scope.live if name not in scope.arrived]:
        end_branch(turn, branch, error=_ENOUGH)
    output = _answers(turn, scope)
    turn.emit(BranchesMet(step=scope.step))
    pass_through(turn, turn.state.tokens[scope.parent], join, output=output)


def _answers(turn: Turn, scope: Scope) -> dict[str, object]:
    """The last answers of the branches, by the name of each one's last step; over a list they are a list."""
    branches = [turn.state.tokens[name] for name in scope.arrived]
    if scope.items is None:
        return {token.node: token.last_output for token in branches if token.node}
    branches.sort(key=lambda token: int(token.id.rsplit(".", 1)[1]))
    return {scope.node: [token.last_output for token in branches]}


def _close(turn: Turn, scope: Scope) -> None:
    """All branches have ended and there is nothing to meet for: the token that was split ends too."""
    turn.emit(BranchesClosed(step=scope.step))
    end(turn, turn.state.tokens[scope.parent])


def end_branch(turn: Turn, name: str, *, error: str, has_failed: bool = False) -> None:
    """End a branch with everything below it."""
    state = turn.state
    below = [each for each in (*state.tokens, *state.parked) if each == name or each.startswith(f"{name}/")]
    for step in [each for each in unended(turn) if each.token in below]:
        stop_step(turn, step, "undo", error=error, reason=NOT_NEEDED)
    for scope in [each for each in state.scopes.values() if each.parent in below]:
        turn.emit(BranchesClosed(step=scope.step))
    for each in sorted(below, key=lambda each: (-len(each), each)):
        turn.emit(TokenEnded(token=each, reason="failed" if has_failed else "cancelled"))


def is_outlived(turn: Turn, name: str) -> bool:
    """Whether the failure of a branch leaves enough others; then it is ended, and the others go on."""
    state = turn.state
    while (token := state.token(name)) is not None and token.scope is not None:
        scope = state.scopes[token.scope]
        join = turn.routes.join_of(scope.node)
        if join is not None and isinstance(join.op, Join) and join.op.strategy != "all":
            others = len(scope.live) - 1 + len(scope.items or ())
            if others >= _needed(join.op):
                end_branch(turn, name, error="the branch failed", has_failed=True)
                look_at_branches(turn, scope.step)
                return True
        name = scope.parent
    return False
