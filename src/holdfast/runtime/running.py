"""The working side of an engine: a worker with its loops, which may run in any number of processes on one database."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial

from holdfast.errors import HoldfastError, StoreError
from holdfast.kernel.ids import WorkerId, effect_key
from holdfast.runtime.calling import Ends, Execution, key_of
from holdfast.runtime.clockwork import Clockwork
from holdfast.runtime.deciding import Batch
from holdfast.runtime.fetching import Fetching
from holdfast.runtime.health import Watched
from holdfast.runtime.heart import Heart
from holdfast.runtime.housekeeping import Housekeeping
from holdfast.runtime.issuing import result_of
from holdfast.runtime.loops import Loop
from holdfast.runtime.projecting import Projecting
from holdfast.runtime.service import STOP, Service
from holdfast.runtime.submissions import Outcome, Submission
from holdfast.runtime.transacting import Transacting
from holdfast.runtime.unreadable import is_unreadable
from holdfast.runtime.worker import Worker
from holdfast.store.shapes import Address, Change, StoredEffect, Wanted

_log = logging.getLogger("holdfast")

_STEP_SECONDS = 2.0


class Runtime:
    """Runs effects, timers, messages and projections until it is stopped."""

    def __init__(self, service: Service) -> None:
        store, shared = service.store, service.shared
        self._service = service
        self._shared = shared
        self.identity = WorkerId(shared.chance.new_id(shared.clock.now()))
        transacting = Transacting(store.writer, service.transactor, service.written, shared)
        ends = Ends(returned=self._returned, failed=self._failed, given_back=self._given_back, transact=transacting.run)
        self.worker = Worker(self.identity, ends, shared)
        self.fetching = Fetching(store.line(), self.worker, shared)
        self.clockwork = Clockwork(store.line(), shared, effects_ready=self.fetching.chores.wake_loop)
        name = shared.settings.worker_name or f"{socket.gethostname()}:{os.getpid()}"
        self.heart = Heart(
            store.workers(), self.worker, shared, name=name, effects_ready=self.fetching.chores.wake_loop
        )
        self.projecting = Projecting(store.feed, shared)
        self.housekeeping = Housekeeping(store.line(), shared)
        self._wakeups = store.wakeups(self._noticed)
        self._loops: list[Loop] = []
        self._limit = shared.settings.unhealthy_after.total_seconds()

    def start(self) -> None:
        """Begin to work, on threads."""
        steps = {
            "heart": self.heart.step,
            "fetching": self.fetching.step,
            "clockwork": self.clockwork.step,
            "projections": self.projecting.step,
            "housekeeping": self.housekeeping.step,
            "listener": self._listen,
            "calls": self.worker.step,
        }
        limit, lease = self._limit, self._shared.settings.lease.total_seconds()
        loops = {
            # A heart that stands still for as long as the lease has lost all work.
            name: Loop(name, step, self._shared.telemetry, limit=min(limit, lease) if name == "heart" else limit)
            for name, step in steps.items()
        }
        self.heart.wake = loops["heart"].wake
        self.fetching.chores.wake = loops["fetching"].wake
        self.clockwork.chores.wake = loops["clockwork"].wake
        self.projecting.chores.wake = loops["projections"].wake
        self._attach()
        self.heart.step()  # Nobody may take the first effects for orphans; if there is no database, nothing has begun.
        self.worker.start(loops["fetching"].wake)
        self._service.lease_to(self.identity, self.worker.reserve, self.worker.release)
        self._loops = list(loops.values())
        self.projecting.start()
        for loop in self._loops:
            loop.start()

    def stop(self, timeout: timedelta) -> None:
        """Take nothing new, let running handlers finish, give back the rest."""
        self._service.lease_to_nobody()
        seconds = timeout.total_seconds()
        heart, others = self._loops[0], self._loops[1:]
        for loop in others:
            loop.stop()
        self._wakeups.close()
        abandoned = self.worker.stop(seconds)
        for loop in others:
            loop.join(_STEP_SECONDS)
        self.projecting.stop()
        heart.stop()
        heart.join(_STEP_SECONDS)
        if abandoned:
            _politely(lambda: self._service.operate(lambda parts: parts.effects().release(abandoned)))

    def retire(self) -> None:
        """Leave the list of the living, once the last result is committed."""
        _politely(self.heart.stop)

    @property
    def loops(self) -> list[Loop]:
        """The loops, once they run."""
        return list(self._loops)

    def parts(self) -> list[Watched]:
        """What can stop."""
        if not self._loops:
            return []
        return [*self._loops, self.fetching.chores, self.clockwork.chores, *self.worker.parts()]

    # -- without threads

    def attach(self) -> None:
        """Work without threads: `drain` does it all."""
        self._attach()
        self.worker.open()

    def drain(self) -> int:
        """Do everything that is due now, and what follows from it, until nothing is left; how many things were done."""
        done = 0
        while True:
            self.heart.step()
            count = self.fetching.chores.drain() + self.clockwork.chores.drain()
            fired, _ = self.clockwork.fire()
            unparked, _ = self.clockwork.unpark()
            count += fired + unparked + self.clockwork.deliver()
            count += self.execute_next() or self.projecting.drain()
            if not count:
                return done
            done += count

    def execute_next(self) -> int:
        """Claim one effect and call its handler here; 0 if none is due."""
        wanted = [Wanted(name, 1) for name in self._shared.handlers.names()]
        with self.worker.expecting():
            for effect in self.fetching.claim(wanted, 1) if wanted else ():
                if not self.fetching.is_wanted(effect):
                    return 1
                if not self.worker.reserve(effect.handler):
                    self.fetching.give_back(effect)
                    return 0
                self.worker.run_here(effect)
                return 1
        return 0

    def next_due(self) -> datetime | None:
        """When the next timer, parked effect or failed message comes due; None if there is none."""
        _, due_at = self.clockwork.fire()
        _, wake_at = self.clockwork.unpark()
        known = (due_at, wake_at, self.clockwork.next_message())
        return min((at for at in known if at is not None), default=None)

    # -- what comes back

    def _attach(self) -> None:
        self._service.on_written = self._written
        self._service.on_hint = lambda: self._noticed("")
        self._service.claiming = self.fetching.claiming
        self._service.held = lambda: [*self.worker.held(), *self.fetching.failing()]
        self._service.holds = self.worker.holds
        self.heart.on_maintenance = self._service.hear_of_maintenance
        self.fetching.on_parked = self.clockwork.expect
        self.fetching.on_lost_claim = lambda: self._service.committer.owe_recovery(self.fetching.see)

    def _written(self, batch: Batch) -> None:
        """Run what was handed over, stop what was withdrawn, mind the timers, wake whoever has something to do."""
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
        self.projecting.chores.wake()

    def _left_over(self, effects: list[StoredEffect]) -> None:
        """Effects that were not handed over wait for their time, or for a slot."""
        for effect in effects:
            if effect.parked_until is not None:
                self.clockwork.expect(effect.parked_until)
        if any(effect.parked_until is None and effect.handler in self._shared.handlers for effect in effects):
            self.fetching.chores.wake_loop()

    def _minded(self, change: Change) -> None:
        if change.withdrawn:
            self.worker.cancel(key_of(change.header.id, number) for number in change.withdrawn)
        if change.recalls:
            self.worker.interrupt(key_of(change.header.id, recall.number) for recall in change.recalls if recall.stop)
            self.clockwork.look()
        for timer in change.timers:
            self.clockwork.expect(timer.due_at)
        if change.messages:
            self.clockwork.look()

    def _returned(self, execution: Execution, result: object) -> None:
        """A handler came back: with a command, or with nothing, which ends the effect."""
        if result is None:
            self._service.committer.finish(execution.claim)
            return
        effect = execution.effect
        try:
            address, command = result_of(effect, result, self._shared.languages.speaker(effect.language))
        except HoldfastError as error:
            self._failed(execution, error)
            return
        self._service.committer.submit(
            Submission(
                address=address,
                command=command,
                cause=effect_key(effect.instance, effect.number),
                claim=execution.claim,
                taken_at=effect.taken_at,
                may_create=True,
                settled=partial(self._settled, execution, address, command),
            ),
            may_wait=self.worker.is_alone(execution),
        )

    def _settled(
        self,
        execution: Execution,
        address: Address,
        command: object,
        _outcome: Outcome | None,
        error: BaseException | None,
    ) -> None:
        if error is not None and is_unreadable(error):
            self.fetching.hand_on(execution.effect, address, command, error)
        elif error is not None:
            self._failed(execution, error)

    def _failed(self, execution: Execution, error: BaseException) -> None:
        self.fetching.report(execution.effect, error, may_retry=not execution.is_stopping)

    def _given_back(self, execution: Execution) -> None:
        self.fetching.give_back(execution.effect)

    def _noticed(self, hint: str) -> None:
        if hint == STOP and self.worker.is_busy:
            self.heart.wake()
        self.fetching.chores.wake_loop()
        self.clockwork.look()
        self.projecting.chores.wake()

    def _listen(self) -> float:
        self._wakeups.listen(_LISTEN_SECONDS)
        return 0.0


_LISTEN_SECONDS = 0.25


def _politely(farewell: Callable[[], object]) -> None:
    """Say goodbye if anybody listens; if not, the end of the lease tells the others."""
    try:
        farewell()
    except StoreError as error:
        _log.warning("left without a goodbye: %s", error)
