"""Rows for the tests of the stores: what a commit writes, with everything filled in that a test does not care about."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any
from uuid import UUID

import msgspec

from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId, WorkerId, make_uuid7
from standfast.store.ports.documents import StoredBlueprint
from standfast.store.records.claim_order import rank_of
from standfast.store.records.instances import (
    DEFAULT_TENANT,
    Address,
    DeadLetterRecord,
    InstanceChange,
    InstanceHeader,
    ObservationRecord,
    Receipt,
    ReceiptKey,
    StoredDefinition,
    StoredEffect,
    StoredMessage,
    StoredRecall,
    StoredTimer,
    Word,
)

NOW = datetime(2026, 3, 31, 12, tzinfo=UTC)
LATER = NOW + timedelta(minutes=1)
HOUR = timedelta(hours=1)
OTHER_TENANT = "rival"

WORDS = [Word("order", type_, version) for type_ in ("Remind", "Tell", "Place") for version in (1, 2)]
"""What the timers and messages of these rows say."""
SHIP_WORDS = [Word("order", "Ship", 1), Word("order", "Ship", 2)]
"""What their effects say."""

_numbers = count(1)


def new_id(at: datetime = NOW) -> InstanceId:
    """An id that no other row has, younger than all before it."""
    return InstanceId(make_uuid7(at, next(_numbers)))


def new_worker() -> WorkerId:
    """A worker that never worked before."""
    return WorkerId(UUID(int=next(_numbers)))


def born(
    identity: InstanceId | None = None,
    *,
    key: str = "",
    tenant: str = DEFAULT_TENANT,
    definition: str = "order",
    events: int = 1,
    issued: int = 0,
    **rest: Any,
) -> InstanceChange:
    """The first commit of an instance: its row, and events that are numbered from one."""
    header = InstanceHeader(
        id=identity or new_id(),
        tenant=tenant,
        definition=definition,
        key=key,
        status="running",
        version=events,
        issued=issued,
        created_at=NOW,
        updated_at=NOW,
    )
    return InstanceChange(header=header, expected=0, events=events_of(header, range(1, events + 1)), **rest)


def moved(
    before: InstanceHeader, *, events: int = 1, at: datetime = LATER, ends: bool = False, issued: int = 0, **rest: Any
) -> InstanceChange:
    """A later commit of an instance, decided on the row as it was."""
    header = msgspec.structs.replace(
        before,
        version=before.version + events,
        issued=before.issued + issued,
        status="completed" if ends else before.status,
        updated_at=at,
        ended_at=at if ends else None,
    )
    numbers = range(before.version + 1, header.version + 1)
    return InstanceChange(header=header, expected=before.version, events=events_of(header, numbers), **rest)


def events_of(header: InstanceHeader, numbers: Sequence[int]) -> list[StoredEvent]:
    """Events with these numbers."""
    return [
        StoredEvent(
            instance=header.id,
            sequence=number,
            type="Happened",
            version=1,
            data=f'{{"n":{number}}}'.encode(),
            at=header.updated_at,
            actor="ada",
            comment="because",
            cause=f"cause:{header.id}:{number}",
            tenant=header.tenant,
        )
        for number in numbers
    ]


def effect(
    instance: InstanceId, number: int = 0, *, handler: str = "ship", ready: datetime = NOW, **rest: Any
) -> StoredEffect:
    """An effect that waits for a handler."""
    priority: int = rest.get("priority", 0)
    filled: dict[str, Any] = {
        "tenant": DEFAULT_TENANT,
        "definition": "order",
        "language": "order",
        "type": "Ship",
        "version": 1,
        "rank": rank_of(ready, priority),
    }
    return StoredEffect(
        instance=instance,
        number=number,
        handler=handler,
        data=f"effect {number}".encode(),
        created_at=NOW,
        **(filled | rest),
    )


def timer(
    instance: InstanceId, key: str = "reminder", number: int = 0, *, due: datetime = NOW, **rest: Any
) -> StoredTimer:
    """A timer that is set."""
    filled: dict[str, Any] = {
        "tenant": DEFAULT_TENANT,
        "definition": "order",
        "language": "order",
        "type": "Remind",
        "version": 1,
    }
    return StoredTimer(instance=instance, key=key, number=number, data=b"remind", due_at=due, **(filled | rest))


def message(key: str = "o-1", text: str = "hello", *, instance: InstanceId | None = None, **rest: Any) -> StoredMessage:
    """A message to an instance, by key or by id."""
    where = Address(
        tenant=rest.pop("tenant", DEFAULT_TENANT),
        definition="order",
        key="" if instance else key,
        instance=instance,
    )
    filled: dict[str, Any] = {"language": "order", "type": "Tell"}
    return StoredMessage(address=where, data=text.encode(), actor="ada", **(filled | rest))


def recall(instance: InstanceId, number: int = 0, *, stop: bool = False, **rest: Any) -> StoredRecall:
    """The wish to take an effect back, and the message that tells its instance that it was."""
    told = message(instance=instance, text=f"taken back {number}", **rest)
    return StoredRecall(number=number, message=told, stop=stop)


def definition(version: str = "1", **rest: Any) -> StoredDefinition:
    """A definition to be published."""
    filled: dict[str, Any] = {
        "tenant": DEFAULT_TENANT,
        "name": "order",
        "kind": "saga",
        "source": b"what was written",
        "compiled": b"what runs",
        "hash": f"hash of {version}",
        "compiler": "1",
    }
    return StoredDefinition(version=version, **(filled | rest))


def blueprint(**rest: Any) -> StoredBlueprint:
    """The draft of a body for invoices."""
    return StoredBlueprint(
        **{
            "id": str(new_id()),
            "tenant": DEFAULT_TENANT,
            "type": "invoice",
            "kind": "body",
            "version": 0,
            "status": "draft",
            "is_default": False,
            "name": "a body",
            "envelope_version": 1,
            "content": b"{}",
            "hash": "h",
            "replaces": 0,
            "created_by": "ada",
            "created_at": NOW,
            "updated_by": "ada",
            "updated_at": NOW,
            **rest,
        }
    )


def effective(**rest: Any) -> StoredBlueprint:
    """A workflow that was compiled of the envelope of invoices."""
    compiled = {
        "header": b"{}",
        "compiler": "1",
        "graph_hash": "g",
        "workflow": "1-org",
        "envelope": "e",
        "replaces": None,
    }
    state = {"kind": "effective", "version": 1, "status": "published", "published_by": "ada", "published_at": NOW}
    return blueprint(**{**compiled, **state, **rest})


def letter(source: str, **rest: Any) -> DeadLetterRecord:
    """A dead letter."""
    filled: dict[str, Any] = {
        "tenant": DEFAULT_TENANT,
        "source": source,
        "instance": None,
        "definition": "order",
        "name": "ship",
        "language": "order",
        "type": "Ship",
        "data": b"payload",
        "attempts": 5,
        "reason": "handler_failed",
        "error": "no stamps",
        "actor": "ada",
        "created_at": NOW,
    }
    return DeadLetterRecord(**(filled | rest))


def receipt(instance: InstanceId, key: str = "c-1", *, tenant: str = DEFAULT_TENANT, version: int = 1) -> Receipt:
    """Proof that a command was carried out."""
    return Receipt(ReceiptKey(tenant, "order", key), instance, version, b"what was asked for")


def observation(instance: InstanceId, **rest: Any) -> ObservationRecord:
    """An observed input."""
    filled: dict[str, Any] = {
        "tenant": DEFAULT_TENANT,
        "definition": "order",
        "input": "Pay",
        "from_status": "running",
        "to_status": "running",
        "skipped": False,
        "at": NOW,
    }
    return ObservationRecord(instance=instance, **(filled | rest))


def by_id(instance: InstanceId, *, tenant: str = DEFAULT_TENANT) -> Address:
    """An address that names an instance by its id."""
    return Address(tenant=tenant, instance=instance)


def by_key(key: str, *, tenant: str = DEFAULT_TENANT, definition: str = "order") -> Address:
    """An address that names an instance by its key."""
    return Address(tenant=tenant, definition=definition, key=key)
