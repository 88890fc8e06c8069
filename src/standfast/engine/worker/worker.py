"""The worker: calls handlers, coroutines on one event loop and plain functions on threads, within their limits.

It owns effects from a claim or a commit's handover until their handlers return. A result goes to the committer as a
command, or just ends the effect. A failed call is retried or dead-lettered. A call that exceeds its timeout is
abandoned: its slot and the place of its thread are released.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import timedelta
from functools import partial

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.work_rows import options_of
from standfast.engine.common.clock import later
from standfast.engine.common.health import Watched
from standfast.engine.common.interceptors import ended
from standfast.engine.common.operator_watch import WorkSwitch
from standfast.engine.common.telemetry import EffectEnded
from standfast.engine.common.work_errors import RecalledError, describe, is_interrupt
from standfast.engine.concurrency.threads import Threads
from standfast.engine.worker.call import (
    Ends,
    Execution,
    Key,
    cancel_task,
    key_of,
    log_failure,
    named,
    run_coroutine,
    take_back,
    too_slow,
)
from standfast.engine.worker.event_loop import EventLoop
from standfast.engine.worker.slots import ReservedSlots, Slots
from standfast.engine.worker.starvation import StarvationDetector
from standfast.kernel.ids import WorkerId, effect_key
from standfast.store.records.instances import EffectClaim, StoredEffect

_log = logging.getLogger("standfast.worker")

_GRACE_SECONDS = 5.0
"""How long a cancelled coroutine may clean up, and an unwanted call may continue, before it is abandoned."""
_TENDING_SECONDS = 0.25
"""Interval between two checks of the calls, and thus the accuracy of timeouts."""
_TAKING_BACK_SECONDS = 1.0
"""How long a database may take to release the connection of an abandoned call."""
_STALL_SECONDS = 1.0
"""A worker whose threads or event loop are blocked for this long accepts no more work for them."""


class Worker:
    """Runs effects."""

    def __init__(
        self,
        identity: WorkerId,
        ends: Ends,
        shared: EngineContext,
        *,
        switch: WorkSwitch,
        is_barred: Callable[[StoredEffect], bool],
        slot_freed: Callable[[], None],
    ) -> None:
        self.identity = identity
        self._ends = ends
        self._clock = shared.clock
        self._patience = shared.settings.lease.total_seconds()
        """How long an effect may be owned without being started. Effects of a dead worker wait as long."""
        self._handlers = shared.handlers
        self._languages = shared.languages
        self._find_key = shared.find_key
        self._telemetry = shared.telemetry
        self._slots = Slots(shared.handlers, shared.settings.concurrency)
        self._default_timeout = shared.settings.handler_timeout
        self._lock = threading.Lock()
        self._held: dict[Key, Execution] = {}
        self._told: dict[Key, Callable[[Execution], None]] | None = None
        """Notices about effects that may be in transit to this worker. None while none is."""
        self._is_open = False
        self.switch = switch
        """Off in maintenance: nothing is begun."""
        self._is_barred = is_barred
        """Whether a pause covers an effect."""
        self._trusted_until = 0.0
        self._slot_freed = slot_freed
        """Wakes the claimer, because there is room for more."""
        self._idle = threading.Condition(self._lock)
        self._limit_of_health = shared.settings.unhealthy_after.total_seconds()
        most = shared.settings.threads
        self._threads = Threads(
            most, name="handler threads", prefix="standfast-handler", spare=most, limit=self._limit_of_health
        )
        self._loop: EventLoop | None = None
        self.jams = StarvationDetector(
            self._executions,
            shared.handlers,
            shared.clock.ticks,
            most=shared.settings.concurrency,
            limit=self._limit_of_health,
        )

    def start(self) -> None:
        """Take work from now on."""
        self._is_open = True
        self._loop = EventLoop(limit=self._limit_of_health)

    def parts(self) -> list[Watched]:
        """The parts with a health check."""
        return [self._threads, self.jams, *([] if self._loop is None else [self._loop])]

    def is_here(self) -> bool:
        """Whether the current thread calls handlers."""
        return self._threads.is_here() or (self._loop is not None and self._loop.is_here())

    def trust_until(self, deadline: float) -> None:
        """Set the end of the worker's lease as a monotonic time. After it the worker accepts nothing new."""
        self._trusted_until = deadline

    def reserve(self, handler: str) -> bool:
        """Take a slot for an effect of this handler.

        Return False if there is no slot or no such handler in this process.
        """
        return self._takes_work() and self._slots.take(handler)

    def release(self, handler: str) -> None:
        """Release an unused slot."""
        self._slots.give_back(self._handlers.get(handler))

    def reserve_room(self, most: int) -> ReservedSlots:
        """Reserve slots for as many effects as could run now, at most `most` per handler."""
        return self._slots.take_room(most) if self._takes_work() else ReservedSlots([], 0)

    def leave_room(self, room: ReservedSlots, used: Mapping[str, int]) -> None:
        """Release the unused slots, by handler."""
        self._slots.leave_room(room, used)

    def held(self) -> list[EffectClaim]:
        """Return the claims that the worker owns."""
        return [execution.claim for execution in self._executions()]

    def run(self, effects: Sequence[StoredEffect]) -> None:
        """Call the handlers of these effects, for which slots are reserved."""
        now = self._clock.ticks()
        executions = [self._prepare(effect, now) for effect in effects]
        self._hold(executions)
        coroutines = [each for each in executions if not each.needs_thread]
        if coroutines and self._loop is not None:
            self._loop.call(self._launch, self._loop.loop, coroutines)
        if len(coroutines) < len(executions):
            for execution in executions:
                if execution.needs_thread:
                    self._threads.run(partial(self._call, execution))

    def run_here(self, effect: StoredEffect) -> None:
        """Call a handler on the caller's thread, and return after its end. For engines without threads."""
        execution = self._prepare(effect, self._clock.ticks())
        self._hold([execution])
        if execution.needs_thread:
            self._call(execution)
        else:
            run_coroutine(lambda: self._await(execution))

    def open(self) -> None:
        """Accept work without starting threads."""
        self._is_open = True

    @contextlib.contextmanager
    def expecting(self) -> Iterator[None]:
        """Context in which effects may be in transit from the database. Effects withdrawn meanwhile are not called."""
        with self._lock:
            self._told = {}
        try:
            yield
        finally:
            self._told = None

    @property
    def is_busy(self) -> bool:
        """Whether the worker owns any effect."""
        return bool(self._held)

    def is_alone(self, execution: Execution) -> bool:
        """Return whether no other call needs the thread that has just returned from this one."""
        return not execution.handler.is_async or len(self._held) == 1

    def holds(self, key: Key) -> bool:
        """Return whether the worker owns the effect."""
        return key in self._held

    def cancel(self, keys: Iterable[Key]) -> None:
        """Cancel these effects, because their results are no longer wanted."""
        self._tell(keys, self._give_up)

    def interrupt(self, keys: Iterable[Key]) -> None:
        """Ask handlers to stop on request of their instances. Unlike after `cancel`, the results still count."""
        self._tell(keys, self._ask_to_stop)

    def limit(self, keys: Iterable[Key]) -> None:
        """Limit the time of handlers that were asked to stop. Calls that do not return soon are abandoned."""
        latest = self._clock.ticks() + _GRACE_SECONDS
        for key in keys:
            with self._lock:
                execution = self._held.get(key)
                if execution is not None and execution.is_begun and execution.has_slot:  # Otherwise it has returned.
                    execution.deadline = latest if execution.deadline is None else min(execution.deadline, latest)

    def lose(self, claims: Iterable[EffectClaim]) -> None:
        """Cancel the calls of void claims. A call of the same effect under a newer claim continues."""
        for claim in claims:
            with self._lock:
                execution = self._held.get(key_of(claim.instance, claim.number))
            if execution is not None and execution.claim == claim:
                self._give_up(execution)

    def step(self) -> float:
        """Check the calls, and abandon those that are overdue or were never started.

        It uses no database, so that an outage cannot block it.
        """
        self._tend(self._clock.ticks())
        return _TENDING_SECONDS

    def _tend(self, now: float) -> None:
        slots = self._slots
        before = slots.takes_async, slots.takes_plain
        self._expire(now)
        if self._loop is not None:
            self._loop.feel_pulse()
            slots.takes_async = self._loop.stuck_for < _STALL_SECONDS
        has_given_back = self._give_back(now)
        stalled = self._threads.stalled_for
        # An overloaded worker accepts nothing until all waiting effects are started. It would only claim again what it
        # releases.
        if has_given_back or stalled >= _STALL_SECONDS:
            slots.takes_plain = False
        elif not stalled:
            slots.takes_plain = True
        if (slots.takes_async, slots.takes_plain) > before:
            self._slot_freed()

    def stop(self, timeout: float) -> list[EffectClaim]:
        """Accept nothing new, let running calls finish for a while, then cancel them.

        Return the claims whose calls were not started.
        """
        self._is_open = False
        with self._idle:
            self._idle.wait_for(lambda: not self._held, timeout)
            left = list(self._held.values())
            unsettled = [execution for execution in left if execution.settle()]
        for execution in left:
            self._alert(execution)
        if left:
            _log.warning("shutdown_timeout calls=%d after=%.1f: %s", len(left), timeout, named(left))
            for thread in take_back(left):
                thread.join(_TAKING_BACK_SECONDS)
        self._threads.close()
        if self._loop is not None:
            self._loop.stop()
        # A started call counts as an attempt. Its effect becomes free when the worker is deregistered.
        return [each.claim for each in unsettled if not each.is_begun]

    def _expire(self, now: float) -> None:
        """Abandon the calls that exceed their timeout.

        Plain functions cannot be stopped, nor can coroutines that ignore cancellation. Their results do not count, and
        other calls take their places.
        """
        with self._lock:
            late = [each for each in self._held.values() if each.deadline is not None and each.deadline <= now]
        for execution in late:
            is_first = execution.settle()
            if not (is_first or execution.context.cancelled):
                continue  # It is being committed.
            if is_first:
                self._alert(execution)
                self._ends.failed(execution, too_slow(self._limit(execution)))
            self._write_off(execution)

    def _write_off(self, execution: Execution) -> None:
        name, number = execution.handler.name, execution.effect.number
        _log.warning("handler_call_abandoned handler=%r effect=%s", name, effect_key(execution.effect.instance, number))
        self._free_slot(execution)
        self._let_go(execution)
        if execution.thread is not None:
            self._threads.write_off(execution.thread)
        take_back([execution])

    def _give_back(self, now: float) -> bool:
        """Release effects that have waited too long for a thread or for the event loop. Return whether one waited for a thread.

        In maintenance, and for paused definitions, release all that have not started.
        """
        since = now - (0.0 if self.switch.is_off else self._patience)
        unbegun = [each for each in self._executions() if not each.is_begun]
        waiting = [each for each in unbegun if each.started <= since or self._is_barred(each.effect)]
        with self._lock:
            waiting = [each for each in waiting if not each.is_begun and each.settle()]
        for execution in waiting:
            self._free_slot(execution)
            self._ends.given_back(execution)
            self._let_go(execution)
        return any(each.needs_thread for each in waiting)

    def _executions(self) -> list[Execution]:
        with self._lock:
            return list(self._held.values())

    def _takes_work(self) -> bool:
        return self._is_open and not self.switch.is_off and time.monotonic() < self._trusted_until

    def _prepare(self, effect: StoredEffect, now: float) -> Execution:
        program = self._languages.speaker(effect.language)
        handler, options = self._handlers.get(effect.handler), options_of(effect)
        return Execution(effect, program, handler, options, since=now, find_key=self._find_key)

    def _hold(self, executions: Sequence[Execution]) -> None:
        """Take ownership of effects.

        Earlier calls of the same effects are cancelled, because this claim proves theirs void.
        """
        with self._lock:
            held = self._held
            earlier = [held[each.key] for each in executions if each.key in held]
            for each in executions:
                held[each.key] = each
            told = [(self._told[each.key], each) for each in executions if each.key in self._told] if self._told else []
        for each in earlier:
            if each.settle():
                self._alert(each)
        for say, each in told:
            say(each)

    def _tell(self, keys: Iterable[Key], say: Callable[[Execution], None]) -> None:
        for key in keys:
            with self._lock:
                execution = self._held.get(key)
                if self._told is not None:
                    self._told[key] = say
            if execution is not None:
                say(execution)

    def _give_up(self, execution: Execution) -> None:
        if execution.settle():
            execution.deadline = self._clock.ticks() + _GRACE_SECONDS
            self._alert(execution)
            self._telemetry.tell(execution.lost())

    def _ask_to_stop(self, execution: Execution) -> None:
        """Ask a handler to stop, once, so that a coroutine is not interrupted in its cleanup."""
        if not execution.is_stopping:
            execution.is_stopping = True
            self._alert(execution)

    def _launch(self, loop: asyncio.AbstractEventLoop, executions: Sequence[Execution]) -> None:
        for execution in executions:
            execution.task = loop.create_task(self._await(execution))

    async def _await(self, execution: Execution) -> None:
        with self._lock:  # A released effect is not started, and a started one is not released.
            begins = execution.begin()
        if not begins:
            self._skip(execution)
            return
        limit: float | None = None
        try:
            limit = self._begin(execution, _GRACE_SECONDS)
            answer = execution.handler.function(execution.context, execution.body())
            if limit is None:
                result = await answer  # type: ignore[misc]
            else:
                async with asyncio.timeout(limit):
                    result = await answer  # type: ignore[misc]
        except asyncio.CancelledError:
            self._fall(execution, RuntimeError("the handler was cancelled"), "cancelled")
        except BaseException as error:  # noqa: BLE001 - what a handler raises is data
            is_late = isinstance(error, TimeoutError) and self._is_late(execution, limit)
            self._fall(execution, too_slow(limit) if is_late else error)
        else:
            self._come_back(execution, result, limit)
        finally:
            self._let_go(execution)

    def _call(self, execution: Execution) -> None:
        with self._lock:  # A released effect is not started, and a started one is not released.
            begins = execution.begin()
        if not begins:
            self._skip(execution)
            return
        execution.thread = threading.get_ident()
        is_transactional = execution.options.transactional
        limit: float | None = None
        result: object = None
        try:
            limit = execution.limit = self._begin(execution)
            if is_transactional:
                result = self._ends.transact(execution)
            else:
                result = execution.handler.function(execution.context, execution.body())
        except BaseException as error:
            self._fall(execution, error, must_tell=is_transactional)
            if is_interrupt(error):
                raise
        else:
            if is_transactional:
                self._end(execution, str(result))
            else:
                self._come_back(execution, result, limit)
        finally:
            self._let_go(execution)

    def _fall(self, execution: Execution, error: BaseException, said: str = "", *, must_tell: bool = False) -> None:
        """Handle a failed call.

        A transactional call whose commit failed has settled itself, and is reported nevertheless.
        """
        must_tell = must_tell and execution.has_slot  # Otherwise it was abandoned and reported.
        self._end(execution, said or describe(error), error)
        if must_tell or execution.settle():
            self._ends.failed(execution, error)

    def _come_back(self, execution: Execution, result: object, limit: float | None) -> None:
        """Handle a returned call. A result after the timeout does not count."""
        failure: BaseException | None = None
        if limit is not None and self._is_late(execution, limit):
            failure = too_slow(limit)
        self._end(execution, "" if failure is None else describe(failure), failure)
        if not execution.settle():
            return
        if failure is None:
            try:
                self._ends.returned(execution, result)
            except BaseException as error:  # noqa: BLE001 - the effect is not lost, whatever the error
                failure = error
        if failure is not None:
            self._ends.failed(execution, failure)

    def _skip(self, execution: Execution) -> None:
        """Skip the call. A pending cancellation is thereby complete."""
        self._free_slot(execution)
        if execution.settle():
            self._ends.failed(execution, RecalledError(execution.effect.attempts))
        self._let_go(execution)

    def _begin(self, execution: Execution, grace: float = 0.0) -> float | None:
        """Start the timeout of a call, and return it in seconds."""
        if self._telemetry.companions.is_any:
            execution.begin_attendance(self._telemetry.companions)
        execution.started = self._clock.ticks()
        limit = self._limit(execution)
        if limit is not None:
            execution.deadline = execution.started + limit + grace
            execution.context.deadline = later(self._clock.now(), timedelta(seconds=min(limit, _ENDLESS_SECONDS)))
        return limit

    def _is_late(self, execution: Execution, limit: float | None) -> bool:
        """Return whether the call has exceeded its timeout."""
        return limit is not None and self._clock.ticks() - execution.started >= limit

    def _free_slot(self, execution: Execution) -> None:
        with self._lock:
            had_slot, execution.has_slot = execution.has_slot, False
        if had_slot and self._slots.give_back(execution.handler):
            self._slot_freed()

    def _end(self, execution: Execution, said: str, error: BaseException | None = None) -> None:
        """End the call: release its slot for the next effect, which the commit of this result may hand over."""
        effect = execution.effect
        if error is not None:
            log_failure(execution, error)
        if execution.attendances:
            ended(execution.attendances, error)
        self._free_slot(execution)
        execution.deadline = None  # Cleared only here: without its slot the call gets no new deadline.
        if self._telemetry.is_heard:
            took = timedelta(seconds=self._clock.ticks() - execution.started)
            self._telemetry.tell(
                EffectEnded(
                    definition=effect.definition,
                    tenant=effect.tenant,
                    instance=effect.instance,
                    number=effect.number,
                    handler=effect.handler,
                    work=effect.type,
                    attempt=effect.attempts,
                    waited=(effect.claimed_at or effect.created_at) - effect.created_at,
                    took=took,
                    error=said,
                    trace=execution.context.trace,
                )
            )

    def _let_go(self, execution: Execution) -> None:
        """Give up the ownership of the effect.

        It must be called after the next owner is known, so that the effect always has one.
        """
        with self._lock:
            if self._held.get(execution.key) is execution:  # A later attempt may have replaced it.
                del self._held[execution.key]
            if not self._held:
                self._idle.notify_all()

    def _limit(self, execution: Execution) -> float | None:
        if execution.options.timeout is not None:
            return execution.options.timeout
        limit = execution.handler.timeout or self._default_timeout
        return None if limit is None else limit.total_seconds()

    def _alert(self, execution: Execution) -> None:
        """Signal the handler to stop."""
        execution.context.cancel()
        if execution.handler.is_async and self._loop is not None and not self._loop.loop.is_closed():
            self._loop.call_soon(cancel_task, execution)


_ENDLESS_SECONDS = timedelta.max.total_seconds() / 2
