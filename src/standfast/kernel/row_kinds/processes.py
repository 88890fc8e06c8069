"""The row of a process: its current step and state, so that lists and reports need not fold its history."""

from __future__ import annotations

from datetime import datetime

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare


class ProcessOpened(Record, frozen=True, kw_only=True, gc=False):
    """A process begins."""

    number: int = 1
    """Always 1: a process has one row."""
    current_step: str = ""
    """The current step of its definition. Empty before the first one."""
    state: bytes
    """The state as JSON, as callers see it."""


class ProcessChanged(Record, frozen=True, kw_only=True, gc=False):
    """A process moved to another step or changed its state. None leaves a column unchanged."""

    number: int = 1
    current_step: str | None = None
    state: bytes | None = None


class StoredProcess(ProcessOpened, frozen=True, kw_only=True, gc=False):
    """The row of a process as it is read."""

    instance: InstanceId
    opened_at: datetime
    moved_at: datetime


PROCESSES = declare(
    RowKind(
        name="process",
        table="processes",
        row=ProcessOpened,
        change=ProcessChanged,
        stored=StoredProcess,
        moved_at="moved_at",
    )
)
