"""The port to a database, as small protocols: commits, claims, inbox, workers, backlogs, organisations and hints between processes.

A driver claims, appends and reads. It never decides: the layers above interpret the rows. Times are always arguments.
None means the database's own clock, which judges leases and due times.
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
    """Backlogs of pending work, of all tenants."""

    def backlog(self, now: datetime | None = None) -> list[BacklogRecord]:
        """Return the pending work by handler and definition, as of the given time or the store's own clock."""
        ...

    def given_up(self) -> list[GivenUpRecord]:
        """Return the number of dead letters by tenant, without zeros."""
        ...

    def unhandled(self, *, waited: timedelta, now: datetime | None, most: int = 1000) -> list[Unhandled]:
        """Return the handlers without a live worker for which effects have waited this long, by name.

        The cost does not grow with the work that live workers can do.
        """
        ...

    def waiting_words(self, handlers: Sequence[str], *, waited: timedelta, now: datetime | None) -> list[WaitingWord]:
        """Return the message types of timers and messages, and of effects for these handlers, that have waited this long.

        The cost grows with the number of distinct types, and not with the amount of work.
        """
        ...


class OrganisationParts(Protocol):
    """The parts of a store that hold an organisation's published settings."""

    def chains(self) -> Editions:
        """Open the approval chains."""
        ...

    def charters(self) -> Editions:
        """Open the settings and rules of organisations."""
        ...

    def seals(self) -> Seals:
        """Open the seals of histories."""
        ...

    def blueprints(self) -> Blueprints:
        """Open the document definitions."""
        ...


class Rewritten(NamedTuple):
    """An event after a redaction."""

    sequence: int
    data: bytes
    comment: str


class Wakeups(Protocol):
    """Hints between the processes on one database. They may get lost: polling guarantees progress."""

    must_send: bool
    """Whether other processes learn of work only by hints."""

    def send(self, hint: str) -> None:
        """Notify the other processes."""
        ...

    def listen(self, timeout: float) -> None:
        """Wait for hints up to the timeout, and pass them on."""
        ...

    def close(self) -> None:
        """Stop listening."""
        ...


class LostRaceError(Exception):
    """A change was decided on a stale state or a void claim. Nothing was written."""


class StaleFactError(LostRaceError):
    """A change was decided on a stale fact. Nothing was written."""


class EndedTransactionError(Exception):
    """User code ended the borrowed transaction. Its earlier writes are committed or lost without the engine's own."""


class Transaction(Protocol):
    """An open transaction that can lock, read and write.

    All code locks in the same order: user code its own rows first, then instances by their ids, then other rows.
    """

    def lend(
        self, limit: float | None = None, borrower: Borrower | None = None, claim: Claim | None = None
    ) -> AbstractContextManager[object]:
        """Lend the driver's connection to a handler that writes in the same transaction. Raises VoidClaimError if the claim is void.

        On a database with roles the handler runs under the borrower's role with its tenant set. Without a borrower it
        runs as the engine.

        `limit` is the handler's time in seconds. On a database with a single writer the connection is then revoked, and
        TimeoutError raised. LostRaceError is raised if a statement failed because of concurrent transactions, such as
        in a deadlock. EndedTransactionError is raised, by the next call at the latest, if the block ended the
        transaction.
        """
        ...

    def take_back(self) -> None:
        """Revoke the borrowed connection: its writes are rolled back and its locks released.

        It is called from another thread than the handler's, whose statements then fail. Without a borrower, or in an
        in-memory database, it does nothing.
        """
        ...

    def load(
        self, addresses: Sequence[Address], *, whole: bool = False, waits: bool = True, known: int = 0
    ) -> list[Loaded | None]:
        """Return the instances, locked until the transaction ends; None for missing ones. `whole` ignores snapshots.

        An instance requested by id that has `known` events is returned without events and snapshot. Raises HeldError if
        another transaction holds one for too long, or at all if `waits` is False.
        """
        ...

    def void(self, claims: Sequence[Claim]) -> set[Claim]:
        """Return the void claims among these."""
        ...

    def receipts(self, keys: Sequence[ReceiptKey]) -> dict[ReceiptKey, Receipt]:
        """Return the existing receipts."""
        ...

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Store messages in the inbox, and return their ids."""
        ...

    def causes(self, instances: Sequence[InstanceId], causes: Sequence[str]) -> set[str]:
        """Return those causes that the histories of the instances contain. This resolves unknown outcomes."""
        ...

    def looking(self) -> FactLook:
        """Open the facts as this transaction sees them."""
        ...

    def write(self, changes: Sequence[InstanceChange], now: datetime, *, gates: Sequence[Gate] = ()) -> None:
        """Write all changes. Raises LostRaceError after a lost race, and StaleFactError if a gate fails."""
        ...

    def rewrite(
        self, change: InstanceChange, kinds: Sequence[RowKind[Record]], told: Sequence[CommittedRows], now: datetime
    ) -> None:
        """Replace an instance's rows of these kinds by those of its history, with a change. Its snapshot is deleted.

        No other function writes rows without a commit of theirs. The old rows are lost, so the caller must have
        compared them.
        """
        ...

    def redact(self, instance: InstanceId, events: Sequence[Rewritten], retold: Callable[[str], str]) -> None:
        """Replace the content of events of an instance, and the texts of its notifications.

        This is the only function that rewrites an event. Triggers allow it in this transaction for this instance, and
        for the content only. The caller must have locked the instance.
        """
        ...

    def consume(self, claims: Sequence[Claim]) -> None:
        """Consume claims without a change. Raises LostRaceError if one is void."""
        ...

    def remember(self, receipts: Sequence[Receipt], now: datetime) -> None:
        """Store the receipts of commands that changed nothing. Raises LostRaceError if one exists."""
        ...


class Writer(Protocol):
    """The store as a committer uses it."""

    def load(self, addresses: Sequence[Address], *, whole: bool = False) -> list[Loaded | None]:
        """Return the instances without a lock. Decisions on them are written with the version as the gate."""
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
        """Write changes, finished work and observations in one transaction.

        Raises LostRaceError without writing if a change has lost its race, and StaleFactError if a gate fails. Finished
        work with a void claim is skipped.
        """
        ...

    def looking(self) -> AbstractContextManager[FactLook]:
        """Open the current facts without a lock. Decisions on them are written with their versions as gates."""
        ...

    def unit(self) -> AbstractContextManager[Transaction]:
        """Open a locking transaction, committed at the end of the block and rolled back when it raises."""
        ...

    def accept(self, messages: Sequence[StoredMessage], now: datetime) -> list[int]:
        """Store messages in the inbox in this order, and return their ids."""
        ...

    def disown(self, worker: WorkerId, held: Sequence[EffectClaim]) -> int:
        """Release the effects that a worker owns without knowing it after an unanswered commit. Return their number."""
        ...


class Effects(Protocol):
    """Effects that wait for a handler."""

    def claim(
        self,
        worker: WorkerId,
        wanted: Sequence[Wanted],
        limit: int,
        now: datetime | None = None,
        *,
        words: Sequence[Word],
    ) -> list[StoredEffect]:
        """Claim up to `limit` effects for these handlers, most urgent first, and count the attempt.

        Effects with other message types are not even examined.
        """
        ...

    def retry(self, claim: EffectClaim, *, error: str, until: datetime | None, counts: bool = True) -> bool:
        """Release the effect after an attempt until `until`.

        Return False if the claim is void. `counts` is False if it was no attempt.
        """
        ...

    def release(self, claims: Sequence[EffectClaim]) -> int:
        """Release effects without counting an attempt. Return their number."""
        ...

    def bury(self, claim: EffectClaim, letter: DeadLetterRecord, told: StoredMessage | None = None) -> bool:
        """Move the effect to the dead letters, with a message for its instance in the inbox.

        Return False if the claim is void.
        """
        ...

    def wake(self, now: datetime | None) -> tuple[list[str], datetime | None]:
        """Make parked effects claimable whose time has come. Return their handlers and the time of the next one."""
        ...

    def waiting(self, handler: str, *, waited: timedelta, now: datetime | None, limit: int) -> list[StoredEffect]:
        """Return claimable effects of a handler that were written at least this long ago, unchanged."""
        ...


class Timers(Protocol):
    """Commands that wait for their time."""

    def claim(self, now: datetime | None, *, words: Sequence[Word], hold: timedelta, limit: int) -> DueWorkRecord:
        """Claim due timers with these commands for a while. Others are not examined."""
        ...

    def retry(self, claim: TimerClaim, *, error: str, until: datetime, counts: bool = True) -> bool:
        """Reschedule the timer. Return False if it is gone. `counts` is False if it was no attempt."""
        ...

    def bury(self, claim: TimerClaim, letter: DeadLetterRecord) -> bool:
        """Move the timer to the dead letters. Return False if it is gone."""
        ...


class Inbox(Protocol):
    """Accepted commands that wait for delivery."""

    def claim(self, now: datetime | None, *, words: Sequence[Word], hold: timedelta, limit: int) -> list[StoredMessage]:
        """Claim messages with these commands in order of acceptance.

        It stops at a target's first message that another process holds or that has another command.
        """
        ...

    def retry(self, claim: InboxClaim, *, error: str, until: datetime, counts: bool = True) -> bool:
        """Reschedule the message; those behind it wait.

        Return False if it is gone. `counts` is False if it was no attempt.
        """
        ...

    def bury(self, claim: InboxClaim, letter: DeadLetterRecord) -> bool:
        """Move the message to the dead letters. Return False if it is gone."""
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
        """Return the messages of a tenant or partition in order of acceptance, filtered by definition and command, unchanged."""
        ...

    def depth(self) -> int:
        """Return the number of messages."""
        ...

    def next_at(self, now: datetime | None) -> datetime | None:
        """Return when the next failed message is due, or None."""
        ...


class Workers(Protocol):
    """The live workers and their leases."""

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
        """Renew the worker's lease for `lease`, and release the work of workers whose lease has expired."""
        ...

    def retire(self, worker: WorkerId) -> None:
        """Deregister the worker, and release all its claims."""
        ...

    def live(self, now: datetime | None) -> list[WorkerRecord]:
        """Return the workers with a valid lease."""
        ...

    def announce(self, handler: str, *, every: timedelta, now: datetime | None) -> bool:
        """Return whether the caller should report this missing handler, because no process has for that long."""
        ...

    def schemas(self) -> tuple[int, int]:
        """Returns the schema version of the database, and the newest one that this code knows."""
        ...

    def maintenance(self) -> Maintenance:
        """Return the current maintenance mode."""
        ...


class MaintenancePort(Notes, CompressionPort, Backlogs, Protocol):
    """Maintenance and operator actions."""

    def requeue(self, letter: DeadLetterRecord, *, now: datetime, ageing: float = DEFAULT_AGEING) -> bool:
        """Requeue a dead effect or message with its attempts reset.

        Return False if the letter is gone. Timers and steps are not accepted.
        """
        ...

    def discard(self, letter: int, *, tenant: str) -> bool:
        """Delete a dead letter. Return False if it is gone."""
        ...

    def dead_letter(self, letter: int, *, tenant: str) -> DeadLetterRecord | None:
        """Return a dead letter."""
        ...

    def delete(self, instance: InstanceId, *, tenant: str, force: bool = False) -> bool:
        """Delete a finished instance completely. Return False if it is missing or not finished. Its receipts stay until they are pruned.

        Raises NeededError, without deleting, if something still needs it. `force` also deletes its work, dead letters
        and messages.
        """
        ...

    def prune(self, *, receipts_before: datetime, limit: int) -> int:
        """Delete expired receipts, except those of open documents. Return the number of rows."""
        ...

    def expired(self, *, ended_before: datetime, limit: int, kind: Literal["event", ""] = "") -> list[Address]:
        """Return finished instances, of one kind or of all, that ended before a time and are no longer needed, oldest first."""
        ...

    def late_readers(self, *, before: datetime) -> list[str]:
        """Return the names of projections that have not read events before a time."""
        ...

    def tidy(self, now: datetime) -> None:
        """Run periodic maintenance: future partitions, a shorter log, orphaned work."""
        ...

    def maintain(self, mode: Maintenance) -> None:
        """Set the maintenance mode."""
        ...

    def next_number(self, counter: str) -> int:
        """Return the next number of a counter, from 0. Each number is returned once."""
        ...


class StoreParts(ResumingParts, IncidentParts, ExpiryParts, Notifying, OrganisationParts, ChangingParts, Protocol):
    """The parts of a store. Parts from one source share a connection, so only one thread may use them at a time."""

    def writer(self) -> Writer:
        """Open the port for a committer."""
        ...

    def effects(self) -> Effects:
        """Open the port for a worker."""
        ...

    def timers(self) -> Timers:
        """Open the port for the timer loop."""
        ...

    def inbox(self) -> Inbox:
        """Open the port for the inbox loop."""
        ...

    def workers(self) -> Workers:
        """Open the port for the heartbeat."""
        ...

    def feed(self) -> Feed:
        """Open the port for projections."""
        ...

    def keeper(self) -> MaintenancePort:
        """Open the port for operators and housekeeping."""
        ...

    def definitions(self) -> Definitions:
        """Open the port for definitions."""
        ...

    def pauses(self) -> Pauses:
        """Open the port for pauses and their propagation."""
        ...

    def people(self) -> People:
        """Open the port for people."""
        ...

    def access(self) -> AccessPort:
        """Open the port for credentials and their administration."""
        ...

    def together(self) -> AbstractContextManager[FactLook]:
        """Open one transaction for all calls to these parts in the block, by one thread.

        It is committed at the end and rolled back when it raises.
        """
        ...

    def close(self) -> None:
        """Close the connection. Later calls raise an error."""
        ...


class Store(StoreParts, Protocol):
    """A database that is ready for use. Each part opened here gets its own connection."""

    url: str
    """Location without secrets, for messages."""
    writers: int
    """Useful number of concurrent committers per process."""

    @property
    def is_lent(self) -> bool:
        """Whether the calling code holds the only writer. Waiting for the engine would then be a deadlock."""
        ...

    def line(self) -> StoreParts:
        """Open the parts on one connection, for one thread at a time."""
        ...

    def share(self) -> Store:
        """Open the same database for another engine. Closing the share closes only its own connections."""
        ...

    def refuse_inside(self) -> None:
        """Raise ConfigurationError if the calling code holds the only writer: a write would wait forever."""
        ...

    def reader(self, tenant: str, partition: str = "") -> TenantReader:
        """Open a thread-safe reader for callers of one tenant. With a partition it sees nothing else."""
        ...

    def survey(self) -> AbstractContextManager[StoreParts]:
        """Open the parts for queries over all tenants. The block sees one consistent snapshot, from one thread."""
        ...

    def now(self) -> datetime:
        """Return the database's time."""
        ...

    def accept_within(self, connection: object, message: StoredMessage, now: datetime) -> int:
        """Store a message in the inbox within the open transaction of the caller's connection, and return its id.

        Raises ConfigurationError if the connection is to another database.
        """
        ...

    def entered(self) -> AbstractContextManager[None]:
        """Note that a caller has its own open transaction.

        If it holds the only writer, waiting for another one is refused.
        """
        ...

    def within(self, connection: object) -> AbstractContextManager[Transaction]:
        """Join the transaction that a caller has open on its connection. The caller commits.

        Writes of the block are undone when it raises, and the caller's transaction goes on. Other processes are
        notified when the caller commits. Raises ConfigurationError for another database or without an open transaction.
        """
        ...

    def wakeups(self, notice: Callable[[str], None]) -> Wakeups:
        """Open the hints from other processes. `notice` is called with each."""
        ...

    def take_back(self) -> None:
        """Revoke the only writer from a projection of this share that holds it.

        Does nothing on stores with several writers.
        """
        ...

    def locked_for(self) -> float:
        """Return the seconds for which another process has blocked this one's writes, as far as known without I/O."""
        ...

    def close(self) -> None:
        """Close all connections including those of shares, without waiting for hanging calls."""
        ...
