"""The command side of an engine: everything that happens to an instance comes through here, with or without a worker.

It owns the committer, and tells whoever needs to know what was written.
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
"""The hint that somebody may have to stop what he does; every hint also says that there may be work."""

_LONG_SECONDS = 60.0
_ROUNDS = 8
"""How often a race may be lost in a row before the caller is told."""
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.05, 2.0
_REFUSED = "maintenance mode refuses commands; try again when it has ended"

T = TypeVar("T")


TimerFired = Callable[[Telemetry, InstanceDraft], None]
"""Reports what the command of a timer led to."""


class Dispatcher:
    """Takes commands and commits them."""

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
        """What this process can read, and what others can."""
        self.standing = ActivePauses()
        """The pauses that this process knows of."""
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
        """Set when the engine stops: nobody waits for the database any longer."""
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
        """Whether the next hint has to say that somebody may have to stop."""

    def start(self) -> None:
        """Work on threads from now on, if it is to have any."""
        if not self.has_threads:
            return
        self.watch.step()  # Before anything is begun that is paused.
        self.committer.start()
        self._watching = self._begin("watch", self._look)
        if self._wakeups.must_send:
            self._notifier = self._begin("notifier", self._notify)

    def execute(  # noqa: PLR0913 - all that can be said about a command, by name
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
        """Have a command carried out; with `connection`, here and now, in the transaction that its owner has open and will commit.

        A new instance is pinned to `definition_version`, has `parent` and the id `identity`, a UUIDv7 that none has, or one that is made
        for it. An address without key and instance names a new one. `said` is what its caller said, by which a repetition is told. `view` sees what
        the command leaves. `is_unasked` marks what the engine does by itself.
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
            # With an id from the beginning it is told apart from its neighbours in a batch, and found again after an outage.
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
        """Return a name that nothing else has, for a command or an audit entry."""
        return self._cause()

    def _carry_out_within(self, connection: object, submission: Submission) -> None:
        """Commit a command in its caller's transaction. Nobody is told of what it wrote: it becomes true when the caller commits."""
        lost: LostRaceError | None = None
        for _ in range(_ROUNDS):
            try:
                with self.store.within(connection) as unit:
                    batch = self.transactor(self._desk.writer()).commit_inside(unit, submission)
            except LostRaceError as error:
                lost = error
            except Exception as error:  # noqa: BLE001 - the caller is told, and his transaction is as it was
                submission.settled(None, error)
                return
            else:
                outdate(self.committer, batch)
                ((_, outcome, refusal),) = batch.answers  # One that was refused has written nothing.
                submission.settled(outcome, refusal)
                return
        told = ConflictError(f"others were first {_ROUNDS} times in a row ({lost}): roll back, and try again")
        submission.settled(None, told)

    def transactor(self, writer: Writer) -> Committer:
        """What commits one command inside an open transaction; it remembers nothing and hands nothing over."""
        return self._committing(writer, InstanceCache(0), self.around.without_lessee())

    def written_inside(self, batch: CommandBatch) -> None:
        """Pass on what was written by a commit that no lane made."""
        outdate(self.committer, batch)
        self.written(batch)

    def attach(self, working: WorkerListener) -> None:
        """Tell the worker of this process what is written, and ask it what it has in hand."""
        self._working = working

    def listen(self, listener: CommitListener) -> None:
        """Tell a part of the engine of every commit from now on."""
        self._listeners.append(listener)

    def lease_to(self, worker: Lessee) -> None:
        """Let commits hand effects over to this worker."""
        self.around.lessee = worker

    def lease_to_nobody(self) -> None:
        """The worker stops: commits leave effects to others."""
        self.around.lessee = None

    def written(self, batch: CommandBatch) -> None:
        """Pass on what was written."""
        changes = [draft.change for draft in batch.written] if self._notifier is not None else []
        if any(map(self._stops_others, changes)):  # Asked before the worker of this process lets go of anything.
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
                _log.exception("commit_listener_failed listener=%s", type(listener).__name__)
        for draft in batch.written:
            for claim in draft.change.consumed:
                if type(claim) is TimerClaim:
                    self._timer_fired(self.shared.telemetry, draft)
                    break
        if self._notifier is not None and (self._must_stop or any(map(_concerns_others, changes))):
            self._must_notify = True
            self._notifier.wake()

    def accept(self, message: StoredMessage, reply: Reply[int]) -> None:
        """Have a command put into the inbox, together with others that come at the same time."""
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
        """Put a command into the inbox in the transaction that the caller has open; its number."""
        if refusal := self.refusal():
            raise StoppedError(refusal)
        return self.store.accept_within(connection, message, self.shared.clock.now())

    def operate(self, work: Callable[[StoreParts], T], *, may_repeat: bool = False, is_patient: bool = True) -> T:
        """Do an operator's work, one at a time, on a connection that is kept for it.

        A database that is away is waited for as long as a command waits for it, unless the caller is not patient. What may have been
        done is done again only where that does no harm.
        """
        self.check_process()
        if told := self.watch.problem():
            raise StoppedError(told)
        if self.store.is_lent:  # Whoever is at the desk may be waiting for the caller.
            return work(self._desk)

        def at_desk() -> T:
            with self._at_desk:
                return work(self._desk)

        return self.patiently(at_desk, may_repeat=may_repeat, is_patient=is_patient)

    def survey(self, question: Callable[[StoreParts], T]) -> T:
        """Have an operator's question answered, as of one moment, on a connection for reading: it holds nobody up; a database that is away is waited for."""
        self.check_process()

        def look() -> T:
            with self.store.survey() as parts:
                return question(parts)

        return self.patiently(look, may_repeat=True)

    def patiently(self, work: Callable[[], T], *, may_repeat: bool, is_patient: bool = True) -> T:
        """Wait for a database that is away as long as a command waits for it; see `operate`."""
        patience = self.shared.settings.patience.total_seconds() if is_patient and self.has_threads else 0.0
        deadline, pause = time.monotonic() + patience, _FIRST_PAUSE_SECONDS
        while True:
            try:
                return work()
            except StoreUnavailableError as error:
                if (error.may_be_done and not may_repeat) or time.monotonic() >= deadline:
                    raise
                _log.warning("the database is away (%s); trying again in %.2f s", error, pause)
                if self._is_ending.wait(min(pause, max(0.0, deadline - time.monotonic()))):
                    raise
                pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def hint(self) -> None:
        """There is work that nobody was told of."""
        self._working.look()
        if self._notifier is not None:
            self._must_notify = True
            self._notifier.wake()

    def look_around(self) -> None:
        """Somebody may have paused or resumed something: learn of it at once, where a thread watches."""
        if self._watching is not None:
            self._watching.wake()

    def follow_pauses(self) -> None:
        """A pause has begun or ended: have this process know of it now, and the others soon."""
        self.watch.tell_pauses(self.operate(lambda parts: parts.pauses().standing(), may_repeat=True))
        self._must_stop = True
        self.hint()
        self.look_around()

    def stop(self, timeout: float) -> None:
        """Commit what is waiting, then end; all of it, whatever goes wrong on the way."""
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
        """Whether the present thread is one of the service's own."""
        return self.committer.is_here() or any(loop.is_here() for loop in self._loops)

    @property
    def maintenance(self) -> Maintenance:
        """The maintenance mode, as far as this process knows."""
        return self.watch.mode

    @property
    def has_worker(self) -> bool:
        """Whether a worker of this process takes work."""
        return self.around.lessee is not None

    @property
    def loops(self) -> list[Loop]:
        """The loops that run with or without a worker."""
        return list(self._loops)

    def parts(self) -> list[Watched]:
        """What can stop."""
        return [*(lane.committer for lane in self.committer.lanes), *self._loops, self.watch]

    def _announce(self) -> None:
        """Have it known what this process can read, here and now; with threads the one that watches does it."""
        if self.vocabularies.is_new and not self.store.is_lent:
            self.vocabularies.announce(self._keeper)

    def _look(self) -> float:
        """Watch, and walk for the pauses that there are."""
        until_next = self.watch.step()
        if self._has_written:  # Whoever only looks has nothing to say, and may have no right to.
            self.vocabularies.announce(self._keeper)
        pause = self.walker.step()
        return until_next if pause is None else pause

    def _begin(self, name: str, step: Step) -> Loop:
        loop = Loop(name, step, self.shared.telemetry, limit=self._limit)
        self._loops.append(loop)
        loop.start()
        return loop

    def check_process(self) -> None:
        """StoppedError in a forked child of the process that the engine belongs to."""
        if self.is_inherited:
            raise StoppedError(INHERITED)

    def refusal(self) -> str:
        """Why commands are refused just now, if they are. Without a thread that watches, whoever asks looks, now and then."""
        if self.is_inherited:
            return INHERITED
        if not self.has_threads:
            self.watch.look_again()
        return self.watch.problem() or (_REFUSED if self.watch.mode == "refuse" else "")

    def _stops_others(self, change: InstanceChange) -> bool:
        """Whether another process may be at work on something that is not wanted any more, or has to stop."""
        if not change.withdrawn and not change.recalls:
            return False
        numbers = [*change.withdrawn, *(recall.number for recall in change.recalls if recall.stop)]
        return any(not self._working.holds(key_of(change.header.id, number)) for number in numbers)

    def _submit(self, submission: Submission) -> None:
        self.committer.submit(submission)

    def _find_key(self, tenant: str, instance: InstanceId) -> str:
        """From memory where the instance is remembered, which it mostly is while an effect of it is in hand."""
        known = self.committer.header(instance) or next(iter(self.store.reader(tenant).headers([instance])), None)
        return "" if known is None else known.key

    def _committing(self, writer: Writer, cache: InstanceCache, around: DraftContext) -> Committer:
        return Committer(writer, around, clock=self.shared.clock, chance=self.shared.chance, cache=cache)

    def _lane(self, name: str, cache_size: int) -> Lane:
        """A committer with a connection of its own."""
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
        """The database is back. The answer to a claim or to a commit that handed effects over may be lost: free them.

        What is in hand is asked for first, then what was handed in to the committer: an effect goes from one to the other.
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
    """Whether there is work in it that another process may have to do."""
    if change.messages or change.timers or change.recalls:
        return True
    for effect in change.effects:  # noqa: SIM110 - every step of a saga comes here, and a generator would cost more than what it looks at
        if effect.owner is None:
            return True
    return False
