"""Interceptors of commands, handler calls and requests: tracers, error trackers and log contexts.

A telemetry listener is notified afterwards. An interceptor runs around the operation, on the thread of the caller or of
the handler. Thread-local and task-local data, such as the current span, is therefore correct inside it. Without
interceptors nothing is created or called.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol, TypeVar

import msgspec

from standfast.errors import ConfigurationError
from standfast.kernel.ids import InstanceId

_log = logging.getLogger("standfast")

T = TypeVar("T")


class CommandFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A command that is about to be committed."""

    command: str
    """The stored type name of the command: its class name, or the name from `@message(name=…)`."""
    definition: str
    """Definition of the instance. Empty if only the instance is named."""
    tenant: str
    instance: InstanceId | None
    """The target instance. None if it is named by a key or new."""
    key: str
    actor: str
    trace: str
    """Trace of the request that the command follows from. Empty without one."""


class CallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A call of a handler."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    handler: str
    attempt: int
    actor: str
    trace: str
    created_at: datetime
    claimed_at: datetime
    body: Callable[[], object]
    """Reads the effect once more. It raises the error that the handler's own reading would raise."""


class RequestFacts(msgspec.Struct, frozen=True, kw_only=True):
    """An HTTP request that is about to be answered."""

    method: str
    route: str
    """The route pattern as the API declares it, so that the number of values is small."""
    request_id: str
    caller: str
    """The client's `traceparent` header. Empty if it is missing or invalid."""
    trace: str
    """Trace of the request without interceptors."""


class CommandInterception(Protocol):
    """Interception of one command.

    Its methods are called in this order, `committed` once per attempt, possibly on different threads.
    """

    trace: str
    """Trace to store with the command and its follow-up work. Empty keeps the existing one."""

    def committed(self, seconds: float, /) -> None:
        """A commit that decided the command has ended after this many seconds."""
        ...

    def ended(self, error: BaseException | None, /) -> None:
        """The caller is about to get the reply: the command is stored, or `error` is the reason why not."""
        ...


class CallInterception(Protocol):
    """Interception of one handler call."""

    trace: str
    """Trace that the handler sees and that its result follows from. Empty keeps the existing one."""

    def ended(self, error: BaseException | None, /) -> None:
        """The handler has returned, or raised `error`. Called on the same thread or in the same task."""
        ...


class Interceptor:
    """Base class of interceptors.

    Override the methods for the operations to intercept. They must be quick and must not raise.
    """

    def caller(self, trace: str) -> str:
        """Return the trace of a command that is decided later: the given one, or that of the current thread's caller."""
        return trace

    def request(self, facts: RequestFacts) -> CallInterception | None:
        """An HTTP request is about to be answered in the current task.

        The returned trace applies to the response and to all its work.
        """
        del facts
        return None

    def command(self, facts: CommandFacts) -> CommandInterception | None:
        """A command is submitted on the current thread."""
        del facts
        return None

    def call(self, facts: CallFacts) -> CallInterception | None:
        """A handler is about to be called, on its thread or in its task."""
        del facts
        return None


class Interceptors:
    """The interceptors of one engine. Exceptions from them are logged and ignored."""

    def __init__(self) -> None:
        self._all: tuple[Interceptor, ...] = ()
        self.is_any = False
        """Whether there is an interceptor. A plain attribute, because every command and call reads it."""

    def add(self, companion: Interceptor) -> None:
        """Add an interceptor."""
        given: object = companion  # An untyped caller may pass any object.
        if not isinstance(given, Interceptor):
            raise ConfigurationError(
                f"{given!r} is no interceptor: give an object of a class that derives from Interceptor"
            )
        self._all = (*self._all, companion)
        self.is_any = True

    def caller(self, trace: str) -> str:
        """Return the trace of a command that is decided later. The last interceptor that sets one wins."""
        for each in self._all:
            trace = _safely(partial(each.caller, trace)) or trace
        return trace

    def with_request(
        self, method: str, route: str, *, request_id: str, caller: str, trace: str
    ) -> tuple[Sequence[CallInterception], str]:
        """Start the interception of a request. Return the interceptions and the resulting trace."""
        facts = RequestFacts(method=method, route=route, request_id=request_id, caller=caller, trace=trace)
        found = [each for each in (_safely(partial(each.request, facts)) for each in self._all) if each is not None]
        return found, next((each.trace for each in found if each.trace), trace)

    def with_command(self, facts: CommandFacts) -> tuple[Sequence[CommandInterception], str]:
        """Start the interception of a command.

        Return the interceptions and the resulting trace; each interceptor sees the trace so far.
        """
        found: list[CommandInterception] = []
        for each in self._all:
            passage = _safely(partial(each.command, facts))
            if passage is not None:
                found.append(passage)
                facts = msgspec.structs.replace(facts, trace=passage.trace or facts.trace)
        return found, facts.trace

    def with_call(self, facts: CallFacts) -> tuple[Sequence[CallInterception], str]:
        """Start the interception of a handler call.

        Return the interceptions and the resulting trace; each interceptor sees the trace so far.
        """
        found: list[CallInterception] = []
        for each in self._all:
            attendance = _safely(partial(each.call, facts))
            if attendance is not None:
                found.append(attendance)
                facts = msgspec.structs.replace(facts, trace=attendance.trace or facts.trace)
        return found, facts.trace

    @staticmethod
    def end(ways: Sequence[CommandInterception | CallInterception], error: BaseException | None) -> None:
        """End the interceptions in reverse order, so that thread-local data is unwound correctly."""
        for each in reversed(ways):
            _safely(partial(each.ended, error))


def committed(passages: Sequence[CommandInterception], seconds: float) -> None:
    """Notify the interceptions of a commit."""
    for each in passages:
        _safely(partial(each.committed, seconds))


ended = Interceptors.end


def _safely(call: Callable[[], T]) -> T | None:
    try:
        return call()
    except Exception:  # noqa: BLE001 - a failing interceptor must not stop the engine
        _log.exception("interceptor_failed")
        return None
