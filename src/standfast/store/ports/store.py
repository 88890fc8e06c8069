"""What the engine asks of a database, as small protocols.

A driver claims, appends and reads. It never decides: whatever a row means is the business of the layers above. An instant is always
an argument; None stands for the database's own clock, which is what judges leases and due times.

What is asked of a database about work that waits or gave up, of all tenants.

What organisations have published for themselves: approval chains, rules and settings of their documents, contracts and bodies; and the seals of their histories.

What is put in the place of what events said.

Hints between the processes on one database.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from standfast.kernel.ids import InstanceId, WorkerId
from standfast.kernel.rows import Record, RowKind
from standfast.store.ports.access import AccessPort
from standfast.store.ports.changes import ChangingParts
from standfast.store.ports.definitions import Definitions
from standfast.store.ports.documents import Blueprints
from standfast.store.ports.facts import FactLook, Gate
from standfast.store.ports.maintenance import CompressionPort, ExpiryParts, IncidentParts, ResumingParts
from standfast.store.ports.notifications import Notifying
from standfast.store.ports.pauses import Pauses
from standfast.store.ports.people import People
from standfast.store.ports.reading import Feed, Notes, TenantReader
from standfast.store.ports.seals import Seals
from standfast.store.ports.versioned_settings import Editions
from standfast.store.records.claim_order import DEFAULT_AGEING
from standfast.store.records.instances import (
    Address,
    Borrower,
    Claim,
    CommittedRows,
    DeadLetterRecord,
    EffectClaim,
    InboxClaim,
    InstanceChange,
    Loaded,
    Maintenance,
    ObservationRecord,
    Receipt,
    ReceiptKey,
    StoredEffect,
    StoredMessage,
    TimerClaim,
    Wanted,
    Word,
    WorkerRecord,
)
from standfast.store.records.queries import BacklogRecord, Beat, DueWorkRecord, GivenUpRecord, Unhandled, WaitingWord


class Backlogs(Protocol):
    """How much there is of it, and whom it waits for."""

    def backlog(self, now: datetime | None = None) -> list[BacklogRecord]:
        """How much work waits, by handler and definition; judged by the store's own clock if no instant is given."""
        ...

    def given_up(self) -> list[GivenUpRecord]:
        """How many dead letters there are, by tenant; of those that have some."""
        ...

    def unhandled(self, *, waited: timedelta, now: datetime | None, most: int = 1000) -> list[Unhandled]:
        """Handlers that no live worker has and for which effects have waited this long, by name.

        The cost does not grow with the work that somebody can do.
        """
        ...

    def waiting_words(self, handlers: Sequence[str], *, waited: timedelta, now: datetime | None) -> list[WaitingWord]:
        """The words of timers and messages, and of effects for these handlers, that have waited this long, whoever can read them.

        The cost grows with the number of different words, and not with the work.
        """
        ...


class OrganisationParts(Protocol):
    """The sides of a store that know it."""

    def chains(self) -> Editions:
        """For whoever resolves approval chains."""
        ...

    def charters(self) -> Editions:
        """For what organisations say of their documents."""
        ...

    def seals(self) -> Seals:
        """For whoever seals histories."""
        ...

    def blueprints(self) -> Blueprints:
        """For whoever publishes contracts and bodies."""
        ...


class Rewritten(NamedTuple):
    """An event as it is after a redaction."""

    sequence: int
    data: bytes
    comment: str


class Wakeups(Protocol):
    """Hints between processes. They may get lost: polling is what guarantees progress."""

    must_send: bool
    """Whether others hear of work only when they are told."""

    def send(self, hint: str) -> None:
        """Tell the other processes."""
        ...

    def listen(self, timeout: float) -> None:
        """Wait for hints, at most this long, and pass them on."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class LostRaceError(Exception):
    """A change was decided on a state that is no longer the newest, or on a claim that is void; nothing was written."""


class StaleFactError(LostRaceError):
    """A change was decided on a fact that has another version by now; nothing was written."""


class EndedTransactionError(Exception):
    """User code ended the transaction that it was lent; what it wrote before is stored, or lost, without what belongs to it."""


class Transaction(Protocol):
    """One open transaction that may lock, look and write.

    Everybody locks in one order: user code its own rows, then the engine instances in the order of their ids, then the rest.
    """

    def lend(
        self, limit: float | None = None, borrower: Borrower | None = None, claim: Claim | None = None
    ) -> AbstractContextManager[object]:
        """The driver's own connection, as users know it, for a handler that writes in the same transaction; VoidClaimError if the claim is void.

        A database with roles runs what is done with it under that of the borrower, with its tenant set; without a borrower it is the engine's
        own connection. `limit` is how many seconds the handler has; where nobody else can write meanwhile, the connection is then taken from
        it, and TimeoutError raised. LostRaceError if a statement in the block failed because of what others did at the same time, such as a
        deadlock. EndedTransactionError, by the next call of the unit at the latest, if the block ended the transaction.
        """
        ...

    def take_back(self) -> None:
        """Take the connection from the handler that it is lent to: what it wrote is undone, and whoever waits for its locks goes on.

        For other threads than the handler's, which meets errors then. Nothing happens if nothing is lent, nor in a database in memory.
        """
        ...

    def load(
        self, addresses: Sequence[Address], *, whole: bool = False, waits: bool = True, known: int = 0
    ) -> list[Loaded | None]:
        """The instances, locked until the transaction ends; None where there is none. `whole` leaves snapshots aside.

        One that is asked for by its id and has `known` events comes without them and without its snapshot. HeldError if another
        transaction has one of them for longer than this one waits, or at all if it does not.
        """
        ...

    def void(self, claims: Sequence[Claim]) -> set[Claim]:
        """Which of the claims are no longer good."""
        ...

    def receipts(self, keys: Sequence[ReceiptKey]) -> dict[ReceiptKey, Receipt]:
        """The receipts that exist."""
        ...

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Put messages into the inbox; their ids."""
        ...

    def causes(self, instances: Sequence[InstanceId], causes: Sequence[str]) -> set[str]:
        """Which of the causes the histories of the instances already name: how an unknown outcome is resolved."""
        ...

    def looking(self) -> FactLook:
        """Facts as this transaction sees them."""
        ...

    def write(self, changes: Sequence[InstanceChange], now: datetime, *, gates: Sequence[Gate] = ()) -> None:
        """Write everything; LostRaceError if somebody else was first, StaleFactError if a gate does not hold."""
        ...

    def rewrite(
        self, change: InstanceChange, kinds: Sequence[RowKind[Record]], told: Sequence[CommittedRows], now: datetime
    ) -> None:
        """Put the rows that a history tells in the place of all that an instance has of these kinds, with a change; its snapshot goes too.

        The only way in which rows are written that no commit wrote: what they were before is lost, so whoever calls it has compared them.
        """
        ...

    def redact(self, instance: InstanceId, events: Sequence[Rewritten], retold: Callable[[str], str]) -> None:
        """Put other content into events of an instance, and other words into what people were told of it.

        The only way in which an event is written again. The guards let it in this transaction, for this instance, and for what an event
        says, never for which, when and whose it is. Whoever calls it has the instance locked.
        """
        ...

    def consume(self, claims: Sequence[Claim]) -> None:
        """Use up claims without a change; LostRaceError if any of them is void."""
        ...

    def remember(self, receipts: Sequence[Receipt], now: datetime) -> None:
        """Keep the receipts of commands that changed nothing; LostRaceError if there is one already."""
        ...


class Writer(Protocol):
    """The committer's side."""

    def load(self, addresses: Sequence[Address], *, whole: bool = False) -> list[Loaded | None]:
        """The instances without a lock; what is decided on them is written with the version as the gate."""
        ...

    def write(
        self,
        changes: Sequence[InstanceChange],
        *,
        finished: Sequence[Claim] = (),
        observations: Sequence[ObservationRecord] = (),
        gates: Sequence[Gate] = (),
        now: datetime,
    ) -> None:
        """One transaction: all changes, the work that ended without a change, the observations.

        LostRaceError, and nothing written, if any change lost; StaleFactError if a gate does not hold. Finished work whose claim is void
        is left alone.
        """
        ...

    def looking(self) -> AbstractContextManager[FactLook]:
        """Facts as of now, without a lock; what is decided on them is written with their versions as gates."""
        ...

    def unit(self) -> AbstractContextManager[Transaction]:
        """A transaction that locks: committed at the end of the block, rolled back when it raises."""
        ...

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Put messages into the inbox, in this order; their ids."""
        ...

    def disown(self, worker: WorkerId, held: Sequence[EffectClaim]) -> int:
        """Free the effects that a worker owns without knowing it, because the answer to a commit got lost. How many."""
        ...


class Effects(Protocol):
    """Work that waits for a handler."""

    def claim(
        self,
        worker: WorkerId,
        wanted: Sequence[Wanted],
        limit: int,
        now: datetime | None = None,
        *,
        words: Sequence[Word],
    ) -> list[StoredEffect]:
        """Up to `limit` effects for these handlers, most urgent first, owned by the worker from now on; the attempt is counted.

        Effects with other words than these are left to others, and not even looked at.
        """
        ...

    def retry(self, claim: EffectClaim, *, error: str, until: datetime | None, counts: bool = True) -> bool:
        """Give the effect back after an attempt, not before `until`; False if the claim is void. `counts` says whether it was one."""
        ...

    def release(self, claims: Sequence[EffectClaim]) -> int:
        """Give effects back untried: the attempt does not count. How many were given back."""
        ...

    def bury(self, claim: EffectClaim, letter: DeadLetterRecord, told: StoredMessage | None = None) -> bool:
        """Move the effect to the dead letters, and put what its instance is told of that into the inbox; False if the claim is void."""
        ...

    def wake(self, now: datetime | None) -> tuple[list[str], datetime | None]:
        """Make parked effects claimable whose time has come: their handlers, and when the next one is due."""
        ...

    def waiting(self, handler: str, *, waited: timedelta, now: datetime | None, limit: int) -> list[StoredEffect]:
        """Claimable effects of a handler that were written at least this long ago; they stay as they are."""
        ...


class Timers(Protocol):
    """Commands that wait for their time."""

    def claim(self, now: datetime | None, *, words: Sequence[Word], hold: timedelta, limit: int) -> DueWorkRecord:
        """Timers with these commands that are due, held back from others for a while; others are not even looked at."""
        ...

    def retry(self, claim: TimerClaim, *, error: str, until: datetime, counts: bool = True) -> bool:
        """Let the timer fire again later; False if it is gone. `counts` says whether this was an attempt."""
        ...

    def bury(self, claim: TimerClaim, letter: DeadLetterRecord) -> bool:
        """Move the timer to the dead letters; False if it is gone."""
        ...


class Inbox(Protocol):
    """Commands that were accepted and wait for their turn."""

    def claim(self, now: datetime | None, *, words: Sequence[Word], hold: timedelta, limit: int) -> list[StoredMessage]:
        """Messages with these commands in order of acceptance, held back from others.

        Never past one of the same target that somebody else holds, or that has another command.
        """
        ...

    def retry(self, claim: InboxClaim, *, error: str, until: datetime, counts: bool = True) -> bool:
        """Deliver the message again later; those behind it wait. False if it is gone. `counts` says whether this was an attempt."""
        ...

    def bury(self, claim: InboxClaim, letter: DeadLetterRecord) -> bool:
        """Move the message to the dead letters; False if it is gone."""
        ...

    def waiting(
        self,
        tenant: str,
        *,
        partition: str = "",
        definition: str = "",
        type_: str = "",
        after: int = 0,
        limit: int = 100,
    ) -> list[StoredMessage]:
        """The messages of a tenant, or of one partition, in order of acceptance, for one definition or with one command if it is named; they stay as they are."""
        ...

    def depth(self) -> int:
        """How many messages wait."""
        ...

    def next_at(self, now: datetime | None) -> datetime | None:
        """When the next message that failed is due again; None if there is none."""
        ...


class Workers(Protocol):
    """Who is alive."""

    def beat(
        self,
        worker: WorkerId,
        held: Sequence[EffectClaim],
        *,
        name: str,
        handlers: Sequence[str],
        lease: timedelta,
        now: datetime | None,
    ) -> Beat:
        """Say that the worker lives for `lease` more; take the work of those whose time ran out away from them."""
        ...

    def retire(self, worker: WorkerId) -> None:
        """The worker is gone; whatever it still holds is free."""
        ...

    def live(self, now: datetime | None) -> list[WorkerRecord]:
        """The workers whose time has not run out."""
        ...

    def announce(self, handler: str, *, every: timedelta, now: datetime | None) -> bool:
        """Whether it is the caller's turn to say that nobody has this handler: nobody else did for that long."""
        ...

    def schemas(self) -> tuple[int, int]:
        """Returns the schema that the database is at, and the newest that this code knows."""
        ...

    def maintenance(self) -> Maintenance:
        """Maintenance mode as it is now."""
        ...


class MaintenancePort(Notes, CompressionPort, Backlogs, Protocol):
    """What operators and housekeeping do."""

    def requeue(self, letter: DeadLetterRecord, *, now: datetime, ageing: float = DEFAULT_AGEING) -> bool:
        """Put a dead effect or message, but no timer or step, back to work with its attempts reset; False if the letter is gone."""
        ...

    def discard(self, letter: int, *, tenant: str) -> bool:
        """Forget a dead letter; False if it is gone."""
        ...

    def dead_letter(self, letter: int, *, tenant: str) -> DeadLetterRecord | None:
        """One dead letter."""
        ...

    def delete(self, instance: InstanceId, *, tenant: str, force: bool = False) -> bool:
        """Delete a finished instance whole; False if there is none or it is not finished. Its receipts stay until they are pruned.

        NeededError, and nothing is deleted, if it is still needed; `force` deletes it with its work, its letters and the messages for
        its id.
        """
        ...

    def prune(self, *, receipts_before: datetime, limit: int) -> int:
        """Delete receipts that are too old to matter, but none of a document that lives; how many rows went."""
        ...

    def expired(self, *, ended_before: datetime, limit: int, kind: Literal["event", ""] = "") -> list[Address]:
        """Finished instances, of one kind or of all, that ended before an instant and are not needed any more, oldest first."""
        ...

    def late_readers(self, *, before: datetime) -> list[str]:
        """The projections that have not read what happened before an instant, by name."""
        ...

    def tidy(self, now: datetime) -> None:
        """Whatever the database needs now and then: partitions ahead of time, a shorter log, orphaned work."""
        ...

    def maintain(self, mode: Maintenance) -> None:
        """Switch maintenance mode."""
        ...

    def next_number(self, counter: str) -> int:
        """The next number of a counter, from 0; nobody else gets it."""
        ...


class StoreParts(ResumingParts, IncidentParts, ExpiryParts, Notifying, OrganisationParts, ChangingParts, Protocol):
    """The sides of a store. Objects from one source share its connection, so they are for one thread at a time."""

    def writer(self) -> Writer:
        """For a committer."""
        ...

    def effects(self) -> Effects:
        """For a worker."""
        ...

    def timers(self) -> Timers:
        """For the timer loop."""
        ...

    def inbox(self) -> Inbox:
        """For the inbox loop."""
        ...

    def workers(self) -> Workers:
        """For the heartbeat."""
        ...

    def feed(self) -> Feed:
        """For projections."""
        ...

    def keeper(self) -> MaintenancePort:
        """For operators and housekeeping."""
        ...

    def definitions(self) -> Definitions:
        """For whoever resolves definitions."""
        ...

    def pauses(self) -> Pauses:
        """For those who pause, and for the walk that follows them."""
        ...

    def people(self) -> People:
        """For whoever asks who is asked."""
        ...

    def access(self) -> AccessPort:
        """For those who come with keys, and for whoever looks after these."""
        ...

    def together(self) -> AbstractContextManager[FactLook]:
        """One transaction for everything that is asked of these parts in the block, by the same thread: committed at its end, undone if it raises."""
        ...

    def close(self) -> None:
        """Let go of the connection; whoever uses it afterwards is told so."""
        ...


class Store(StoreParts, Protocol):
    """A database that is ready for work. Each part that is asked for directly gets a connection of its own."""

    url: str
    """Where it is, without secrets, for messages."""
    writers: int
    """How many committers of one process can be at work at the same time to good effect."""

    @property
    def is_lent(self) -> bool:
        """Whether the code that asks has the only writer in its hands: to wait for the engine would be to wait for itself."""
        ...

    def line(self) -> StoreParts:
        """The parts on one connection, for one thread at a time."""
        ...

    def share(self) -> Store:
        """The same database for one more engine: closed, it lets go of the connections that were made for it, and of no other."""
        ...

    def refuse_inside(self) -> None:
        """Raise ConfigurationError where the store is lent: what is to be written would wait for ever."""
        ...

    def reader(self, tenant: str, partition: str = "") -> TenantReader:
        """For callers of one tenant; safe for use by several threads. What is not of the partition, if one is named, is not there for it."""
        ...

    def survey(self) -> AbstractContextManager[StoreParts]:
        """The sides of the store for whoever only looks, at all tenants: whatever is asked in the block, by one thread, fits together."""
        ...

    def now(self) -> datetime:
        """The database's time."""
        ...

    def accept_within(self, connection: object, message: StoredMessage, now: datetime) -> int:
        """Put a message into the inbox in the transaction of a connection that the caller opened; its id.

        ConfigurationError if the connection is to another database.
        """
        ...

    def entered(self) -> AbstractContextManager[None]:
        """A caller has a transaction of his own open: where that is the only one that can write, waiting for another one is refused."""
        ...

    def within(self, connection: object) -> AbstractContextManager[Transaction]:
        """The transaction that a caller has open on a connection of his own, for what the engine writes too; he commits it.

        What was written in the block is undone when it raises, and his transaction goes on. Others hear of it when he has committed.
        ConfigurationError if the connection is to another database, or has no transaction open.
        """
        ...

    def wakeups(self, notice: Callable[[str], None]) -> Wakeups:
        """Hints from other processes that there is work: `notice` is called with what came."""
        ...

    def take_back(self) -> None:
        """Take the only writer from a projection of this share that still has it, if the store has only one; others keep it."""
        ...

    def locked_for(self) -> float:
        """Seconds for which another process has kept this one from writing, as far as is known without asking; usually none."""
        ...

    def close(self) -> None:
        """Let go of all connections, also of those of shares, and soon: nobody is waited for who hangs."""
        ...
