"""Handlers: the functions that a worker calls for effects, and the context of a call."""

from __future__ import annotations

import inspect
import logging
import math
import threading
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any, TypeAlias

import msgspec

from standfast.errors import ConfigurationError, NotFoundError, indefinite
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.codec.message_types import name_flaw
from standfast.kernel.ids import InstanceId, effect_key
from standfast.kernel.retry import LONGEST_TIMEOUT, NOT_A_TIMEOUT, RetryPolicy


class Fail(Exception):  # noqa: N818 - it reads as a verdict of the handler
    """Raised by a handler to fail permanently. The effect is not retried."""


class UncalledError(Fail):
    """The handler was not called, because a required argument is unavailable.

    Nothing has happened that must be undone.
    """


class NoConnectionError(Fail):
    """The handler requested the connection of a transaction, but it is not transactional."""

    def __init__(self) -> None:
        super().__init__(
            "this handler has no connection, because it is not called inside the commit: say transactional=True of its step, "
            "compensation or effect (of a workflow that is published, in another version), or use a connection of your own"
        )


class Retry(Exception):  # noqa: N818 - it reads as a verdict of the handler
    """Raised by a handler to request a retry, after the given delay or else by the retry policy."""

    def __init__(self, reason: str = "", *, after: timedelta | float | None = None) -> None:
        self.after = timedelta(seconds=after) if isinstance(after, int | float) else after
        if self.after is not None and not isinstance(self.after, timedelta):
            raise TypeError(f"Retry(after={after!r}): give a timedelta or a number of seconds")
        super().__init__(reason or "the handler asked to be tried again")


class EffectContext:
    """The context of a handler call."""

    __slots__ = (
        "_connection",
        "_find_key",
        "_told",
        "actor",
        "attempt",
        "cancelled",
        "deadline",
        "decider",
        "instance",
        "number",
        "partition",
        "tenant",
        "trace",
    )

    def __init__(  # noqa: PLR0913 - the fields of a call, by name
        self,
        *,
        instance: InstanceId,
        tenant: str,
        decider: str,
        number: int,
        attempt: int,
        actor: Actor = SYSTEM,
        trace: str = "",
        partition: str = "",
        find_key: Callable[[str, InstanceId], str] = lambda _tenant, _instance: "",
    ) -> None:
        self.instance = instance
        self.tenant = tenant
        self.partition = partition
        """Partition of the tenant to which the instance belongs."""
        self.decider = decider
        self.number = number
        self.attempt = attempt
        """Number of the attempt. 1 is the first call."""
        self.actor = actor
        """The actor of the command that requested the effect. `system` if the effect follows from another handler's
        result, a timer or a message of an instance."""
        self.trace = trace
        """Trace of the request that the effect follows from. Empty without one."""
        self.deadline: datetime | None = None
        """When the call counts as failed. None means never."""
        self._connection: object | None = None
        self._find_key = find_key
        self.cancelled = False
        """Whether the result is no longer wanted. Plain functions should check it regularly; coroutines are
        cancelled."""
        self._told: threading.Event | None = None
        """Created when a handler first waits for the cancellation, because few handlers ever do."""

    @property
    def connection(self) -> Any:
        """The connection of the open transaction, of psycopg or sqlite3.

        Only transactional handlers have one; in others access fails the effect permanently.
        """
        if self._connection is None:
            raise NoConnectionError
        return self._connection

    @connection.setter
    def connection(self, lent: object) -> None:
        self._connection = lent

    @property
    def key(self) -> str:
        """Business key of the instance, empty if it has none."""
        return self._find_key(self.tenant, self.instance)

    @property
    def idempotency_key(self) -> str:
        """A key that is the same for all attempts of this effect and unique among effects.

        Pass it to external services.
        """
        return effect_key(self.instance, self.number)

    def wait_cancelled(self, timeout: float) -> bool:
        """Sleep until the timeout or the cancellation of the call. Return whether it was cancelled."""
        if self._told is None:
            self._told = threading.Event()
        if self.cancelled:
            return True
        return self._told.wait(timeout)

    def cancel(self) -> None:
        """Mark the result as no longer wanted."""
        self.cancelled = True
        if self._told is not None:
            self._told.set()

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that adds the instance and the attempt."""
        facts = {"instance": str(self.instance), "effect": self.number, "attempt": self.attempt, "trace": self.trace}
        return logging.LoggerAdapter(logging.getLogger(f"standfast.handlers.{self.decider}"), facts)


Function: TypeAlias = Callable[[EffectContext, object], object] | Callable[[EffectContext, object], Awaitable[object]]


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """A registered function with its call options."""

    name: str
    function: Function
    is_async: bool
    concurrency: int
    """Concurrent calls in this process."""
    timeout: timedelta | None = None
    retry: RetryPolicy | None = None
    foreign: str = ""
    """A language whose effects the handler cannot accept although they name it. Empty if it accepts all."""
    joins: bool = False
    """Whether it is a built-in handler that commits commands in the transaction of its effect. Its `connection` is
    then a unit of work."""


class Handlers:
    """The handlers of one process, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Handler] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def count(self) -> int:
        """The number of handlers. A changed number invalidates what was derived from them."""
        return len(self._by_name)

    def names(self) -> list[str]:
        """The names of all handlers, sorted."""
        return sorted(self._by_name)

    def register(
        self,
        name: str,
        function: Function,
        *,
        concurrency: int | None = None,
        timeout: timedelta | None = None,
        retry: RetryPolicy | None = None,
        foreign: str = "",
        joins: bool = False,
    ) -> Handler:
        """Register a handler. A name can be registered only once."""
        if name in self._by_name:
            raise ConfigurationError(f"there is already a handler for {name!r}; a decider or step has exactly one")
        if not callable(function):
            raise ConfigurationError(
                f"the handler for {name!r} is {indefinite(type(function))}: give a function or an object with `handle`"
            )
        if flaw := name_flaw(name):
            raise ConfigurationError(f"the handler's name {name!r} {flaw}; steps and effects find it by that")
        if concurrency is not None and not 1 <= concurrency < math.inf:
            raise ConfigurationError(f"the handler for {name!r} needs a concurrency of at least 1, not {concurrency}")
        if timeout is not None and not timedelta(0) < timeout <= LONGEST_TIMEOUT:
            raise ConfigurationError(f"the timeout {timeout} of the handler for {name!r} {NOT_A_TIMEOUT}")
        is_async = self.is_async(function)
        handler = Handler(
            name=name,
            function=function,
            is_async=is_async,
            concurrency=concurrency or (_MANY if is_async else _FEW),
            timeout=timeout,
            retry=retry,
            foreign=foreign,
            joins=joins,
        )
        # The dict is replaced as a whole, because workers read it without a lock.
        self._by_name = {**self._by_name, name: handler}
        return handler

    def find(self, name: str) -> Handler | None:
        """Return the handler with this name, or None."""
        return self._by_name.get(name)

    def get(self, name: str) -> Handler:
        """Return the handler with this name. Raises an error if there is none."""
        try:
            return self._by_name[name]
        except KeyError:
            raise NotFoundError("handler", name) from None

    def wrap(self, wrapper: Callable[[Function], Function]) -> None:
        """Wrap every handler, for tests."""
        self._by_name = {
            name: msgspec.structs.replace(handler, function=wrapper(handler.function))
            for name, handler in self._by_name.items()
        }

    @staticmethod
    def is_async(function: object) -> bool:
        """Return whether a call of the function returns a coroutine."""
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    def all(self) -> list[Handler]:
        """Return all handlers."""
        return list(self._by_name.values())


_MANY = 1000
_FEW = 32
