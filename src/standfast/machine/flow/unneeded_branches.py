"""Branches that were not needed, and slots that a rejection has left: what they did is undone while the run goes on, one step after the other."""

from __future__ import annotations

from collections.abc import Sequence

from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.rollback import is_to_undo, undo
from standfast.machine.model.events import BranchesDropped, BranchesUndone
from standfast.machine.model.queries.branches import branch_of
from standfast.machine.model.queries.edit_windows import index_of
from standfast.machine.model.state import Dropped, Executed


def drop(turn: DecisionBuilder, branches: Sequence[str], error: str) -> None:
    """These branches have ended: have undone what they did, if there is anything to undo."""
    if not branches:
        return
    within, executed = frozenset(branches), turn.state.executed.values()
    if any(branch_of(each.token, within) and _may_need_undoing(turn, each) for each in executed):
        turn.emit(BranchesDropped(tokens=list(branches), error=error))


def give_back(turn: DecisionBuilder, place: str, error: str) -> None:
    """A rejection brings a document back to a state: have undone what slots did since it was left last, if they say so."""
    slots = index_of(turn.routes).undone
    if not slots:
        return
    found: list[int] = []
    for each in reversed(turn.state.executed.values()):
        if each.node == place:
            break
        node = turn.routes.node(each.node)
        if node.region in slots and (node.compensation is not None or each.is_undoable or each.not_undone):
            found.append(each.number)
    if found:
        turn.emit(BranchesDropped(tokens=[], error=error, steps=found[::-1]))


def _may_need_undoing(turn: DecisionBuilder, executed: Executed) -> bool:
    """Whether there is a compensation, or a child that is to be undone, is being undone or could not be."""
    if turn.routes.node(executed.node).compensation is not None or executed.not_undone or executed.is_undoable:
        return True
    return bool(executed.child) and executed.number in turn.state.stopping


def undo_dropped(turn: DecisionBuilder) -> None:
    """Undo the next step of dropped branches, once none of their handlers runs any more."""
    state = turn.state
    dropped = state.dropped
    if dropped is None or dropped.stuck is not None or not state.may_begin:
        return
    if any(step.of is not None for step in state.open.values()):
        return
    if is_stopping(turn, dropped):
        return
    for number in reversed(dropped.chain):
        executed = state.executed.get(number)
        if executed is not None and is_to_undo(turn, executed):
            undo(turn, executed)
            return
    turn.emit(BranchesUndone())


def is_stopping(turn: DecisionBuilder, dropped: Dropped) -> bool:
    """Whether a handler or a child of dropped branches has not come back yet."""
    state = turn.state
    return any(
        number in dropped.steps or branch_of(state.executed[number].token, dropped.tokens) for number in state.stopping
    )
