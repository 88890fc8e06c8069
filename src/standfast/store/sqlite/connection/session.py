"""Converts rows to records and back. Ids are stored as text, times as UTC text of fixed width."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from uuid import UUID

import msgspec

from standfast.kernel.durations import LAST
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId, WorkerId
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
from standfast.store.records.queries import (
    ArchivedVersion,
    FedEvent,
    Headline,
    ProjectionState,
    PublishedDefinition,
)

Row = Sequence[Any]
_convert = msgspec.convert
"""Makes an id of a text in half the time that Python takes."""
_instant = datetime.fromisoformat


@lru_cache(64)  # All rows of a commit have the same time.
def text(at: datetime) -> str:
    """Format a time for storage."""
    return at.astimezone(UTC).isoformat(timespec="microseconds")


def text_or_none(at: datetime | None) -> str | None:
    """Format an optional time for storage."""
    return None if at is None else text(at)


def instant(stored: str) -> datetime:
    """Parse a stored time."""
    return datetime.fromisoformat(stored)


def instant_or_far(stored: str) -> datetime:
    """Parse a stored time. An invalid one, which other software wrote, becomes the last time of the calendar."""
    try:
        return datetime.fromisoformat(stored)
    except ValueError:
        return LAST


def instant_or_none(stored: str | None) -> datetime | None:
    """Parse an optional stored time."""
    return None if stored is None else datetime.fromisoformat(stored)


def instance_id(stored: str) -> InstanceId:
    """Parse a stored instance id."""
    return _convert(stored, UUID)  # type: ignore[return-value]


def instance_or_none(stored: str | None) -> InstanceId | None:
    """Parse an optional stored instance id."""
    return None if stored is None else instance_id(stored)


def header(row: Row) -> InstanceHeader:
    """Convert a row of `instances`. Lists convert hundreds of them, so it makes as few calls as possible."""
    (
        name, tenant, definition, definition_version, kind, key, status, reason, begun, version, issued, parent, created_at, updated_at,
        ended_at, partition, started_by, paused_at, deadline_at, search, commits, next_step,
    ) = row  # fmt: skip
    return InstanceHeader(
        id=_convert(name, UUID),  # type: ignore[arg-type]
        tenant=tenant,
        definition=definition,
        definition_version=definition_version,
        kind=kind,
        key=key or "",
        status=status,
        reason=reason,
        begun=begun == 1,
        version=version,
        issued=issued,
        parent=None if parent is None else _convert(parent, UUID),  # type: ignore[arg-type]
        created_at=_instant(created_at),
        updated_at=_instant(updated_at),
        ended_at=None if ended_at is None else _instant(ended_at),
        partition=partition or "",
        started_by=started_by,
        paused_at=None if paused_at is None else _instant(paused_at),
        deadline_at=None if deadline_at is None else _instant(deadline_at),
        search=search or "",
        commits=commits,
        next_step=next_step or "",
    )


def event(row: Row) -> StoredEvent:
    """Convert a row of `events`."""
    return StoredEvent(
        position=row[0],
        instance=instance_id(row[1]),
        sequence=row[2],
        tenant=row[3],
        type=row[4],
        version=row[5],
        data=row[6],
        at=instant(row[7]),
        actor=row[8],
        comment=row[9],
        cause=row[10],
        on_behalf_of=row[11] or "",
        trace=row[12] or "",
    )


def headline(row: Row) -> Headline:
    """Convert a row to an event without its content."""
    return Headline(row[0], row[1], instance_id(row[2]), row[3], row[4], row[5])


def fed_event(row: Row) -> FedEvent:
    """Convert a row of `events` joined with its instance, whose columns are empty if it was just deleted."""
    return FedEvent(
        position=row[0],
        instance=instance_id(row[1]),
        sequence=row[2],
        tenant=row[3],
        type=row[4],
        version=row[5],
        data=row[6],
        at=instant(row[7]),
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
        instance=instance_id(row[0]),
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
        parked_until=instant_or_none(row[12]),
        owner=None if row[13] is None else WorkerId(UUID(row[13])),
        fence=row[14],
        attempts=row[15],
        error=row[16],
        created_at=instant(row[17]),
        claimed_at=instant_or_none(row[18]),
        stop_requested=bool(row[19]),
        context=row[20],
    )


def timer(row: Row) -> StoredTimer:
    """Convert a row of `timers`."""
    return StoredTimer(
        instance=instance_id(row[0]),
        key=row[1],
        number=row[2],
        tenant=row[3],
        definition=row[4],
        language=row[5],
        type=row[6],
        version=row[7],
        data=row[8],
        due_at=instant(row[9]),
        attempts=row[10],
        error=row[11],
        context=row[12],
    )


def message(row: Row) -> StoredMessage:
    """Convert a row of `inbox`."""
    return StoredMessage(
        id=row[0],
        address=Address(
            tenant=row[1], definition=row[2], key=row[3], instance=instance_or_none(row[4]), partition=row[17]
        ),
        language=row[5],
        type=row[6],
        version=row[7],
        data=row[8],
        command_id=row[9],
        actor=row[10],
        comment=row[11],
        definition_version=row[12],
        parent=instance_or_none(row[13]),
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
        instance=instance_or_none(row[3]),
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
        parent=instance_or_none(row[20]),
        command_id=row[21],
        comment=row[22],
        created_at=instant(row[23]),
        context=row[24],
        partition=row[25],
    )


def definition(row: Row) -> StoredDefinition:
    """Convert a row of `definitions`."""
    values = dict(zip(StoredDefinition.__struct_fields__, row, strict=True))
    return StoredDefinition(**(values | {"published_at": instant(row[-1])}))


def projection(row: Row) -> ProjectionState:
    """Convert a row of `projections` with the number of unread events."""
    return ProjectionState(
        name=row[0],
        position=row[1],
        lag=row[2],
        updated_at=instant_or_none(row[3]),
        error=row[4],
        failed_at=instant_or_none(row[5]),
    )


def published(row: Row) -> PublishedDefinition:
    """Convert a row of `definitions` for lists."""
    values = dict(zip(PublishedDefinition.__struct_fields__, row, strict=True))
    return PublishedDefinition(**(values | {"published_at": instant(row[-1])}))


def archived(row: Row) -> ArchivedVersion:
    """Convert a row of an archived definition."""
    values = dict(zip(ArchivedVersion.__struct_fields__, row, strict=True))
    return ArchivedVersion(**(values | {"archived_at": instant_or_none(values["archived_at"])}))


def observation(row: Row) -> ObservationRecord:
    """Convert a row of `observations`."""
    return ObservationRecord(
        tenant=row[0],
        instance=instance_id(row[1]),
        definition=row[2],
        input=row[3],
        from_status=row[4],
        to_status=row[5],
        skipped=bool(row[6]),
        at=instant(row[7]),
    )
