"""How processes are read: an instance with its state, and what its caller can do with it.

Active processes whose time is over, for operators: of their own tenant, and of all tenants for the engine itself.

The events by which somebody can leave the step that a process is at, and why not by others: judged as an advance would be.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from typing import Final, cast

import msgspec

from standfast.calls.authorization import check_reader
from standfast.calls.context import (
    CallContext,
    checked_instant,
    checked_last,
    checked_limit,
    checked_tenant,
)
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.commit.facts import VouchedFacts
from standfast.errors import (
    DefinitionError,
    ExpressionError,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    RejectedError,
    ReusedIdError,
)
from standfast.features.processes.error_details import STEP_FAILED
from standfast.features.processes.history import ProcessHistory
from standfast.features.processes.views import (
    ExpiredProcess,
    ProcessChoice,
    ProcessDescriptor,
    ProcessEvent,
    ProcessInstance,
    ProcessStep,
    ProcessSummary,
    StepType,
)
from standfast.features.runs.reads import LARGEST_PAGE, folded_workflow
from standfast.features.tasks.authorization import DeciderOf
from standfast.graph.index import GraphIndex
from standfast.graph.model import Edge, EndOp, Graph, HumanOp, Node, TaskOp
from standfast.graph.status_words.by_kind import words_of
from standfast.kernel.actor import Actor
from standfast.kernel.decision import NOT_ALLOWED
from standfast.kernel.facts import PersonFact
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.tasks import TASK_PEOPLE
from standfast.machine.flow.deadline_checks import late_refusal
from standfast.machine.flow.decision_builder import DecisionBuilder
from standfast.machine.machine import GraphMachine
from standfast.machine.model.queries.authorization import resume_refusal, stop_refusal
from standfast.machine.model.queries.eligibility import decision_by, question_of
from standfast.machine.model.queries.expression_scope import ScopeQuery, namespaces_of
from standfast.machine.model.rejections import Refusal
from standfast.machine.model.rows.process_rows import (
    CHAIN_LIMIT,
    current_step,
    gathered,
    shown,
    step_named,
)
from standfast.machine.model.state import ROOT, RunState, StepState
from standfast.machine.model.task_state import Question
from standfast.machine.nodes import kind_of
from standfast.machine.process_advance import is_undecided
from standfast.machine.tasks.entitlement import (
    apart_refusal,
    brought_roles,
    decider_refusal,
    relied_on,
    unclaimed_refusal,
)
from standfast.store.ports.maintenance import ExpiredQuery
from standfast.store.ports.pauses import ALL_TENANTS
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader


def expired(
    desk: CallContext, *, before: datetime | None, tenant: str, after: ExpiredProcess | None, limit: int
) -> list[ExpiredProcess]:
    """A page of them, those whose time was over first first."""
    check_reader(desk, what="look for processes whose time is over")
    last = checked_last(after, ExpiredProcess, "`after`")
    is_own = desk.request.actor.kind != "system" or bool(desk.request.partition)
    query = ExpiredQuery(
        before=checked_instant(before, "before") or desk.service.shared.clock.now(),
        tenant=_whose(desk, tenant),
        partition=desk.request.partition if is_own else None,
        after=None if last is None else (last.expires_at, last.id),
        limit=min(checked_limit(limit), LARGEST_PAGE),
    )
    return [_shown(each) for each in desk.service.survey(lambda parts: parts.expiries().expired(query))]


def _whose(desk: CallContext, tenant: str) -> str | None:
    """The tenant whose processes are wanted; None for those of all."""
    if tenant in {"", desk.tenant}:
        return desk.tenant
    if desk.request.actor.kind != "system" or desk.request.partition:
        told = f"{desk.request.actor.id!r} may look for processes of tenant {desk.tenant!r} and no other; leave `tenant` out"
        raise ForbiddenError(reason=NOT_ALLOWED, message=told)
    return None if tenant == ALL_TENANTS else checked_tenant(tenant)


def _shown(header: InstanceHeader) -> ExpiredProcess:
    return ExpiredProcess(
        id=header.id,
        tenant_id=header.tenant,
        partition_id=header.partition,
        workflow_id=header.definition,
        workflow_version=header.definition_version,
        subject_id=header.started_by,
        business_key=header.key,
        expires_at=cast("datetime", header.deadline_at),
    )


def choices_of(turn: DecisionBuilder, step: StepState) -> list[ProcessChoice]:
    """The events of an open step, for the actor of a moment, who is one of those who are asked."""
    routes, state, moment = turn.routes, turn.state, turn.moment
    node, actor = routes.node(step.node), moment.actor
    assert isinstance(node.op, HumanOp)
    labels = node.metadata.get("labels")
    names = labels if isinstance(labels, dict) else {}
    asked = namespaces_of(routes.graph.kind).values(ScopeQuery(moment, state, node.id, state.tokens[ROOT].data))
    kept_out = _kept_out(turn, step)
    choices = []
    for event in node.op.outcomes:
        why = kept_out or _why_closed(routes, routes.ways(node.id, event), actor, asked)
        label = names.get(event)
        told = label if isinstance(label, str) and label else event
        choices.append(ProcessChoice(event=event, label=told, is_allowed=not why, why_not=why))
    return choices


def _kept_out(turn: DecisionBuilder, step: StepState) -> str:
    """Why an actor who is asked cannot decide, whatever the event: they have done so, its time is over, somebody else has claimed it, or it takes another person."""
    given = decision_by(question_of(turn.routes, turn.state, step), turn.moment.actor)
    if given is not None:
        return f"{given.actor!r} has decided it by {given.outcome!r}; withdraw that decision first"
    barred = late_refusal(turn, step, "this answer") or unclaimed_refusal(turn, step) or apart_refusal(turn, step)
    return "" if barred is None else barred.message


def _why_closed(routes: GraphIndex, ways: tuple[Edge, ...], actor: Actor, asked: dict[str, object]) -> str:
    """Why none of these ways is open; empty if one is, or may be with the right input."""
    open_ways = [each for each in ways if _may_hold(routes, each, asked)]
    if not open_ways:
        return "its conditions do not hold"
    if any(actor.may(each.capability) for each in open_ways):
        return ""
    return f"it needs the capability {open_ways[0].capability!r}"


def _may_hold(routes: GraphIndex, way: Edge, asked: dict[str, object]) -> bool:
    guard = routes.guard(way)
    if guard is None or any(name.split(".")[0] == "input" for name in guard.variables):
        return True
    try:
        return guard.holds(asked)
    except ExpressionError:
        return False


KIND: Final = "process"

_LATEST_ENTRIES: Final = 100
"""Entries of the trail that a front end is shown."""
_LATEST_EVENTS: Final = 400
"""Events that are read for them: a step that is entered and left has three or four, and three entries."""


class ProcessCode(StrEnum):
    """Why a call of a process is refused, in the words of its specification; the `reason` of the error that is raised."""

    FORBIDDEN = "FORBIDDEN"
    """The caller lacks the capability or the role; a ForbiddenError."""
    WORKFLOW_NOT_ACTIVE = "WORKFLOW_NOT_ACTIVE"
    """It has ended, or is suspended: resume it first."""
    INVALID_TRANSITION = "INVALID_TRANSITION"
    """No transition leads on from the current step by this event, for this caller and with this state."""
    VERSION_CONFLICT = "VERSION_CONFLICT"
    """Somebody else has changed it; look again, and decide anew."""
    ALREADY_DECIDED = "ALREADY_DECIDED"
    """The caller has answered this step before, and otherwise; the first answer stands until it is withdrawn."""
    IDEMPOTENCY_CONFLICT = "IDEMPOTENCY_CONFLICT"
    """The idempotency key was used for another start; give each start a key of its own."""
    VALIDATION_ERROR = "VALIDATION_ERROR"
    """What was given is not what the form asks for."""
    STEP_FAILED = STEP_FAILED
    """Found in `_last_error` and in the trail, in place of the text of an error: the caller may not look at runs (`execution:read`)."""
    WORKFLOW_CHAIN_LIMIT = CHAIN_LIMIT
    """Found in `_last_error` of an instance that was suspended: too many automatic steps in a row."""


_CODES: Mapping[str, ProcessCode] = {
    Refusal.ALREADY_TERMINAL: ProcessCode.WORKFLOW_NOT_ACTIVE,
    Refusal.ROLLBACK_IN_PROGRESS: ProcessCode.WORKFLOW_NOT_ACTIVE,
    Refusal.NOT_PAUSED: ProcessCode.WORKFLOW_NOT_ACTIVE,
    Refusal.NOT_ACTIVE: ProcessCode.WORKFLOW_NOT_ACTIVE,
    Refusal.UNKNOWN_OUTCOME: ProcessCode.INVALID_TRANSITION,
    Refusal.NO_TRANSITION: ProcessCode.INVALID_TRANSITION,
    Refusal.INVALID_FORM: ProcessCode.VALIDATION_ERROR,
    Refusal.TOO_LARGE: ProcessCode.VALIDATION_ERROR,
    Refusal.REASON_REQUIRED: ProcessCode.VALIDATION_ERROR,
    Refusal.OUTDATED: ProcessCode.VERSION_CONFLICT,
    Refusal.VERSION_CONFLICT: ProcessCode.VERSION_CONFLICT,
    Refusal.NOT_WAITING: ProcessCode.VERSION_CONFLICT,
    Refusal.ALREADY_DECIDED: ProcessCode.ALREADY_DECIDED,
}


_APART: Final = frozenset({Refusal.SELF_APPROVAL, Refusal.NOT_DISTINCT})
"""Refusals of people who may not decide this one, because of what else they did."""
_KEY_IS_TAKEN: Final = "the key belongs to an instance that was started before; list it by its key, or give another one"


def in_process_words(error: BaseException) -> BaseException:
    """The same error, with the code that the specification has for it, if it has one."""
    if isinstance(error, ReusedIdError):
        return RejectedError(reason=ProcessCode.IDEMPOTENCY_CONFLICT, message=str(error))
    if isinstance(error, PayloadError) and error.reason == Refusal.INVALID_FORM:
        return PayloadError(str(error).removesuffix(f" [{error.reason}]"), reason=ProcessCode.VALIDATION_ERROR)
    if not isinstance(error, RejectedError):
        return error
    if error.reason == Refusal.ALREADY_STARTED:  # The instance may be of another partition, and is not named.
        return RejectedError(reason=error.reason, message=_KEY_IS_TAKEN)
    message = str(error).removesuffix(f" [{error.reason}]")
    if isinstance(error, ForbiddenError) or error.reason in _APART:
        return ForbiddenError(reason=ProcessCode.FORBIDDEN, message=message)
    code = _CODES.get(error.reason)
    return error if code is None else RejectedError(reason=code, message=message)


class KnownProcess:
    """An instance as it stands, for as long as it is looked at."""

    def __init__(self, tracked: CachedInstance, header: InstanceHeader, reader: TenantReader) -> None:
        self.header = header
        self.state = cast("RunState", tracked.state)
        self.program = tracked.program
        self.timers = tracked.timers
        self._reader = reader

    def events(self, *, after: int = 0) -> list[StoredEvent]:
        """Its history, or the end of it."""
        return self._reader.events(self.header.id, after=after)

    @property
    def input(self) -> dict[str, object]:
        """What it was started with."""
        first = self.program.decode(self._reader.events(self.header.id, limit=1)[0])
        return cast("dict[str, object]", getattr(first, "input", {}))

    @property
    def routes(self) -> GraphIndex:
        """Its graph, to look things up in."""
        assert isinstance(self.program.decider, GraphMachine)
        return self.program.decider.routes

    @property
    def graph(self) -> Graph:
        """Its graph."""
        return self.routes.graph

    @property
    def version(self) -> int:
        """How often it was changed."""
        return self.header.commits

    @property
    def step(self) -> StepState | None:
        """The step that it is at, if that is open."""
        return next(iter(self.state.open.values()), None)

    @property
    def question(self) -> Question | None:
        """What that step asks, if anything has happened to it."""
        return None if self.step is None else self.state.questions.get(self.step.number)

    @property
    def is_active(self) -> bool:
        """Whether it is active, in the words of processes."""
        return self.header.status == "running"

    @property
    def is_open(self) -> bool:
        """Whether it can be advanced: it is active, or suspended only because nobody could decide its question."""
        return self.is_active or is_undecided(self.state)


def known(desk: CallContext, reader: TenantReader, identity: InstanceId) -> KnownProcess:
    """An instance of the caller's tenant and partition; NotFoundError if there is none, whoever else may have one."""
    missing = NotFoundError("process instance", identity)
    try:
        tracked = folded_workflow(desk, reader, identity)
    except NotFoundError:
        raise missing from None
    header = tracked.header
    if header.kind != KIND or not is_within_partition(desk, header):
        raise missing
    return KnownProcess(tracked, header, reader)


def missing_if_absent(error: BaseException, identity: InstanceId) -> BaseException:
    """The same error, or what is said of instances that the caller cannot see, whatever it is that was not found."""
    is_unseen = isinstance(error, RejectedError) and error.reason == Refusal.NOT_STARTED
    return NotFoundError("process instance", identity) if is_unseen or isinstance(error, NotFoundError) else error


def is_within_partition(desk: CallContext, header: InstanceHeader) -> bool:
    """Whether an instance belongs to the partition of the request; the engine's own calls see all of them."""
    request = desk.request
    return header.partition == request.partition or (request.actor.kind == "system" and not request.partition)


def instance_of(found: KnownProcess) -> ProcessInstance:
    """An instance as its callers see it."""
    data = gathered(found.state)
    return _instance(found.header, found.state, found.graph, found.input if data is None else data)


def instance_in_hand(header: InstanceHeader, program: Program, state: RunState) -> ProcessInstance | None:
    """An instance as a commit has it in hand; None if only its history tells what it holds. Nothing of it changes with the state."""
    assert isinstance(program.decider, GraphMachine)
    data = gathered(state)
    return None if data is None else _instance(header, state, program.decider.graph, msgspec.to_builtins(data))


def _instance(header: InstanceHeader, state: RunState, graph: Graph, data: dict[str, object]) -> ProcessInstance:
    return ProcessInstance(
        id=header.id,
        workflow_id=header.definition,
        workflow_version=header.definition_version,
        title=graph.called,
        tenant_id=header.tenant,
        partition_id=header.partition,
        subject_id=header.started_by,
        business_key=header.key,
        current_step=current_step(graph, state),
        status=status_of(header),
        outcome=state.outcome if header.status == "completed" else "",
        state=shown(state, data),
        version=header.commits,
        created_at=header.created_at,
        updated_at=header.updated_at,
        expires_at=header.deadline_at,
    )


def summaries_of(desk: CallContext, reader: TenantReader, headers: Sequence[InstanceHeader]) -> list[ProcessSummary]:
    """Instances in a list."""
    steps = {each.instance.int: each.step for each in reader.current_steps([header.id for header in headers])}
    graphs = dict[tuple[str, str], Graph | None]()
    summaries = []
    for header in headers:
        at = steps.get(header.id.int)
        if at is None:  # It began before there were such rows.
            found = known(desk, reader, header.id)
            at = current_step(found.graph, found.state)
        version = header.definition, header.definition_version
        if version not in graphs:
            graphs[version] = _graph_of(desk, *version)
        summaries.append(_summary(header, at, graphs[version]))
    return summaries


def _graph_of(desk: CallContext, definition: str, version: str) -> Graph | None:
    """The graph of a version; None if nobody has it."""
    program = desk.registry.library.program(desk.tenant, definition, version)
    return program.decider.graph if program is not None and isinstance(program.decider, GraphMachine) else None


def may_all_decide(desk: CallContext, definition: str, version: str) -> bool:
    """Whether a version keeps nobody from deciding who is asked, whatever they have done before."""
    try:
        program = desk.registry.library.program(desk.tenant, definition, version)
    except DefinitionError:  # Only newer code can read it.
        return False
    if program is None or not isinstance(program.decider, GraphMachine):
        return False
    routes = program.decider.routes
    return not (routes.keeps_own_out or routes.tells_deciders_apart)


def _summary(header: InstanceHeader, at: str, graph: Graph | None) -> ProcessSummary:
    node = None if graph is None else graph.nodes.get(at)
    return ProcessSummary(
        id=header.id,
        workflow_id=header.definition,
        workflow_version=header.definition_version,
        title=header.definition if graph is None else graph.called,
        subject_id=header.started_by,
        business_key=header.key,
        current_step=at,
        step_title=("" if node is None else _text(node.metadata.get("title"))) or at,
        status=status_of(header),
        created_at=header.created_at,
        updated_at=header.updated_at,
        expires_at=header.deadline_at,
    )


def status_of(header: InstanceHeader) -> str:
    """Where an instance stands, in the words of the specification."""
    return words_of(KIND).instance_status(header.status, header.reason, has_begun=True)


def check_resuming(desk: CallContext, found: KnownProcess) -> None:
    """ForbiddenError unless the caller may let an instance go on."""
    barred = resume_refusal(found.graph, desk.looked_up().request.actor)
    if barred is not None:
        raise ForbiddenError(reason=barred.code, message=barred.message)


def check_stopping(desk: CallContext, found: KnownProcess) -> None:
    """ForbiddenError unless the caller may end an instance."""
    barred = stop_refusal(found.graph, desk.looked_up().request.actor)
    if barred is not None:
        raise ForbiddenError(reason=barred.code, message=barred.message)


# -- what a caller can do


def trail_of(found: KnownProcess) -> list[ProcessEvent]:
    """The trail, what happens to the instance itself included."""
    return ProcessHistory(found.graph).told(found.program, found.events())


def _latest(found: KnownProcess) -> list[ProcessEvent]:
    """The end of the trail about steps, with the beginning of the open step, however long the history is."""
    after, step = max(0, found.header.version - _LATEST_EVENTS), found.step
    if after == 0:
        return _about_steps(trail_of(found))
    known = {each.number: each.node for each in (*found.state.open.values(), *found.state.dead.values())}
    told = _about_steps(ProcessHistory(found.graph, known).told(found.program, found.events(after=after)))
    is_told = step is None or any(_begins(each, step_named(found.graph, step.node)) for each in told)
    return told if is_told else _about_steps(trail_of(found))


def _about_steps(trail: list[ProcessEvent]) -> list[ProcessEvent]:
    return [each for each in trail if each.category == "step" and each.step_id]


def _begins(entry: ProcessEvent, step: str) -> bool:
    return entry.event == "step_entered" and entry.step_id == step


def relied_on_at(desk: CallContext, reader: TenantReader, found: KnownProcess, decider: DeciderOf) -> set[str]:
    """Those about whom a directory of the host has to be asked, in order to tell what the caller can do."""
    step = found.step
    if step is None or not desk.directory.changes_unseen:
        return set()
    actor = decider(reader, found.header, step.number)
    if found.question is None:  # Nothing has happened to it, so that nobody has it from another.
        return {actor.on_behalf_of} - {""}
    return relied_on(found.question, actor, brought_roles(desk.asked))


def descriptor_of(
    desk: CallContext,
    reader: TenantReader,
    found: KnownProcess,
    decider: DeciderOf,
    *,
    people: Sequence[PersonFact] = (),
) -> ProcessDescriptor:
    """What a front end shows to the caller, who would decide as somebody; `people` is what a directory of the host has said of others."""
    instance, graph = instance_of(found), found.graph
    node, step = graph.nodes[instance.current_step], found.step
    actor = desk.looked_up().request.actor if step is None else decider(reader, found.header, step.number)
    trail = _latest(found)
    # The call that follows from an answer is of the same step, and asks nobody any more.
    is_asking = step is not None and isinstance(found.routes.node(step.node).op, HumanOp)
    turn = DecisionBuilder(found.routes, found.state, _moment(desk, found, actor, people), kind_of)
    barred = decider_refusal(turn, step) if step is not None and is_asking else None
    is_open = is_asking and found.is_open
    may_choose = is_open and barred is None
    entered = [each.timestamp for each in trail if _begins(each, node.id)]
    return ProcessDescriptor(
        instance=instance,
        step=ProcessStep(
            id=node.id,
            type=_type(node),
            title=_text(node.metadata.get("title")) or node.id,
            description=_text(node.metadata.get("description")),
            entered_at=entered[-1] if entered else None,
            form=node.op.form if may_choose and isinstance(node.op, HumanOp) else None,
        ),
        choices=choices_of(turn, step) if step is not None and may_choose else [],
        waiting_for=_waiting_for(reader, found, step) if step is not None and is_open else [],
        may_cancel=found.header.ended_at is None and stop_refusal(graph, actor) is None,
        history=trail[-_LATEST_ENTRIES:],
    )


def _moment(desk: CallContext, found: KnownProcess, actor: Actor, people: Sequence[PersonFact]) -> Moment:
    """The moment at which somebody would advance an instance."""
    header, now = found.header, desk.service.shared.clock.now()
    return Moment(
        now=now,
        instance=header.id,
        key=header.key,
        tenant=header.tenant,
        partition=header.partition,
        actor=actor,
        pending_timers=desk.service.standing.due(header, found.program.language, found.timers, now),
        facts=VouchedFacts(desk.facts(header), people),
    )


def _waiting_for(reader: TenantReader, found: KnownProcess, step: StepState) -> list[str]:
    rows = [each for each in reader.rows(TASK_PEOPLE, found.header.id) if each.number == step.number and each.is_open]
    return [f"role:{each.name}" if each.kind == "role" else each.name for each in rows]


def _type(node: Node) -> StepType:
    named = node.metadata.get("type")
    if named in {"action", "approval", "notification"}:
        return named
    if isinstance(node.op, TaskOp):
        return "system"
    return "terminal" if isinstance(node.op, EndOp) else "wait"


def _text(given: object) -> str:
    return given if isinstance(given, str) else ""
