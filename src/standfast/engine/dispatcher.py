"""The command side of an engine. Every change of an instance passes through it, with or without a worker.

It owns the committers, and notifies the listeners of commits.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import msgspec

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.cache import InstanceCache
from standfast.engine.commit.committer import Committer
from standfast.engine.commit.context import DraftContext, EngineContext, ProgramCatalog
from standfast.engine.commit.draft import InstanceDraft
from standfast.engine.commit.facts import Acting, FactSource
from standfast.engine.commit.inbox import InboxSubmission, InboxWriter
from standfast.engine.commit.queue import CommitQueue, CommitQueues, Lane
from standfast.engine.commit.readable_types import Vocabularies
from standfast.engine.commit.submission import (
    Settled,
    Submission,
    View,
    causes,
    digest_of,
    reasoned,
    receipted,
    unasked,
)
from standfast.engine.commit.unit_of_work import JointCommits, outdate
from standfast.engine.commit.work_rows import Lessee
from standfast.engine.common.clock import Clock
from standfast.engine.common.health import Watched
from standfast.engine.common.operator_watch import Watch
from standfast.engine.common.pauses import ActivePauses
from standfast.engine.common.randomness import Randomness
from standfast.engine.common.settings import Settings
from standfast.engine.common.telemetry import Telemetry
from standfast.engine.concurrency.loop import IsolatedTasks, Loop, Step
from standfast.engine.concurrency.process_forks import INHERITED, belongs_here
from standfast.engine.concurrency.replies import Reply
from standfast.engine.listeners import CommitListener, NoWorkerListener, WorkerListener, tell_lives
from standfast.engine.loops.pause_propagation import PausePropagator
from standfast.engine.worker.call import key_of
from standfast.errors import ConfigurationError, ConflictError, StoppedError, StoreUnavailableError
from standfast.kernel.ids import InstanceId
from standfast.store.ports.store import LostRaceError, Store, StoreParts, Writer
from standfast.store.records.instances import (
    Address,
    Claim,
    EffectClaim,
    InstanceChange,
    Maintenance,
    ReceiptKey,
    StoredMessage,
    TimerClaim,
)

_log = logging.getLogger("standfast")

STOP = "stop"
"""Hint that handlers may have to stop. Every hint also says that there may be work."""

_LONG_SECONDS = 60.0
_ROUNDS = 8
"""Races lost in a row before the caller gets an error."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0
_REFUSED = "maintenance mode refuses commands; try again when it has ended"

T = TypeVar("T")


TimerFired = Callable[[Telemetry, InstanceDraft], None]
"""Reports the result of a timer's command."""


class Dispatcher:
    """Accepts commands and commits them."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        *,
        clock: Clock,
        chance: Randomness,
        catalog: ProgramCatalog,
        facts: FactSource,
        timer_fired: TimerFired,
        has_threads: bool,
    ) -> None:
        self.store = store
        self.has_threads = has_threads
        self.is_inherited = False
        """Whether this process is a forked child of the one that opened the engine."""
        belongs_here(self)
        self.shared = EngineContext(
            settings,
            clock=clock,
            chance=chance,
            programs=catalog.get,
            languages=catalog,
            submit=self._submit,
            find_key=self._find_key,
        )
        self.vocabularies = Vocabularies(catalog, clock)
        """The message types that this process and others can read."""
        self.standing = ActivePauses()
        """The active pauses that this process knows."""
        self.around = DraftContext.of(
            catalog.get, settings, self.standing, self.shared.telemetry.companions, facts=facts
        )
        self._cause = causes(str(chance.new_id(clock.now())))
        self._working: WorkerListener = NoWorkerListener()
        self._listeners: list[CommitListener] = []
        self._timer_fired = timer_fired
        self._limit = settings.unhealthy_after.total_seconds()
        asked_at = time.monotonic()
        clock.synchronise(store.now(), asked_at)
        parts = store.line()
        self._keeper = parts.keeper()
        self.watch = Watch(parts, clock, self.standing)
        look = self.watch.step
        self.walker = PausePropagator(parts.pauses(), self.standing, self.shared, look=look, released=self.hint)
        self._desk = store.line()
        self._at_desk = threading.Lock()
        self.joints = JointCommits(store, self, self._cause, settings.handler_role)
        self._is_ending = threading.Event()
        """Set when the engine stops: waits for the database end."""
        lanes = (settings.committers or store.writers) if has_threads else 1
        self.committer = CommitQueues(
            [self._lane(f"committer {each}", settings.cache_size // lanes) for each in range(1, lanes + 1)]
        )
        self._wakeups = store.wakeups(lambda _hint: None)
        self._loops: list[Loop] = []
        self._watching: Loop | None = None
        self._notifier: Loop | None = None
        self._must_notify = False
        self._has_written = False
        self._must_stop = False
        """Whether the next hint must say that handlers may have to stop."""

    def start(self) -> None:
        """Start the threads, if the engine has any."""
        if not self.has_threads:
            return
        self.watch.step()  # Pauses must be known before any work begins.
        self.committer.start()
        self._watching = self._begin("watch", self._look)
        if self._wakeups.must_send:
            self._notifier = self._begin("notifier", self._notify)

    def execute(  # noqa: PLR0913 - the parts of a command, by name
        self,
        address: Address,
        command: object,
        *,
        by: Acting,
        comment: str = "",
        receipt: ReceiptKey | None = None,
        said: object = None,
        claim: Claim | None = None,
        may_create: bool = True,
        definition_version: str = "",
        identity: InstanceId | None = None,
        parent: InstanceId | None = None,
        connection: object = None,
        view: View | None = None,
        is_unasked: bool = False,
        settled: Settled,
    ) -> None:
        """Submit a command. With `connection`, commit it now in the caller's open transaction.

        A new instance is pinned to `definition_version`, has the parent `parent`, and gets the unused UUIDv7 `identity`
        or a generated one. An address without key and instance creates a new instance. `said` is the caller's content,
        which identifies a repetition. `view` projects the instance after the command. `is_unasked` marks actions of the
        engine itself.
        """
        refusal = self.refusal()
        if refusal:
            settled(None, StoppedError(refusal))
            return
        if connection is None:
            try:
                self.store.refuse_inside()
            except ConfigurationError as error:
                settled(None, error)
                return
        if not address.key and address.instance is None:
            # An id from the beginning distinguishes the instance within a batch and identifies it after an outage.
            made = identity or InstanceId(self.shared.chance.new_id(self.shared.clock.now()))
            address = msgspec.structs.replace(address, instance=made)
        given, why = reasoned(command, comment, by.asked)
        submission = Submission(
            address=address,
            command=given,
            cause=receipted(unasked(self._cause()) if is_unasked else self._cause(), receipt),
            settled=settled,
            request=by.asked,
            stands_in=by.stands_in,
            vouched=by.vouched,
            comment=why,
            receipt=receipt,
            digest=b"" if receipt is None else digest_of(address, command if said is None else said),
            claim=claim,
            may_create=may_create,
            definition_version=definition_version,
            identity=identity,
            parent=parent,
            view=view,
            deadline=time.monotonic() + self.shared.settings.patience.total_seconds(),
        )
        if connection is None:
            self._submit(submission)
        else:
            self._carry_out_within(connection, submission)

    def new_cause(self) -> str:
        """Return a unique name for a command or an audit entry."""
        return self._cause()

    def _carry_out_within(self, connection: object, submission: Submission) -> None:
        """Commit a command in its caller's transaction.

        No listener is notified, because the changes are visible only after the caller's commit.
        """
        lost: LostRaceError | None = None
        for _ in range(_ROUNDS):
            try:
                with self.store.within(connection) as unit:
                    batch = self.transactor(self._desk.writer()).commit_inside(unit, submission)
            except LostRaceError as error:
                lost = error
            except Exception as error:  # noqa: BLE001 - the caller gets the error, and its transaction is unchanged
                submission.settled(None, error)
                return
            else:
                outdate(self.committer, batch)
                ((_, outcome, refusal),) = batch.answers  # A refused command has written nothing.
                submission.settled(outcome, refusal)
                return
        told = ConflictError(f"others were first {_ROUNDS} times in a row ({lost}): roll back, and try again")
        submission.settled(None, told)

    def transactor(self, writer: Writer) -> Committer:
        """Return the committer of a single command inside an open transaction.

        It caches nothing and hands over no effects.
        """
        return self._committing(writer, InstanceCache(0), self.around.without_lessee())

    def written_inside(self, batch: CommandBatch) -> None:
        """Notify the listeners of a commit that no lane made."""
        outdate(self.committer, batch)
        self.written(batch)

    def attach(self, working: WorkerListener) -> None:
        """Attach the worker of this process: it is notified of commits, and asked which effects it owns."""
        self._working = working

    def listen(self, listener: CommitListener) -> None:
        """Notify a part of the engine of every later commit."""
        self._listeners.append(listener)

    def lease_to(self, worker: Lessee) -> None:
        """Let commits hand effects over to this worker."""
        self.around.lessee = worker

    def lease_to_nobody(self) -> None:
        """Detach the worker that stops. Commits leave effects to other workers."""
        self.around.lessee = None

    def written(self, batch: CommandBatch) -> None:
        """Notify the listeners of a commit."""
        changes = [draft.change for draft in batch.written] if self._notifier is not None else []
        if any(map(self._stops_others, changes)):  # Evaluated before the worker of this process releases anything.
            self._must_stop = True
        if self.shared.telemetry.is_heard:
            tell_lives(self.shared.telemetry, batch)
        self._working.written(batch)
        self._has_written = True
        if not self.has_threads:
            self._announce()
        for listener in self._listeners:
            try:
                listener.committed(batch)
            except BaseException:  # noqa: BLE001 - its trouble is not that of those who wait for their answers
                _log.exception("commit_listener_failed")
        for draft in batch.written:
            for claim in draft.change.consumed:
                if type(claim) is TimerClaim:
                    self._timer_fired(self.shared.telemetry, draft)
                    break
        if self._notifier is not None and (self._must_stop or any(map(_concerns_others, changes))):
            self._must_notify = True
            self._notifier.wake()

    def accept(self, message: StoredMessage, reply: Reply[int]) -> None:
        """Queue a command for the inbox. Messages that arrive together are stored together."""
        refusal = self.refusal()
        if refusal:
            reply.set_error(StoppedError(refusal))
            return
        try:
            self.store.refuse_inside()
        except ConfigurationError as error:
            reply.set_error(error)
            return
        self._has_written = True
        if not self.has_threads:
            self._announce()
        deadline = time.monotonic() + self.shared.settings.patience.total_seconds()
        self.committer.accept(InboxSubmission(message=message, reply=reply, deadline=deadline))

    def accept_within(self, connection: object, message: StoredMessage) -> int:
        """Store a command in the inbox within the caller's open transaction, and return its number."""
        if refusal := self.refusal():
            raise StoppedError(refusal)
        return self.store.accept_within(connection, message, self.shared.clock.now())

    def operate(self, work: Callable[[StoreParts], T], *, may_repeat: bool = False, is_patient: bool = True) -> T:
        """Run an operator's action on the maintenance connection, one action at a time.

        An unavailable database is waited for as for a command, unless `is_patient` is False. An action whose outcome is
        unknown is repeated only if `may_repeat` allows it.
        """
        self.check_process()
        if told := self.watch.problem():
            raise StoppedError(told)
        if self.store.is_lent:  # The holder of the operator lock may be waiting for this caller.
            return work(self._desk)

        def at_desk() -> T:
            with self._at_desk:
                return work(self._desk)

        return self.patiently(at_desk, may_repeat=may_repeat, is_patient=is_patient)

    def survey(self, question: Callable[[StoreParts], T]) -> T:
        """Run an operator's query on a consistent snapshot of a read connection.

        It blocks no writers, and waits for an unavailable database.
        """
        self.check_process()

        def look() -> T:
            with self.store.survey() as parts:
                return question(parts)

        return self.patiently(look, may_repeat=True)

    def patiently(self, work: Callable[[], T], *, may_repeat: bool, is_patient: bool = True) -> T:
        """Retry while the database is unavailable, as long as a command would wait. See `operate`."""
        patience = self.shared.settings.patience.total_seconds() if is_patient and self.has_threads else 0.0
        deadline, pause = time.monotonic() + patience, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return work()
            except StoreUnavailableError as error:
                if (error.may_be_done and not may_repeat) or time.monotonic() >= deadline:
                    raise
                _log.warning("database_unavailable retry_in=%.2f: %s", pause, error)
                if self._is_ending.wait(min(pause, max(0.0, deadline - time.monotonic()))):
                    raise
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def hint(self) -> None:
        """Announce that there may be work."""
        self._working.look()
        if self._notifier is not None:
            self._must_notify = True
            self._notifier.wake()

    def look_around(self) -> None:
        """Check for changed pauses now, on the watching thread."""
        if self._watching is not None:
            self._watching.wake()

    def follow_pauses(self) -> None:
        """Learn of a begun or ended pause in this process now, and notify the others."""
        self.watch.tell_pauses(self.operate(lambda parts: parts.pauses().standing(), may_repeat=True))
        self._must_stop = True
        self.hint()
        self.look_around()

    def stop(self, timeout: float) -> None:
        """Commit the queued work, then end. Errors on the way do not stop the shutdown."""
        turns = IsolatedTasks()
        self._is_ending.set()
        turns.take(lambda: self.committer.stop(timeout), None)
        for loop in self._loops:
            loop.stop()
        for loop in self._loops:
            turns.take(partial(loop.join, 1.0), None)
        turns.take(self._wakeups.close, None)
        turns.end()

    def is_here(self) -> bool:
        """Whether the current thread belongs to the dispatcher."""
        return self.committer.is_here() or any(loop.is_here() for loop in self._loops)

    @property
    def maintenance(self) -> Maintenance:
        """The maintenance mode that this process knows."""
        return self.watch.mode

    @property
    def has_worker(self) -> bool:
        """Whether a worker of this process accepts work."""
        return self.around.lessee is not None

    @property
    def loops(self) -> list[Loop]:
        """The loops that run with or without a worker."""
        return list(self._loops)

    def parts(self) -> list[Watched]:
        """The parts with a health check."""
        return [*(lane.committer for lane in self.committer.lanes), *self._loops, self.watch]

    def _announce(self) -> None:
        """Announce the message types that this process can read. With threads the watching thread does it."""
        if self.vocabularies.is_new and not self.store.is_lent:
            self.vocabularies.announce(self._keeper)

    def _look(self) -> float:
        """Run one round of watching and pause propagation."""
        until_next = self.watch.step()
        if self._has_written:  # A process that only reads announces nothing, and may lack the right to.
            self.vocabularies.announce(self._keeper)
        pause = self.walker.step()
        return until_next if pause is None else pause

    def _begin(self, name: str, step: Step) -> Loop:
        loop = Loop(name, step, self.shared.telemetry, limit=self._limit)
        self._loops.append(loop)
        loop.start()
        return loop

    def check_process(self) -> None:
        """Raise StoppedError in a forked child of the process that owns the engine."""
        if self.is_inherited:
            raise StoppedError(INHERITED)

    def refusal(self) -> str:
        """Return why commands are currently refused, or an empty text.

        Without a watching thread, the caller checks periodically.
        """
        if self.is_inherited:
            return INHERITED
        if not self.has_threads:
            self.watch.look_again()
        return self.watch.problem() or (_REFUSED if self.watch.mode == "refuse" else "")

    def _stops_others(self, change: InstanceChange) -> bool:
        """Return whether another process may work on an effect that is withdrawn or recalled."""
        if not change.withdrawn and not change.recalls:
            return False
        numbers = [*change.withdrawn, *(recall.number for recall in change.recalls if recall.stop)]
        return any(not self._working.holds(key_of(change.header.id, number)) for number in numbers)

    def _submit(self, submission: Submission) -> None:
        self.committer.submit(submission)

    def _find_key(self, tenant: str, instance: InstanceId) -> str:
        """Return the business key of an instance, from the cache if possible.

        It usually is cached while an effect runs.
        """
        known = self.committer.header(instance) or next(iter(self.store.reader(tenant).headers([instance])), None)
        return "" if known is None else known.key

    def _committing(self, writer: Writer, cache: InstanceCache, around: DraftContext) -> Committer:
        return Committer(writer, around, clock=self.shared.clock, chance=self.shared.chance, cache=cache)

    def _lane(self, name: str, cache_size: int) -> Lane:
        """Create a committer with its own connection."""
        writer, cache, limit = self.store.writer(), InstanceCache(cache_size), self.shared.settings.batch_limit
        committer = CommitQueue(
            self._committing(writer, cache, self.around),
            InboxWriter(writer, self.shared.clock, batch_limit=limit, hint=self.hint),
            self.shared.telemetry,
            name=name,
            limit=self._limit,
            batch_limit=limit,
            written=self.written,
            recovered=partial(self._recovered, writer),
        )
        return Lane(committer, cache)

    def _recovered(self, writer: Writer) -> None:
        """Recover after an outage. Free effects whose claim or commit got no answer.

        The worker is asked for its effects first, and the committer for its queue second, because effects pass from one
        to the other.
        """
        lessee = self.around.lessee
        if lessee is None:
            return
        with self._working.claiming(), self.committer.at_rest():
            held = self._working.held()
            ending = [claim for claim in self.committer.claims() if isinstance(claim, EffectClaim)]
            writer.disown(lessee.identity, [*held, *ending])

    def _notify(self) -> float:
        if self._must_notify:
            self._must_notify = False
            must_stop, self._must_stop = self._must_stop, False
            try:
                self._wakeups.send(STOP if must_stop else "")
            except BaseException:
                self._must_notify, self._must_stop = True, must_stop or self._must_stop
                raise
        return _LONG_SECONDS


def _concerns_others(change: InstanceChange) -> bool:
    """Return whether the change contains work for another process."""
    if change.messages or change.timers or change.recalls:
        return True
    for effect in change.effects:  # noqa: SIM110 - every step of a saga comes here, and a generator would cost more than the loop itself
        if effect.owner is None:
            return True
    return False
