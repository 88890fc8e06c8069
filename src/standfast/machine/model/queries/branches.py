"""Where tokens lie in the tree of branches, and which of the steps of branches are to be undone."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from standfast.graph.index import GraphIndex
from standfast.graph.model import NoReturnOp
from standfast.machine.model.json_values import fingerprint
from standfast.machine.model.state import ROOT, Dropped, Executed, RunState, Token


def lies_below(token: str, other: str) -> bool:
    """Whether a token is another one, or comes from it."""
    return token == other or token.startswith(f"{other}/")


def branch_of(token: str, branches: Collection[str]) -> str:
    """The one of these branches that a token is, or lies below; empty if there is none."""
    while token and token not in branches:
        token = token.rpartition("/")[0]
    return token


def entry_of(routes: GraphIndex, token: Token | None) -> str:
    """Returns a hash of the entries that a branch has of the lists around it; empty outside of all branches."""
    if token is None or token.scope is None:
        return ""
    entries = {name: token.data[name] for name in routes.item_names if name in token.data}
    return fingerprint(entries) if entries else ""


def _lineage(token: str) -> Iterator[str]:
    """A token and all that it comes from."""
    while token:
        yield token
        token = token.rpartition("/")[0]


def is_kept(token: str, bounds: list[tuple[str, bool]]) -> bool:
    """Whether a boundary that was passed later protects a step: its own way, and the tokens above it where the boundary says so."""
    return any(lies_below(token, bound) or (reaches_up and lies_below(bound, token)) for bound, reaches_up in bounds)


def undoable(routes: GraphIndex, state: RunState, dropped: Dropped) -> list[int]:
    """The steps of dropped branches that may have to be undone, in the order in which they ended."""
    found: list[int] = []
    bounds: set[str] = set()
    """Tokens that passed a point of no return."""
    above: set[str] = set()
    """These, and all that they come from."""
    for each in reversed(state.executed.values()):
        if each.number not in dropped.steps and not branch_of(each.token, dropped.tokens):
            continue
        node = routes.node(each.node)
        if isinstance(node.op, NoReturnOp):
            bounds.add(each.token)
            above.update(_lineage(each.token))
        elif node.compensation is not None or each.child:
            is_protected = each.token in above or bool(branch_of(each.token, bounds))
            found += [] if is_protected else [each.number]
    return found[::-1]


def is_concerned(routes: GraphIndex, executed: Executed) -> bool:
    """Whether there is anything to undo: a step that was stopped has done nothing, or half of its work, or all of it."""
    if executed.not_undone or executed.is_undoable:
        return True
    if executed.status != "skipped":
        return executed.was_called
    if executed.is_done and routes.node(executed.node).compensation is not None:
        return True
    return executed.was_called and executed.token != ROOT


def needs_undoing(routes: GraphIndex, executed: Executed) -> bool:
    """Whether something has to be done to undo a step."""
    if executed.not_undone or executed.is_undoable:
        return True
    has_work = routes.node(executed.node).compensation is not None
    return has_work and not executed.is_settled and is_concerned(routes, executed)


def shorten(routes: GraphIndex, state: RunState, dropped: Dropped) -> None:
    """Take the last steps of dropped branches from the list that need no undoing, so that nobody looks at them again."""
    while dropped.chain:
        number = next(reversed(dropped.chain))
        executed = state.executed.get(number)
        if executed is not None and (number in state.stopping or needs_undoing(routes, executed)):
            return
        del dropped.chain[number]
