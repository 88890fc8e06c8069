"""What the events of a schedule do to its rows: the one that lists show, and those of its times."""

from __future__ import annotations

from functools import partial
from uuid import UUID

import msgspec

from standfast.features.schedules.model import messages as w
from standfast.features.schedules.model.plan import Plan
from standfast.kernel.actor import NO_TERMS, Actor
from standfast.kernel.row_kinds.schedules import (
    FireChanged,
    FireOpened,
    ScheduleChanged,
    ScheduleOpened,
    StoredSchedule,
)
from standfast.kernel.rows import Record

_encode = msgspec.json.Encoder().encode
_state = msgspec.json.Decoder(w.ScheduleState).decode
_plan = msgspec.json.Decoder(Plan).decode


def records_of(event: w.Event, after: w.ScheduleState) -> list[Record]:
    """What an event does to rows, beside where the schedule stands after it."""
    match event:
        case w.SchedulePut(plan=plan, version=1):
            return [ScheduleOpened(workflow=plan.workflow, plan=_encode(plan), standing=_standing(after))]
        case w.SchedulePut(plan=plan):
            return [ScheduleChanged(workflow=plan.workflow, plan=_encode(plan))]
        case w.FireTold(fire=fire):
            return [
                FireOpened(
                    place=-fire.number,
                    at=fire.at,
                    until=fire.until,
                    why=fire.why,
                    status=fire.status,
                    detail=fire.detail,
                    run=_id(fire.run),
                    backfill=fire.backfill,
                )
            ]
        case w.FireMoved():
            return [
                FireChanged(
                    place=-event.number,
                    status=event.status,
                    detail=event.detail,
                    run=_id(event.run),
                    document=event.document or None,
                )
            ]
        case _:
            return []


def standing_of(state: w.ScheduleState) -> Record:
    """Where a schedule stands now."""
    return ScheduleChanged(standing=_standing(state))


def state_of(row: StoredSchedule) -> w.ScheduleState:
    """A schedule as its row tells it."""
    state = _state(row.standing)
    state.plan = _plan(row.plan)
    return state


def _standing(state: w.ScheduleState) -> bytes:
    # What an actor may do is a set, which no two processes write in the same order, and nobody looks for it here.
    owner = None if state.owner is None else Actor(id=state.owner.id)
    bare = partial(msgspec.structs.replace, asker=None)
    kept = msgspec.structs.replace(
        state,
        plan=None,
        owner=owner,
        terms=NO_TERMS,
        stopper=None,
        stopper_terms=NO_TERMS,
        running={number: bare(each) for number, each in state.running.items()},
        buffered=None if state.buffered is None else bare(state.buffered),
        backfills={number: bare(each) for number, each in state.backfills.items()},
    )
    return _encode(kept)


def _id(run: str) -> UUID | None:
    return UUID(run) if run else None
