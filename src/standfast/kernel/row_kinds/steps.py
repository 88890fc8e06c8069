"""The built-in kinds of rows of runs: steps, human tasks, waits, dead letters and resume requests.

A decision creates the records and the commit writes them. Stores do not interpret them.
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
"""The failed work that a decision can report."""


class StepOpened(Record, frozen=True, kw_only=True, gc=False):
    """A step row begins. Its identity (number, node, token, visit, kind) never changes."""

    number: int
    """Number of the step within the instance."""
    node: str
    """Name of the node in the definition."""
    token: str = ""
    """The token that entered the node, one per parallel branch."""
    visit: int = 1
    """Number of this token's visit to the node."""
    kind: Literal["forward", "compensation", "control"] = "forward"
    status: StepStatus = "pending"
    compensates: int | None = None
    """Number of the step that this one compensates."""
    retry_of: int | None = None
    """Number of the step that this one retries on request of an operator."""
    wait_kind: str = ""
    """Target of an open step's wait (`human`, `event`, `timer`). Empty otherwise."""
    attempts: int = 0
    outcome: str = ""
    error: str = ""
    input: bytes | None = None
    output: bytes | None = None


class StepMoved(Record, frozen=True, kw_only=True, gc=False):
    """A step row changes its status. None leaves a column unchanged."""

    number: int
    status: StepStatus
    attempts: int | None = None
    output: bytes | None = None
    error: str | None = None
    outcome: str | None = None
    """Label of the chosen edge."""
    wait_kind: str | None = None
    started_at: datetime | None = None
    """When a worker took the counted call, if that was later than the request. The commit fills it in."""


class StoredStep(StepOpened, frozen=True, kw_only=True, gc=False):
    """A step row as it is read."""

    instance: InstanceId
    opened_at: datetime
    moved_at: datetime
    started_at: datetime | None
    """When a worker took the first call. None without a call, or if the opening commit handed it over directly."""


STEPS = declare(
    RowKind(
        name="step",
        table="steps",
        row=StepOpened,
        change=StepMoved,
        stored=StoredStep,
        moved_at="moved_at",
        fading=("input", "output"),
        while_zero={"started_at": "attempts"},  # The first call starts a step.
    )
)


TaskStatus = Literal["open", "info_requested", "decided", "withdrawn", "expired", "cancelled", "failed", "overridden"]
"""`info_requested` while an approver waits for the requester's answer. The task is open all the same."""


class GuardedValue(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A value with a restricted audience."""

    value: object
    audience: tuple[tuple[str, ...], ...]
    """Sets of roles. A reader needs one role of each set."""


class GuardedTask(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """The restricted values of a task."""

    subject: GuardedValue | None = None
    data: dict[str, GuardedValue] = {}


class TaskOpened(Record, frozen=True, kw_only=True, gc=False):
    """A human task is opened. Name and key of the workflow are stored with it."""

    number: int
    """Number of the waiting step."""
    node: str = ""
    """Name of the step."""
    subject: str = ""
    """The question to the approvers."""
    role: str = ""
    """The role that is asked, if it is a single one. Empty if other approvers are asked, or any actor with access.
    The rows of approvers list them."""
    requester: str = ""
    """The person for whom the run was started."""
    kept_out: bytes | None = None
    """JSON list of people who may not decide the task, because of their part in the run or an earlier decision. None
    without any."""
    agreement: str = ""
    """The required agreement of several approvers. Empty if the first answer counts."""
    stage: str = ""
    """The current stage of an approval chain. Empty without a chain."""
    status: TaskStatus = "open"
    claimed_by: str = ""
    due_at: datetime | None = None
    data: bytes | None = None
    guarded: bytes | None = None
    """A `GuardedTask` as JSON: the unmasked values of subject and data with their audiences. None if all readers may
    see everything."""
    resolution: bytes | None = None
    """How the approvers were resolved, as JSON: each part of the assignment with its result. None if the definition
    names them."""
    document_version: str | None = None
    """The version of the document to be decided on."""
    outcome: str | None = None
    """None while the task is open."""
    actor: str = ""
    comment: str = ""


class TaskChanged(Record, frozen=True, kw_only=True, gc=False):
    """A task changes: its stage, its claim, and finally its outcome. None leaves a column unchanged."""

    number: int
    status: TaskStatus | None = None
    claimed_by: str | None = None
    stage: str | None = None
    agreement: str | None = None
    resolution: bytes | None = None
    due_at: datetime | None = None
    kept_out: bytes | None = None
    outcome: str | None = None
    """Outcome: `approved`, `rejected`, `cancelled`, `timeout`, or a name from the definition. It closes the task."""
    actor: str | None = None
    comment: str | None = None


class TaskPlace(NamedTuple):
    """Position of a task in the list of open ones, in order of creation."""

    opened_at: datetime
    instance: InstanceId
    number: int


class StoredTask(TaskOpened, frozen=True, kw_only=True, gc=False):
    """A human task, with its answer once there is one."""

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
    """Failed work waits for an operator."""

    source: RowSource
    number: int
    """Number of the step that failed, or whose compensation did."""
    name: str
    """Name of its node."""
    type: str = ""
    """Kind of the step."""
    reason: str
    error: str
    attempts: int = 0
    """Number of calls."""
    data: bytes = b""
    """Input of the work, sufficient for a retry."""


class DeadLetterSettled(Record, frozen=True, kw_only=True, gc=False):
    """A dead letter was requeued or discarded; its row is deleted."""

    source: RowSource
    number: int


class StoredLetter(DeadLetterRaised, frozen=True, kw_only=True, gc=False):
    """A dead letter as a decision sees it."""

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
    """The instance waits for a signal, or for an event with a correlation key."""

    number: int
    """Number of the waiting step."""
    place: int = 0
    """Index of the event among those that the step waits for."""
    kind: Literal["signal", "event"] = "signal"
    signal: str
    """Name of the awaited signal or event."""
    correlation: str = ""
    """The required correlation key of the event."""


class SubscriptionClosed(Record, frozen=True, kw_only=True, gc=False):
    """The instance no longer waits."""

    number: int
    place: int = 0


class StoredSubscription(SubscriptionOpened, frozen=True, kw_only=True, gc=False):
    """A wait for a signal or an event as it is read."""

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
"""How a pause treats timers: `run_on` keeps their due times and fires overdue ones at its end; `stand_still` extends
them by its length."""

ResumeTrigger = Literal["manual", "approval", "event", "timeout"]


class ResumeExecuted(Record, frozen=True, kw_only=True, gc=False):
    """A resume request was executed. A stored one is updated."""

    id: UUID
    triggered_by: ResumeTrigger
    """Trigger of the resumption."""
    triggered_by_id: str = ""
    """Id of the trigger, such as an approval, an event or a call. Empty without one."""
    trigger_data: bytes | None = None
    """Data of the trigger."""
    reason: str = ""
    requested_by: str = ""
    outcome: Literal["executed"] = "executed"
    """Open and refused requests are not part of the history, and no commit writes them."""


class StoredResume(ResumeExecuted, frozen=True, kw_only=True, gc=False):
    """An executed resume request as it is read."""

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
    """Return whether a record shows that a step has begun: its handler was called, it waits for an external event, or it is over."""
    return isinstance(record, StepOpened | StepMoved) and (
        record.status != "pending" or bool(record.attempts) or bool(record.wait_kind)
    )


def taken(records: Sequence[Record], at: datetime) -> Sequence[Record]:
    """Return the records with the time at which the call was taken."""
    return [
        msgspec.structs.replace(each, started_at=at) if isinstance(each, StepMoved) and each.attempts else each
        for each in records
    ]
