"""Moving a document to another version of its workflow: only if everything that is under way, and every gate, has its counterpart there.

No approval that lies ahead is lost by it, and none of the other version is passed over. Where that one asks others, or fewer later, or where a step
ahead of an approval or a right is another one, the move takes the right to override people, and the history names what is asked otherwise.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from standfast.graph.index import GraphIndex
from standfast.graph.model import REJECT, CallOp, GateOp, HumanOp, Node, PolicyGateOp, ProxyOp
from standfast.graph.model import StateOp as StateNode
from standfast.graph.rights_diff import ways_around
from standfast.graph.scopes import outside_of_branches
from standfast.kernel.decision import Answer
from standfast.machine.documents.approval_paths import (
    Versions,
    asks_others,
    eased,
    lost_ahead,
    passed_over,
)
from standfast.machine.flow.cancellation import stop_step
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.flow.slots import LEFT, standing, void
from standfast.machine.model.commands.document_commands import SwitchWorkflow
from standfast.machine.model.events import WorkflowSwitched
from standfast.machine.model.queries.authorization import OVERRIDE
from standfast.machine.model.queries.edit_windows import document_of, index_of
from standfast.machine.model.queries.fields import faults_of, marks_of
from standfast.machine.model.rejections import Refusal, refused
from standfast.machine.model.state import RunState, StepState
from standfast.machine.recovery.repair import may_repair

_MOST = 10
"""Reasons that a message lists."""


def switch(turn: DecisionBuilder, command: SwitchWorkflow) -> Answer | None:
    """Follow another version from here on; why not, if it cannot be. What waits goes on waiting, but a question that asks others there is put anew."""
    refusal = may_repair(turn, command.reason)
    if refusal is not None:
        return refusal
    document, tenant = document_of(turn.state), turn.moment.tenant
    target = turn.routes.others(tenant, command.version)
    problems = list(_problems(turn, target, command))
    if problems or target is None:
        told = "; ".join(problems[:_MOST])
        more = f"; and {len(problems) - _MOST} more" if len(problems) > _MOST else ""
        where = f"{document.id!r} cannot follow version {command.version!r} of {turn.routes.graph.name!r}"
        return refused(Refusal.NOT_SWITCHABLE, f"{where}: {told}{more}")
    versions = Versions(turn.routes, target, command.nodes)
    easier = eased(versions)
    if easier and not turn.moment.actor.may(OVERRIDE):
        named = ", ".join(map(repr, easier))
        told = f"{named} would not be the same there, so others might be asked, or less; {turn.moment.actor.id!r} may not decide that"
        return refused(Refusal.NOT_ALLOWED, f"{told}: that needs {OVERRIDE!r}")
    anew = [step for step in _questions(turn) if asks_others(versions, step.node)]
    void(turn, [step.number for step in anew if step.number in document.approvals], "moved")
    for step in anew:
        stop_step(turn, step, "drop", error=f"it is asked anew in version {command.version!r}", reason=LEFT)
    turn.emit(
        WorkflowSwitched(
            tenant=tenant,
            version=command.version,
            before=turn.routes.graph.version,
            nodes={old: new for old, new in command.nodes.items() if old != new},
            by=turn.moment.actor.id,
            reason=command.reason,
            on_behalf_of=turn.moment.actor.on_behalf_of,
            eased=easier,
        )
    )
    turn.follow(target)
    for step in anew:
        turn.move(step.token, versions.counterpart(step.node), is_asked=True)
    return None


def _questions(turn: DecisionBuilder) -> list[StepState]:
    """The questions that are open."""
    steps = turn.state.open.values()
    return [step for step in steps if step.of is None and isinstance(turn.routes.node(step.node).op, HumanOp)]


def _problems(turn: DecisionBuilder, target: GraphIndex | None, command: SwitchWorkflow) -> Iterator[str]:
    routes, state, document = turn.routes, turn.state, document_of(turn.state)
    if target is None:
        yield "there is no such version; publish it first"
        return
    if target.documents is None or target.documents.spec.entity_type != document.type:
        yield f"it is not of documents of the type {document.type!r}"
        return
    if target.graph.version == routes.graph.version:
        yield "it follows that one already"
        return
    yield from _misnamed(routes, target, command.nodes)
    if state.scopes:
        yield "branches of it are under way; wait until they have met"
    if state.dropped is not None or state.stopping:
        yield "something that it did is being stopped or undone; wait until that is over"
    if document.status not in target.documents.spec.states:
        yield f"there is no status {document.status!r} there"
    faults = faults_of(target.documents, document.data, kept=marks_of(document.data, document.data))
    if faults:
        yield f"its content does not fit the contract there: {'; '.join(faults)}"
    yield from _gates(routes, target, command.nodes)
    guarded = Versions(routes, target, command.nodes).guarded
    yield from ways_around(routes.graph, target.graph, guarded, document.status)
    yield from _way(turn, target, command.nodes)
    yield from _live(turn, target, command.nodes)
    yield from _deciders(turn, target, command.nodes)
    yield from _uncovered(turn, target)


def _misnamed(routes: GraphIndex, target: GraphIndex, nodes: Mapping[str, str]) -> Iterator[str]:
    for old, new in nodes.items():
        if old not in routes.graph.nodes:
            yield f"the map names {old!r}, which the present version does not have"
        if new not in target.graph.nodes:
            yield f"the map leads to {new!r}, which the other version does not have"
    called = Counter(nodes.get(name, name) for name in routes.graph.nodes)
    for name in sorted({*nodes.values()}):
        if called[name] > 1 and name in target.graph.nodes:
            yield f"the map leads to {name!r} twice; give each node a counterpart of its own"


def _way(turn: DecisionBuilder, target: GraphIndex, nodes: Mapping[str, str]) -> Iterator[str]:
    """What is asked for on the way to the next gate is asked for there, and nothing that is asked for there is passed over."""
    versions = Versions(turn.routes, target, nodes)
    approved = [each.node for each in standing(turn).values() if each.verdict == "approved"]
    for place in _places(turn.state):
        if place in turn.routes.graph.nodes and versions.counterpart(place) in target.graph.nodes:
            yield from lost_ahead(versions, place)
            yield from passed_over(versions, place, approved)


def _places(state: RunState) -> list[str]:
    """Where tokens are, or go to once the run goes on."""
    tokens = (*state.tokens.values(), *state.parked.values())
    return sorted(
        {(each.stay.target or each.stay.node or each.node) if each.stay else each.node for each in tokens} - {""}
    )


def _rejects_to(routes: GraphIndex, gate: str) -> set[str]:
    """The statuses that a rejection before a gate leads to; none if a document keeps its status."""
    states = [routes.node(edge.target).op for edge in routes.ways(gate, REJECT)]
    return {op.status for op in states if isinstance(op, StateNode)}


def _gates(routes: GraphIndex, target: GraphIndex, nodes: Mapping[str, str]) -> Iterator[str]:
    """Every gate is there, performs the same transition, and rejects to the same status."""
    for name, node in routes.graph.nodes.items():
        if isinstance(node.op, GateOp):
            other = target.graph.nodes.get(nodes.get(name, name))
            if other is None or not isinstance(other.op, GateOp) or other.op.transition != node.op.transition:
                yield f"the gate {name!r} has no counterpart there"
            elif (back := _rejects_to(routes, name)) and back != _rejects_to(target, other.id):
                yield f"a rejection before the gate {name!r} leads elsewhere there"
    for name, transition in index_of(routes).transitions.items():
        other_one = index_of(target).transitions.get(name)
        if other_one is None or other_one.target != transition.target:
            yield f"the transition {name!r} is not the same there"


def _live(turn: DecisionBuilder, target: GraphIndex, nodes: Mapping[str, str]) -> Iterator[str]:
    """Every node that something is at, or that an approval was given at, is there, of the same kind and in the same slot."""
    outside = outside_of_branches(target.graph)
    for name in live_nodes(turn.state):
        node, called = turn.routes.node(name), nodes.get(name, name)
        other = target.graph.nodes.get(called)
        if other is None:
            yield f"something is at {name!r}, which has no counterpart there; name one"
        elif type(other.op) is not type(node.op) or other.region != node.region or _meaning(other) != _meaning(node):
            yield f"something is at {name!r}, and {called!r} is of another kind, or in another slot"
        elif called not in outside:
            yield f"something is at {name!r}, and {called!r} lies in a branch there"
        else:
            yield from _different(node, other)


def _deciders(turn: DecisionBuilder, target: GraphIndex, nodes: Mapping[str, str]) -> Iterator[str]:
    """Who has decided what is known there too, where they may not decide something else because of it."""
    if not target.tells_deciders_apart:
        return
    if not turn.routes.tells_deciders_apart and turn.state.decided:
        yield "people are kept apart there by what they have decided, which nobody has kept of it; let it end where it is"
    gone = [each for each in turn.state.deciders if nodes.get(each, each) not in target.graph.nodes]
    known = {*turn.routes.graph.nodes, *nodes.values()}
    people = [each.op for each in target.graph.nodes.values() if isinstance(each.op, HumanOp)]
    new = sorted({name for op in people for name in op.distinct_from} - known)
    if gone and new:
        told = f"{gone[0]!r} was decided and has no counterpart there, where {new[0]!r} is new"
        yield f"{told}, and keeps those apart who decided it; name one"


def _uncovered(turn: DecisionBuilder, target: GraphIndex) -> Iterator[str]:
    """What is approved, or asked about, is not the workflow's own there, which no edit of it would void."""
    index, other = index_of(turn.routes), index_of(target)
    for approval in standing(turn).values():
        op = turn.routes.node(approval.node).op
        assert isinstance(op, HumanOp)
        own = other.system if op.covers else other.free
        for name in sorted(index.covered(op.covers) & own):
            yield f"{approval.node!r} is about {name!r}, which the workflow writes by itself there"


def _meaning(node: Node) -> object:
    """What stays the same of a part of the envelope, however it is called."""
    match node.op:
        case StateNode():
            return node.op.status
        case GateOp():
            return node.op.transition
        case ProxyOp():
            return (node.op.slot, node.op.side)
        case PolicyGateOp():
            return (node.op.action, node.op.of)
        case _:
            return None


def _different(node: Node, other: Node) -> Iterator[str]:
    if isinstance(node.op, HumanOp) and isinstance(other.op, HumanOp):
        if (node.op.pins, node.op.covers, node.op.outcomes) != (other.op.pins, other.op.covers, other.op.outcomes):
            yield f"{other.id!r} covers other fields there, or has other outcomes, than what is asked or was decided at {node.id!r}"
    elif isinstance(node.op, CallOp) and isinstance(other.op, CallOp) and node.op.definition != other.op.definition:
        yield f"{other.id!r} starts another workflow there than {node.id!r}"


def live_nodes(state: RunState) -> list[str]:
    """The nodes that something is at, or was decided at for the gate to come."""
    names = [token.node for token in (*state.tokens.values(), *state.parked.values())]
    names += [each for token in state.tokens.values() if token.stay for each in (token.stay.target, token.stay.node)]
    names += [step.node for step in (*state.open.values(), *state.dead.values(), *state.frozen.values())]
    if state.document is not None:
        names += [each.node for each in state.document.approvals.values()]
    return sorted({each for each in names if each})
