"""What is supposed of the world in a dry run, where it is not for the best."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import cast

import msgspec

from standfast.errors import PayloadError, brief
from standfast.expressions.model.suggestions import suggestion
from standfast.graph.model import CallOp, Graph, HumanOp, WaitEventOp, WaitEventsOp

Data = dict[str, object]


class Assumptions(msgspec.Struct, frozen=True, kw_only=True):
    """What people, handlers and the world are supposed to do; everybody agrees and everything awaited comes where this is silent."""

    decisions: Mapping[str, str | Sequence[str]] = {}
    """How people decide, by node: the same each time, or one after the other, and as ever when these are used up."""
    forms: Mapping[str, object] = {}
    """What people fill in, by node."""
    answers: Mapping[str, object] = {}
    """What handlers and other workflows answer, by their names or by the steps that call them; nothing where this is silent."""
    failing: AbstractSet[str] = frozenset()
    """Handlers and workflows that fail, by name, and steps."""
    events: Mapping[str, object] = {}
    """What events and signals bring, by name."""
    unanswered: AbstractSet[str] = frozenset()
    """Nodes where nobody decides, and events and signals that do not come: their time goes by."""


def script_of(graph: Graph, given: Mapping[str, object], *, name: Callable[[str], str] = str) -> Assumptions:
    """What somebody supposes, by the names of a script; PayloadError for what cannot be supposed of this graph. `name` is that of the stage."""
    ops = {name(node.id): node.op for node in graph.nodes.values()}
    asking = {each for each, op in ops.items() if isinstance(op, HumanOp)}
    calling = {each for each, op in ops.items() if op.call is not None or isinstance(op, CallOp)}
    callees = {*calling, *graph.handlers, *(op.definition for op in ops.values() if isinstance(op, CallOp))}
    awaited = {op.signal for op in ops.values() if isinstance(op, WaitEventOp)}
    awaited |= {each.event for op in ops.values() if isinstance(op, WaitEventsOp) for each in op.events}
    return Assumptions(
        decisions=_decisions(_named(given, "decisions", asking, "asks nobody at"), ops),
        forms=_named(given, "forms", asking, "asks nobody at"),
        answers=_named(given, "answers", callees, "calls no"),
        failing=_names(given, "failing", callees, "calls no"),
        events=_named(given, "events", awaited, "waits for no"),
        unanswered=_names(given, "unanswered", asking | awaited, "waits at no"),
    )


def _named(given: Mapping[str, object], what: str, known: AbstractSet[str], no: str) -> Data:
    said = given.get(what)
    if said is None:
        return {}
    if not isinstance(said, Mapping) or not all(isinstance(each, str) for each in said):
        raise PayloadError(f"the `{what}` of a dry run are given by name, not as {brief(said)}")
    for each in said:
        _check(each, known, what, no)
    return dict(said)


def _names(given: Mapping[str, object], what: str, known: AbstractSet[str], no: str) -> AbstractSet[str]:
    said = given.get(what)
    if said is None:
        return frozenset()
    is_list = isinstance(said, Iterable) and not isinstance(said, str | bytes | Mapping)
    names = list(cast("Iterable[object]", said)) if is_list else []
    if not is_list or not all(isinstance(each, str) for each in names):
        raise PayloadError(f"the `{what}` of a dry run are a list of names, not {brief(said)}")
    for each in cast("list[str]", names):
        _check(each, known, what, no)
    return frozenset(cast("list[str]", names))


def _check(name: str, known: AbstractSet[str], what: str, no: str) -> None:
    if name not in known:
        names = sorted(known)
        there = ", ".join(names[:20]) or "none"
        told = f"the workflow {no} {name!r}, which the `{what}` name; there is {there}"
        raise PayloadError(f"{told}{suggestion(name, names)}")


def _decisions(said: Data, ops: Mapping[str, object]) -> dict[str, str | Sequence[str]]:
    found: dict[str, str | Sequence[str]] = {}
    for node, outcomes in said.items():
        in_turn = [outcomes] if isinstance(outcomes, str) else outcomes
        if not isinstance(in_turn, list | tuple) or not all(isinstance(each, str) for each in in_turn):
            raise PayloadError(f"the decision at {node!r} is an outcome, or a list of them, not {brief(outcomes)}")
        op = ops[node]
        assert isinstance(op, HumanOp)
        for each in in_turn:
            if each not in op.outcomes:
                told = f"nobody can decide {each!r} at {node!r}; there is {', '.join(op.outcomes)}"
                raise PayloadError(f"{told}{suggestion(each, op.outcomes)}")
        found[node] = cast("str | Sequence[str]", outcomes)
    return found
