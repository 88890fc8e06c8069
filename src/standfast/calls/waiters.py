"""Waiting for the end of instances: told by this process's own commits, and looked for now and then in case another process ended one."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, TypeVar
from weakref import WeakKeyDictionary

from standfast.calls.rests import IdleWaiters
from standfast.calls.status_text import OPERATOR
from standfast.calls.timeouts import tell_of_timeouts
from standfast.engine.concurrency.loop import IsolatedTasks, Loop
from standfast.engine.concurrency.manual_replies import ManualReply
from standfast.engine.concurrency.replies import LastingReply, Reply
from standfast.engine.dispatcher import Dispatcher, Ended
from standfast.errors import NotFoundError, StoppedError
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import Address, InstanceHeader

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
        self._is_running = service.committer.is_running
        self.rests = IdleWaiters(service, has_threads=has_threads)
        """Who waits for an instance to rest."""
        service.when_ended(self._ended)
        tell_of_timeouts(service)

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

    def _ended(self, instances: Sequence[Ended]) -> None:
        if self._waiting:
            for header, state in instances:
                for partition in {"", header.partition}:
                    key = header.tenant, partition, header.id
                    if key in self._waiting:
                        self._tell(key, Completion(header, self._summarize(state)))

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
