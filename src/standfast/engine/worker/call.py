"""A single handler call: its context, and the callbacks at its end."""

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
"""Number of abandoned calls that a log line names."""

Key = tuple[int, int]
"""Identifies an effect: the integer form of its instance's id, which compares faster than the id, and its number."""


def key_of(instance: InstanceId, number: int) -> Key:
    """Return the key of an effect."""
    return instance.int, number


class Execution:
    """A single handler call."""

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
        """Decodes the effect, and encodes commands for the instance."""
        self.handler = handler
        self.options = options
        self.needs_thread = not handler.is_async or options.transactional
        """Whether the handler is called on a thread. Otherwise it is a coroutine on the event loop."""
        self.is_begun = False
        """Whether the handler was called, or is just being called."""
        self.is_stopping = False
        """Whether the instance asked the handler to stop. The result still counts, but the call is not retried."""
        self.has_slot = True
        """Whether the call occupies a slot of the worker."""
        self.started = since
        """Start of the call in ticks of the engine's clock. Before the call, the time at which the effect was
        claimed."""
        self.limit: float | None = None
        """Timeout in seconds. None means no limit."""
        self.deadline: float | None = None
        """Monotonic time at which the call counts as failed, or is abandoned. None without a limit and after the
        end."""
        self.task: asyncio.Task[None] | None = None
        self.thread: int | None = None
        """Id of the thread that runs a plain function."""
        self.take_back: Callable[[], None] | None = None
        """Revokes the connection of a running transactional handler. None if there is none to revoke."""
        self.joint: object = None
        """The unit of work of a built-in handler that commits commands of other instances. None for all others."""
        request = OWN if effect.context is None else request_of(effect.context)
        self.follow_up = OWN
        if request is not OWN:
            self.follow_up = RequestContext(actor=SYSTEM, trace=request.trace, partition=request.partition)
        """The result is decided for the engine itself, under the trace of the call."""
        self.attendances: Sequence[CallInterception] = ()
        """The interceptors of the call."""
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
        """Start the interceptors of the call, on its thread or in its task."""
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
        """Decode the effect for this call, so that the handler owns the object.

        Raises PayloadError if it cannot be decoded.
        """
        effect = self.effect
        if effect.language == self.handler.foreign:
            name = self.handler.name
            raise UncalledError(
                f"the handler {name!r} is that of the decider {name!r} and takes no steps; register theirs under another name"
            )
        return self.program.effects.decode(effect.type, effect.version, effect.data)

    def lost(self) -> WorkLost:
        """Build the telemetry event for an effect that was withdrawn or belongs to another worker."""
        effect = self.effect
        return WorkLost(
            definition=effect.definition, tenant=effect.tenant, instance=effect.instance, number=effect.number
        )

    def begin(self) -> bool:
        """Return whether to call the handler.

        False if the result is no longer wanted, or if the handler would have to stop immediately.
        """
        self.is_begun = not self.context.cancelled and not self._settled.locked()
        return self.is_begun

    def settle(self) -> bool:
        """Claim the right to settle the call. Return False if it is already settled."""
        return self._settled.acquire(blocking=False)

    @property
    def is_settled(self) -> bool:
        """Whether the call is settled."""
        return self._settled.locked()

    def retract(self) -> None:
        """Undo `settle` after a failed commit. Only the thread that settled the call may do this."""
        self._settled.release()


class Ends:
    """Callbacks at the end of a call."""

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
        """The handler was not called. Any worker with a free slot may call it."""
        self.transact = transact
        """Calls a transactional handler inside its own commit. Returns why nothing was committed, empty on success."""


def call_here(execution: Execution) -> object:
    """Call a handler on this thread, and return its result, also if it is a coroutine."""
    function = execution.handler.function
    if not execution.handler.is_async:
        return function(execution.context, execution.body())
    make = cast("Callable[[EffectContext, object], Coroutine[object, object, object]]", function)
    return run_coroutine(lambda: make(execution.context, execution.body()))


def cancel_task(execution: Execution) -> None:
    """Cancel the task of a call.

    A task that has not begun checks for itself, because a task cancelled before its first step would skip its cleanup.
    """
    if execution.task is not None and execution.is_begun:
        execution.task.cancel()


def run_coroutine(make: Callable[[], Coroutine[object, object, T]]) -> T:
    """Run a coroutine to its end, even inside a running event loop."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    context = copy_context()  # The coroutine may use what its caller has borrowed.
    with ThreadPoolExecutor(1, thread_name_prefix="standfast-handler") as thread:
        return thread.submit(context.run, lambda: asyncio.run(make())).result()


def log_failure(execution: Execution, error: BaseException) -> None:
    """Log an exception of a handler with its traceback. Histories store only the text, and the handler's author needs the location.

    `Fail`, `Retry`, and errors after a cancellation are intended outcomes and are not logged here. A BaseException that
    is no Exception is logged where it ends the program.
    """
    if not isinstance(error, Exception):
        return
    effect = execution.effect
    is_meant = execution.context.cancelled or (
        isinstance(error, Fail | Retry) and not isinstance(error, NoConnectionError)
    )
    level = logging.INFO if is_meant and not isinstance(error, UncalledError) else logging.WARNING
    named_so = (effect.handler, effect.definition, effect.instance, describe(error))
    with suppress(Exception):  # Filters and handlers of logs are foreign code.
        place = None if is_meant or not _is_writable(error) else error
        _log.log(level, "handler_failed handler=%r definition=%r run=%s: %s", *named_so, exc_info=place)


def _is_writable(error: Exception) -> bool:
    """Return whether a log can encode the error's text. A lone surrogate would lose the whole record."""
    try:
        "".join(traceback.format_exception(error)).encode()
    except UnicodeEncodeError:
        return False
    return True


def too_slow(limit: float | None) -> TimeoutError:
    """Return the error of a call that exceeded its timeout."""
    return TimeoutError(f"no answer within {limit} s")


def named(executions: Sequence[Execution]) -> str:
    """Name the handlers and effects of calls for a log line, the first few of them."""
    few = [
        f"{each.handler.name!r}, effect {effect_key(each.effect.instance, each.effect.number)}"
        for each in executions[:_NAMED]
    ]
    return "; ".join([*few, "…"] if len(executions) > _NAMED else few)


def take_back(executions: Iterable[Execution]) -> list[threading.Thread]:
    """Revoke the connections of abandoned transactional handlers, each on its own thread, because a database may not answer."""
    takes = [each.take_back for each in executions]
    threads = [threading.Thread(target=take, name="standfast-taking-back", daemon=True) for take in takes if take]
    for thread in threads:
        thread.start()
    return threads
