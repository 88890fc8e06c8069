"""Handlers: what a worker calls for an effect, and what the call knows."""

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


class Fail(Exception):  # noqa: N818 - it reads as what a handler says
    """Raised by a handler: trying again cannot help. The effect gives up at once."""


class UncalledError(Fail):
    """The handler could not even be called, because what it asks for is not there: it has done nothing, and there is nothing to undo."""


class NoConnectionError(Fail):
    """The handler asked for the connection of a transaction that it is not called in."""

    def __init__(self) -> None:
        super().__init__(
            "this handler has no connection, because it is not called inside the commit: say transactional=True of its step, "
            "compensation or effect (of a workflow that is published, in another version), or use a connection of your own"
        )


class Retry(Exception):  # noqa: N818 - it reads as what a handler says
    """Raised by a handler: try again, after this long if given, else by the policy."""

    def __init__(self, reason: str = "", *, after: timedelta | float | None = None) -> None:
        self.after = timedelta(seconds=after) if isinstance(after, int | float) else after
        if self.after is not None and not isinstance(self.after, timedelta):
            raise TypeError(f"Retry(after={after!r}): give a timedelta or a number of seconds")
        super().__init__(reason or "the handler asked to be tried again")


class EffectContext:
    """What a handler knows about its call."""

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

    def __init__(  # noqa: PLR0913 - all that is known of a call, by name
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
        """The part of the tenant that the instance belongs to."""
        self.decider = decider
        self.number = number
        self.attempt = attempt
        """1 for the first call."""
        self.actor = actor
        """Whose command asked for it; `system` if it follows from another handler's result, a timer or a message of an instance."""
        self.trace = trace
        """Names the request that it follows from; empty if none was named."""
        self.deadline: datetime | None = None
        """When the call counts as failed; None means never."""
        self._connection: object | None = None
        self._find_key = find_key
        self.cancelled = False
        """Whether the result is no longer wanted. A plain function looks at it now and then; a coroutine is cancelled."""
        self._told: threading.Event | None = None
        """Made when somebody waits; few calls ever do."""

    @property
    def connection(self) -> Any:
        """The open transaction's connection, of psycopg or sqlite3, for transactional effects; others fail at once by asking for it."""
        if self._connection is None:
            raise NoConnectionError
        return self._connection

    @connection.setter
    def connection(self, lent: object) -> None:
        self._connection = lent

    @property
    def key(self) -> str:
        """The business key of the instance; empty if it has none."""
        return self._find_key(self.tenant, self.instance)

    @property
    def idempotency_key(self) -> str:
        """The same over all attempts of this effect and different from every other; give it to the outside world."""
        return effect_key(self.instance, self.number)

    def wait_cancelled(self, timeout: float) -> bool:
        """Sleep, but wake up when the result is no longer wanted; whether that is so."""
        if self._told is None:
            self._told = threading.Event()
        if self.cancelled:
            return True
        return self._told.wait(timeout)

    def cancel(self) -> None:
        """The result is no longer wanted."""
        self.cancelled = True
        if self._told is not None:
            self._told.set()

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """A logger that names the instance and the attempt."""
        facts = {"instance": str(self.instance), "effect": self.number, "attempt": self.attempt, "trace": self.trace}
        return logging.LoggerAdapter(logging.getLogger(f"standfast.handlers.{self.decider}"), facts)


Function: TypeAlias = Callable[[EffectContext, object], object] | Callable[[EffectContext, object], Awaitable[object]]


class Handler(msgspec.Struct, frozen=True, kw_only=True):
    """A registered function and how it wants to be called."""

    name: str
    function: Function
    is_async: bool
    concurrency: int
    """Calls at the same time in this process."""
    timeout: timedelta | None = None
    retry: RetryPolicy | None = None
    foreign: str = ""
    """A language whose effects it cannot take, although they may name it; empty if it takes what comes."""
    joins: bool = False
    """Whether it is the engine's own and has commands carried out in the transaction of its effect: that is its `connection`."""


class Handlers:
    """The handlers of one process, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, Handler] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def count(self) -> int:
        """How many there are: another number means that what was known of them may be old."""
        return len(self._by_name)

    def names(self) -> list[str]:
        """All names, in order."""
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
        """Add a handler; there can be only one under a name."""
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
        self._by_name = {**self._by_name, name: handler}  # Replaced whole: workers read it without a lock.
        return handler

    def find(self, name: str) -> Handler | None:
        """The handler with this name, if it is here."""
        return self._by_name.get(name)

    def get(self, name: str) -> Handler:
        """The handler with this name."""
        try:
            return self._by_name[name]
        except KeyError:
            raise NotFoundError("handler", name) from None

    def wrap(self, wrapper: Callable[[Function], Function]) -> None:
        """Put something around every handler, for tests."""
        self._by_name = {
            name: msgspec.structs.replace(handler, function=wrapper(handler.function))
            for name, handler in self._by_name.items()
        }

    @staticmethod
    def is_async(function: object) -> bool:
        """Whether calling it gives a coroutine."""
        return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__)

    def all(self) -> list[Handler]:
        """All handlers."""
        return list(self._by_name.values())


_MANY = 1000
_FEW = 32
