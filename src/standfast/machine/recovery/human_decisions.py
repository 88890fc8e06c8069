"""Whether people have a say in a run, and where: then a repair does the same again, and everything else takes the right to override.

They have if the run can ask somebody, if it is a document, and if that is so of a run that it calls or was called by. What other runs ask is a fact. It is read only for operators who do not have that right, so that nobody else pays for it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from standfast.graph.index import GraphIndex
from standfast.graph.model import (
    ActionOp,
    CallOp,
    EndOp,
    Graph,
    HumanOp,
    Node,
    NoReturnOp,
    NotificationOp,
    SavePointOp,
    TaskOp,
    WaitEventOp,
    WaitEventsOp,
    WaitTimerOp,
)
from standfast.kernel.codec.message_types import SYSTEM_PREFIX
from standfast.kernel.decision import Rejection
from standfast.kernel.facts import FactKey, above_fact, asked_fact, asks_fact
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.model.queries.authorization import OVERRIDE, override_refusal
from standfast.machine.model.queries.branches import branch_of
from standfast.machine.model.queries.eligibility import ending_refusal
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import RunState, StepState
from standfast.machine.recovery.passed_steps import Called, under_way
from standfast.machine.recovery.protection import ahead

_PLAIN = (ActionOp, CallOp, EndOp, NoReturnOp, NotificationOp, SavePointOp, TaskOp, WaitTimerOp)
"""Kinds of nodes that do something. All others decide something: how the run goes on, with what, or when."""


class Asked(NamedTuple):
    """Whom a run asks itself, and which other runs may ask somebody for it."""

    questions: tuple[str, ...] = ()
    """Names of nodes at which people are asked, or will be."""
    started: tuple[StepState, ...] = ()
    """Calls that have begun and have not come back."""
    calls: tuple[Called, ...] = ()
    """Calls that may still be made."""


def asked_in(graph: Graph) -> Asked:
    """Returns whom any run of a graph may ask."""
    return _among(graph.nodes.values())


def asked_now(routes: GraphIndex, state: RunState) -> Asked:
    """Returns whom a run asks at this moment: a question that was answered is not open, although its step may wait for an operator."""
    steps = [step for step in state.open.values() if step.of is None]
    return Asked(
        tuple(step.node for step in steps if isinstance(routes.node(step.node).op, HumanOp)), _calling(routes, steps)
    )


def asked_from(routes: GraphIndex, state: RunState, *, within: Collection[str] = (), until: str = "") -> Asked:
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


def _calling(routes: GraphIndex, steps: Iterable[StepState]) -> tuple[StepState, ...]:
    return tuple(step for step in steps if step.child and isinstance(routes.node(step.node).op, CallOp))


def _among(nodes: Iterable[Node]) -> Asked:
    known = list(nodes)
    calls = dict.fromkeys(Called(each.op.definition, each.op.version) for each in known if isinstance(each.op, CallOp))
    return Asked(tuple(each.id for each in known if isinstance(each.op, HumanOp)), calls=tuple(calls))


def say_in(graph: Graph) -> str:
    """Names what gives people a say in the runs of a graph itself: a question, or the gates of a document; empty if nothing does."""
    question = next(iter(asked_in(graph).questions), "")
    has_gates = any(each.op.is_protected for each in graph.nodes.values())
    return repr(question) if question else "it has gates" if has_gates else ""


def decides(routes: GraphIndex, node: Node) -> bool:
    """Whether a node decides something, so that to go past it is to decide. A call counts for those whom its workflow asks alone."""
    is_plain = isinstance(node.op, _PLAIN)
    return not is_plain or (isinstance(node.op, WaitTimerOp) and routes.documents is not None)


def awaits_event(node: Node) -> bool:
    """Whether a node waits for an event or a signal, which somebody else is to tell of."""
    return isinstance(node.op, WaitEventOp | WaitEventsOp)


# -- what an operator is told


def past_refusal(turn: DecisionBuilder, node: Node, what: str) -> Rejection | None:
    """Returns why an actor may not go past a node: it waits for an event, or decides something in a run in which people have a say."""
    if awaits_event(node):
        return override_refusal(turn.routes.graph, turn.moment.actor)
    return say_refusal(turn, what) if decides(turn.routes, node) else None


def say_refusal(turn: DecisionBuilder, what: str) -> Rejection | None:
    """Returns why an actor may not do something to a run that is more than the same again: people have a say in it."""
    actor = turn.moment.actor
    told = "" if actor.may(OVERRIDE) else _say(turn)
    if not told:
        return None
    why = f"people have a say in this run ({told})"
    return refused(Refusal.NOT_ALLOWED, f"{actor.id!r} may not {what}: {why}, so that needs {OVERRIDE!r} as well")


def _say(turn: DecisionBuilder) -> str:
    """Who has a say: here, in the runs that it has called or may call, or in those that it was called by."""
    own = say_in(turn.routes.graph)
    if own:
        return own
    found = Asked(started=_calling(turn.routes, under_way(turn.state)), calls=asked_in(turn.routes.graph).calls)
    told = next(filter(None, _below(turn, found, is_open=False)), "")
    return told or say_above(turn, turn.state)


def say_above(turn: DecisionBuilder, state: RunState) -> str:
    """Who has a say in a run because of a run that it was called by, or that the one was called by which it was forked from."""
    run = state.parent or state.above
    return (_told(turn, above_fact(run)) or "") if run else ""


def around_refusal(turn: DecisionBuilder, nodes: Iterable[Node]) -> Rejection | None:
    """Returns why an actor may not choose a way around some nodes: people are asked there, also in runs that are called there."""
    return None if turn.moment.actor.may(OVERRIDE) else _refusal(turn, _among(nodes), is_open=False)


def past_call_refusal(turn: DecisionBuilder, step: StepState) -> Rejection | None:
    """Returns why an actor may not go past a call: people are asked in the run that it started, or would be."""
    op = turn.routes.node(step.node).op
    if not isinstance(op, CallOp) or turn.moment.actor.may(OVERRIDE):
        return None
    found = Asked(started=(step,) if step.child else (), calls=(Called(op.definition, op.version),))
    return _refusal(turn, found, is_open=False)


def past_branch_refusal(turn: DecisionBuilder, name: str, *, until: str) -> Rejection | None:
    """Returns why an actor may not cancel a branch: people are asked on it, or would be, also in runs that it calls."""
    if turn.moment.actor.may(OVERRIDE):
        return None
    return _refusal(turn, asked_from(turn.routes, turn.state, within=(name,), until=until), is_open=False)


def end_child_refusal(turn: DecisionBuilder) -> Rejection | None:
    """Returns why an actor may not end a run that another one waits for: that one would go on without an answer that is still asked for."""
    state = turn.state
    is_part = state.parent and not state.parent_definition.startswith(
        SYSTEM_PREFIX
    )  # A schedule does not go on from an answer.
    if not is_part:
        return None
    barred = ending_refusal(turn.routes, state, state.open.values(), turn.moment.actor)
    if barred is not None or turn.moment.actor.may(OVERRIDE):
        return barred
    return _refusal(turn, asked_now(turn.routes, state), is_open=True)


def _refusal(turn: DecisionBuilder, found: Asked, *, is_open: bool) -> Rejection | None:
    name = next(iter(found.questions), "")
    told = repr(name) if name else next(filter(None, _below(turn, found, is_open=is_open)), "")
    if not told:
        return None
    actor, graph = turn.moment.actor.id, turn.routes.graph.name
    return refused(
        Refusal.NOT_ALLOWED,
        f"{actor!r} may not go past people whom {graph!r} asks ({told}): that needs {OVERRIDE!r}; have it decided first",
    )


def _below(turn: DecisionBuilder, found: Asked, *, is_open: bool) -> Iterator[str]:
    for step in found.started:
        asked = _told(turn, asked_fact(step.child, is_open=is_open))
        if asked is not None:
            yield asked
        elif not is_open:  # It has not begun: what its definition asks counts.
            op = turn.routes.node(step.node).op
            assert isinstance(op, CallOp)
            yield _told(turn, asks_fact(op.definition, op.version)) or ""
    for call in found.calls:
        yield _told(turn, asks_fact(call.definition, call.version)) or ""


def _told(turn: DecisionBuilder, key: FactKey) -> str | None:
    value = turn.fact(key).value
    assert value is None or isinstance(value, str)
    return value
