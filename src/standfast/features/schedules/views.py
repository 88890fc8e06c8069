"""Schedules as callers see them."""

from __future__ import annotations

from datetime import datetime
from typing import Literal
from uuid import UUID

import msgspec

from standfast.features.schedules.model import messages as w
from standfast.features.schedules.model.plan import CatchUp, Overlap
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.schedules import FireStatus, StoredFire, Why
from standfast.store.records.instances import InstanceHeader

__all__ = ["CatchUp", "FireInfo", "Overlap", "PeriodInfo", "Schedule", "fire_of", "schedule_of"]


class FireInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A time of a schedule, and what became of it."""

    number: int
    at: datetime
    """The time itself, however late it was dealt with."""
    until: datetime | None
    """Of times that were missed together: the last of them."""
    why: Why
    """Whether its time had come, it was made up for, or somebody asked for it."""
    status: FireStatus
    detail: str
    """Why it was skipped or refused, or what its run ended with."""
    run: InstanceId | None
    """The run that was started, or that of the document; None if nothing was."""
    document: str
    """The id of the document that was created; empty if none was."""
    told_at: datetime
    """When it was dealt with."""
    backfill: int
    """The number of the period that it belongs to; 0 if to none."""


class PeriodInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A period that is being made up for."""

    number: int
    start: datetime
    end: datetime
    is_at_once: bool
    by: str
    next_at: datetime | None


class Schedule(msgspec.Struct, frozen=True, kw_only=True):
    """A schedule: what it starts, when, and where it stands."""

    id: str
    workflow: str
    version: str
    """The version of the workflow; empty means the newest one at each time."""
    input: dict[str, object]
    """What each run is given, or each document begins with."""
    computed: dict[str, str]
    """Expressions that give more of the input, by name."""
    is_document: bool
    """Whether the workflow manages documents: then each time creates one."""
    document_id: str
    """The expression of its id; empty means that it is made of the schedule and the time."""
    cron: str
    time_zone: str
    every_seconds: float | None
    at: datetime | None
    start_at: datetime | None
    end_at: datetime | None
    jitter_seconds: float
    overlap: Overlap
    catch_up: CatchUp
    window_seconds: float | None
    note: str
    revision: int
    """How often it was put: give it as `expected_version` to change what you have seen."""
    status: Literal["active", "paused", "over"]
    """`over` once no time is to come."""
    next_at: datetime | None
    paused_at: datetime | None
    paused_by: str
    pause_reason: str
    running: list[FireInfo]
    """Those whose runs have not ended."""
    buffered: FireInfo | None
    """The one that begins once they have."""
    backfills: list[PeriodInfo]
    owner: str
    """On whose behalf it starts workflows."""
    created_at: datetime
    changed_at: datetime
    partition: str
    instance: InstanceId
    """The instance that it is stored as: the parent of its runs."""


def schedule_of(header: InstanceHeader, state: w.ScheduleState) -> Schedule:
    """A schedule from its state."""
    plan = state.plan
    assert plan is not None
    assert state.changed_at is not None
    pause = state.pause
    return Schedule(
        id=header.key,
        workflow=plan.workflow,
        version=plan.version,
        input=plan.input,
        computed={name: str(stored.get("source", "")) for name, stored in plan.computed.items()},
        is_document=plan.is_document,
        document_id=str(plan.document_id.get("source", "")),
        cron=plan.cron,
        time_zone=plan.time_zone,
        every_seconds=plan.every_ms / 1000 if plan.every_ms else None,
        at=plan.at,
        start_at=plan.start_at,
        end_at=plan.end_at,
        jitter_seconds=plan.jitter_ms / 1000,
        overlap=plan.overlap,
        catch_up=plan.catch_up,
        window_seconds=plan.window_ms / 1000 if plan.window_ms else None,
        note=plan.note,
        revision=state.version,
        status="paused" if pause is not None else "over" if state.next_at is None else "active",
        next_at=state.next_at,
        paused_at=None if pause is None else pause.at,
        paused_by="" if pause is None else pause.by,
        pause_reason="" if pause is None else pause.reason,
        running=[_fire(each) for each in state.running.values()],
        buffered=None if state.buffered is None else _fire(state.buffered),
        backfills=[
            PeriodInfo(
                number=each.number,
                start=each.start,
                end=each.end,
                is_at_once=each.is_at_once,
                by=each.by,
                next_at=each.next_at,
            )
            for each in state.backfills.values()
        ],
        owner="system" if state.owner is None else state.owner.id,
        created_at=header.created_at,
        changed_at=state.changed_at,
        partition=header.partition,
        instance=header.id,
    )


def fire_of(row: StoredFire) -> FireInfo:
    """A time of a schedule from its row."""
    return FireInfo(
        number=-row.place,
        at=row.at,
        until=row.until,
        why=row.why,
        status=row.status,
        detail=_detail(row.status, row.detail),
        run=None if row.run is None else InstanceId(row.run),
        document=row.document,
        told_at=row.told_at,
        backfill=row.backfill,
    )


def _fire(fire: w.Fire) -> FireInfo:
    return FireInfo(
        number=fire.number,
        at=fire.at,
        until=fire.until,
        why=fire.why,
        status=fire.status,
        detail=_detail(fire.status, fire.detail),
        run=InstanceId(UUID(fire.run)) if fire.run else None,
        document="",
        told_at=fire.told_at,
        backfill=fire.backfill,
    )


def _detail(status: FireStatus, detail: str) -> str:
    return detail if status != "buffered" else "it begins when no other run of the schedule does"
