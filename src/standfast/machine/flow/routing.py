"""How tokens leave nodes, and what becomes of the branches of a split: when they meet, which are no longer needed, when nothing is left of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from standfast.errors import ExpressionError
from standfast.expressions import Expression
from standfast.graph.model import BRANCH, OK, Edge, JoinOp, Losers, Node, SplitOp
from standfast.graph.nodes.parallel import ABORT, NONE
from standfast.kernel.actor import Actor
from standfast.machine.flow.cancellation import NOT_NEEDED, stop_step, unended
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.rollback import roll_back
from standfast.machine.flow.unneeded_branches import drop
from standfast.machine.model.commands.timers import DEADLINE
from standfast.machine.model.events import (
    BranchesClosed,
    BranchesMet,
    DataAssigned,
    ItemsBegun,
    StepCompleted,
    TokenEnded,
    TokenHeld,
)
from standfast.machine.model.queries.branches import branch_of
from standfast.machine.model.queries.outputs import fits, is_within, judged, merged, overflow
from standfast.machine.model.state import BranchScope, Data, StepState, Token

_ENOUGH = "another branch was enough"
_ABORTED = "another branch ended all of them"
_FAILED = "the branch failed"

Chosen = tuple[str, str]
"""Where an edge leads that was chosen among several, or by what it asks for, and its id."""
NO_CHOICE: Chosen = ("", "")
May = Callable[[str], bool]
"""Whether a guard may be passed, by the capability that it needs; an empty one always."""

# -- leaving a node


def finish(
    turn: DecisionBuilder,
    step: StepState,
    outcome: str = OK,
    output: object = None,
    *,
    may: May | None = None,
    by: Actor | None = None,
) -> None:
    """An open step ended well: its token moves on. `by` is the operator who completed it by hand."""
    token = turn.state.tokens[step.token]
    data = judged(turn.routes, token.data, step.node, output)
    edge, chosen = _choose(turn, token, step.node, outcome, data=data, answer=output, may=may)
    to, by_edge = chosen
    turn.emit(_by_hand(StepCompleted(step=step.number, outcome=outcome, output=output, to=to, edge=by_edge), by))
    _take(turn, token, edge, node=step.node, outcome=outcome)


def _by_hand(event: StepCompleted, by: Actor | None) -> StepCompleted:
    return event if by is None else replace(event, by=by.id, on_behalf_of=by.on_behalf_of)


def pass_through(
    turn: DecisionBuilder,
    token: Token,
    node: Node,
    outcome: str = OK,
    *,
    output: object = None,
    may: May | None = None,
    by: Actor | None = None,
    effect: int | None = None,
) -> None:
    """A node that takes no time is done: the token moves on."""
    data = merged(turn.routes, token.data, node.id, output)
    edge, chosen = _choose(turn, token, node.id, outcome, data=data, answer=output, may=may)
    complete_at_once(turn, token, node, outcome, output=output, chosen=chosen, by=by, effect=effect)
    _take(turn, token, edge, node=node.id, outcome=outcome)


def complete_at_once(
    turn: DecisionBuilder,
    token: Token,
    node: Node,
    outcome: str = OK,
    *,
    output: object = None,
    chosen: Chosen = NO_CHOICE,
    by: Actor | None = None,
    effect: int | None = None,
) -> int:
    """A node that takes no time is done, and its token does not move on by itself; the number of the step."""
    number, (to, by_edge) = turn.next_step, chosen
    done = StepCompleted(
        step=number,
        outcome=outcome,
        output=output,
        to=to,
        edge=by_edge,
        node=node.id,
        token=token.id,
        visit=token.visits.get(node.id, 0) + 1,
        retry_of=token.retry_of,
        effect=effect,
    )
    turn.emit(_by_hand(done, by))
    return number


def way_out(
    turn: DecisionBuilder,
    token: Token,
    node: str,
    outcome: str,
    *,
    data: Data | None = None,
    answer: object = None,
    may: May | None = None,
) -> Edge | None:
    """The edge that a token would leave a node by, with this data if it is to have other; None if none leads on."""
    return _choose(turn, token, node, outcome, data=token.data if data is None else data, answer=answer, may=may)[0]


def leave_by(turn: DecisionBuilder, token: Token, edge: Edge) -> None:
    """A token moves on from a node whose end is told already."""
    _take(turn, token, edge, node=edge.source, outcome=edge.on)


def _choose(
    turn: DecisionBuilder,
    token: Token,
    node: str,
    outcome: str,
    *,
    data: Data,
    answer: object = None,
    may: May | None = None,
) -> tuple[Edge | None, Chosen]:
    """The first edge of this outcome whose condition holds of the data and whose guard may be passed, and what is told of it if there was a choice."""
    ways = turn.routes.ways(node, outcome)
    if len(ways) == 1 and ways[0].when is None and not ways[0].capability:
        return ways[0], NO_CHOICE
    may = may or turn.moment.actor.may
    for edge in _open(turn, ways, turn.data_for(token, node, data=data, answer=answer)):
        if may(edge.capability):
            return edge, (edge.target, edge.id)
    return None, NO_CHOICE


def _open(turn: DecisionBuilder, ways: Sequence[Edge], asked: dict[str, object]) -> Iterator[Edge]:
    """The edges whose conditions hold of what is asked."""
    for edge in ways:
        guard = turn.routes.guard(edge)
        try:
            if guard is None or guard.holds(asked):
                yield edge
        except ExpressionError:  # A condition that cannot be answered lets nobody through.
            if turn.routes.documents is not None:
                return  # Nor is it taken as answered by no, so that the ways behind it are not open either.


def is_barred(
    turn: DecisionBuilder,
    token: Token,
    node: str,
    outcome: str,
    *,
    data: Data,
    answer: object = None,
    may: May | None = None,
    is_final: bool = True,
) -> bool:
    """Whether ways lead on, but none that the actor of the moment may go, or those who are asked for their guards instead.

    Where a run fails that no way leads on from, an answer that no condition lets through is barred too: another one can still be given.
    Not so if it is not final, because what others say may open a way.
    """
    ways = turn.routes.ways(node, outcome)
    if all(edge.when is None and not edge.capability for edge in ways):
        return False
    may, asked = may or turn.moment.actor.may, turn.data_for(token, node, data=data, answer=answer)
    found = list(_open(turn, ways, asked))
    is_fatal = is_final and turn.routes.policies.on_no_edge == "fail"
    return (is_fatal or bool(found)) and not any(may(edge.capability) for edge in found)


def _take(turn: DecisionBuilder, token: Token, edge: Edge | None, *, node: str, outcome: str) -> None:
    if turn.state.rollback is not None or turn.state.is_terminal:
        return
    if edge is None:
        stay_or_end(turn, token, node, outcome)
        return
    if edge.assign:
        data = turn.data_for(token, node)
        values = {name: value_of(each, data) for name, each in turn.routes.assigns(edge).items()}
        if not is_within(turn.routes, {**token.data, **values}):
            values = dict.fromkeys(values)
        turn.emit(DataAssigned(token=token.id, data=values))
    turn.move(token.id, edge.target)


def value_of(expression: Expression, data: dict[str, object]) -> object:
    """The value of an expression where nothing can fail any more: what is not there is null."""
    try:
        return expression.evaluate(data)
    except ExpressionError:
        return None


def stay_or_end(turn: DecisionBuilder, token: Token, node: str, outcome: str) -> None:
    """No edge leads on."""
    match turn.routes.policies.on_no_edge:
        case "complete":
            end(turn, token)
        case "pause":
            told, is_answered = _no_way(turn, token, node, outcome)
            turn.pause("no_edge" if is_answered else "condition_failed", told)
            turn.emit(TokenHeld(token=token.id, node=node, outcome=outcome))
        case "fail" if turn.state.pause is not None:
            turn.emit(TokenHeld(token=token.id, node=node, outcome=outcome))
        case "fail":
            roll_back(turn, _no_way(turn, token, node, outcome)[0])


def _no_way(turn: DecisionBuilder, token: Token, node: str, outcome: str) -> tuple[str, bool]:
    """Why a run stays where it is, and whether every condition could be answered. The first one that could not is named.

    Only for documents is that a case of its own: elsewhere such a condition counts as one that does not hold.
    """
    told = f"no edge leads on from {node!r} by {outcome!r}"
    asked = turn.data_for(token, node)
    for edge in turn.routes.ways(node, outcome):
        guard = turn.routes.guard(edge)
        try:
            if guard is not None:
                guard.holds(asked)
        except ExpressionError as error:
            why = f"{told}, because the condition of the way to {edge.target!r} cannot be answered: {error}"
            return why, turn.routes.documents is None
    return told, True


def end(turn: DecisionBuilder, token: Token, outcome: str = "", why: str = "") -> None:
    """A token's way is over; that of a branch comes to nothing that the run would."""
    if token.scope is not None:
        outcome = why = ""
    turn.emit(TokenEnded(token=token.id, outcome=outcome, why=why))
    if token.scope is not None:
        look_at_branches(turn, token.scope)
    else:  # What is left to do is about losers, and a deadline would undo the work of the winners.
        turn.cancel_timer(DEADLINE)


# -- branches


def begin_items(turn: DecisionBuilder, scope: BranchScope) -> None:
    """Begin branches for as many items as may run now."""
    op = turn.routes.node(scope.node).op
    assert isinstance(op, SplitOp)
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


def look_at_branches(turn: DecisionBuilder, number: int) -> None:
    """A branch has arrived or ended: look whether enough have met, or whether nothing is left of them."""
    scope = turn.state.scopes.get(number)
    if scope is None or not turn.state.may_begin:
        return
    join = turn.routes.join_of(scope.node)
    if join is not None and _have_met(scope, join):
        _meet(turn, scope, join)
    elif scope.items:
        begin_items(turn, scope)
    elif not scope.live and join is not None and NONE in join.op.exits:
        _meet(turn, scope, join, NONE)
    elif not scope.live:
        _close(turn, scope)


def abort_branches(turn: DecisionBuilder, number: int) -> None:
    """A branch that has arrived ends the join for all: what the others did is undone."""
    scope = turn.state.scopes[number]
    join = turn.routes.join_of(scope.node)
    assert join is not None
    _meet(turn, scope, join, ABORT)


def _have_met(scope: BranchScope, join: Node) -> bool:
    assert isinstance(join.op, JoinOp)
    if join.op.strategy != "all" and len(scope.arrived) >= _needed(join.op):
        return True
    everybody_is_there = not scope.items and len(scope.arrived) == len(scope.live)
    return everybody_is_there and (bool(scope.arrived) or not scope.begun)


def _needed(op: JoinOp) -> int:
    return op.count if op.strategy == "count" else 1


def _meet(turn: DecisionBuilder, scope: BranchScope, join: Node, outcome: str = OK) -> None:
    """Enough branches are there: the token that was split goes on, and the join says what becomes of the others."""
    assert isinstance(join.op, JoinOp)
    fate: Losers = "undo" if outcome == ABORT else join.op.losers
    why = _ABORTED if outcome == ABORT else _ENOUGH
    arrived = set(scope.arrived)
    losers = [name for name in scope.live if name not in arrived]
    if fate != "finish":
        end_branches(turn, losers, error=why)
    branches = [turn.state.tokens[name] for name in scope.arrived]
    names = [turn.routes.answer_name(token.node) for token in branches]
    output = _answers(turn, scope, branches)
    turn.emit(BranchesMet(step=scope.step, completed=[name for name in names if name], failed=list(scope.failed)))
    if fate == "undo":
        drop(turn, _all_but_the_last(scope) if outcome == ABORT else losers, why)
    token = turn.state.tokens[scope.parent]
    if fits(turn.routes, token.data, join.id, output):
        pass_through(turn, token, join, outcome, output=output)
    else:
        turn.fail(token, join, overflow(turn.routes, f"what the branches of {scope.node!r} answered"))


def _all_but_the_last(scope: BranchScope) -> list[str]:
    """The branches of a split, those included that have arrived or ended; not the one that arrived last."""
    names = [f"{scope.parent}/{scope.step}.{place}" for place in range(1, scope.begun + 1)]
    return [name for name in names if name != scope.arrived[-1]]


def _answers(turn: DecisionBuilder, scope: BranchScope, branches: list[Token]) -> Data | list[object]:
    """The last answers of the branches, by the name of each one's last step that can answer; over a list they are a list."""
    if scope.items is None:
        return {turn.routes.answer_name(each.answerer): each.last_output for each in branches if each.answerer}
    ordered = sorted(branches, key=lambda token: int(token.id.rsplit(".", 1)[1]))
    return [token.last_output for token in ordered]


def _close(turn: DecisionBuilder, scope: BranchScope) -> None:
    """All branches have ended and there is nothing to meet for: the token that was split ends too."""
    turn.emit(BranchesClosed(step=scope.step))
    end(turn, turn.state.tokens[scope.parent])


def end_branches(
    turn: DecisionBuilder, branches: Sequence[str], *, error: str, reason: str = NOT_NEEDED, has_failed: bool = False
) -> None:
    """End branches, one after the other, with everything below them; the run is looked through once, however many they are."""
    state, within = turn.state, frozenset(branches)
    steps: defaultdict[str, list[StepState]] = defaultdict(list)
    scopes: defaultdict[str, list[int]] = defaultdict(list)
    tokens: defaultdict[str, list[str]] = defaultdict(list)
    for step in unended(turn):
        if step.of is None:
            steps[branch_of(step.token, within)].append(step)
    for scope in state.scopes.values():
        scopes[branch_of(scope.parent, within)].append(scope.step)
    for name in (*state.tokens, *state.parked):
        tokens[branch_of(name, within)].append(name)
    for branch in branches:
        for step in steps[branch]:
            stop_step(turn, step, "undo", error=error, reason=reason)
        for number in scopes[branch]:
            turn.emit(BranchesClosed(step=number))
        for name in sorted(tokens[branch], key=lambda each: (-len(each), each)):
            turn.emit(TokenEnded(token=name, reason="failed" if has_failed else "cancelled"))


def is_outlived(turn: DecisionBuilder, name: str) -> bool:
    """Whether the failure of a branch leaves enough others; then it is ended, and the others go on."""
    state = turn.state
    while (token := state.token(name)) is not None and token.scope is not None:
        scope = state.scopes.get(token.scope)
        if scope is None:  # The others have met without it.
            _lose(turn, name, losers="finish")
            return True
        join = turn.routes.join_of(scope.node)
        if join is not None and isinstance(join.op, JoinOp) and join.op.strategy != "all":
            others = len(scope.live) - 1 + len(scope.items or ())
            if others >= _needed(join.op):
                _lose(turn, name, losers=join.op.losers)
                look_at_branches(turn, scope.step)
                return True
        name = scope.parent
    return False


def _lose(turn: DecisionBuilder, name: str, *, losers: Losers) -> None:
    """A branch failed that is not needed; unless the join leaves everything as it is, what it did is undone."""
    end_branches(turn, [name], error=_FAILED, has_failed=True)
    if losers != "stop":
        drop(turn, [name], _FAILED)
