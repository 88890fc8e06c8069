"""The kinds of rows that the engine brings along: steps, questions to people, waits, dead letters and requests to go on.

A decision names them, the commit writes them, and no store knows what they mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, NamedTuple
from uuid import UUID

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare

StepStatus = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]
DeadLetterSource = Literal["step", "compensation", "effect", "timer", "inbox"]
RowSource = Literal["step", "compensation"]
"""What a decision can say that it gave up."""


class StepOpened(Record, frozen=True, kw_only=True, gc=False):
    """A step row begins. Its identity (number, node, token, visit, kind) never changes afterwards."""

    number: int
    """Counts the steps of the instance."""
    node: str
    """Name of the node in the definition."""
    token: str = ""
    """Which of the parallel threads of control entered the node."""
    visit: int = 1
    """How many times this token has entered this node."""
    kind: Literal["forward", "compensation", "control"] = "forward"
    status: StepStatus = "pending"
    compensates: int | None = None
    """Number of the step that this one undoes."""
    retry_of: int | None = None
    """Number of the step that this one repeats, after an operator asked for it."""
    wait_kind: str = ""
    """What an open step waits for (`human`, `event`, `timer`), or empty."""
    attempts: int = 0
    outcome: str = ""
    error: str = ""
    input: bytes | None = None
    output: bytes | None = None


class StepMoved(Record, frozen=True, kw_only=True, gc=False):
    """A step row changes its status. None leaves a column as it is."""

    number: int
    status: StepStatus
    attempts: int | None = None
    output: bytes | None = None
    error: str | None = None
    outcome: str | None = None
    """Label of the edge that was taken."""
    wait_kind: str | None = None
    started_at: datetime | None = None
    """When the call that it counts was taken in hand, if that was later than it was asked for; the commit knows."""


class StoredStep(StepOpened, frozen=True, kw_only=True, gc=False):
    """A step row, as it is read."""

    instance: InstanceId
    opened_at: datetime
    moved_at: datetime
    started_at: datetime | None
    """When a worker took its first call; None if there was none, or if the commit that opened the step handed it over."""


STEPS = declare(
    RowKind(
        name="step",
        table="steps",
        row=StepOpened,
        change=StepMoved,
        stored=StoredStep,
        moved_at="moved_at",
        fading=("input", "output"),
        while_zero={"started_at": "attempts"},  # A step began with its first call.
    )
)


TaskStatus = Literal["open", "info_requested", "decided", "withdrawn", "expired", "cancelled", "failed", "overridden"]
"""`info_requested` while somebody who is asked waits for an answer of the requester; the question is open all the same."""


class GuardedValue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value that only some may see."""

    value: object
    audience: tuple[tuple[str, ...], ...]
    """Sets of roles; a reader needs one role of each."""


class GuardedTask(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """What a question shows to some alone."""

    subject: GuardedValue | None = None
    data: dict[str, GuardedValue] = {}


class TaskOpened(Record, frozen=True, kw_only=True, gc=False):
    """Somebody is asked to decide. Name and key of the workflow are written beside it."""

    number: int
    """Number of the step that waits for the answer."""
    node: str = ""
    """Name of the step."""
    subject: str = ""
    """What the person is asked, in words."""
    role: str = ""
    """The one role that is asked; empty if others are, or anybody who may act on the instance. Rows of people say who."""
    requester: str = ""
    """Who wants the run."""
    kept_out: bytes | None = None
    """A list of names as JSON: who else may not decide it, because of what they did to the run or decided before. None if nobody is."""
    agreement: str = ""
    """How many of several have to be for it, in words; empty if the first answer counts."""
    stage: str = ""
    """Which stage of an approval chain is asked; empty if there is no chain."""
    status: TaskStatus = "open"
    claimed_by: str = ""
    due_at: datetime | None = None
    data: bytes | None = None
    guarded: bytes | None = None
    """A `GuardedTask` as JSON: what subject and data hold instead of masks, and who may see it. None if everybody may see all of it."""
    resolution: bytes | None = None
    """Why those are asked who are, as JSON: each part of the question, and what came of it; None if the definition names them."""
    document_version: str | None = None
    """The version of the document that is decided on."""
    outcome: str | None = None
    """None while the question is open."""
    actor: str = ""
    comment: str = ""


class TaskChanged(Record, frozen=True, kw_only=True, gc=False):
    """A question moves on: another stage, a claim, and in the end an outcome. None leaves a column as it is."""

    number: int
    status: TaskStatus | None = None
    claimed_by: str | None = None
    stage: str | None = None
    agreement: str | None = None
    resolution: bytes | None = None
    due_at: datetime | None = None
    kept_out: bytes | None = None
    outcome: str | None = None
    """What it came to: `approved`, `rejected`, `cancelled`, `timeout`, or a name that the definition gives. Closes the question."""
    actor: str | None = None
    comment: str | None = None


class TaskPlace(NamedTuple):
    """Where a question stands in the list of open ones, which is in the order of asking."""

    opened_at: datetime
    instance: InstanceId
    number: int


class StoredTask(TaskOpened, frozen=True, kw_only=True, gc=False):
    """A question to a person, with the answer once there is one."""

    instance: InstanceId
    opened_at: datetime
    closed_at: datetime | None


TASKS = declare(
    RowKind(
        name="task",
        table="human_tasks",
        row=TaskOpened,
        change=TaskChanged,
        stored=StoredTask,
        of_instance=("definition", "key", "partition"),
        closed_at="closed_at",
        closed_by="outcome",
    )
)


class DeadLetterRaised(Record, frozen=True, kw_only=True, gc=False):
    """Something gave up and waits for a person."""

    source: RowSource
    number: int
    """Number of the step that gave up, or that cannot be undone."""
    name: str
    """Name of its node."""
    type: str = ""
    """Kind of the step."""
    reason: str
    error: str
    attempts: int = 0
    """Calls that were made."""
    data: bytes = b""
    """What it was working on; enough to try again."""


class DeadLetterSettled(Record, frozen=True, kw_only=True, gc=False):
    """A dead letter was tried again or discarded; its row goes."""

    source: RowSource
    number: int


class StoredLetter(DeadLetterRaised, frozen=True, kw_only=True, gc=False):
    """A dead letter, as far as a decision tells it."""

    instance: InstanceId
    created_at: datetime


DEAD_LETTERS = declare(
    RowKind(
        name="letter",
        table="dead_letters",
        row=DeadLetterRaised,
        end=DeadLetterSettled,
        stored=StoredLetter,
        key=("source", "number"),
        opened_at="created_at",
        of_instance=("definition", "key", "definition_version", "partition"),
        shared_by="source",
        goes_with_instance=False,
    )
)


class SubscriptionOpened(Record, frozen=True, kw_only=True, gc=False):
    """The instance waits for a signal, or for an event that is published for a key."""

    number: int
    """Number of the step that waits."""
    place: int = 0
    """Which of the events that the step waits for."""
    kind: Literal["signal", "event"] = "signal"
    signal: str
    """What ends the wait: the name of the signal, or of the event."""
    correlation: str = ""
    """The key that the event has to be published for."""


class SubscriptionClosed(Record, frozen=True, kw_only=True, gc=False):
    """The instance waits no longer."""

    number: int
    place: int = 0


class StoredSubscription(SubscriptionOpened, frozen=True, kw_only=True, gc=False):
    """A wait for a signal or an event, as it is read."""

    instance: InstanceId
    opened_at: datetime


SUBSCRIPTIONS = declare(
    RowKind(
        name="subscription",
        table="subscriptions",
        row=SubscriptionOpened,
        end=SubscriptionClosed,
        stored=StoredSubscription,
        key=("number", "place"),
        of_instance=("definition", "partition"),
    )
)


PauseClock = Literal["run_on", "stand_still"]
"""What becomes of timers during a pause: they keep their instants, and those that pass fire once it is over; or they get the time back
that it lasted."""

ResumeTrigger = Literal["manual", "approval", "event", "timeout"]


class ResumeExecuted(Record, frozen=True, kw_only=True, gc=False):
    """A request to go on was carried out; one that was written down before has its row changed."""

    id: UUID
    triggered_by: ResumeTrigger
    """What had it go on."""
    triggered_by_id: str = ""
    """What tells it from others: the id of an approval, of an event, of a call; empty if nothing does."""
    trigger_data: bytes | None = None
    """What it brought along."""
    reason: str = ""
    requested_by: str = ""
    outcome: Literal["executed"] = "executed"
    """Those that are open or were refused are no part of the history, and no commit writes them."""


class StoredResume(ResumeExecuted, frozen=True, kw_only=True, gc=False):
    """A request to go on that was carried out, as it is read."""

    instance: InstanceId
    requested_at: datetime
    executed_at: datetime | None


RESUMES = declare(
    RowKind(
        name="resume",
        table="resume_requests",
        row=ResumeExecuted,
        stored=StoredResume,
        key=("id",),
        opened_at="requested_at",
        closed_at="executed_at",
        closed_by="outcome",
        replaces=True,
        shared_by="outcome",
    )
)


def has_begun(record: Record) -> bool:
    """Whether a record tells that a step is more than due: its handler was called, it waits for the world, or it is over."""
    return isinstance(record, StepOpened | StepMoved) and (
        record.status != "pending" or bool(record.attempts) or bool(record.wait_kind)
    )


def taken(records: Sequence[Record], at: datetime) -> Sequence[Record]:
    """The same records, after a call that was taken in hand at this time."""
    return [
        msgspec.structs.replace(each, started_at=at) if isinstance(each, StepMoved) and each.attempts else each
        for each in records
    ]
