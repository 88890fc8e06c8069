"""Waiting for the end of instances: told by this process's own commits, and looked for now and then in case another process ended one.

Waiting in a coroutine for an answer that may be weeks away.

Waiting for instances to rest: until none of their handlers is called any more, or until the caller's time is over.

Telling of steps whose time is over: to the log, and to whoever measures.
"""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from datetime import timedelta
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

from standfast.calls.status_text import OPERATOR
from standfast.engine.commit.batch import CommandBatch
from standfast.engine.commit.draft import InstanceDraft
from standfast.engine.commit.submission import View
from standfast.engine.common.telemetry import StepTimedOut, Telemetry
from standfast.engine.concurrency.loop import IsolatedTasks, Loop
from standfast.engine.concurrency.manual_replies import ManualReply
from standfast.engine.concurrency.replies import LastingReply, Reply
from standfast.engine.dispatcher import Dispatcher
from standfast.errors import NotFoundError, StandfastError, StoppedError, StoreUnavailableError
from standfast.graph.model import KINDS
from standfast.kernel.ids import InstanceId
from standfast.machine.model.events import TimedOut
from standfast.machine.model.state import RunState
from standfast.store.records.instances import Address, InstanceHeader

PATIENCE: Final = timedelta(seconds=10)
"""How long a call waits for automatic steps of a process, unless its caller says otherwise."""


def is_at_rest(state: object) -> bool:
    """Whether a run does nothing by itself: it has ended, is paused, or waits for people, time or the world."""
    if not isinstance(state, RunState) or state.status != "running":
        return True
    return all(step.effect is None for step in state.open.values())


class IdleWait:
    """Somebody who waits for one instance to rest."""

    def __init__(
        self, *, view: View, look: Callable[[], bool], bring: Callable[[object], None], seconds: float
    ) -> None:
        self.view = view
        """Makes of an instance that has come to rest in a commit of this process what is brought."""
        self.look = look
        """Whether it rests, by the database."""
        self.bring = bring
        """Called once: with what was made of the instance, or with None if the database has to tell, or if the time is over."""
        self.until = time.monotonic() + seconds
        self.look_at = 0.0
        """Monotonic time from which on it is looked for in the database."""


def _anybody(_: IdleWait) -> bool:
    return True


class IdleWaiters:
    """Who waits for which instance to rest."""

    def __init__(self, service: Dispatcher, *, has_threads: bool) -> None:
        self._lock = threading.Lock()
        self._waiting: dict[int, list[IdleWait]] = {}
        """By the numbers that ids are, which Python compares and hashes faster."""
        self._service = service
        self._pause = service.shared.settings.poll_interval.total_seconds()
        limit = service.shared.settings.unhealthy_after.total_seconds()
        self._loop = Loop("rests", self._step, service.shared.telemetry, limit=limit) if has_threads else None
        self._is_started = False

    @property
    def loops(self) -> list[Loop]:
        """The loop that looks, once somebody has waited."""
        return [self._loop] if self._loop is not None and self._is_started else []

    def wait(self, instance: InstanceId, version: int, waiting: IdleWait) -> None:
        """Have somebody called back once an instance rests that did not with so many events; at once in an engine without threads.

        As long as this process knows that it has no more, the commit that brings it to rest will tell.
        """
        now = time.monotonic()
        if self._loop is None or waiting.until <= now:
            waiting.bring(None)
            return
        with self._lock:
            is_alone = not self._waiting
            self._waiting.setdefault(instance.int, []).append(waiting)
            is_first, self._is_started = not self._is_started, True
        if is_first:
            self._service.listen(self)
            self._loop.start()
        is_heard_of = self._service.committer.is_at(instance, version)
        waiting.look_at = now + self._pause if is_heard_of else now
        if is_alone or min(waiting.look_at, waiting.until) < now + self._pause:
            self._loop.wake()

    def stop(self) -> None:
        """Nobody will tell any more: those who wait are told how things stand."""
        for loop in self.loops:
            loop.stop()
            loop.join(1.0)
        for number in list(self._waiting):
            self._bring(number)

    def committed(self, batch: CommandBatch) -> None:
        """Answer those who wait for an instance that a commit has brought to rest."""
        if self._waiting:
            for draft in batch.written:
                number = draft.header.id.int
                if number in self._waiting and is_at_rest(draft.state):
                    for each in self._taken(number):
                        each.bring(each.view(draft.header, draft.program, draft.state))

    def _step(self) -> float:
        """Look at all of them: at the clock, and at the database. Without a database the time of those who wait is over all the same."""
        now, failure = time.monotonic(), None
        for number, waiting in list(self._waiting.items()):
            if any(each.until <= now for each in waiting):
                self._bring(number, lambda each: each.until <= now)
            elif failure is None and any(each.look_at <= now for each in waiting):
                try:
                    self._look(number, waiting, now)
                except StoreUnavailableError as error:
                    failure = error
        if failure is not None:
            raise failure
        with self._lock:
            ends = [min(each.until, each.look_at) for waiting in self._waiting.values() for each in waiting]
        return max(0.0, min(ends) - time.monotonic()) if ends else 60.0

    def _look(self, number: int, waiting: list[IdleWait], now: float) -> None:
        with self._lock:
            asked = list(waiting)  # Whoever comes after this may wait for what the instance does after the look.
        if _is_over(asked[0]):
            self._bring(number, lambda each: each in asked)
            return
        for each in asked:
            each.look_at = each.look_at if each.look_at > now else now + self._pause

    def _bring(self, number: int, is_meant: Callable[[IdleWait], bool] = _anybody) -> None:
        for each in self._taken(number, is_meant):
            each.bring(None)

    def _taken(self, number: int, is_meant: Callable[[IdleWait], bool] = _anybody) -> list[IdleWait]:
        """Those who wait for an instance and are meant, of whom nobody waits any more."""
        with self._lock:
            waiting = self._waiting.pop(number, [])
            left = [each for each in waiting if not is_meant(each)]
            if left:
                self._waiting[number] = left
        return [each for each in waiting if each not in left]


def _is_over(waiting: IdleWait) -> bool:
    try:
        return waiting.look()
    except StoreUnavailableError:
        raise
    except StandfastError:  # It is gone, or cannot be read: whoever waits is told so when it is read again.
        return True


_log = logging.getLogger("standfast.timeouts")

_TYPE = "timeout"
"""By which name the event is stored."""


def report_timeouts(telemetry: Telemetry, draft: InstanceDraft) -> None:
    """Log the timeouts of steps in a commit, and report them to telemetry."""
    header = draft.header
    for stored in draft.change.events:
        if stored.type != _TYPE or stored.is_system or header.kind not in KINDS:
            continue
        step = cast("TimedOut", draft.program.decode(stored)).node
        told = StepTimedOut(
            definition=header.definition, tenant=header.tenant, instance=header.id, kind=header.kind, step=step
        )
        _log.info(
            "the time of step %r is over: %s %s of %r, tenant %r",
            told.step,
            told.kind,
            told.instance,
            told.definition,
            told.tenant,
        )
        telemetry.tell(told)


Lookup = Callable[[str, str, Collection[InstanceId]], Sequence[InstanceHeader]]
"""The rows of instances of a tenant, and of a partition if one is named: those that exist."""

T = TypeVar("T")

_Key = tuple[str, str, InstanceId]
"""Tenant, partition and id: who names no partition waits for what is in any."""


class Completion(NamedTuple):
    """How an instance ended."""

    header: InstanceHeader
    summary: object = None
    """What its last state says, if this process knows it."""


_POLL_SECONDS = 0.05
"""Whoever waits for less looks again and again, and the database is not asked each time for words that nobody reads."""

Told = Callable[[], str]
"""Where a workflow stands, in words; asked only when somebody has waited in vain."""


class CompletionReply(LastingReply[T]):
    """The reply to a call that waits for the end of a workflow: whoever loses patience is told where it stands."""

    __slots__ = ("_told",)

    def __init__(self, told: Told, kept: set[Reply[Any]]) -> None:
        super().__init__(kept)
        self._told = told

    def _meanwhile(self, timeout: float | None) -> str:
        if timeout is not None and timeout < _POLL_SECONDS:
            return f"the work goes on; whoever waits for {_POLL_SECONDS} seconds or more is told where it stands"
        return self._told()


class ManualCompletionReply(CompletionReply[T], ManualReply[T]):
    """The same for an engine that is driven: what driving it cannot bring is told."""

    __slots__ = ()

    def _remedy(self) -> str:
        told = self._told()
        return f": {told}" if told.startswith(OPERATOR) else f"{super()._remedy()}; {told}"


_DOUBT: Final = 0.05
"""Seconds after which it is looked up whether an instance that this process takes for running was ended by another one."""

Bring = Callable[[Completion, Reply[T]], None]
"""Answers a reply when the end has come; it must not hold the reply until then."""

_Waiting = WeakKeyDictionary[CompletionReply[Any], Bring[Any]]


class CompletionWaiters:
    """Who waits for which instance. An instance may take weeks, so that nobody is remembered who does not wait any more."""

    def __init__(
        self, service: Dispatcher, lookup: Lookup, summarize: Callable[[object], object], *, has_threads: bool
    ) -> None:
        self._lookup = lookup
        self._summarize = summarize
        self._lock = threading.Lock()
        self._waiting: dict[_Key, _Waiting] = {}
        self._called_back: set[Reply[Any]] = set()
        """Replies that are to call somebody back, so that they stay although nobody may hold them."""
        self._fresh: set[_Key] = set()
        """Asked for since the last look."""
        self._doubted: dict[_Key, float] = {}
        """Asked for while this process took them for running, each with when to look (monotonic time): another process may have ended them."""
        self._pause = service.shared.settings.poll_interval.total_seconds()
        limit = service.shared.settings.unhealthy_after.total_seconds()
        self._loop = Loop("endings", self._step, service.shared.telemetry, limit=limit) if has_threads else None
        self._is_started = False
        self._is_stopped = False
        self._look_at = 0.0
        """When to look at all of them again, in case another process ended one (monotonic time)."""
        self._service = service
        self._is_running = service.committer.is_running
        self._is_listening = False
        self.rests = IdleWaiters(service, has_threads=has_threads)
        """Who waits for an instance to rest."""

    def reply(self, told: Told) -> CompletionReply[Any]:
        """An answer to come with the end of an instance."""
        kind = ManualCompletionReply if self._loop is None else CompletionReply
        return kind(told, self._called_back)

    def wait(self, address: Address, reply: CompletionReply[T], bring: Bring[T]) -> None:
        """Have a reply answered once the instance at an address, which names its id, has ended."""
        assert address.instance is not None
        key = address.tenant, address.partition, address.instance
        with self._lock:
            is_stopped = self._is_stopped
            if not is_stopped:
                self._waiting.setdefault(key, WeakKeyDictionary())[reply] = bring
            if not self._is_listening:
                self._is_listening = True
                self._service.listen(self)
        if is_stopped:
            reply.set_error(StoppedError("the engine is stopped"))
        elif self._loop is None:
            self._look([key])
        else:
            self._look_soon(key)

    @property
    def loops(self) -> list[Loop]:
        """The loops that look, once somebody waits."""
        own = [self._loop] if self._loop is not None and self._is_started else []
        return [*own, *self.rests.loops]

    def _look_soon(self, key: _Key) -> None:
        """Have the loop look: at once if the instance may have ended already, soon if another process may have ended it."""
        assert self._loop is not None
        _, partition, instance = key
        with self._lock:
            is_new = not self._is_running(
                instance, partition
            )  # Whoever ends it after this will tell: the reply is waiting.
            must_wake = is_new or not self._doubted
            if is_new:
                self._fresh.add(key)
            else:
                self._doubted.setdefault(key, time.monotonic() + _DOUBT)
            if not self._is_started and not self._is_stopped:
                self._is_started = True
                self._loop.start()
        if must_wake:
            self._loop.wake()

    def stop(self) -> None:
        """Nobody will tell any more."""
        with self._lock:
            self._is_stopped = True
        for loop in self.loops:
            loop.stop()
            loop.join(1.0)
        self.rests.stop()
        with self._lock:
            waiting, self._waiting = self._waiting, {}
        for replies in waiting.values():
            for reply in list(replies):
                reply.set_error(StoppedError("the engine is stopped"))

    def committed(self, batch: CommandBatch) -> None:
        """Answer those who wait for an instance that a commit has ended."""
        if not self._waiting:
            return
        for draft in batch.written:
            if draft.ends:
                header = draft.header
                for partition in {"", header.partition}:
                    key = header.tenant, partition, header.id
                    if key in self._waiting:
                        self._tell(key, Completion(header, self._summarize(draft.state)))

    def _step(self) -> float:
        """Look at those that were asked for since the last time; now and then at all of them, however many are asked for meanwhile."""
        now = time.monotonic()
        with self._lock:
            self._waiting = {key: waiting for key, waiting in self._waiting.items() if waiting}
            keys = list(self._waiting) if now >= self._look_at else [*self._fresh, *self._overdue(now)]
            self._fresh = set()
            self._doubted = {key: at for key, at in self._doubted.items() if at > now and key in self._waiting}
            soon = min(self._doubted.values(), default=None)
        if now >= self._look_at:
            self._look_at = now + self._pause
        try:
            self._look(keys)
        except BaseException:
            self._look_at = now  # At all of them, because those that were asked for are not known any more.
            raise
        next_at = self._look_at if soon is None else min(soon, self._look_at)
        return max(0.0, next_at - time.monotonic())

    def _overdue(self, now: float) -> list[_Key]:
        """Those that somebody still waits for although they were taken for running a while ago."""
        return [key for key, at in self._doubted.items() if at <= now and key in self._waiting]

    def _look(self, keys: Sequence[_Key]) -> None:
        by_tenant: defaultdict[tuple[str, str], list[InstanceId]] = defaultdict(list)
        for tenant, partition, instance in keys:
            by_tenant[tenant, partition].append(instance)
        turns = IsolatedTasks()
        for whose, instances in by_tenant.items():
            turns.take(partial(self._look_at_tenant, *whose, instances), None)
        turns.end()

    def _look_at_tenant(self, tenant: str, partition: str, instances: Sequence[InstanceId]) -> None:
        keys = [(tenant, partition, instance) for instance in instances]
        with self._lock:
            asked = {key: list(self._waiting.get(key, ())) for key in keys}
        found = {header.id: header for header in self._lookup(tenant, partition, instances)}
        for key in keys:
            header = found.get(key[2])
            if header is None:
                self._tell_missing(key, asked[key])
            elif header.ended_at is not None:
                self._tell(key, Completion(header))

    def _tell(self, key: _Key, ending: Completion) -> None:
        with self._lock:
            waiting = self._waiting.pop(key, None)
        for reply, bring in list(waiting.items()) if waiting else ():
            bring(ending, reply)

    def _tell_missing(self, key: _Key, asked: Sequence[CompletionReply[Any]]) -> None:
        """It was not there when it was looked for. It may be by now, and whoever came since then waits for that."""
        with self._lock:
            waiting = self._waiting.get(key)
            told = [] if waiting is None else [reply for reply in asked if waiting.pop(reply, None) is not None]
        for reply in told:
            reply.set_error(NotFoundError("instance", key[2]))


async def awaited(reply: CompletionReply[T], timeout: float | None) -> T:  # noqa: ASYNC109 - as in the blocking face
    """The answer; TimeoutError after `timeout` seconds says where the run stands, as in the blocking face."""
    if timeout is None:
        return await reply
    try:
        async with asyncio.timeout(timeout):
            return await reply
    except TimeoutError:
        told = await asyncio.to_thread(reply.impatience, timeout)  # It asks the database.
        raise TimeoutError(told) from None
