"""The rows of schedules: one per schedule for lists, and one per fire time with its outcome."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias
from uuid import UUID

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare

Why: TypeAlias = Literal["time", "catch_up", "manual", "backfill"]
FireStatus: TypeAlias = Literal[
    "starting",
    "started",
    "completed",
    "failed",
    "cancelled",
    "aborted",
    "created",
    "buffered",
    "skipped",
    "missed",
    "refused",
]


class ScheduleOpened(Record, frozen=True, kw_only=True, gc=False):
    """A schedule is created."""

    number: int = 1
    """Always 1: a schedule is an instance of its own with one row."""
    workflow: str
    plan: bytes
    """The plan of the schedule as JSON."""
    standing: bytes
    """Its state as JSON without the plan, and with only the id of the owner."""


class ScheduleChanged(Record, frozen=True, kw_only=True, gc=False):
    """A schedule changes its plan or state. None leaves a column unchanged."""

    number: int = 1
    workflow: str | None = None
    plan: bytes | None = None
    standing: bytes | None = None


class StoredSchedule(ScheduleOpened, frozen=True, kw_only=True, gc=False):
    """The row of a schedule as it is read."""

    instance: InstanceId
    opened_at: datetime
    moved_at: datetime


SCHEDULES = declare(
    RowKind(
        name="schedule",
        table="schedules",
        row=ScheduleOpened,
        change=ScheduleChanged,
        stored=StoredSchedule,
        moved_at="moved_at",
    )
)


class FireOpened(Record, frozen=True, kw_only=True, gc=False):
    """A fire time has come, or several missed ones together."""

    place: int
    """The number of the fire, counted down, so that the latest is the first row."""
    at: datetime
    until: datetime | None = None
    why: Why
    status: FireStatus
    detail: str = ""
    run: UUID | None = None
    document: str = ""
    backfill: int = 0


class FireChanged(Record, frozen=True, kw_only=True, gc=False):
    """The outcome of a fire changed. None leaves a column unchanged."""

    place: int
    status: FireStatus
    detail: str | None = None
    run: UUID | None = None
    document: str | None = None


class StoredFire(FireOpened, frozen=True, kw_only=True, gc=False):
    """A fire of a schedule with its outcome, as it is read."""

    instance: InstanceId
    told_at: datetime


FIRES = declare(
    RowKind(
        name="fire",
        table="schedule_fires",
        row=FireOpened,
        change=FireChanged,
        stored=StoredFire,
        key=("place",),
        opened_at="told_at",
    )
)
