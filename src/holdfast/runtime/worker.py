"""Calling handlers: coroutines on one event loop, plain functions on threads, each with a limit.

The worker holds effects, from a claim or from a commit that handed them over, until their handlers come back. What comes back goes to
the committer as a command, or just ends the effect; what fails goes back to be tried again, or is given up.
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

from holdfast.kernel.ids import WorkerId
from holdfast.runtime.calling import Ends, Execution, Key, key_of, run_coroutine, too_slow
from holdfast.runtime.giving_up import RecalledError, describe
from holdfast.runtime.issuing import options_of
from holdfast.runtime.shared import Shared
from holdfast.runtime.slots import Room, Slots
from holdfast.runtime.telemetry import EffectEnded, WorkLost
from holdfast.runtime.threads import Threads
from holdfast.store.shapes import EffectClaim, StoredEffect

_log = logging.getLogger("holdfast.worker")


class Worker:
    """Runs effects."""

    def __init__(self, identity: WorkerId, ends: Ends, shared: Shared) -> None:
        self.identity = identity
        self._ends = ends
        self._clock = shared.clock
        self._handlers = shared.handlers
        self._programs = shared.programs
        self._telemetry = shared.telemetry
        self._slots = Slots(shared.handlers, shared.settings.concurrency)
        self._default_timeout = shared.settings.handler_timeout
        self._lock = threading.Lock()
        self._held: dict[Key, Execution] = {}
        self._told: dict[Key, Callable[[Execution], None]] | None = None
        """What was said about effects that may be on their way here; None while none is."""
        self._is_open = False
        self._trusted_until = 0.0
        self._slot_freed: Callable[[], None] = lambda: None
        self._idle = threading.Condition(self._lock)
        self._threads = Threads(shared.settings.threads, name="holdfast-handler")
        self._loop: asyncio.AbstractEventLoop | None = None
        self._loop_thread: threading.Thread | None = None

    def start(self, slot_freed: Callable[[], None]) -> None:
        """Take work from now on; `slot_freed` is called when there is room for more."""
        self._slot_freed = slot_freed
        self._is_open = True
        self._loop = asyncio.new_event_loop()
        self._loop_thread = threading.Thread(target=self._loop.run_forever, name="holdfast-loop", daemon=True)
        self._loop_thread.start()

    def trust_until(self, deadline: float) -> None:
        """Others believe that this worker lives until then (monotonic time): afterwards it takes nothing new."""
        self._trusted_until = deadline

    def reserve(self, handler: str) -> bool:
        """Take a slot for an effect of this handler; False if there is none, or no such handler here."""
        return self._takes_work() and self._slots.take(handler)

    def release(self, handler: str) -> None:
        """Give a slot back that was not used."""
        self._slots.give_back(self._handlers.get(handler))

    def reserve_room(self, most: int) -> Room:
        """Take slots for as many effects as could run now, at most this many of each handler."""
        return self._slots.take_room(most) if self._takes_work() else Room([], 0)

    def leave_room(self, room: Room, used: Mapping[str, int]) -> None:
        """Give the slots back that were not used, by handler."""
        self._slots.leave_room(room, used)

    def held(self) -> list[EffectClaim]:
        """What the worker has in hand."""
        with self._lock:
            return [execution.claim for execution in self._held.values()]

    def run(self, effects: Sequence[StoredEffect]) -> None:
        """Call the handlers of these effects, for which slots are reserved."""
        executions = [self._prepare(effect) for effect in effects]
        self._hold(executions)
        coroutines = [each for each in executions if each.handler.is_async and not each.options.transactional]
        if coroutines and self._loop is not None:
            if threading.current_thread() is self._loop_thread:
                self._launch(self._loop, coroutines)
            else:
                self._loop.call_soon_threadsafe(self._launch, self._loop, coroutines)
        for execution in executions:
            if not execution.handler.is_async or execution.options.transactional:
                self._threads.run(partial(self._call, execution))

    def run_here(self, effect: StoredEffect) -> None:
        """Call a handler on the caller's thread and come back when it has ended; for engines without threads."""
        execution = self._prepare(effect)
        self._hold([execution])
        if not execution.handler.is_async or execution.options.transactional:
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

    def lose(self, claims: Iterable[EffectClaim]) -> None:
        """These claims are void. The effect of one may be in hand again by now, with a new claim: that call goes on."""
        for claim in claims:
            with self._lock:
                execution = self._held.get(key_of(claim.instance, claim.number))
            if execution is not None and execution.claim == claim:
                self._give_up(execution)

    def expire(self, now: float) -> None:
        """Give up on plain functions that have taken too long; their threads cannot be stopped, but their results do not count."""
        with self._lock:
            late = [each for each in self._held.values() if each.deadline is not None and each.deadline <= now]
        for execution in late:
            if execution.settle():
                self._alert(execution)
                self._ends.failed(execution, too_slow(self._limit(execution)))

    def stop(self, timeout: float) -> list[EffectClaim]:
        """Take nothing new, let running calls finish for a while, then tell them to stop; the effects that did not finish."""
        self._is_open = False
        with self._idle:
            self._idle.wait_for(lambda: not self._held, timeout)
            left = list(self._held.values())
        unsettled = [execution for execution in left if execution.settle()]
        for execution in left:
            self._alert(execution)
        self._threads.close()
        self._stop_loop()
        # To give an effect back uncounted is to have it called again, which is not for those that are called once.
        return [each.claim for each in unsettled if not (each.is_begun and each.options.once)]

    def _takes_work(self) -> bool:
        return self._is_open and time.monotonic() < self._trusted_until

    def _prepare(self, effect: StoredEffect) -> Execution:
        words = self._programs(effect.definition).effects
        return Execution(effect, words, self._handlers.get(effect.handler), options_of(effect))

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
            self._alert(execution)
            self._telemetry.tell(WorkLost(instance=execution.effect.instance, number=execution.effect.number))

    def _ask_to_stop(self, execution: Execution) -> None:
        """Once: a coroutine that cleans up is not disturbed again."""
        if not execution.is_stopping:
            execution.is_stopping = True
            self._alert(execution)

    def _launch(self, loop: asyncio.AbstractEventLoop, executions: Sequence[Execution]) -> None:
        for execution in executions:
            execution.task = loop.create_task(self._await(execution))

    async def _await(self, execution: Execution) -> None:
        if not execution.begin():
            self._skip(execution)
            return
        limit = self._begin(execution)
        try:
            result = await _called(execution, limit)
        except asyncio.CancelledError:
            self._end(execution, "cancelled")
            if execution.settle():
                self._ends.failed(execution, RuntimeError("the handler was cancelled"))
        except BaseException as error:  # noqa: BLE001 - what a handler raises is data
            failure = too_slow(limit) if isinstance(error, TimeoutError) and self._is_late(execution, limit) else error
            self._end(execution, describe(failure))
            if execution.settle():
                self._ends.failed(execution, failure)
        else:
            self._come_back(execution, result, limit)
        finally:
            self._let_go(execution)

    def _call(self, execution: Execution) -> None:
        if not execution.begin():
            self._skip(execution)
            return
        limit = self._begin(execution)
        execution.limit = limit
        execution.deadline = None if limit is None else execution.started + limit
        try:
            if execution.options.transactional:
                result: object = self._ends.transact(execution)
            else:
                result = execution.handler.function(execution.context, execution.body())
        except BaseException as error:  # noqa: BLE001 - what a handler raises is data
            self._end(execution, describe(error))
            if execution.options.transactional or execution.settle():
                self._ends.failed(execution, error)
        else:
            if execution.options.transactional:
                self._end(execution, str(result))
            else:
                self._come_back(execution, result, limit)
        finally:
            self._let_go(execution)

    def _come_back(self, execution: Execution, result: object, limit: float | None) -> None:
        """Not everything can be stopped in time, but an answer that came too late does not count."""
        failure = too_slow(limit) if self._is_late(execution, limit) else None
        self._end(execution, "" if failure is None else describe(failure))
        if not execution.settle():
            return
        if failure is None:
            self._ends.returned(execution, result)
        else:
            self._ends.failed(execution, failure)

    def _skip(self, execution: Execution) -> None:
        """The call is not made. If somebody still waits for its end, that is it."""
        self._free_slot(execution)
        if execution.settle():
            self._ends.failed(execution, RecalledError(execution.effect.attempts))
        self._let_go(execution)

    def _begin(self, execution: Execution) -> float | None:
        """Start the clock of a call; how many seconds it may take."""
        execution.started = self._clock.ticks()
        limit = self._limit(execution)
        if limit is not None:
            execution.context.deadline = self._clock.now() + timedelta(seconds=limit)
        return limit

    def _is_late(self, execution: Execution, limit: float | None) -> bool:
        return execution.is_late(limit, self._clock.ticks())

    def _free_slot(self, execution: Execution) -> None:
        if self._slots.give_back(execution.handler):
            self._slot_freed()

    def _end(self, execution: Execution, error: str) -> None:
        """The call is over: its slot is free for the next effect, which the commit of this one may bring."""
        effect = execution.effect
        self._free_slot(execution)
        if self._telemetry.is_heard:
            took = timedelta(seconds=self._clock.ticks() - execution.started)
            self._telemetry.tell(
                EffectEnded(
                    instance=effect.instance,
                    number=effect.number,
                    handler=effect.handler,
                    attempt=effect.attempts,
                    took=took,
                    error=error,
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
        if execution.handler.is_async and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_cancel, execution)

    def _stop_loop(self) -> None:
        if self._loop_thread is None or self._loop is None:
            return
        future = asyncio.run_coroutine_threadsafe(_finish_tasks(), self._loop)
        with contextlib.suppress(TimeoutError):
            future.result(_LAST_WORDS_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._loop_thread.join(_LAST_WORDS_SECONDS)
        if not self._loop_thread.is_alive():
            self._loop.close()


_LAST_WORDS_SECONDS = 2.0


async def _called(execution: Execution, limit: float | None) -> object:
    """What the handler answers, if it does so in time."""
    call = execution.handler.function(execution.context, execution.body())
    if limit is None:
        return await call  # type: ignore[misc]
    async with asyncio.timeout(limit):
        return await call  # type: ignore[misc]


def _cancel(execution: Execution) -> None:
    """A task that has not begun sees for itself; cancelled before its first step, it would not even clear up."""
    if execution.task is not None and execution.is_begun:
        execution.task.cancel()


async def _finish_tasks() -> None:
    """Let cancelled coroutines run their clean-up."""
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if tasks:
        await asyncio.wait(tasks, timeout=_LAST_WORDS_SECONDS / 2)
