"""What the engine shows: instances and their histories in the words of their deciders."""

from __future__ import annotations

from datetime import datetime
from typing import Generic, TypeVar
from uuid import UUID

import msgspec

from standfast.errors import ReplayError
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId, effect_key
from standfast.kernel.program import Program
from standfast.store.records.instances import InstanceHeader, StoredEffect, StoredTimer

S = TypeVar("S")


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """An event with its circumstances."""

    sequence: int
    type: str
    event: object
    """The event itself; for events of the engine, such as `$timer_cancelled`, and those that cannot be decoded, the plain data."""
    at: datetime
    actor: str
    on_behalf_of: str
    """Whom the actor stood in for; empty if it acted for itself."""
    trace: str
    """Names the request that it follows from; empty if none was named."""
    comment: str
    cause: str
    position: int
    """Place in the order of all events of the database."""
    error: str = ""
    """Why the event could not be decoded; empty if it could."""


class PendingEffect(msgspec.Struct, frozen=True, kw_only=True):
    """An effect that is not done yet."""

    key: str
    """Its idempotency key."""
    type: str
    handler: str
    priority: int
    attempts: int
    """Calls that were made, the running one included."""
    error: str
    """What the last failed call said."""
    next_attempt_at: datetime | None
    """When it is tried again; None means as soon as possible."""
    worker: UUID | None
    """Who is working on it."""


class PendingTimer(msgspec.Struct, frozen=True, kw_only=True):
    """A timer that has not fired yet."""

    key: str
    command: str
    due_at: datetime
    attempts: int
    error: str


class Instance(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """One instance with all that is known of it."""

    id: InstanceId
    definition: str
    key: str
    tenant: str
    status: str
    reason: str
    version: int
    created_at: datetime
    updated_at: datetime
    completed_at: datetime | None
    state: S
    history: list[Recorded]
    effects: list[PendingEffect]
    timers: list[PendingTimer]


def recorded(event: StoredEvent, program: Program) -> Recorded:
    """A stored event in the decider's words, as far as the code knows them."""
    value, error = told(event, program)
    return Recorded(
        sequence=event.sequence,
        type=event.type,
        event=value,
        at=event.at,
        actor=event.actor,
        on_behalf_of=event.on_behalf_of,
        trace=event.trace,
        comment=event.comment,
        cause=event.cause,
        position=event.position,
        error=error,
    )


def told(event: StoredEvent, program: Program) -> tuple[object, str]:
    """What an event says, and why it is shown as plain data if the code does not know it."""
    if event.is_system:
        return msgspec.json.decode(event.data), ""
    try:
        return program.decode(event), ""
    except ReplayError as error:
        return program.plain(event), str(error)


def pending_effect(effect: StoredEffect) -> PendingEffect:
    """A live effect, for display."""
    return PendingEffect(
        key=effect_key(effect.instance, effect.number),
        type=effect.type,
        handler=effect.handler,
        priority=effect.priority,
        attempts=effect.attempts,
        error=effect.error,
        next_attempt_at=effect.parked_until,
        worker=effect.owner,
    )


def pending_timer(timer: StoredTimer) -> PendingTimer:
    """A live timer, for display."""
    return PendingTimer(
        key=timer.key, command=timer.type, due_at=timer.due_at, attempts=timer.attempts, error=timer.error
    )


def instance_view(
    header: InstanceHeader,
    state: S,
    history: list[Recorded],
    work: tuple[list[StoredEffect], list[StoredTimer]],
) -> Instance[S]:
    """All that is known of an instance."""
    return Instance(
        id=header.id,
        definition=header.definition,
        key=header.key,
        tenant=header.tenant,
        status=header.status,
        reason=header.reason,
        version=header.version,
        created_at=header.created_at,
        updated_at=header.updated_at,
        completed_at=header.ended_at,
        state=state,
        history=history,
        effects=[pending_effect(each) for each in work[0]],
        timers=[pending_timer(each) for each in work[1]],
    )
