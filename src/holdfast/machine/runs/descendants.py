"""People who are asked in the runs that a run has called, or may call: an operator goes past them with the right to override alone.

What other runs ask is a fact. It is read only for operators who do not have that right, so that nobody else pays for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from holdfast.kernel.decision import Rejection
from holdfast.kernel.facts import FactKey, asked_fact, asks_fact
from holdfast.machine.graphs.graph import Call, Graph, Human, Node
from holdfast.machine.graphs.index import GraphIndex
from holdfast.machine.runs.branches import branch_of
from holdfast.machine.runs.law import OVERRIDE
from holdfast.machine.runs.passed import Called, under_way
from holdfast.machine.runs.protection import ahead
from holdfast.machine.runs.refusals import Refusal, refused
from holdfast.machine.runs.state import State, Step
from holdfast.machine.runs.turn import Turn


class Asked(NamedTuple):
    """Whom a run asks itself, and which other runs may ask somebody for it."""

    questions: tuple[str, ...] = ()
    """Names of nodes at which people are asked, or will be."""
    started: tuple[Step, ...] = ()
    """Calls that have begun and have not come back."""
    calls: tuple[Called, ...] = ()
    """Calls that may still be made."""


def asked_in(graph: Graph) -> Asked:
    """Returns whom any run of a graph may ask."""
    return _among(graph.nodes.values())


def asked_now(routes: GraphIndex, state: State) -> Asked:
    """Returns whom a run asks at this moment: a question that was answered is not open, although its step may wait for an operator."""
    steps = [step for step in state.open.values() if step.of is None]
    return Asked(
        tuple(step.node for step in steps if isinstance(routes.node(step.node).op, Human)), _calling(routes, steps)
    )


def asked_from(routes: GraphIndex, state: State, *, within: Collection[str] = (), until: str = "") -> Asked:
    """Returns whom a run asks, or may ask before it ends: with `within` on these branches alone, before they come to a node."""
    branches = frozenset(within)
    steps = [s for s in under_way(state) if s.of is None and (not branches or branch_of(s.token, branches))]
    tokens = [t for t in (*state.tokens.values(), *state.parked.values()) if not branches or branch_of(t.id, branches)]
    calling = {step.node for step in _calling(routes, steps)}
    here = {token.node for token in tokens if token.node != until} | {step.node for step in steps}
    later = {edge.target for edge in routes.graph.edges if edge.source in here}
    at_hand = _among(routes.node(each) for each in here - calling if each)
    coming = _among(ahead(routes, later, until=until))
    return Asked(
        tuple(dict.fromkeys((*at_hand.questions, *coming.questions))),
        _calling(routes, steps),
        tuple(dict.fromkeys((*at_hand.calls, *coming.calls))),
    )


def _calling(routes: GraphIndex, steps: Iterable[Step]) -> tuple[Step, ...]:
    return tuple(step for step in steps if step.child and isinstance(routes.node(step.node).op, Call))


def _among(nodes: Iterable[Node]) -> Asked:
    known = list(nodes)
    calls = dict.fromkeys(Called(each.op.definition, each.op.version) for each in known if isinstance(each.op, Call))
    return Asked(tuple(each.id for each in known if isinstance(each.op, Human)), calls=tuple(calls))


# -- what an operator is told


def past_call_refusal(turn: Turn, step: Step) -> Rejection | None:
    """Returns why an actor may not go past a call: people are asked in the run that it started, or would be."""
    op = turn.routes.node(step.node).op
    if not isinstance(op, Call) or turn.moment.actor.may(OVERRIDE):
        return None
    found = Asked(started=(step,)) if step.child else Asked(calls=(Called(op.definition, op.version),))
    return _refusal(turn, found, is_open=False)


def past_branch_refusal(turn: Turn, name: str, *, until: str) -> Rejection | None:
    """Returns why an actor may not cancel a branch: people are asked on it, or would be, also in runs that it calls."""
    if turn.moment.actor.may(OVERRIDE):
        return None
    return _refusal(turn, asked_from(turn.routes, turn.state, within=(name,), until=until), is_open=False)


def end_child_refusal(turn: Turn) -> Rejection | None:
    """Returns why an actor may not end a run that another one waits for: that one would go on without an answer that is still asked for."""
    if not turn.state.parent or turn.moment.actor.may(OVERRIDE):
        return None
    return _refusal(turn, asked_now(turn.routes, turn.state), is_open=True)


def _refusal(turn: Turn, found: Asked, *, is_open: bool) -> Rejection | None:
    name = next(iter(found.questions), "")
    told = repr(name) if name else next(filter(None, _below(turn, found, is_open=is_open)), "")
    if not told:
        return None
    actor, graph = turn.moment.actor.id, turn.routes.graph.name
    return refused(
        Refusal.NOT_ALLOWED,
        f"{actor!r} may not go past people whom {graph!r} asks ({told}): that needs {OVERRIDE!r}; have it decided first",
    )


def _below(turn: Turn, found: Asked, *, is_open: bool) -> Iterator[str]:
    for step in found.started:
        asked = _told(turn, asked_fact(step.child, is_open=is_open))
        if asked is not None:
            yield asked
        elif not is_open:  # It has not begun: what its definition asks counts.
            op = turn.routes.node(step.node).op
            assert isinstance(op, Call)
            yield _told(turn, asks_fact(op.definition, op.version)) or ""
    for call in found.calls:
        yield _told(turn, asks_fact(call.definition, call.version)) or ""


def _told(turn: Turn, key: FactKey) -> str | None:
    value = turn.fact(key).value
    assert value is None or isinstance(value, str)
    return value
