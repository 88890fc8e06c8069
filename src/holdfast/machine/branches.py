"""Branches of a split: when they have met, which are no longer needed, and what the failure of one means for the others."""

from __future__ import annotations

from holdfast.machine.events import ScopeClosed, StepCompleted, StepFailed, TokenEnded, TokenMoved
from holdfast.machine.graph import OK, Join, Split
from holdfast.machine.state import Scope
from holdfast.machine.turn import Turn

STOPPED = "workflow_stopped"
NOT_NEEDED = "another branch was enough"


def begin_items(turn: Turn, scope: Scope) -> None:
    """Begin branches for as many items as may run now."""
    node = turn.routes.node(scope.node)
    assert isinstance(node.op, Split)
    target = turn.routes.ways(scope.node, "branch")[0].target
    while scope.items and (node.op.limit is None or len(scope.live) - len(scope.arrived) < node.op.limit):
        child = f"{scope.parent}/{scope.step}.{scope.begun + 1}"
        assigned = {node.op.item: scope.items[0]}
        turn.emit(TokenMoved(token=child, target=target, parent=scope.parent, scope=scope.step, assigned=assigned))
        turn.move(child, target)


def on_scope_changed(turn: Turn, number: int) -> None:
    """A branch has arrived or ended: look whether the branches have met, or whether nothing is left of them."""
    scope = turn.state.scopes.get(number)
    if scope is None or not turn.may_begin:
        return
    if scope.items:
        begin_items(turn, scope)
    join = turn.routes.join_of(scope.node)
    if join is not None and _is_met(scope, join.op):
        _meet(turn, scope, join.id)
    elif not scope.items and len(scope.live) == len(scope.arrived):
        _close(turn, scope)


def _is_met(scope: Scope, op: object) -> bool:
    assert isinstance(op, Join)
    match op.strategy:
        case "any":
            return bool(scope.arrived)
        case "count":
            return len(scope.arrived) >= op.count
        case "all":
            return (
                not scope.items and len(scope.arrived) == len(scope.live) and (bool(scope.arrived) or not scope.begun)
            )


def _meet(turn: Turn, scope: Scope, join: str) -> None:
    """Enough branches are there: the others end, and the token that was split goes on."""
    for branch in [name for name in scope.live if name not in scope.arrived]:
        end_branch(turn, branch, error=NOT_NEEDED)
    visit = turn.state.parked[scope.parent].visits.get(join, 0) + 1
    turn.emit(StepCompleted(step=turn.next_number(), node=join, token=scope.parent, visit=visit))
    turn.leave(scope.parent, join, OK)


def _close(turn: Turn, scope: Scope) -> None:
    """All branches have ended and there is nothing to meet for: the token that was split ends too."""
    for branch in list(scope.arrived):
        turn.emit(TokenEnded(token=branch))
    turn.emit(ScopeClosed(scope=scope.step))
    turn.end(scope.parent)


def end_branch(turn: Turn, token: str, *, error: str, reason: str = "cancelled") -> None:
    """End a branch with everything below it."""
    state = turn.state
    below = [name for name in (*state.tokens, *state.parked) if name == token or name.startswith(f"{token}/")]
    for step in [each for each in state.open.values() if each.token in below]:
        turn.stop(step)
        turn.emit(StepFailed(step=step.number, error=error, reason=STOPPED))
    for name in sorted(below, key=len, reverse=True):
        turn.emit(TokenEnded(token=name, reason="failed" if reason == "failed" else "cancelled"))
    for number in [each.step for each in state.scopes.values() if each.parent in below]:
        state.scopes.pop(number)


def outlives(turn: Turn, token: str) -> bool:
    """Whether the failure of a branch leaves enough others; then the branch is ended and the rest goes on."""
    state = turn.state
    name = token
    while (found := state.tokens.get(name) or state.parked.get(name)) is not None and found.scope is not None:
        scope = state.scopes[found.scope]
        join = turn.routes.join_of(scope.node)
        needed = _needed(join.op) if join is not None else None
        if needed is not None and len(scope.live) - 1 + len(scope.items) >= needed:
            end_branch(turn, name, error="the branch failed", reason="failed")
            on_scope_changed(turn, scope.step)
            return True
        name = scope.parent
    return False


def _needed(op: object) -> int | None:
    """How many branches a join needs; None if it needs all of them."""
    assert isinstance(op, Join)
    return {"all": None, "any": 1, "count": op.count}[op.strategy]
