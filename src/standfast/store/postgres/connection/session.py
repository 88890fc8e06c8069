"""Converts rows to records. The driver already returns ids, times and bytes as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from standfast.kernel.history import StoredEvent
from standfast.store.records.instances import (
    Address,
    DeadLetterRecord,
    InstanceHeader,
    ObservationRecord,
    StoredDefinition,
    StoredEffect,
    StoredMessage,
    StoredTimer,
)
from standfast.store.records.queries import FedEvent

Row = Sequence[Any]


def header(row: Row) -> InstanceHeader:
    """Convert a row of `instances`."""
    return InstanceHeader(
        id=row[0],
        tenant=row[1],
        definition=row[2],
        definition_version=row[3],
        kind=row[4],
        key=row[5] or "",
        status=row[6],
        reason=row[7],
        begun=row[8],
        version=row[9],
        issued=row[10],
        parent=row[11],
        created_at=row[12],
        updated_at=row[13],
        ended_at=row[14],
        partition=row[15] or "",
        started_by=row[16],
        paused_at=row[17],
        deadline_at=row[18],
        search=row[19] or "",
        commits=row[20],
        next_step=row[21] or "",
    )


def event(row: Row) -> StoredEvent:
    """Convert a row of `events`."""
    return StoredEvent(
        position=row[0],
        instance=row[1],
        sequence=row[2],
        tenant=row[3],
        type=row[4],
        version=row[5],
        data=row[6],
        at=row[7],
        actor=row[8],
        comment=row[9],
        cause=row[10],
        on_behalf_of=row[11] or "",
        trace=row[12] or "",
    )


def fed_event(row: Row) -> FedEvent:
    """Convert a row of `events` joined with its instance, whose columns are empty if it was just deleted."""
    return FedEvent(
        position=row[0],
        instance=row[1],
        sequence=row[2],
        tenant=row[3],
        type=row[4],
        version=row[5],
        data=row[6],
        at=row[7],
        actor=row[8],
        comment=row[9],
        cause=row[10],
        definition=row[11] or "",
        definition_version=row[12] or "",
        key=row[13] or "",
        on_behalf_of=row[14] or "",
        trace=row[15] or "",
    )


def effect(row: Row) -> StoredEffect:
    """Convert a row of `effects`."""
    return StoredEffect(
        instance=row[0],
        number=row[1],
        tenant=row[2],
        definition=row[3],
        language=row[4],
        handler=row[5],
        type=row[6],
        version=row[7],
        data=row[8],
        options=row[9],
        priority=row[10],
        rank=row[11],
        parked_until=row[12],
        owner=row[13],
        fence=row[14],
        attempts=row[15],
        error=row[16],
        created_at=row[17],
        claimed_at=row[18],
        stop_requested=row[19],
        context=row[20],
    )


def timer(row: Row) -> StoredTimer:
    """Convert a row of `timers`."""
    return StoredTimer(**dict(zip(StoredTimer.__struct_fields__, row, strict=True)))


def message(row: Row) -> StoredMessage:
    """Convert a row of `inbox`."""
    return StoredMessage(
        id=row[0],
        address=Address(tenant=row[1], definition=row[2], key=row[3], instance=row[4], partition=row[17]),
        language=row[5],
        type=row[6],
        version=row[7],
        data=row[8],
        command_id=row[9],
        actor=row[10],
        comment=row[11],
        definition_version=row[12],
        parent=row[13],
        attempts=row[14],
        error=row[15],
        context=row[16],
    )


def dead_letter(row: Row) -> DeadLetterRecord:
    """Convert a row of `dead_letters`."""
    return DeadLetterRecord(
        id=row[0],
        tenant=row[1],
        source=row[2],
        instance=row[3],
        definition=row[4],
        key=row[5],
        number=row[6],
        name=row[7],
        language=row[8],
        type=row[9],
        version=row[10],
        data=row[11],
        options=row[12],
        priority=row[13],
        attempts=row[14],
        fence=row[15],
        reason=row[16],
        error=row[17],
        actor=row[18],
        definition_version=row[19],
        parent=row[20],
        command_id=row[21],
        comment=row[22],
        created_at=row[23],
        context=row[24],
        partition=row[25],
    )


def definition(row: Row) -> StoredDefinition:
    """Convert a row of `definitions`."""
    return StoredDefinition(**dict(zip(StoredDefinition.__struct_fields__, row, strict=True)))


def observation(row: Row) -> ObservationRecord:
    """Convert a row of `observations`."""
    return ObservationRecord(**dict(zip(ObservationRecord.__struct_fields__, row, strict=True)))
