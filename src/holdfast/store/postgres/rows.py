"""Rows to records. The driver already gives ids, instants and bytes as Python values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from holdfast.kernel.history import StoredEvent
from holdfast.store.findings import StoredStep, StoredSubscription, StoredTask
from holdfast.store.shapes import (
    Address,
    DeadLetter,
    Header,
    Observation,
    StoredDefinition,
    StoredEffect,
    StoredMessage,
    StoredTimer,
)

Row = Sequence[Any]


def header(row: Row) -> Header:
    """A row of `instances`."""
    return Header(
        id=row[0],
        tenant=row[1],
        definition=row[2],
        definition_version=row[3],
        key=row[4] or "",
        status=row[5],
        reason=row[6],
        version=row[7],
        issued=row[8],
        parent=row[9],
        created_at=row[10],
        updated_at=row[11],
        ended_at=row[12],
    )


def event(row: Row) -> StoredEvent:
    """A row of `events`."""
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
    )


def effect(row: Row) -> StoredEffect:
    """A row of `effects`."""
    return StoredEffect(
        instance=row[0],
        number=row[1],
        tenant=row[2],
        definition=row[3],
        handler=row[4],
        type=row[5],
        version=row[6],
        data=row[7],
        options=row[8],
        priority=row[9],
        rank=row[10],
        parked_until=row[11],
        owner=row[12],
        fence=row[13],
        attempts=row[14],
        error=row[15],
        created_at=row[16],
        claimed_at=row[17],
        stop_requested=row[18],
    )


def timer(row: Row) -> StoredTimer:
    """A row of `timers`."""
    return StoredTimer(**dict(zip(StoredTimer.__struct_fields__, row, strict=True)))


def message(row: Row) -> StoredMessage:
    """A row of `inbox`."""
    return StoredMessage(
        id=row[0],
        address=Address(tenant=row[1], definition=row[2], key=row[3], instance=row[4]),
        type=row[5],
        version=row[6],
        data=row[7],
        command_id=row[8],
        actor=row[9],
        comment=row[10],
        definition_version=row[11],
        parent=row[12],
        attempts=row[13],
        error=row[14],
    )


def dead_letter(row: Row) -> DeadLetter:
    """A row of `dead_letters`."""
    return DeadLetter(
        id=row[0],
        tenant=row[1],
        source=row[2],
        instance=row[3],
        definition=row[4],
        key=row[5],
        number=row[6],
        name=row[7],
        type=row[8],
        version=row[9],
        data=row[10],
        options=row[11],
        priority=row[12],
        attempts=row[13],
        fence=row[14],
        reason=row[15],
        error=row[16],
        actor=row[17],
        definition_version=row[18],
        parent=row[19],
        command_id=row[20],
        comment=row[21],
        created_at=row[22],
    )


def step(row: Row) -> StoredStep:
    """A row of `steps`."""
    return StoredStep(**dict(zip(StoredStep.__struct_fields__, row, strict=True)))


def task(row: Row) -> StoredTask:
    """A row of `human_tasks`."""
    return StoredTask(**dict(zip(StoredTask.__struct_fields__, row, strict=True)))


def subscription(row: Row) -> StoredSubscription:
    """A row of `subscriptions`."""
    return StoredSubscription(**dict(zip(StoredSubscription.__struct_fields__, row, strict=True)))


def definition(row: Row) -> StoredDefinition:
    """A row of `definitions`."""
    return StoredDefinition(**dict(zip(StoredDefinition.__struct_fields__, row, strict=True)))


def observation(row: Row) -> Observation:
    """A row of `observations`."""
    return Observation(**dict(zip(Observation.__struct_fields__, row, strict=True)))
