"""The records that cross the line between the engine and a store. They carry bytes and identities; their meaning lies above."""

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
"""Whether processing is paused, and whether new commands are refused as well."""

DEFAULT_TENANT = "default"
SHARED_TENANT = "*"
"""Owns definitions that belong to the code and serve all tenants."""

_decode_attributes = msgspec.json.Decoder(dict[str, Attribute]).decode


class Address(msgspec.Struct, frozen=True, kw_only=True, gc=False, cache_hash=True):
    """Names an instance: by its id, or by definition and business key."""

    tenant: str
    definition: str = ""
    key: str = ""
    instance: InstanceId | None = None
    partition: str = ""
    """Where the instance is: a key names one of this partition, and an id one of this partition, or of any if this is empty."""

    @property
    def name(self) -> str:
        """One text that no other instance of the tenant has, however colons are spread over definitions and keys."""
        if self.instance is not None:
            return str(self.instance)
        return within(self.partition, f"{escaped(self.definition)}:{self.key}")


def within(partition: str, name: str) -> str:
    """A name that is told from the same one of other partitions: no escaped text has a percent sign before a slash."""
    return f"{escaped(partition)}%/{name}" if partition else name


def escaped(definition: str) -> str:
    """The name of a definition without colons, so that the first colon behind it ends it."""
    return definition.replace("%", "%25").replace(":", "%3A")


class Word(NamedTuple):
    """What a process must be able to read before it takes a command or an effect in hand."""

    language: str
    """Whose word it is: a decider's type, or the one language of all graphs."""
    type: str
    version: int


class Borrower(NamedTuple):
    """In whose name user code has a connection: the database shows it the rows of this tenant only, as far as it has walls."""

    tenant: str
    role: str


class InstanceHeader(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The row of an instance: a projection of its events that lists and gates are served from."""

    id: InstanceId
    tenant: str
    definition: str
    definition_version: str = ""
    kind: str = "decider"
    """Which front end its definition was written for; `decider` for a class of the code."""
    key: str = ""
    """Business key, unique for tenant and definition; empty means none."""
    status: str
    reason: str = ""
    begun: bool = True
    """Whether a commit told that somebody has worked on it; an effect may be in hand all the same while none did."""
    version: int
    """How many events the instance has."""
    issued: int  # Effects and timers, which are numbered from 0.
    commits: int = 0
    """How many commands have changed it."""
    parent: InstanceId | None = None
    created_at: datetime
    updated_at: datetime
    ended_at: datetime | None = None
    partition: str = ""
    """The part of the tenant that it belongs to; empty if it belongs to none."""
    started_by: str = SYSTEM.id
    """Id of the actor whose command was its first."""
    paused_at: datetime | None = None
    """Since when it is paused; None while it is not."""
    deadline_at: datetime | None = None
    """When it will be stopped if it has not ended by then."""
    search: str = ""
    """Values that it is found by, as JSON; empty means none."""
    next_step: str = ""
    """The step that it goes on with, while it is paused; empty if it is not, or if nothing follows."""

    @property
    def attributes(self) -> dict[str, Attribute]:
        """Values that it is found by."""
        return _decode_attributes(self.search) if self.search else {}


class Snapshot(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A cached state."""

    version: int
    """Number of the last event that it contains."""
    state_version: int
    """The decider's `state_version` that wrote it."""
    data: bytes
    fingerprint: str = ""
    """Of the code that folded it; empty for a decider of the engine's own."""


class PendingTimerRecord(NamedTuple):
    """A timer that has not fired."""

    number: int
    due_at: datetime
    frozen_at: datetime | None = None
    """Since when a pause of more than its instance has its clock stand still."""


class Loaded(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An instance as stored: its row, the newest snapshot, the events after that, and its pending timers."""

    header: InstanceHeader
    snapshot: Snapshot | None
    events: list[StoredEvent]
    timers: dict[str, PendingTimerRecord]
    """Those that have not fired, by key."""


class EffectClaim(msgspec.Struct, frozen=True, gc=False):
    """The right to finish an effect: void as soon as somebody else has claimed it."""

    instance: InstanceId
    number: int
    worker: WorkerId
    fence: int


class TimerClaim(msgspec.Struct, frozen=True, gc=False):
    """A timer that is about to fire; void once it was replaced, cancelled or fired."""

    instance: InstanceId
    key: str
    number: int


class InboxClaim(msgspec.Struct, frozen=True, gc=False):
    """A message in hand; void once it was delivered or buried."""

    id: int


class LetterClaim(msgspec.Struct, frozen=True, gc=False):
    """A dead letter that is about to be put back to work; void once it was requeued or discarded."""

    id: int


Claim = EffectClaim | TimerClaim | InboxClaim | LetterClaim


class StoredEffect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An effect row: work to do outside the commit."""

    instance: InstanceId
    number: int
    tenant: str
    definition: str
    language: str
    """Whose word its type is."""
    handler: str
    type: str
    version: int
    data: bytes
    options: bytes = b""
    """Delivery options that differ from the defaults, as bytes of the runtime."""
    priority: int = 0
    rank: int = 0
    """Claim order: microseconds since 1970 at which the effect is as urgent as one of the highest priority."""
    parked_until: datetime | None = None
    """Not claimable before; None means now."""
    owner: WorkerId | None = None
    claimed_at: datetime | None = None
    """When its owner took it; None while nobody owns it."""
    fence: int = 0
    attempts: int = 0
    error: str = ""
    created_at: datetime
    stop_requested: bool = False
    """Whether the instance wants it stopped: whoever runs it is told, and nobody calls its handler again."""
    context: bytes | None = None
    """For whom it is done, as bytes of the kernel; None means that nobody asked for it by name."""

    @property
    def taken_at(self) -> datetime | None:
        """When its owner took it, unless the commit that asked for it handed it over."""
        return None if self.claimed_at is self.created_at else self.claimed_at

    @property
    def claim(self) -> EffectClaim:
        """The right of its present owner."""
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
    """Whose word its command is."""
    type: str
    version: int
    data: bytes
    due_at: datetime
    attempts: int = 0
    error: str = ""
    context: bytes | None = None
    """What it follows from, as bytes of the kernel."""

    @property
    def claim(self) -> TimerClaim:
        """The right to fire it."""
        return TimerClaim(self.instance, self.key, self.number)


class StoredMessage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An inbox row: a command that was accepted and is not yet decided."""

    address: Address
    language: str
    """Whose word its command is."""
    type: str
    version: int = 1
    data: bytes
    command_id: str = ""
    actor: str
    comment: str = ""
    definition_version: str = ""
    """Version that a new instance is pinned to."""
    parent: InstanceId | None = None
    """The instance that starts the target: the message may then be the first of the very id that its address names."""
    id: int = 0
    """Order of acceptance; given by the database."""
    attempts: int = 0
    error: str = ""
    context: bytes | None = None
    """For whom it is to be decided, as bytes of the kernel; None means an actor of whom only the id is known."""

    @property
    def claim(self) -> InboxClaim:
        """The right to deliver it."""
        return InboxClaim(self.id)

    @property
    def target(self) -> str:
        """What messages are ordered by: those with the same target are delivered in the order of acceptance."""
        return self.address.name


class StoredRecall(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An effect of the instance that is to be taken back if nobody holds it; the message then tells the instance so."""

    number: int
    message: StoredMessage
    stop: bool = False
    """Whether one that somebody holds is to be stopped."""


class DeadLetterRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Something that gave up, with all that is needed to try again."""

    tenant: str
    source: DeadLetterSource
    instance: InstanceId | None
    definition: str
    key: str = ""
    number: int = 0
    name: str
    """Handler of an effect or step, key of a timer, target of a message."""
    language: str = ""
    """Whose word its type is, of an effect, a timer or a message."""
    type: str = ""
    version: int = 1
    data: bytes = b""
    options: bytes = b""
    priority: int = 0
    attempts: int = 0
    fence: int = 0
    """Fence of an effect's last claim; one that is put back to work goes on from there, so that no old claim is good again."""
    reason: str
    error: str
    actor: str = ""
    definition_version: str = ""
    parent: InstanceId | None = None
    """Of a message: the version that a new instance is pinned to, and the instance that starts the target."""
    command_id: str = ""
    comment: str = ""
    """Of a message: what its caller gave with it, so that it is the same command when it is put back to work."""
    created_at: datetime
    context: bytes | None = None
    """For whom the work was done, as it was kept with it."""
    partition: str = ""
    """The part of the tenant that it belongs to."""
    id: int = 0

    @property
    def claim(self) -> LetterClaim:
        """The right to put it back to work."""
        return LetterClaim(self.id)

    @property
    def payload(self) -> object:
        """`data` as plain values, for example what a step worked on; as it is if the codec does not write JSON."""
        try:
            return msgspec.json.decode(self.data)
        except msgspec.DecodeError:
            return self.data

    @property
    def message(self) -> StoredMessage:
        """The message that gave up, as it was accepted."""
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
    """What makes a command idempotent: the same key in the same scope is carried out once."""

    tenant: str
    scope: str
    key: str


class Receipt(msgspec.Struct, frozen=True, gc=False):
    """Proof that the command with this key was carried out."""

    key: ReceiptKey
    instance: InstanceId | None
    """The instance it was for; None if it was ignored and there was none."""
    version: int
    """The instance's version after the command."""
    digest: bytes
    """Tells whether another command with this key is the same."""


class ObservationRecord(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """That a command arrived, and what it did to the status; only written when the engine is told to observe."""

    tenant: str
    instance: InstanceId
    definition: str
    input: str
    from_status: str
    to_status: str
    skipped: bool
    at: datetime


class InstanceChange(msgspec.Struct, kw_only=True, gc=False):
    """Everything that one commit does to one instance. It is written whole or not at all."""

    header: InstanceHeader
    expected: int
    """Version that the instance must have now; 0 means that it is new."""
    keeps_status: bool = False
    """Whether status, reason and end stay as they are, which a driver may use to write less."""
    moves_marks: bool = False
    """Whether pause, deadline or search attributes of an instance that is not new have changed."""
    events: Sequence[StoredEvent] = ()
    effects: Sequence[StoredEffect] = ()
    withdrawn: Sequence[int] = ()
    """Numbers of effects to remove."""
    recalls: Sequence[StoredRecall] = ()
    """Effects to take back unless somebody holds them; none of them is removed, consumed or new in the same change."""
    timers: Sequence[StoredTimer] = ()
    held_effects: Sequence[int] = ()
    """Numbers of new effects that a pause covers."""
    held_timers: Sequence[tuple[str, bool]] = ()
    """Keys of new timers that a pause covers, and whether their clocks stand still."""
    cancelled: Sequence[str] = ()
    """Keys of timers to remove; if one of them is gone, the change does not stand, because its history would lie."""
    messages: Sequence[StoredMessage] = ()
    records: Sequence[Record] = ()
    receipts: Sequence[Receipt] = ()
    consumed: Sequence[Claim] = ()
    """What led to the change and is used up by it."""
    snapshot: Snapshot | None = None


class CommittedRows(NamedTuple):
    """What one commit of a history says about rows."""

    at: datetime
    """When it was."""
    records: Sequence[Record]


class StoredDefinition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a definition."""

    tenant: str
    """Whose it is; `SHARED_TENANT` for one that belongs to the code and serves all tenants."""
    name: str
    version: str
    kind: str
    """Which front end it was written for."""
    source: bytes
    """What the author wrote."""
    compiled: bytes
    """What instances run."""
    hash: str
    """Tells whether two versions say the same."""
    compiler: str
    """Version of the compiler."""
    status: Literal["draft", "published", "retired"] = "published"
    media_type: str = ""
    """What kind of text the source is, such as `application/yaml`; empty if there is none."""
    description: str = ""
    """What it is for, in its author's words."""
    published_by: str = SYSTEM.id
    """Id of the actor who stored it."""
    published_at: datetime | None = None
    """When it was stored; None before that."""


class Wanted(NamedTuple):
    """How many effects of a handler a worker can take."""

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
    """Which instances to list: newest first unless it says otherwise, a page at a time."""

    definition: str = ""
    definition_version: str = ""
    kinds: tuple[str, ...] = ()
    """Empty means all, as for statuses, and for the reasons for which they have ended: by these they are looked for first."""
    statuses: tuple[str, ...] = ()
    ended_for: tuple[str, ...] = ()
    begun: bool | None = None
    """Only instances that somebody has worked on or has in hand, or only the others; None means both."""
    key: str = ""
    partition: str | None = None
    """Only those of one part of the tenant, or of none if it is empty; None means all that the reader sees."""
    parent: InstanceId | None = None
    attributes: Mapping[str, Attribute] = {}
    """Only instances that have all of these values."""
    created_after: datetime | None = None
    created_before: datetime | None = None
    """Only instances created at the first instant or later, and before the second."""
    before: InstanceId | None = None
    """Only instances born before this one, or after it if the oldest come first: the last of the page before."""
    oldest_first: bool = False
    limit: int = 100
