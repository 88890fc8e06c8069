"""Calling handlers: coroutines on one event loop, plain functions on threads, each with a limit.

The worker holds effects, from a claim or from a commit that handed them over, until their handlers come back. What comes back goes to
the committer as a command, or just ends the effect; what fails goes back to be tried again, or is given up. A call that does not come
back in time is written off: it keeps neither its slot nor the place of its thread.
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
"""How long a coroutine that was cancelled may clean up, and any call that nobody wants may go on, before it is written off."""
_TENDING_SECONDS = 0.25
"""How often calls are looked after, and so how late a call that takes too long may be given up."""
_TAKING_BACK_SECONDS = 1.0
"""How long a database may take to let go of what a call has that is left behind."""
_STALL_SECONDS = 1.0
"""A worker whose threads or event loop did not move for so long takes nothing more for them."""


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
        """How long an effect may be in hand without being begun; others would wait as long for one whose worker died."""
        self._handlers = shared.handlers
        self._languages = shared.languages
        self._find_key = shared.find_key
        self._telemetry = shared.telemetry
        self._slots = Slots(shared.handlers, shared.settings.concurrency)
        self._default_timeout = shared.settings.handler_timeout
        self._lock = threading.Lock()
        self._held: dict[Key, Execution] = {}
        self._told: dict[Key, Callable[[Execution], None]] | None = None
        """What was said about effects that may be on their way here; None while none is."""
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
        """What can stop."""
        return [self._threads, self.jams, *([] if self._loop is None else [self._loop])]

    def is_here(self) -> bool:
        """Whether the present thread is one that calls handlers."""
        return self._threads.is_here() or (self._loop is not None and self._loop.is_here())

    def trust_until(self, deadline: float) -> None:
        """Others believe that this worker lives until then (monotonic time): afterwards it takes nothing new."""
        self._trusted_until = deadline

    def reserve(self, handler: str) -> bool:
        """Take a slot for an effect of this handler; False if there is none, or no such handler here."""
        return self._takes_work() and self._slots.take(handler)

    def release(self, handler: str) -> None:
        """Give a slot back that was not used."""
        self._slots.give_back(self._handlers.get(handler))

    def reserve_room(self, most: int) -> ReservedSlots:
        """Take slots for as many effects as could run now, at most this many of each handler."""
        return self._slots.take_room(most) if self._takes_work() else ReservedSlots([], 0)

    def leave_room(self, room: ReservedSlots, used: Mapping[str, int]) -> None:
        """Give the slots back that were not used, by handler."""
        self._slots.leave_room(room, used)

    def held(self) -> list[EffectClaim]:
        """What the worker has in hand."""
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
        """Call a handler on the caller's thread and come back when it has ended; for engines without threads."""
        execution = self._prepare(effect, self._clock.ticks())
        self._hold([execution])
        if execution.needs_thread:
            self._call(execution)
        else:
            run_coroutine(lambda: self._await(execution))

    def open(self) -> None:
        """Take work without threads of its own."""
        self._is_open = True

    @contextlib.contextmanager
    def expecting(self) -> Iterator[None]:
        """Inside it effects are on their way here from the database, and those that are called off meanwhile are not called."""
        with self._lock:
            self._told = {}
        try:
            yield
        finally:
            self._told = None

    @property
    def is_busy(self) -> bool:
        """Whether anything is in hand here."""
        return bool(self._held)

    def is_alone(self, execution: Execution) -> bool:
        """Whether nobody else needs the thread on which a call has just come back."""
        return not execution.handler.is_async or len(self._held) == 1

    def holds(self, key: Key) -> bool:
        """Whether the effect is in hand here."""
        return key in self._held

    def cancel(self, keys: Iterable[Key]) -> None:
        """Nobody wants the results of these effects any more."""
        self._tell(keys, self._give_up)

    def interrupt(self, keys: Iterable[Key]) -> None:
        """Have handlers stop because their instances ask for it; unlike after `cancel`, what comes of their calls still counts."""
        self._tell(keys, self._ask_to_stop)

    def limit(self, keys: Iterable[Key]) -> None:
        """Nobody waits for handlers that were told to stop: what does not come back in a while is written off."""
        latest = self._clock.ticks() + _GRACE_SECONDS
        for key in keys:
            with self._lock:
                execution = self._held.get(key)
                if execution is not None and execution.is_begun and execution.has_slot:  # Else it has come back.
                    execution.deadline = latest if execution.deadline is None else min(execution.deadline, latest)

    def lose(self, claims: Iterable[EffectClaim]) -> None:
        """These claims are void. The effect of one may be in hand again by now, with a new claim: that call goes on."""
        for claim in claims:
            with self._lock:
                execution = self._held.get(key_of(claim.instance, claim.number))
            if execution is not None and execution.claim == claim:
                self._give_up(execution)

    def step(self) -> float:
        """Look after the calls: what comes back too late, or is not even begun. It needs no database, so that none can hinder it."""
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
        # Once it is behind it takes nothing more until all that waits is begun: what it gives back it would only take again.
        if has_given_back or stalled >= _STALL_SECONDS:
            slots.takes_plain = False
        elif not stalled:
            slots.takes_plain = True
        if (slots.takes_async, slots.takes_plain) > before:
            self._slot_freed()

    def stop(self, timeout: float) -> list[EffectClaim]:
        """Take nothing new, let running calls finish for a while, then tell them to stop; the effects whose calls were not begun."""
        self._is_open = False
        with self._idle:
            self._idle.wait_for(lambda: not self._held, timeout)
            left = list(self._held.values())
            unsettled = [execution for execution in left if execution.settle()]
        for execution in left:
            self._alert(execution)
        if left:
            _log.warning(
                "stopping, although %d calls have not come back within %.1f s: %s", len(left), timeout, named(left)
            )
            for thread in take_back(left):
                thread.join(_TAKING_BACK_SECONDS)
        self._threads.close()
        if self._loop is not None:
            self._loop.stop()
        # A call that was begun counts, whatever became of it: it is free for others when the worker leaves the list of the living.
        return [each.claim for each in unsettled if not each.is_begun]

    def _expire(self, now: float) -> None:
        """Give up on calls that have taken too long.

        A plain function cannot be stopped, nor a coroutine that does not listen: but their results do not count, and others take
        their places.
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
        _log.warning("a call of %r, effect %s, is written off", name, effect_key(execution.effect.instance, number))
        self._free_slot(execution)
        self._let_go(execution)
        if execution.thread is not None:
            self._threads.write_off(execution.thread)
        take_back([execution])

    def _give_back(self, now: float) -> bool:
        """Let others have what has waited too long for a thread, or for the event loop; whether any of it waited for a thread.

        In maintenance, and of what is paused, that is whatever has not begun.
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
        """Answer for effects. An earlier call of one whose claim is void, or this one would not be here, is told to stop."""
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
        """Once: a coroutine that cleans up is not disturbed again."""
        if not execution.is_stopping:
            execution.is_stopping = True
            self._alert(execution)

    def _launch(self, loop: asyncio.AbstractEventLoop, executions: Sequence[Execution]) -> None:
        for execution in executions:
            execution.task = loop.create_task(self._await(execution))

    async def _await(self, execution: Execution) -> None:
        with self._lock:  # What is given back is not begun, and the other way round.
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
        with self._lock:  # What is given back is not begun, and the other way round.
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
        """The call failed. A transactional one that failed in its commit has spoken for itself before, and is told all the same."""
        must_tell = must_tell and execution.has_slot  # Else it was written off, and told.
        self._end(execution, said or describe(error), error)
        if must_tell or execution.settle():
            self._ends.failed(execution, error)

    def _come_back(self, execution: Execution, result: object, limit: float | None) -> None:
        """Not every call can be stopped in time, but an answer that came too late does not count."""
        failure: BaseException | None = None
        if limit is not None and self._is_late(execution, limit):
            failure = too_slow(limit)
        self._end(execution, "" if failure is None else describe(failure), failure)
        if not execution.settle():
            return
        if failure is None:
            try:
                self._ends.returned(execution, result)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the effect is not forgotten
                failure = error
        if failure is not None:
            self._ends.failed(execution, failure)

    def _skip(self, execution: Execution) -> None:
        """The call is not made. If somebody still waits for its end, that is it."""
        self._free_slot(execution)
        if execution.settle():
            self._ends.failed(execution, RecalledError(execution.effect.attempts))
        self._let_go(execution)

    def _begin(self, execution: Execution, grace: float = 0.0) -> float | None:
        """Start the clock of a call; how many seconds it may take."""
        if self._telemetry.companions.is_any:
            execution.begin_attendance(self._telemetry.companions)
        execution.started = self._clock.ticks()
        limit = self._limit(execution)
        if limit is not None:
            execution.deadline = execution.started + limit + grace
            execution.context.deadline = later(self._clock.now(), timedelta(seconds=min(limit, _ENDLESS_SECONDS)))
        return limit

    def _is_late(self, execution: Execution, limit: float | None) -> bool:
        """Whether the call has taken as long as it may."""
        return limit is not None and self._clock.ticks() - execution.started >= limit

    def _free_slot(self, execution: Execution) -> None:
        with self._lock:
            had_slot, execution.has_slot = execution.has_slot, False
        if had_slot and self._slots.give_back(execution.handler):
            self._slot_freed()

    def _end(self, execution: Execution, said: str, error: BaseException | None = None) -> None:
        """The call is over: its slot is free for the next effect, which the commit of this one may bring."""
        effect = execution.effect
        if error is not None:
            log_failure(execution, error)
        if execution.attendances:
            ended(execution.attendances, error)
        self._free_slot(execution)
        execution.deadline = None  # Not earlier: without its slot it gets no new one.
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
        """Others answer for the effect from here on; not earlier, so that there is always somebody who does."""
        with self._lock:
            if self._held.get(execution.key) is execution:  # A later attempt may have taken its place.
                del self._held[execution.key]
            if not self._held:
                self._idle.notify_all()

    def _limit(self, execution: Execution) -> float | None:
        if execution.options.timeout is not None:
            return execution.options.timeout
        limit = execution.handler.timeout or self._default_timeout
        return None if limit is None else limit.total_seconds()

    def _alert(self, execution: Execution) -> None:
        """Tell the handler that it should come to an end."""
        execution.context.cancel()
        if execution.handler.is_async and self._loop is not None and not self._loop.loop.is_closed():
            self._loop.call_soon(cancel_task, execution)


_ENDLESS_SECONDS = timedelta.max.total_seconds() / 2
