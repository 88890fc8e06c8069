"""Runs that begin where another one was: the point is looked up in its history, and the new run decides the rest."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import msgspec

from standfast.calls.context import CallContext
from standfast.calls.people_in_runs import PeopleBelow
from standfast.engine.commit.submission import CommandOutcome
from standfast.errors import NotFoundError, RejectedError
from standfast.features.runs.reads import graph_of, workflow_row
from standfast.graph.index import GraphIndex
from standfast.graph.model import CallOp, Graph, HumanOp, TaskOp
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import STEPS
from standfast.machine.model.commands.repair_commands import ForkWorkflow
from standfast.machine.model.events import WorkflowForked, WorkflowStarted
from standfast.machine.model.queries.authorization import OVERRIDE
from standfast.machine.model.rejections import Refusal
from standfast.machine.model.state import Data, RunState
from standfast.machine.recovery.fork import fork_problem, paused_problem
from standfast.machine.recovery.passed_steps import approvals_passed, calls_passed, under_way
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader


class RepeatedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A handler that a fork would have called, although the run that it comes from has called it."""

    step: str
    """Name of the step."""
    handler: str
    is_under_way: bool
    """Whether the fork would begin with it; otherwise it comes to it if it goes the same way."""


class ForkPreview(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of a fork."""

    at: int
    """Number of the last event that it would take over."""
    problem: str
    """Why it is not possible; empty if it is."""
    kept: list[str]
    """Names of the steps that it would take over as they ended, in order; it never undoes them."""
    calls: list[RepeatedCall]
    """Handlers that would be called again, in the order of their steps."""
    people: list[str]
    """Names of the steps that would ask people again."""
    approvals: list[str]
    """Names of the steps that people have decided. With changed `data` they are void: the fork begins where the first of them was open, and
    asks again, unless the actor has the capability `execution:override`."""
    children: list[str]
    """Names of the steps that would start another workflow again."""
    waits: list[str]
    """Names of the steps that would wait for time or for a signal again, from the beginning."""
    data: dict[str, dict[str, object]]
    """The data of each token, by its name."""


class _Point(NamedTuple):
    """Where a run was."""

    header: InstanceHeader
    graph: Graph
    state: RunState
    input: Data
    problem: str
    """Why no fork can begin there."""
    paused: str
    """Why no fork can begin anywhere, as the run is now."""
    origin: str
    """The run that it was forked from itself; empty if it was not."""
    is_closed: bool
    """Whether the version is archived, which no new run begins with."""


def _point(desk: CallContext, reader: TenantReader, run: InstanceId, at: int) -> _Point:
    """Where a run was after an event; a point in the midst of a decision names the next one that is not."""
    header = workflow_row(reader, run)
    graph = graph_of(desk, header)
    routes = GraphIndex(graph, desk.payload_limit)
    if not 1 <= at <= header.version:
        raise NotFoundError("event of a history", at, hint=f"the history of {run} has the events 1 to {header.version}")
    program = desk.registry.get(header.tenant, header.definition, header.definition_version)
    events = reader.events(header.id)
    given = program.decode(events[0])
    assert isinstance(given, WorkflowStarted | WorkflowForked)
    state = cast("RunState", program.replay(program.initial(), events[:at]))
    problem = fork_problem(routes, state)
    if problem:
        later = cast("RunState", program.replay(program.initial(), events[:at]))
        for each in events[at:]:
            later = cast("RunState", program.replay(later, (each,)))
            if not fork_problem(routes, later):
                problem = f"{problem}; the next point is {each.sequence}"
                break
    origin = given.origin if isinstance(given, WorkflowForked) else ""
    now = cast("RunState", program.replay(program.initial(), events)) if header.paused_at else None
    paused = paused_problem(now) if now else ""
    closed = desk.registry.library.closed(header.tenant, header.definition, header.definition_version)
    return _Point(header, graph, state, given.input, closed or problem, paused, origin, is_closed=bool(closed))


def fork_preview(desk: CallContext, reader: TenantReader, run: InstanceId, at: int) -> ForkPreview:
    """What would become of a fork, as far as the run that it comes from tells."""
    point = _point(desk, reader, run, at)
    begun = [step.node for step in under_way(point.state)]
    later = [
        row.node for row in reader.rows(STEPS, run) if row.kind == "forward" and row.number >= point.state.next_step
    ]
    nodes = [(point.graph.nodes[name], place < len(begun)) for place, name in enumerate([*begun, *later])]
    again = dict.fromkeys((node.id, is_begun) for node, is_begun in nodes)
    ops = {node.id: node.op for node, _ in nodes}

    def named(*kinds: type[Any]) -> list[str]:
        return list(dict.fromkeys(name for name, _ in again if isinstance(ops[name], kinds)))

    calls = [
        RepeatedCall(step=name, handler=op.work.handler, is_under_way=is_begun)
        for name, is_begun in again
        if isinstance(op := ops[name], TaskOp) and not (not is_begun and (name, True) in again)
    ]
    tokens = {**point.state.tokens, **point.state.parked}
    waiting = {node.id for node, _ in nodes if node.execution == "wait"}
    people, children = named(HumanOp), named(CallOp)
    repeated = {step.retry_of for step in under_way(point.state)} | {token.retry_of for token in tokens.values()}
    return ForkPreview(
        at=at,
        problem=point.paused or point.problem,
        kept=[each.node for each in point.state.executed.values() if each.number not in repeated],
        calls=calls,
        people=people,
        approvals=_decided(desk, GraphIndex(point.graph, desk.payload_limit), point.state),
        children=children,
        waits=[name for name in dict.fromkeys(name for name, _ in again) if name in waiting - {*people, *children}],
        data={name: token.data for name, token in tokens.items()},
    )


def _decided(desk: CallContext, routes: GraphIndex, state: RunState) -> list[str]:
    """The steps that people have decided, themselves or in runs that they called."""
    calls = calls_passed(routes, state)
    asking = (
        node for node, called in calls.items() if PeopleBelow(desk.registry, None, desk.tenant).of_definition(called)
    )
    return list(dict.fromkeys((*approvals_passed(routes, state), *asking)))


def _unapproved(desk: CallContext, reader: TenantReader, point: _Point, at: int) -> int:
    """The last point up to this one at which nobody had decided anything that the run has left behind."""
    routes = GraphIndex(point.graph, desk.payload_limit)
    if not _decided(desk, routes, point.state):
        return at
    header = point.header
    program = desk.registry.get(header.tenant, header.definition, header.definition_version)
    state, found = cast("RunState", program.initial()), at
    for each in reader.events(header.id)[:at]:
        state = cast("RunState", program.replay(state, (each,)))
        if _decided(desk, routes, state):
            break
        if not fork_problem(routes, state):
            found = each.sequence
    return found


def forked(desk: CallContext, run: InstanceId, *, at: int, reason: str, patch: Data, key: str) -> InstanceId:
    """Start a run where another one was. With other data it begins before the first approval, unless the actor may go past those."""
    may_override = desk.looked_up().request.actor.may(OVERRIDE)
    with desk.reader.look() as reader:
        point = _point(desk, reader, run, at)
        if point.paused:
            message = f"no workflow can begin where {run} was at {at}: {point.paused}"
            raise RejectedError(reason=Refusal.ALREADY_PAUSED.value, message=message)
        if patch and not point.problem and not may_override:
            at = _unapproved(desk, reader, point, at)
            point = _point(desk, reader, run, at)
            lost = _decided(desk, GraphIndex(point.graph, desk.payload_limit), point.state)
            if lost and point.origin:
                told = f"{', '.join(map(repr, lost))} was decided on other data before {run} was forked"
                message = f"{told}; fork {point.origin}, which it comes from, where it is still open"
                raise RejectedError(reason=Refusal.NO_FORK.value, message=message)
    if point.problem:
        message = f"no workflow can begin where {run} was at {at}: {point.problem}"
        refusal = Refusal.ARCHIVED if point.is_closed else Refusal.NO_FORK
        raise RejectedError(reason=refusal.value, message=message)
    header, shared = point.header, desk.service.shared
    # It is where the other one is, whoever asks for it.
    desk = desk.acting(msgspec.structs.replace(desk.request, partition=header.partition))
    address = (
        desk.address(header.definition, key)
        if key
        else desk.address(header.definition, instance=InstanceId(shared.chance.new_id(shared.clock.now())))
    )
    command = ForkWorkflow(origin=str(run), at=at, input=point.input, state=point.state, patch=patch, reason=reason)
    reply = desk.command(address, command, _born, comment=reason, definition_version=header.definition_version)
    return reply.result()


def _born(outcome: CommandOutcome) -> InstanceId:
    assert outcome.instance is not None, "a start that was accepted has an instance"
    return outcome.instance
