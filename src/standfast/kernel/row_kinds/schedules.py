"""The rows of schedules: one for each, which lists show, and one for each of its times, with what became of it."""

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
    """A schedule is put for the first time."""

    number: int = 1
    """Always the same: a schedule is an instance of its own, and has one row."""
    workflow: str
    plan: bytes
    """What it says, as JSON."""
    standing: bytes
    """Where it stands, as JSON: all of its state but the plan, and of the owner the id alone."""


class ScheduleChanged(Record, frozen=True, kw_only=True, gc=False):
    """A schedule says something else, or stands elsewhere. None leaves a column as it is."""

    number: int = 1
    workflow: str | None = None
    plan: bytes | None = None
    standing: bytes | None = None


class StoredSchedule(ScheduleOpened, frozen=True, kw_only=True, gc=False):
    """The row of a schedule, as it is read."""

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
    """A time has come, or several that were missed together."""

    place: int
    """The number of the fire, counted down, so that the last one is the first row."""
    at: datetime
    until: datetime | None = None
    why: Why
    status: FireStatus
    detail: str = ""
    run: UUID | None = None
    document: str = ""
    backfill: int = 0


class FireChanged(Record, frozen=True, kw_only=True, gc=False):
    """What a time has come to has changed. None leaves a column as it is."""

    place: int
    status: FireStatus
    detail: str | None = None
    run: UUID | None = None
    document: str | None = None


class StoredFire(FireOpened, frozen=True, kw_only=True, gc=False):
    """A time of a schedule and what became of it, as it is read."""

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
