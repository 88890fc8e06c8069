"""What the engine shows of workflows: instances, steps and histories in the words of their front end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TypeAlias

import msgspec

from standfast.calls.operator_views import Hold
from standfast.calls.status_text import trouble
from standfast.features.runs.pauses.views import brought, last_attempt
from standfast.graph.model import Graph
from standfast.graph.status_words.by_kind import words_of
from standfast.graph.status_words.protocol import StatusWords
from standfast.kernel.actor import Actor
from standfast.kernel.ids import InstanceId, id_text
from standfast.kernel.program import Program
from standfast.kernel.row_kinds.steps import GuardedTask, StoredStep, StoredTask
from standfast.machine.documents.visibility import is_for
from standfast.machine.model.commands.run_commands import RunStep
from standfast.machine.model.queries.resume_points import resume_point
from standfast.machine.model.state import ROOT, RunState
from standfast.store.ports.maintenance import ResumeRequestRecord
from standfast.store.ports.notifications import StoredNotification
from standfast.store.records.instances import InstanceHeader, StoredEffect

Called: TypeAlias = Mapping[int, datetime | None]
"""Steps whose calls have not come back, by number: when a worker took them; None if that worker died."""

_decode_guarded = msgspec.json.Decoder(GuardedTask).decode
_decode_data = msgspec.json.Decoder(dict[str, object]).decode
_decode_names = msgspec.json.Decoder(list[str]).decode


class WorkflowInstance(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a workflow."""

    id: InstanceId
    definition: str
    definition_version: str
    key: str
    tenant: str
    status: str
    reason: str
    """Why it waits, or how it ended, as a word."""
    outcome: str
    """What it came to, in a word of its definition, once it is completed: `allowed`; empty if the definition has none."""
    error: str
    """Why it waits, or ended badly, as a sentence: which step, what it said, and what an operator can do."""
    input: dict[str, object]
    """What it was started with."""
    context: dict[str, object]
    """The data of its first token: the input, and over it what its steps have answered."""
    result: object
    """What it came to; None until it is completed."""
    held_by: list[Hold]
    """Pauses of its definition, of a step that it is at, of its tenant or of all; its status stays what it is."""
    parent: InstanceId | None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    paused_at: datetime | None = None
    """Since when it is paused or waits for an operator; None if it does neither."""
    paused_by: str = ""
    """Who paused it; empty if nobody did."""
    paused_until: datetime | None = None
    """When it goes on by itself."""
    paused_step: str = ""
    """The step at which it is paused; of parallel ways, that of the first one."""
    next_step: str = ""
    """The step that it goes on with."""
    resume_data: dict[str, object] = {}
    """What the last resume brought along that brought anything; of rules that waited, the decision or the event."""
    resume_attempted_at: datetime | None = None
    """When it was last tried to let it go on, whether that succeeded or not."""
    resume_error: str = ""
    """Why that failed; empty if it did not."""
    partition: str = ""
    """The part of the tenant that it belongs to; empty if it belongs to none."""
    version: int = 0
    """How many events it has: it has changed if this has."""
    kind: str = ""
    """Which front end its definition was written for: `saga`, `process`, `rules`, or `envelope` for a document."""
    started_by: str = ""
    """Who wants it: who started it, or for whom it was started. A fork and a part of another run are of whoever wants that one."""
    involved: list[str] = []
    """Who else has brought it about: who started it for another, forked it, had its schedule fire, or gave it other data."""
    deadline_at: datetime | None = None
    """When it will be stopped if it has not ended by then."""

    @property
    def paused_reason(self) -> str:
        """Why it is paused, as a word; empty if it is not."""
        return self.reason if self.paused_at is not None else ""

    @property
    def definition_id(self) -> str:
        """Name and version, as in `order-v1`."""
        return f"{self.definition}-v{self.definition_version}"

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended."""
        return self.ended_at is not None


class InstanceSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a workflow in a list."""

    id: InstanceId
    definition: str
    definition_version: str
    key: str
    status: str
    reason: str
    parent: InstanceId | None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None
    paused_at: datetime | None = None
    """Since when it is paused or waits for an operator; None if it does neither."""
    next_step: str = ""
    """The step that a paused one goes on with; of parallel ways, that of the first one."""
    kind: str = ""
    """Which front end its definition was written for, as of a run that is looked at alone."""
    partition: str = ""
    """The part of the tenant that it belongs to; empty if it belongs to none."""
    started_by: str = ""
    """Who wants it: who started it, or for whom it was started. A fork and a part of another run are of whoever wants that one."""
    version: int = 0
    """How many events it has: it has changed if this has."""


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """A page of a list."""

    items: list[InstanceSummary]
    next: InstanceId | None
    """Give it as `cursor` for the next page; None if this is the last one."""

    def __iter__(self) -> Iterator[InstanceSummary]:
        return iter(self.items)

    def __len__(self) -> int:
        return len(self.items)


class Step(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a run."""

    id: str
    """Names the step in calls such as `decide`."""
    instance: InstanceId
    number: int
    name: str
    token: str
    """Which of the parallel ways it lies on."""
    visit: int
    status: str
    outcome: str
    """By which outcome it was left."""
    input: object
    output: object
    error: str
    retry_count: int
    """Calls of its handler, the running one included."""
    compensation_retry_count: int
    """Calls of its compensation, the running one included."""
    retry_of: int | None
    """The step that it repeats."""
    started_at: datetime | None
    """When a worker took its first call, or when it began to wait; None if it was never called."""
    completed_at: datetime | None


class HistoryEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One event of a run."""

    sequence: int
    event_type: str
    instance: InstanceId
    step_number: int | None
    step_name: str
    status: str
    """What the step, or the instance, is after it; empty if it stays what it was."""
    retry_count: int
    """Calls that have come back, of the step's handler or of its compensation; the first one also when the event asks for it."""
    error: str
    timestamp: datetime
    actor: str
    on_behalf_of: str
    """Whom the actor stood in for; empty if it acted for itself."""
    trace: str
    """Names the request that it follows from; empty if none was named."""
    comment: str
    data: dict[str, object]
    """All that the event says."""


class Notification(msgspec.Struct, frozen=True, kw_only=True):
    """Something that somebody was told in the application."""

    id: int
    to: str
    """The id of a user, or a role as `role:finance`."""
    instance: InstanceId
    step_number: int
    subject: str
    body: str
    told_at: datetime
    read_at: datetime | None
    """None while it was not read; one to a role was read once one of them has."""


def notification(told: StoredNotification) -> Notification:
    """A stored notification."""
    return Notification(
        id=told.id,
        to=f"role:{told.recipient}" if told.kind == "role" else told.recipient,
        instance=told.instance,
        step_number=told.step,
        subject=told.subject,
        body=told.body,
        told_at=told.created_at,
        read_at=told.read_at,
    )


def step_id(instance: InstanceId, number: int) -> str:
    """The name of a step for callers."""
    return f"{id_text(instance)}:{number}"


def workflow_instance(
    header: InstanceHeader,
    state: RunState,
    *,
    given: dict[str, object],
    has_begun: bool,
    held_by: list[Hold],
    requests: Sequence[ResumeRequestRecord],
    graph: Graph,
) -> WorkflowInstance:
    """A run as its callers see it; `requests` are those to let it go on."""
    paused_step, next_step = resume_point(state, graph) if header.status == "paused" else ("", "")
    attempted_at, error = last_attempt(requests)
    root = state.token(ROOT)
    context = root.data if root is not None else (state.result if isinstance(state.result, dict) else given)
    return WorkflowInstance(
        id=header.id,
        definition=header.definition,
        definition_version=header.definition_version,
        key=header.key,
        tenant=header.tenant,
        status=words_of(header.kind).instance_status(header.status, header.reason, has_begun=has_begun),
        reason=header.reason,
        outcome=state.outcome if header.status == "completed" else "",
        error=trouble(state),
        input=given,
        context=context,
        result=state.result if header.status == "completed" else None,
        held_by=held_by,
        parent=header.parent,
        created_at=header.created_at,
        updated_at=header.updated_at,
        ended_at=header.ended_at,
        paused_at=header.paused_at,
        paused_by="" if state.pause is None else state.pause.by,
        paused_until=None if state.pause is None else state.pause.until,
        paused_step=paused_step,
        next_step=next_step,
        resume_data=brought(requests),
        resume_attempted_at=attempted_at,
        resume_error=error,
        partition=header.partition,
        version=header.version,
        kind=header.kind,
        started_by=header.started_by,
        involved=list(state.involved),
        deadline_at=header.deadline_at,
    )


def summary(header: InstanceHeader, *, has_begun: bool) -> InstanceSummary:
    """A run in a list."""
    return InstanceSummary(
        id=header.id,
        definition=header.definition,
        definition_version=header.definition_version,
        key=header.key,
        status=words_of(header.kind).instance_status(header.status, header.reason, has_begun=has_begun),
        reason=header.reason,
        parent=header.parent,
        created_at=header.created_at,
        updated_at=header.updated_at,
        ended_at=header.ended_at,
        paused_at=header.paused_at,
        next_step=header.next_step,
        kind=header.kind,
        partition=header.partition,
        started_by=header.started_by,
        version=header.version,
    )


def called_steps(effects: Iterable[StoredEffect], program: Program) -> Called:
    """The steps whose calls have not come back."""
    begun = [each for each in effects if each.attempts > 0]
    bodies = [(each.claimed_at, program.effects.decode(each.type, each.version, each.data)) for each in begun]
    return {body.step: at for at, body in bodies if isinstance(body, RunStep)}


def calls_of(effects: Iterable[StoredEffect], program: Program) -> dict[int, StoredEffect]:
    """The calls of steps that an instance waits for, by the number of the step."""
    bodies = [(each, program.effects.decode(each.type, each.version, each.data)) for each in effects]
    return {body.step: each for each, body in bodies if isinstance(body, RunStep)}


def steps(
    rows: Sequence[StoredStep], words: StatusWords, *, called: Called, dead: set[int], is_paused: bool
) -> list[Step]:
    """The steps of a run, in these words, each with what became of its compensation; one that was repeated is shown by its last row.

    `called` are those whose calls have not come back, `dead` the numbers of those that wait for an operator.
    """
    undoing = {row.compensates: row for row in rows if row.compensates is not None}
    repeated = {row.retry_of for row in rows if row.retry_of is not None}
    forward = [row for row in rows if row.kind == "forward" and row.number not in repeated]
    return [
        _step(row, undoing.get(row.number), called, words, is_paused=is_paused, is_dead=row.number in dead)
        for row in forward
    ]


def _step(
    row: StoredStep, undoing: StoredStep | None, called: Called, words: StatusWords, *, is_paused: bool, is_dead: bool
) -> Step:
    status = words.step_status(
        row.status,
        wait_kind=row.wait_kind,
        outcome=row.outcome,
        undoing=undoing.status if undoing is not None else None,
        is_called=row.number in called,
        is_paused=is_paused,
        is_dead=is_dead,
    )
    has_ended = row.status not in {"pending", "running"}
    return Step(
        id=step_id(row.instance, row.number),
        instance=row.instance,
        number=row.number,
        name=row.node,
        token=row.token,
        visit=row.visit,
        status=status,
        outcome=row.outcome,
        input=_decoded(row.input),
        output=_decoded(row.output),
        error=_error(row, undoing),
        retry_count=row.attempts + (row.number in called),
        compensation_retry_count=0 if undoing is None else undoing.attempts + (undoing.number in called),
        retry_of=row.retry_of,
        started_at=_started_at(row, called),
        completed_at=row.moved_at if has_ended else None,
    )


def _started_at(row: StoredStep, called: Called) -> datetime | None:
    """When a worker took the first call of a step in hand; for one that needs no call, when it was entered."""
    if row.started_at is not None:
        return row.started_at
    if not row.attempts and row.number in called:
        return called[row.number] or row.opened_at
    is_uncalled = row.status in {"pending", "skipped"} and not row.attempts and not row.wait_kind
    return None if is_uncalled else row.opened_at


def _error(row: StoredStep, undoing: StoredStep | None) -> str:
    """Why a step could not be undone so far; else why it did not end well."""
    if undoing is not None and undoing.status != "completed" and undoing.error:
        return undoing.error
    return row.error if row.status != "completed" else ""


def _decoded(data: bytes | None) -> object:
    return None if not data else msgspec.json.decode(data)


# -- human tasks


class HumanTask(msgspec.Struct, frozen=True, kw_only=True):
    """A question to people, with the answer once there is one."""

    step_id: str
    """Names the question in calls such as `decide`."""
    instance: InstanceId
    step_number: int
    name: str
    """Name of the step."""
    definition: str
    key: str
    """The business key of the run; empty if it has none."""
    requester: str
    """Who wants the run; empty if the engine itself does."""
    kept_out: list[str]
    """Who else may not decide it: they have brought the run or its data about, or have decided what is to be another's. Later decisions are not told here."""
    subject: str
    """What the person is asked, with the values of the data filled in."""
    role: str
    """The one role that is asked; empty if others are."""
    data: dict[str, object]
    """What the step shows of the data, by the paths that its author named."""
    agreement: str
    """How many of those who are asked have to agree, in words; empty if the first answer counts."""
    stage: str
    """Which stage of an approval chain is asked; empty if there is no chain."""
    status: str
    """`open`, `info_requested`, `decided`, `withdrawn`, `expired`, `cancelled`, `failed` or `overridden`."""
    claimed_by: str
    """Who decides it alone; empty if nobody has claimed it."""
    stands_for: str
    """In a list of one's own: whom one has it for, by the question or by the directory; several are parted by commas. Empty if one is asked oneself."""
    due_at: datetime | None
    document_version: str
    """The version of the document that it is about; empty if it is about none."""
    decision: str
    """`confirmed`, `rejected`, or why nobody answered; empty while it is open."""
    decided_by: str
    comment: str
    asked_at: datetime
    """When it was asked; in a list of one's own, when one was asked oneself."""
    decided_at: datetime | None


def human_task(task: StoredTask, header: InstanceHeader, actor: Actor) -> HumanTask:
    """A question of a run, as somebody may see it."""
    return HumanTask(**task_fields(task, actor, definition=header.definition, key=header.key))  # type: ignore[arg-type]


def task_fields(task: StoredTask, actor: Actor, *, definition: str, key: str) -> dict[str, object]:
    """The fields of a human task that every view of it has."""
    subject, data = _seen(task, actor)
    return {
        "step_id": step_id(task.instance, task.number),
        "instance": task.instance,
        "step_number": task.number,
        "name": task.node,
        "definition": definition,
        "key": key,
        "requester": task.requester,
        "kept_out": kept_out_of(task),
        "subject": subject,
        "role": task.role,
        "data": data,
        "agreement": task.agreement,
        "stage": task.stage,
        "status": task.status,
        "claimed_by": task.claimed_by,
        "stands_for": "",
        "due_at": task.due_at,
        "document_version": task.document_version or "",
        "decision": task.outcome or "",
        "decided_by": task.actor,
        "comment": task.comment,
        "asked_at": task.opened_at,
        "decided_at": task.closed_at,
    }


def kept_out_of(task: StoredTask) -> list[str]:
    """Who else may not decide a question."""
    return [] if task.kept_out is None else _decode_names(task.kept_out)


def _seen(task: StoredTask, actor: Actor) -> tuple[str, dict[str, object]]:
    """What a question asks and shows, with the values that are for this actor."""
    subject, data = task.subject, {} if task.data is None else _shown_data(task.data)
    if task.guarded is None:
        return subject, data
    more = _decode_guarded(task.guarded)
    if more.subject is not None and is_for(more.subject.audience, actor):
        subject = str(more.subject.value)
    return subject, data | {name: each.value for name, each in more.data.items() if is_for(each.audience, actor)}


def _shown_data(data: bytes) -> dict[str, object]:
    """What a question shows. Of data that is no object, which only a user's decider can have named, it shows the text."""
    try:
        return _decode_data(data)
    except msgspec.MsgspecError:
        return {"data": data.decode("utf-8", "replace")}
