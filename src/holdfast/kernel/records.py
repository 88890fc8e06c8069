"""Rows of the inline projections. A decision names them, the commit writes them, and no store knows what they mean.

Each row belongs to an instance and is found by a number or key that is unique within it. The events stay the truth: every row
here can be made again from them.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal, TypeAlias

import msgspec

StepStatus = Literal["pending", "running", "completed", "failed", "skipped", "cancelled"]
DeadLetterSource = Literal["step", "compensation", "effect", "timer", "inbox"]


class StepOpened(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


class StepMoved(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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


class TaskOpened(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Somebody is asked to decide."""

    number: int
    """Number of the step that waits for the answer."""
    subject: str = ""
    """What the person is asked, in words."""
    role: str = ""
    """Who may answer; empty means anybody who may act on the instance."""
    due_at: datetime | None = None
    data: bytes | None = None
    outcome: str | None = None
    """None while the question is open."""
    actor: str = ""
    comment: str = ""


class TaskClosed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The question is answered, or nobody is asked any more."""

    number: int
    outcome: str
    """`approved`, `rejected`, `cancelled`, `expired`, or a name that the definition gives."""
    actor: str = ""
    comment: str = ""


class DeadLetterRaised(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something gave up and waits for a person."""

    source: DeadLetterSource
    number: int
    """Number of the step or effect that gave up."""
    name: str
    """Node, handler or command type."""
    type: str = ""
    """Kind of the step."""
    reason: str
    error: str
    attempts: int = 0
    """Calls that were made."""
    payload: bytes = b""
    """What it was working on; enough to try again."""


class DeadLetterSettled(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A dead letter was tried again or discarded; its row goes."""

    source: DeadLetterSource
    number: int


class SubscriptionOpened(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The instance waits for a signal with this name and correlation."""

    number: int
    """Number of the step that waits."""
    signal: str
    correlation: str = ""
    expires_at: datetime | None = None


class SubscriptionClosed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The instance waits no longer."""

    number: int


Record: TypeAlias = (
    StepOpened
    | StepMoved
    | TaskOpened
    | TaskClosed
    | DeadLetterRaised
    | DeadLetterSettled
    | SubscriptionOpened
    | SubscriptionClosed
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


_Row = tuple[str, int]

_TABLE: dict[type[Record], str] = {
    StepOpened: "step",
    StepMoved: "step",
    TaskOpened: "task",
    TaskClosed: "task",
    DeadLetterRaised: "letter",
    DeadLetterSettled: "letter",
    SubscriptionOpened: "subscription",
    SubscriptionClosed: "subscription",
}


def merge(records: Sequence[Record]) -> list[Record]:
    """The same rows with at most one record each: what a commit does to a row, it does at once.

    Several commands may be decided before anything is written, so a row can begin and move, or begin and end, in one commit.
    """
    if len({(_TABLE[type(record)], record.number) for record in records}) == len(records):
        return list(records)
    rows: dict[_Row, Record] = {}
    for record in records:
        row = _row(record)
        again = (f"again:{row[0]}", row[1])
        if isinstance(record, DeadLetterRaised) and isinstance(rows.get(row), DeadLetterSettled):
            row = again  # The old letter goes and a new one comes: two rows.
        elif isinstance(record, DeadLetterSettled) and again in rows:
            del rows[again]  # The new one went as well; the old one still goes.
            continue
        before = rows.pop(row, None)
        after = record if before is None else _merged(before, record)
        if after is not None:
            rows[row] = after
    return list(rows.values())


def _row(record: Record) -> _Row:
    match record:
        case StepOpened() | StepMoved():
            return "step", record.number
        case TaskOpened() | TaskClosed():
            return "task", record.number
        case DeadLetterRaised() | DeadLetterSettled():
            return f"letter:{record.source}", record.number
        case SubscriptionOpened() | SubscriptionClosed():
            return "subscription", record.number


def _merged(before: Record, after: Record) -> Record | None:
    """One record for two that follow one another on the same row; None when they cancel out."""
    match before, after:
        case (StepOpened() | StepMoved(), StepMoved()):
            told = {name: value for name, value in msgspec.structs.asdict(after).items() if value is not None}
            return msgspec.structs.replace(before, **told)
        case TaskOpened(), TaskClosed():
            return msgspec.structs.replace(before, outcome=after.outcome, actor=after.actor, comment=after.comment)
        case (SubscriptionOpened(), SubscriptionClosed()) | (DeadLetterRaised(), DeadLetterSettled()):
            return None
        case _:
            return after
