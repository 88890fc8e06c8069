"""How workflows are found and read for those who look at them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, cast

import msgspec

from standfast.calls.authorization import check_reader
from standfast.calls.context import CallContext
from standfast.calls.status_text import Work, standing
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.concurrency.replies import Reply
from standfast.errors import DefinitionError, NotFoundError, StandfastError, UnknownEventError
from standfast.features.deciders.masking import mask_for
from standfast.features.runs import views
from standfast.features.runs.explain import Circumstances, RunExplanation, unreadable, why
from standfast.features.runs.incidents import directory_incidents
from standfast.features.runs.pauses.pause import holds_on, told
from standfast.graph.index import GraphIndex
from standfast.graph.model import KINDS, Graph
from standfast.graph.status_words.by_kind import words_of
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.kernel.row_kinds.steps import StoredStep
from standfast.kernel.rows import Record, RowKind
from standfast.machine.machine import GraphMachine
from standfast.machine.model.queries.authorization import READ, read_refusal
from standfast.machine.model.state import RunState
from standfast.machine.remedies import OperationTrials
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader

S = TypeVar("S", bound=Record)
T = TypeVar("T")

LARGEST_PAGE = 1000
_LOOK_SECONDS = 1.0
"""How long a caller who has waited in vain waits to be told why."""
_MAINTAINED = "maintenance mode holds up all work: admin.resume_processing() ends it"


def workflow_row(reader: TenantReader, identity: InstanceId) -> InstanceHeader:
    """The row of a workflow's instance."""
    found = reader.headers([identity])
    if not found or found[0].kind not in KINDS:
        raise NotFoundError("workflow instance", identity)
    return found[0]


def shown_rows(desk: CallContext, kind: RowKind[S], identity: InstanceId) -> tuple[InstanceHeader, list[S]]:
    """The row of a workflow's instance and its rows of a kind; ForbiddenError unless whoever calls may look at it."""
    header, found = desk.reader.with_rows(kind, identity)
    if header is None or header.kind not in KINDS:
        raise NotFoundError("workflow instance", identity)
    check_run_reader(desk, desk.reader, header)
    return header, found


def check_run_reader(desk: CallContext, reader: TenantReader, header: InstanceHeader) -> None:
    """ForbiddenError unless whoever calls may look at a run: they want it, or have started or forked it for whoever does."""
    actor = desk.request.actor
    if actor.may(READ) or read_refusal(actor, header.started_by) is None:
        return
    first = reader.events(header.id, limit=1)  # Only then it matters who acted.
    check_reader(desk, actor.id if first and first[0].actor == actor.id else header.started_by)


def check_readable(desk: CallContext, reader: TenantReader, identity: InstanceId) -> None:
    """ForbiddenError unless whoever calls may look at an instance."""
    if not desk.request.actor.may(READ):  # Only then it matters whose it is.
        check_run_reader(desk, reader, workflow_row(reader, identity))


def look_at_run(
    desk: CallContext, identity: InstanceId, question: Callable[[CallContext, TenantReader], T]
) -> Reply[T]:
    """Ask about a run: of a document only what is visible to the actor."""

    def hides_something(reader: TenantReader) -> bool:
        header = workflow_row(reader, identity)
        return mask_for(desk, header.kind, header.definition, header.definition_version) is not None

    return desk.look_for(question, needs_roles=hides_something)


def folded_workflow(desk: CallContext, reader: TenantReader, identity: InstanceId) -> CachedInstance:
    """A workflow's instance as its events tell it."""
    tracked = desk.folded(reader, desk.address(instance=identity))
    if tracked is None or not isinstance(tracked.state, RunState):
        raise NotFoundError("workflow instance", identity)
    return tracked


def described(desk: CallContext, reader: TenantReader, identity: InstanceId) -> views.WorkflowInstance:
    """A workflow's instance with its data."""
    tracked = folded_workflow(desk, reader, identity)
    header = tracked.header
    first = reader.events(header.id, limit=1)[0]
    given = cast("dict[str, object]", getattr(tracked.program.decode(first), "input", {}))
    has_begun = bool(begun(reader, [header]))
    state = cast("RunState", tracked.state)
    held_by = holds_on(desk, header, state)
    requests = reader.resume_requests(header.id)
    shown = views.workflow_instance(
        header,
        state,
        given=given,
        has_begun=has_begun,
        held_by=held_by,
        requests=requests,
        graph=graph_of(desk, header),
    )
    mask = mask_for(desk, header.kind, header.definition, header.definition_version)
    if mask is None:
        return shown
    context = cast("dict[str, object]", mask.data(shown.context))
    return msgspec.structs.replace(shown, context=context, result=mask.data(shown.result))


def begun(reader: TenantReader, headers: Sequence[InstanceHeader]) -> set[InstanceId]:
    """Those that a worker has worked on, or has in hand."""
    idle = [header.id for header in headers if not header.begun]
    held = reader.in_hand(idle) if idle else set()
    return {header.id for header in headers if header.begun or header.id in held}


def shown_steps(
    desk: CallContext, reader: TenantReader, header: InstanceHeader, rows: Sequence[StoredStep]
) -> list[views.Step]:
    """The steps of a workflow in the words of its front end."""
    effects, _ = reader.work(header.id)
    called = views.called_steps(effects, desk.registry.library.speaker)
    letters = reader.dead_letters(instance=header.id, source="step", limit=LARGEST_PAGE)
    dead = {letter.number for letter in letters}
    steps = views.steps(rows, words_of(header.kind), called=called, dead=dead, is_paused=header.status == "paused")
    mask = mask_for(desk, header.kind, header.definition, header.definition_version)
    if mask is None:
        return steps
    return [
        msgspec.structs.replace(each, input=mask.data(each.input), output=mask.output(each.name, each.output))
        for each in steps
    ]


def explained(desk: CallContext, identity: InstanceId) -> RunExplanation:
    """Why a workflow does not move. Who works and maintenance are of the moment before; all else is of one."""
    service = desk.service
    moment = service.shared.clock.judge()
    workers, mode = service.survey(lambda parts: (parts.workers().live(moment), parts.workers().maintenance()))
    with desk.reader.look() as reader:
        header = workflow_row(reader, identity)
        check_run_reader(desk, reader, header)
        try:
            tracked = folded_workflow(desk, reader, identity)
        except (UnknownEventError, DefinitionError) as error:
            return unreadable(header, str(error))
        found = Circumstances(
            header=tracked.header,
            state=cast("RunState", tracked.state),
            graph=graph_of(desk, tracked.header),
            program=desk.registry.library.speaker,
            now=service.shared.clock.now(),
            workers=workers,
            maintenance=mode,
            trials=trials_of(desk, tracked),
            words=desk.registry.commands(),
            settings=service.shared.settings,
            holds=holds_on(desk, tracked.header, cast("RunState", tracked.state)),
            routes=_routes_of(tracked),
            reader=desk.request.actor,
            silence="; ".join(each.told for each in directory_incidents(desk.directory)),
        )
        word = words_of(header.kind).instance_status(
            header.status, header.reason, has_begun=bool(begun(reader, [header]))
        )
        return msgspec.structs.replace(why(reader, found), status=word)


def _routes_of(tracked: CachedInstance) -> GraphIndex | None:
    """The ways of the version that a run follows."""
    machine = tracked.program.decider
    return machine.routes_of(cast("RunState", tracked.state)) if isinstance(machine, GraphMachine) else None


def trials_of(desk: CallContext, tracked: CachedInstance) -> OperationTrials:
    """Tells which operations a run would accept now, from the engine itself; rules of the organisation have their say."""
    header, state = tracked.header, cast("RunState", tracked.state)
    now = desk.service.shared.clock.now()
    moment = Moment(
        now=now,
        instance=header.id,
        key=header.key,
        tenant=header.tenant,
        partition=header.partition,
        version=header.version,
        issued=header.issued,
        commits=header.commits,
        pending_timers=desk.service.standing.due(header, tracked.program.language, tracked.timers, now),
        facts=desk.facts(header),
    )
    return OperationTrials(tracked.program, state, moment)


def graph_of(desk: CallContext, header: InstanceHeader) -> Graph:
    """The graph that an instance runs."""
    return desk.registry.library.graph(desk.tenant, header.definition, header.definition_version)


def standing_of(desk: CallContext, identity: InstanceId) -> str:
    """Where a run stands, for a caller who waits for its end in vain; that caller does not wait much longer for this."""

    def look() -> str:
        work = _work(desk)
        with desk.reader.look() as reader:
            tracked = folded_workflow(desk, reader, identity)
            state = cast("RunState", tracked.state)
            held = _MAINTAINED if desk.service.maintenance else told(holds_on(desk, tracked.header, state))
            found = standing(state, graph_of(desk, tracked.header), work=work, held=held)
            lacking = _lacking(desk, reader, identity) if work in {"here", "elsewhere"} and not held else ""
            return lacking or found

    try:
        return desk.read(look).result(_LOOK_SECONDS)
    except (StandfastError, TimeoutError) as error:
        return f"where it stands could not be found out: {error}"


def _lacking(desk: CallContext, reader: TenantReader, identity: InstanceId) -> str:
    """Which handlers work of a run waits for that no live worker has, in words; empty if somebody has them all."""
    effects, _ = reader.work(identity)
    service = desk.service
    wanted = {each.handler for each in effects if each.owner is None}
    if service.has_worker:  # What it has been given just now, its row does not say yet.
        wanted = {each for each in wanted if each not in service.shared.handlers}
    if not wanted:
        return ""
    moment = service.shared.clock.judge()
    for worker in service.survey(lambda parts: parts.workers().live(moment)):
        wanted -= set(worker.handlers)
    names = ", ".join(map(repr, sorted(wanted)))
    remedy = "register it with engine.handle, or start a worker that has it"
    return f"no live worker has the handler {names}: {remedy}" if names else ""


def _work(desk: CallContext) -> Work:
    service = desk.service
    if not service.has_threads:
        return "driven"
    if service.has_worker:
        return "here"
    moment = service.shared.clock.judge()
    is_alive = service.survey(lambda parts: parts.workers().live(moment))
    return "elsewhere" if is_alive else "nowhere"
