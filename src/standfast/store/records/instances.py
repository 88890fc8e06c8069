"""The records that the engine and a store exchange. They contain bytes and ids; the layers above interpret them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

import msgspec

from standfast.kernel.actor import SYSTEM
from standfast.kernel.decision import Attribute
from standfast.kernel.history import StoredEvent
from standfast.kernel.ids import InstanceId, WorkerId
from standfast.kernel.row_kinds.steps import DeadLetterSource
from standfast.kernel.rows import Record

Maintenance = Literal["", "pause", "refuse"]
"""Maintenance mode: `pause` stops processing, `refuse` also refuses new commands."""

DEFAULT_TENANT = "default"
SHARED_TENANT = "*"
"""Owner of definitions that belong to the code and serve all tenants."""

_decode_attributes = msgspec.json.Decoder(dict[str, Attribute]).decode


class Address(msgspec.Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """Address of an instance: its id, or its definition and business key."""

    tenant: str
    definition: str = ""
    key: str = ""
    instance: InstanceId | None = None
    partition: str = ""
    """Partition of the instance. A key is looked up in this partition; an id too, or in any if this is empty."""

    @property
    def name(self) -> str:
        """A text that is unique within the tenant, whatever colons definitions and keys contain."""
        if self.instance is not None:
            return str(self.instance)
        return within(self.partition, f"{escaped(self.definition)}:{self.key}")


def within(partition: str, name: str) -> str:
    """Return a name that is unique across partitions. An escaped text contains no percent sign before a slash."""
    return f"{escaped(partition)}%/{name}" if partition else name


def escaped(definition: str) -> str:
    """Return the name of a definition without colons, so that the first colon ends it."""
    return definition.replace("%", "%25").replace(":", "%3A")


class Word(NamedTuple):
    """A message type that a process must be able to read before it claims a command or an effect."""

    language: str
    """Namespace of the type: a decider's type, or the common one of all graphs."""
    type: str
    version: int


class Borrower(NamedTuple):
    """The user under which user code borrows a connection. Row-level security limits it to the rows of the tenant."""

    tenant: str
    role: str


class InstanceHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The row of an instance: a projection of its events for lists and gates."""

    id: InstanceId
    tenant: str
    definition: str
    definition_version: str = ""
    kind: str = "decider"
    """Front end of its definition. `decider` for a class in the code."""
    key: str = ""
    """Business key, unique per tenant and definition. Empty without one."""
    status: str
    reason: str = ""
    begun: bool = True
    """Whether a commit has recorded work on it. An effect may be running without such a commit."""
    version: int
    """Number of events."""
    issued: int  # Number of effects and timers, which are numbered from 0.
    commits: int = 0
    """Number of commands that have changed it."""
    parent: InstanceId | None = None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    partition: str = ""
    """Partition of the tenant. Empty if it has none."""
    started_by: str = SYSTEM.id
    """Id of the actor who started it."""
    paused_at: datetime | None = None
    """Time of the pause. None while it is not paused."""
    deadline_at: datetime | None = None
    """Time at which it is stopped if it has not ended."""
    search: str = ""
    """Search attributes as JSON. Empty without any."""
    next_step: str = ""
    """The step after the pause. Empty if it is not paused or no step follows."""

    @property
    def attributes(self) -> dict[str, Attribute]:
        """The search attributes."""
        return _decode_attributes(self.search) if self.search else {}


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A cached state."""

    version: int
    """Sequence number of the last included event."""
    state_version: int
    """The decider's `state_version` when it was written."""
    data: bytes
    fingerprint: str = ""
    """Fingerprint of the fold code. Empty for built-in deciders."""


class PendingTimerRecord(NamedTuple):
    """A timer that has not fired."""

    number: int
    due_at: datetime
    frozen_at: datetime | None = None
    """Since when a pause stops its clock."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A stored instance: its row, newest snapshot, later events and pending timers."""

    header: InstanceHeader
    snapshot: Snapshot | None
    events: list[StoredEvent]
    timers: dict[str, PendingTimerRecord]
    """Pending timers by key."""


class EffectClaim(msgspec.Struct, frozen=True, gc=False):
    """The right to finish an effect. A later claim makes it void."""

    instance: InstanceId
    number: int
    worker: WorkerId
    fence: int


class TimerClaim(msgspec.Struct, frozen=True, gc=False):
    """The right to fire a timer. It is void once the timer was replaced, cancelled or fired."""

    instance: InstanceId
    key: str
    number: int


class InboxClaim(msgspec.Struct, frozen=True, gc=False):
    """The right to deliver a message. It is void once the message was delivered or dead-lettered."""

    id: int


class LetterClaim(msgspec.Struct, frozen=True, gc=False):
    """The right to requeue a dead letter. It is void once the letter was requeued or discarded."""

    id: int


Claim = EffectClaim | TimerClaim | InboxClaim | LetterClaim


class StoredEffect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An effect row: work outside the commit."""

    instance: InstanceId
    number: int
    tenant: str
    definition: str
    language: str
    """Namespace of its type."""
    handler: str
    type: str
    version: int
    data: bytes
    options: bytes = b""
    """Delivery options that differ from the defaults, as bytes of the engine."""
    priority: int = 0
    rank: int = 0
    """Claim order: microseconds since 1970 at which the effect reaches the urgency of the highest priority."""
    parked_until: datetime | None = None
    """Earliest time of the next claim. None means now."""
    owner: WorkerId | None = None
    claimed_at: datetime | None = None
    """Time of the claim. None without an owner."""
    fence: int = 0
    attempts: int = 0
    error: str = ""
    created_at: datetime
    stop_requested: bool = False
    """Whether the instance requested a stop. A running handler is asked to stop, and no further call is made."""
    context: bytes | None = None
    """The stored context of its actor. None for work of the engine itself."""

    @property
    def taken_at(self) -> datetime | None:
        """Time of the claim. None if the requesting commit handed it over directly."""
        return None if self.claimed_at is self.created_at else self.claimed_at

    @property
    def claim(self) -> EffectClaim:
        """The claim of the current owner."""
        assert self.owner is not None, "an effect without an owner cannot be finished"
        return EffectClaim(self.instance, self.number, self.owner, self.fence)


class StoredTimer(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A timer row: a command for later."""

    instance: InstanceId
    key: str
    number: int
    tenant: str
    definition: str
    language: str
    """Namespace of its command."""
    type: str
    version: int
    data: bytes
    due_at: datetime
    attempts: int = 0
    error: str = ""
    context: bytes | None = None
    """The stored context of its request."""

    @property
    def claim(self) -> TimerClaim:
        """The right to fire it."""
        return TimerClaim(self.instance, self.key, self.number)


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An inbox row: an accepted command that is not decided yet."""

    address: Address
    language: str
    """Namespace of its command."""
    type: str
    version: int = 1
    data: bytes
    command_id: str = ""
    actor: str
    comment: str = ""
    definition_version: str = ""
    """Version that a new instance is pinned to."""
    parent: InstanceId | None = None
    """The instance that starts the target. The message may then create the instance with the id in its address."""
    id: int = 0
    """Order of acceptance, assigned by the database."""
    attempts: int = 0
    error: str = ""
    context: bytes | None = None
    """The stored context of its actor. None if only the actor's id is known."""

    @property
    def claim(self) -> InboxClaim:
        """The right to deliver it."""
        return InboxClaim(self.id)

    @property
    def target(self) -> str:
        """Ordering key: messages with the same target are delivered in the order of acceptance."""
        return self.address.name


class StoredRecall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A recall of an effect without an owner. The message notifies the instance."""

    number: int
    message: StoredMessage
    stop: bool = False
    """Whether to stop the effect if it has an owner."""


class DeadLetterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Failed work, with all data for a retry."""

    tenant: str
    source: DeadLetterSource
    instance: InstanceId | None
    definition: str
    key: str = ""
    number: int = 0
    name: str
    """Handler of an effect or step, key of a timer, or target of a message."""
    language: str = ""
    """Namespace of the type of an effect, a timer or a message."""
    type: str = ""
    version: int = 1
    data: bytes = b""
    options: bytes = b""
    priority: int = 0
    attempts: int = 0
    fence: int = 0
    """Fence of an effect's last claim. A requeued effect continues from it, so that old claims stay void."""
    reason: str
    error: str
    actor: str = ""
    definition_version: str = ""
    parent: InstanceId | None = None
    """For a message: the version that a new instance is pinned to, and the instance that starts the target."""
    command_id: str = ""
    comment: str = ""
    """For a message: the caller's comment, so that a requeued command is unchanged."""
    created_at: datetime
    context: bytes | None = None
    """The stored context of the work."""
    partition: str = ""
    """Partition of the tenant."""
    id: int = 0

    @property
    def claim(self) -> LetterClaim:
        """The right to requeue it."""
        return LetterClaim(self.id)

    @property
    def payload(self) -> object:
        """`data` as plain values, such as the input of a step. Unchanged if the codec does not write JSON."""
        try:
            return msgspec.json.decode(self.data)
        except msgspec.DecodeError:
            return self.data

    @property
    def message(self) -> StoredMessage:
        """The failed message, as it was accepted."""
        return StoredMessage(
            address=Address(
                tenant=self.tenant,
                definition=self.definition,
                key=self.key,
                instance=self.instance,
                partition=self.partition,
            ),
            language=self.language,
            type=self.type,
            version=self.version,
            data=self.data,
            command_id=self.command_id,
            actor=self.actor,
            comment=self.comment,
            definition_version=self.definition_version,
            parent=self.parent,
            context=self.context,
        )


class ReceiptKey(NamedTuple):
    """Idempotency key of a command: the same key is executed once per scope."""

    tenant: str
    scope: str
    key: str


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """Proof that the command with this key was executed."""

    key: ReceiptKey
    instance: InstanceId | None
    """The target instance. None if the command was ignored and there was none."""
    version: int
    """The instance's version after the command."""
    digest: bytes
    """Digest of the command, to compare it with another one under this key."""


class ObservationRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An observed command with its effect on the status. Written only with `observe_inputs`."""

    tenant: str
    instance: InstanceId
    definition: str
    input: str
    from_status: str
    to_status: str
    skipped: bool
    at: datetime


class InstanceChange(msgspec.Struct, kw_only=True, gc=False):
    """All changes of one commit to one instance. They are written completely or not at all."""

    header: InstanceHeader
    expected: int
    """The version that the instance must have. 0 for a new one."""
    keeps_status: bool = False
    """Whether status, reason and end are unchanged, so that a driver may write less."""
    moves_marks: bool = False
    """Whether pause, deadline or search attributes of an existing instance have changed."""
    events: Sequence[StoredEvent] = ()
    effects: Sequence[StoredEffect] = ()
    withdrawn: Sequence[int] = ()
    """Numbers of effects to delete."""
    recalls: Sequence[StoredRecall] = ()
    """Effects to recall unless they have an owner. None of them is withdrawn, consumed or new in the same change."""
    timers: Sequence[StoredTimer] = ()
    held_effects: Sequence[int] = ()
    """Numbers of new effects under a pause."""
    held_timers: Sequence[tuple[str, bool]] = ()
    """Keys of new timers under a pause, each with whether its clock is stopped."""
    cancelled: Sequence[str] = ()
    """Keys of timers to delete. If one is gone, the change fails, because its history would be wrong."""
    messages: Sequence[StoredMessage] = ()
    records: Sequence[Record] = ()
    receipts: Sequence[Receipt] = ()
    consumed: Sequence[Claim] = ()
    """The claims that led to the change. The commit consumes them."""
    snapshot: Snapshot | None = None


class CommittedRows(NamedTuple):
    """The row changes of one commit in a history."""

    at: datetime
    """Time of the commit."""
    records: Sequence[Record]


class StoredDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a definition."""

    tenant: str
    """Owner. `SHARED_TENANT` for a definition of the code that serves all tenants."""
    name: str
    version: str
    kind: str
    """Front end that it was written for."""
    source: bytes
    """The author's text."""
    compiled: bytes
    """The graph that instances run."""
    hash: str
    """Hash of the content, to compare versions."""
    compiler: str
    """Version of the compiler."""
    status: Literal["draft", "published", "retired"] = "published"
    media_type: str = ""
    """Media type of the source, such as `application/yaml`. Empty without a source."""
    description: str = ""
    """The author's description."""
    published_by: str = SYSTEM.id
    """Id of the publishing actor."""
    published_at: datetime | None = None
    """Time of storage. None before."""


class Wanted(NamedTuple):
    """The number of effects of a handler that a worker can accept."""

    handler: str
    limit: int


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A live worker, for operators."""

    id: WorkerId
    name: str
    handlers: list[str]
    started_at: datetime
    alive_until: datetime


class InstanceQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for a page of instances, newest first unless stated otherwise."""

    definition: str = ""
    definition_version: str = ""
    kinds: tuple[str, ...] = ()
    """Empty matches all, as for statuses and for end reasons. Reasons are the first search criterion."""
    statuses: tuple[str, ...] = ()
    ended_for: tuple[str, ...] = ()
    begun: bool | None = None
    """Whether work on the instance has begun or is claimed. None matches both."""
    key: str = ""
    partition: str | None = None
    """Partition of the tenant, empty for none. None matches all that the reader sees."""
    parent: InstanceId | None = None
    attributes: Mapping[str, Attribute] = {}
    """Only instances with all of these values."""
    created_after: datetime | None = None
    created_before: datetime | None = None
    """Range of the creation time: from the first, inclusive, to the second, exclusive."""
    before: InstanceId | None = None
    """The last instance of the previous page. Results are older, or newer if the oldest come first."""
    oldest_first: bool = False
    limit: int = 100
