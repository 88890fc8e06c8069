"""One call of one handler: what is known about it, and where it can end."""

from __future__ import annotations

import asyncio
import logging
import threading
import traceback
from collections.abc import Callable, Coroutine, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from contextvars import copy_context
from typing import TypeVar, cast

from standfast.engine.commit.work_rows import EffectOptions
from standfast.engine.common.handlers import (
    EffectContext,
    Fail,
    Handler,
    NoConnectionError,
    Retry,
    UncalledError,
)
from standfast.engine.common.interceptors import CallFacts, CallInterception, Interceptors
from standfast.engine.common.telemetry import WorkLost
from standfast.engine.common.work_errors import describe
from standfast.kernel.actor import OWN, SYSTEM, RequestContext, request_of
from standfast.kernel.ids import InstanceId, effect_key
from standfast.kernel.program import Program
from standfast.store.records.instances import StoredEffect

_log = logging.getLogger("standfast.handlers")

T = TypeVar("T")

_NAMED = 10
"""Calls that are left behind and named."""

Key = tuple[int, int]
"""Names an effect, whoever runs it: the number that its instance's id is, which is compared faster than the id, and its own."""


def key_of(instance: InstanceId, number: int) -> Key:
    """The key of an effect."""
    return instance.int, number


class Execution:
    """One call of one handler."""

    __slots__ = (
        "_settled",
        "attendances",
        "claim",
        "context",
        "deadline",
        "effect",
        "follow_up",
        "handler",
        "has_slot",
        "is_begun",
        "is_stopping",
        "joint",
        "key",
        "limit",
        "needs_thread",
        "options",
        "program",
        "started",
        "take_back",
        "task",
        "thread",
    )

    def __init__(
        self,
        effect: StoredEffect,
        program: Program,
        handler: Handler,
        options: EffectOptions,
        *,
        since: float,
        find_key: Callable[[str, InstanceId], str],
    ) -> None:
        self.effect = effect
        self.key = (effect.instance.int, effect.number)
        self.claim = effect.claim
        self.program = program
        """Reads the effect, and knows its instance's words."""
        self.handler = handler
        self.options = options
        self.needs_thread = not handler.is_async or options.transactional
        """Whether it is called on a thread; else it is a coroutine on the event loop."""
        self.is_begun = False
        """Whether the handler was called, or is just being called."""
        self.is_stopping = False
        """Whether the instance asked the handler to stop; what comes of the call still counts, but it is not tried again."""
        self.has_slot = True
        """Whether a slot of the worker is taken for it."""
        self.started = since
        """When the handler was called, by the ticks of the engine's clock; until then, when the effect came in hand."""
        self.limit: float | None = None
        """Seconds that the call may take; None means any number."""
        self.deadline: float | None = None
        """Monotonic time at which the call counts as failed, or is written off; None while it has no limit, and when it is over."""
        self.task: asyncio.Task[None] | None = None
        self.thread: int | None = None
        """The id of the thread that a plain function keeps busy."""
        self.take_back: Callable[[], None] | None = None
        """Takes the connection from a transactional handler that is running; None while there is none to take."""
        self.joint: object = None
        """What a handler of the engine's own has other instances' commands carried out by; None for all others."""
        request = OWN if effect.context is None else request_of(effect.context)
        self.follow_up = OWN
        if request is not OWN:
            self.follow_up = RequestContext(actor=SYSTEM, trace=request.trace, partition=request.partition)
        """As what the result of the call is decided: the engine's own doing, under the trace of the call."""
        self.attendances: Sequence[CallInterception] = ()
        """Those who go along with the call."""
        self.context = EffectContext(
            instance=effect.instance,
            tenant=effect.tenant,
            decider=effect.definition,
            number=effect.number,
            attempt=effect.attempts,
            actor=request.actor,
            trace=request.trace,
            partition=request.partition,
            find_key=find_key,
        )
        self._settled = threading.Lock()

    def begin_attendance(self, companions: Interceptors) -> None:
        """Have companions go along with the call; called on its thread, or in its task."""
        effect, context = self.effect, self.context
        facts = CallFacts(
            definition=effect.definition,
            tenant=effect.tenant,
            instance=effect.instance,
            number=effect.number,
            handler=effect.handler,
            attempt=effect.attempts,
            actor=context.actor.id,
            trace=context.trace,
            created_at=effect.created_at,
            claimed_at=effect.claimed_at or effect.created_at,
            body=self.body,
        )
        self.attendances, trace = companions.with_call(facts)
        if trace != context.trace:
            context.trace = trace
            self.follow_up = RequestContext(actor=SYSTEM, trace=trace, partition=context.partition)

    def body(self) -> object:
        """What the handler is given: read from the bytes for this call, so that it is the handler's own; PayloadError if it cannot be."""
        effect = self.effect
        if effect.language == self.handler.foreign:
            name = self.handler.name
            raise UncalledError(
                f"the handler {name!r} is that of the decider {name!r} and takes no steps; register theirs under another name"
            )
        return self.program.effects.decode(effect.type, effect.version, effect.data)

    def lost(self) -> WorkLost:
        """What telemetry hears when the effect belongs to another worker, or to nobody."""
        effect = self.effect
        return WorkLost(
            definition=effect.definition, tenant=effect.tenant, instance=effect.instance, number=effect.number
        )

    def begin(self) -> bool:
        """Whether to call the handler now: not if its result is no longer wanted, or if it would have to stop at once."""
        self.is_begun = not self.context.cancelled and not self._settled.locked()
        return self.is_begun

    def settle(self) -> bool:
        """Whether this is the first word about the call; later ones do not count."""
        return self._settled.acquire(blocking=False)

    @property
    def is_settled(self) -> bool:
        """Whether a word was said about the call."""
        return self._settled.locked()

    def retract(self) -> None:
        """Take the word back, because it came to nothing; for whoever said it."""
        self._settled.release()


class Ends:
    """Where a call can end."""

    def __init__(
        self,
        *,
        returned: Callable[[Execution, object], None],
        failed: Callable[[Execution, BaseException], None],
        given_back: Callable[[Execution], None],
        transact: Callable[[Execution], str],
    ) -> None:
        self.returned = returned
        self.failed = failed
        self.given_back = given_back
        """The handler was not called: whoever has room for it may do so."""
        self.transact = transact
        """Calls the handler of a transactional effect inside a commit of its own; why nothing came of it, empty if something did."""


def call_here(execution: Execution) -> object:
    """Call a handler and come back with its result, also when it is a coroutine."""
    function = execution.handler.function
    if not execution.handler.is_async:
        return function(execution.context, execution.body())
    make = cast("Callable[[EffectContext, object], Coroutine[object, object, object]]", function)
    return run_coroutine(lambda: make(execution.context, execution.body()))


def cancel_task(execution: Execution) -> None:
    """A task that has not begun sees for itself; cancelled before its first step, it would not even clear up."""
    if execution.task is not None and execution.is_begun:
        execution.task.cancel()


def run_coroutine(make: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a coroutine to its end, also from inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    context = copy_context()  # What is lent to the caller is lent to the coroutine.
    with ThreadPoolExecutor(1, thread_name_prefix="standfast-handler") as thread:
        return thread.submit(context.run, lambda: asyncio.run(make())).result()


def log_failure(execution: Execution, error: BaseException) -> None:
    """Tell the log what a handler raised, and where: histories keep the words, and the place is what whoever wrote the handler looks for.

    `Fail` and `Retry` are what a handler wanted to say, and so is whatever it raises because it was told to stop. What is no Exception ends
    programs, and is told by whoever ends this one.
    """
    if not isinstance(error, Exception):
        return
    effect = execution.effect
    is_meant = execution.context.cancelled or (
        isinstance(error, Fail | Retry) and not isinstance(error, NoConnectionError)
    )
    level = logging.INFO if is_meant and not isinstance(error, UncalledError) else logging.WARNING
    named_so = (effect.handler, effect.definition, effect.instance, describe(error))
    with suppress(Exception):  # Filters and handlers of logs are somebody else's code.
        place = None if is_meant or not _is_writable(error) else error
        _log.log(level, "the handler %r failed for %r, run %s: %s", *named_so, exc_info=place)


def _is_writable(error: Exception) -> bool:
    """Whether a log can write down what an error says of itself: half a character would cost the whole record."""
    try:
        "".join(traceback.format_exception(error)).encode()
    except UnicodeEncodeError:
        return False
    return True


def too_slow(limit: float | None) -> TimeoutError:
    """What becomes of a call that took too long."""
    return TimeoutError(f"no answer within {limit} s")


def named(executions: Sequence[Execution]) -> str:
    """Calls by their handlers and effects, for a log; the first few of them."""
    few = [
        f"{each.handler.name!r}, effect {effect_key(each.effect.instance, each.effect.number)}"
        for each in executions[:_NAMED]
    ]
    return "; ".join([*few, "…"] if len(executions) > _NAMED else few)


def take_back(executions: Iterable[Execution]) -> list[threading.Thread]:
    """Take the connections from transactional handlers that are given up; each on a thread, because a database may not answer."""
    takes = [each.take_back for each in executions]
    threads = [threading.Thread(target=take, name="standfast-taking-back", daemon=True) for take in takes if take]
    for thread in threads:
        thread.start()
    return threads
