"""A worker with its loops. Any number of processes may run one on the same database."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from datetime import datetime, timedelta
from functools import partial

from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.submission import CommandOutcome, Submission
from standfast.engine.commit.work_rows import result_of
from standfast.engine.common.gc_tuning import collect_after
from standfast.engine.common.handlers import Fail
from standfast.engine.common.health import Watched
from standfast.engine.common.operator_watch import WorkSwitch
from standfast.engine.common.pauses import holds_call
from standfast.engine.common.work_errors import is_stranded, outcome_of
from standfast.engine.concurrency.loop import Chores, IsolatedTasks, Loop
from standfast.engine.dispatcher import STOP, Dispatcher
from standfast.engine.loops.due_work import DueWork
from standfast.engine.loops.housekeeping import Housekeeping, WorkflowDuties
from standfast.engine.loops.projections import Projecting
from standfast.engine.worker.call import Ends, Execution, Key, key_of
from standfast.engine.worker.claimer import Claimer
from standfast.engine.worker.failures import is_passing
from standfast.engine.worker.heartbeat import Heartbeat
from standfast.engine.worker.pause_filter import step_of
from standfast.engine.worker.transactions import Transactions
from standfast.engine.worker.worker import Worker
from standfast.errors import StandfastError
from standfast.kernel.ids import WorkerId, effect_key
from standfast.store.records.instances import (
    Address,
    EffectClaim,
    InstanceChange,
    Maintenance,
    StoredEffect,
    Wanted,
)

_log = logging.getLogger("standfast")

_STEP_SECONDS = 2.0


class WorkerProcess:
    """Runs effects, timers, messages and projections until it is stopped."""

    def __init__(self, service: Dispatcher, duties: WorkflowDuties) -> None:
        store, shared = service.store, service.shared
        self._service = service
        self._shared = shared
        self.identity = WorkerId(shared.chance.new_id(shared.clock.now()))
        transactions = Transactions(
            store.line, service.transactor, service.written_inside, shared, take=service.committer.take
        )
        ends = Ends(
            returned=self._returned, failed=self._failed, given_back=self._given_back, transact=transactions.run
        )
        self._switch = WorkSwitch()
        failures = Chores("failures of effects", limit=shared.settings.unhealthy_after.total_seconds())
        self.worker = Worker(
            self.identity, ends, shared, switch=self._switch, is_barred=self._is_barred, slot_freed=failures.wake
        )
        self.intake = Claimer(
            store.line(),
            self.worker,
            shared,
            failures,
            standing=service.standing,
            parked=self._expect,
            claim_lost=lambda: service.committer.owe_recovery(self.intake.see),
        )
        self.due_work = DueWork(
            store.line(),
            shared,
            standing=service.standing,
            vocabularies=service.vocabularies,
            switch=self._switch,
            effects_ready=self.intake.chores.wake,
        )
        name = shared.settings.worker_name or f"{socket.gethostname()}:{os.getpid()}"
        ready = self.intake.chores.wake
        self.heartbeat = Heartbeat(
            store.workers(), self.worker, shared, name=name, watch=service.watch, effects_ready=ready
        )
        self.projecting = Projecting(store.feed, shared, self._switch)
        self.housekeeping = Housekeeping(
            store.line(),
            shared,
            service.vocabularies,
            self.worker.identity,
            duties=duties,
            is_outdated=lambda: bool(service.watch.problem()),
        )
        self._wakeups = store.wakeups(self._noticed)
        self._loops: list[Loop] = []
        self._is_driven = False
        self._limit = shared.settings.unhealthy_after.total_seconds()

    def start(self) -> None:
        """Start the threads."""
        if self._shared.settings.collect_after is not None:
            collect_after(self._shared.settings.collect_after)
        steps = {
            "heartbeat": self.heartbeat.step,
            "intake": self.intake.step,
            "due work": self.due_work.step,
            "projections": self.projecting.step,
            "housekeeping": self.housekeeping.step,
            "listener": self._listen,
            "calls": self.worker.step,
        }
        hints = {
            "heartbeat": self.heartbeat.hint,
            "intake": self.intake.chores.hint,
            "due work": self.due_work.chores.hint,
            "projections": self.projecting.chores.hint,
        }
        limit, lease = self._limit, self._shared.settings.lease.total_seconds()
        telemetry = self._shared.telemetry
        # A heartbeat thread that is blocked for the length of the lease has lost all work.
        limits = dict.fromkeys(steps, limit) | {"heartbeat": min(limit, lease)}
        loops = [Loop(each, steps[each], telemetry, limit=limits[each], hint=hints.get(each)) for each in steps]
        self._attach()
        # The worker registers before it takes work, so that its first effects are not released as orphans. Without a
        # database nothing has begun.
        self.heartbeat.step()
        self._loops = loops
        self.worker.start()
        self._service.lease_to(self.worker)
        self.projecting.start()
        for loop in self._loops:
            loop.start()

    def stop(self, timeout: timedelta) -> None:
        """Accept nothing new, let running handlers finish, and release the rest.

        Errors on the way do not stop the shutdown.
        """
        self._service.lease_to_nobody()
        hearts, others, turns = self._loops[:1], self._loops[1:], IsolatedTasks()
        for loop in others:
            loop.stop()
        turns.take(self._wakeups.close, None)
        none: list[EffectClaim] = []
        unbegun = turns.take(lambda: self.worker.stop(timeout.total_seconds()), none)
        if not turns.take(lambda: _all_ended(others), otherwise=False):
            turns.take(self._service.store.take_back, None)  # A projection may hang while it holds the only writer.
        turns.take(self.projecting.stop, None)
        for heart in hearts:  # The heartbeat continues while handlers run.
            heart.stop()
        turns.take(lambda: _all_ended(hearts), otherwise=False)
        if unbegun:
            release = partial(self._service.operate, lambda parts: parts.effects().release(unbegun), is_patient=False)
            turns.take(lambda: _politely(release), None)
        turns.end()

    @property
    def is_listed(self) -> bool:
        """Whether other processes may consider this worker alive."""
        return self._is_driven or self.is_begun

    def retire(self) -> None:
        """Deregister the worker after its last commit.

        Effects of calls that have not returned are released and count as attempts.
        """
        # A heartbeat thread that hangs in a call is using its connection.
        is_in_use = any(heart.is_alive for heart in self._loops[:1])
        workers = self._service.store.workers() if is_in_use else self.heartbeat.workers
        _politely(lambda: workers.retire(self.identity))

    @property
    def is_begun(self) -> bool:
        """Whether there is anything to stop, because the worker may have taken work."""
        return bool(self._loops)

    @property
    def loops(self) -> list[Loop]:
        """The running loops."""
        return list(self._loops)

    def is_here(self) -> bool:
        """Whether the current thread belongs to the worker."""
        return self.worker.is_here() or any(loop.is_here() for loop in self._loops)

    def parts(self) -> list[Watched]:
        """The parts with a health check."""
        if not self._loops:
            return []
        chores = (self.intake.chores, self.due_work.chores)
        return [*self._loops, *chores, *self.projecting.parts(), *self.worker.parts()]

    # -- without threads

    def attach(self) -> None:
        """Start without threads. `drain` does all work."""
        self._is_driven = True
        self._attach()
        self.worker.open()

    def drain(self) -> int:
        """Do all due work and its follow-up work until none is left. Return the number of items."""
        done = 0
        while True:
            self.heartbeat.step()
            self._service.watch.look_again()
            self._service.walker.drain()
            self.housekeeping.catch_up()  # First of all, so that no later step finds expired data.
            count = self._work_off()
            if not count:
                return done
            done += count

    def _work_off(self) -> int:
        """Do the due work and its follow-up work until none is left. Return the number of items."""
        done = 0
        while True:
            count = self.intake.chores.drain() + self.due_work.chores.drain()
            fired, _ = self.due_work.fire()
            unparked, _ = self.due_work.unpark()
            count += fired + unparked + self.due_work.deliver()
            count += self.execute_next() or self.projecting.drain()
            if not count:
                return done
            done += count
            self.heartbeat.step()

    def execute_next(self) -> int:
        """Claim one effect and call its handler on this thread. Return 0 if none is due."""
        wanted = [Wanted(name, 1) for name in self._shared.handlers.names()]
        with self.worker.expecting():
            for effect in self.intake.claim(wanted, 1) if wanted else ():
                if not self.intake.is_wanted(effect):
                    return 1
                if not self.worker.reserve(effect.handler):
                    self.intake.give_back(effect)
                    return 0
                self.worker.run_here(effect)
                return 1
        return 0

    def next_due(self) -> datetime | None:
        """Return when the next work is due: a timer, parked work, a missing-handler report or the lease of a silent worker.

        None without any.
        """
        _, due_at = self.due_work.fire()
        _, wake_at = self.due_work.unpark()
        known = (
            due_at,
            wake_at,
            self.due_work.next_message(),
            self.housekeeping.missing.next_at(),
            self.housekeeping.unread.next_at(),
            self.housekeeping.resuming.next_at(),
            self.heartbeat.next_end(),
            self._service.walker.next_at(),
        )
        return min((at for at in known if at is not None), default=None)

    def _expect(self, until: datetime) -> None:
        self.due_work.expect(until)

    # -- results of calls

    def _attach(self) -> None:
        self._service.attach(self)
        self._service.watch.when_changed(self._maintained)

    def look(self) -> None:
        """Check for work."""
        self._noticed("")

    def held(self) -> list[EffectClaim]:
        """Return the claims that the worker owns, including failed calls that are not handled yet."""
        return [*self.worker.held(), *self.intake.failing()]

    def holds(self, key: Key) -> bool:
        """Return whether the worker owns an effect."""
        return self.worker.holds(key)

    def claiming(self) -> AbstractContextManager[object]:
        """Context in which no effect passes from the database to the worker."""
        return self.intake.claiming

    def _is_barred(self, effect: StoredEffect) -> bool:
        """Return whether a pause covers an effect, as far as this process knows without the database."""
        standing = self._service.standing
        header = self._service.committer.header(effect.instance) if standing.pauses else None
        return header is not None and holds_call(standing.over(header), step_of(self._shared.languages, effect))

    def _maintained(self, mode: Maintenance) -> None:
        """In maintenance nothing begins, not even what a commit could hand over; afterwards all of it is looked for."""
        self._switch.is_off = bool(mode)
        if not mode:
            self._noticed("")

    def written(self, batch: CommandBatch) -> None:
        """Run the effects that a commit handed over, cancel withdrawn ones, schedule its timers, and wake the loops concerned."""
        if not batch.written:
            return
        effects = [effect for draft in batch.written for effect in draft.change.effects]
        handed_over = [effect for effect in effects if effect.owner is not None]
        if handed_over:
            self.worker.run(handed_over)
        if len(handed_over) < len(effects):
            self._left_over([effect for effect in effects if effect.owner is None])
        for draft in batch.written:
            self._minded(draft.change)
        self.projecting.look()

    def _left_over(self, effects: list[StoredEffect]) -> None:
        """Handle effects that were not handed over: they wait for their time or for a slot."""
        for effect in effects:
            if effect.parked_until is not None:
                self.due_work.expect(effect.parked_until)
        if any(effect.parked_until is None and effect.handler in self._shared.handlers for effect in effects):
            self.intake.chores.wake()

    def _minded(self, change: InstanceChange) -> None:
        if change.withdrawn:
            self.worker.cancel(key_of(change.header.id, number) for number in change.withdrawn)
        if change.recalls:
            self.worker.interrupt(key_of(change.header.id, recall.number) for recall in change.recalls if recall.stop)
            self.due_work.look()
        for timer in change.timers:
            self.due_work.expect(timer.due_at)
        if change.messages:
            self.due_work.look()

    def _returned(self, execution: Execution, result: object) -> None:
        """Handle a handler's result: a command, or None, which ends the effect."""
        if result is None:
            self._service.committer.finish(execution.claim)
            return
        effect = execution.effect
        try:
            address, command = result_of(effect, result, execution.program, execution.follow_up.partition)
        except (StandfastError, Fail) as error:
            self._failed(execution, error)
            return
        self._hand_in(execution, address, command, may_wait=self.worker.is_alone(execution))

    def _hand_in(
        self, execution: Execution, address: Address, command: object, tries: int = 0, *, may_wait: bool = False
    ) -> None:
        """Submit the result of a call, which was refused `tries` times before."""
        effect = execution.effect

        def settled(_outcome: CommandOutcome | None, error: BaseException | None) -> None:
            if error is None:
                return
            if is_stranded(error):
                self.intake.hand_on(effect, address, command, error)
            elif is_passing(error):
                again = partial(self._hand_in, execution, address, command, tries + 1)
                self.intake.hand_in_again(effect, again, error, tries=tries + 1)
            else:
                self._failed(execution, outcome_of(error))

        self._service.committer.submit(
            Submission(
                address=address,
                command=command,
                cause=effect_key(effect.instance, effect.number),
                request=execution.follow_up,
                claim=execution.claim,
                taken_at=effect.taken_at,
                may_create=True,
                settled=settled,
            ),
            may_wait=may_wait,
        )

    def _failed(self, execution: Execution, error: BaseException) -> None:
        self.intake.report(execution.effect, error, may_retry=not execution.is_stopping)

    def _given_back(self, execution: Execution) -> None:
        self.intake.give_back(execution.effect)

    def _noticed(self, hint: str) -> None:
        if hint == STOP:
            self._service.look_around()
            if self.worker.is_busy:
                self.heartbeat.wake()
        self.intake.chores.wake()
        self.due_work.look()
        self.projecting.look()

    def _listen(self) -> float:
        self._wakeups.listen(_LISTEN_SECONDS)
        return 0.0


_LISTEN_SECONDS = 0.25


def _all_ended(loops: Sequence[Loop]) -> bool:
    """Wait briefly for the last rounds of loops. Return whether all have ended."""
    deadline = time.monotonic() + _STEP_SECONDS
    for loop in loops:
        loop.join(max(0.0, deadline - time.monotonic()))
    return not any(loop.is_alive for loop in loops)


def _politely(farewell: Callable[[], object]) -> None:
    """Run the deregistration with a time limit. If it fails, other processes notice when the lease expires."""

    def say() -> None:
        try:
            farewell()
        except Exception as error:  # noqa: BLE001 - the worker ends in any case
            _log.warning("worker_deregistration_failed: %s", error)

    thread = threading.Thread(target=say, name="standfast-farewell", daemon=True)
    thread.start()
    thread.join(_STEP_SECONDS)
    if thread.is_alive():
        _log.warning("worker_deregistration_failed: the database did not answer within %.1f s", _STEP_SECONDS)
