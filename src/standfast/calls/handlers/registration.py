"""How handlers are given to an engine: those of a decider's effects, and those that steps know by name."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Protocol, TypeAlias, TypeVar

from standfast.calls.handlers.step_handlers import named_handler
from standfast.engine.common.handlers import EffectContext, Handlers
from standfast.errors import ConfigurationError
from standfast.graph.definition import NAME_IT, required_by
from standfast.kernel.codec.codecs import Codec

F = TypeVar("F")
C = TypeVar("C")
F_contra = TypeVar("F_contra", contravariant=True)
C_co = TypeVar("C_co", covariant=True)


class EffectHandler(Protocol[F_contra, C_co]):
    """An object that handles the effects of a decider."""

    def handle(self, context: EffectContext, effect: F_contra, /) -> C_co | Awaitable[C_co | None] | None:
        """Do what the effect asks for; a command for the instance, or None."""
        ...


Handling: TypeAlias = (
    Callable[[EffectContext, F], C | None] | Callable[[EffectContext, F], Awaitable[C | None]] | EffectHandler[F, C]
)
"""How a decider's effects are handled: a function or an object with `handle`, plain or async."""


class NamedHandlers:
    """The handlers of one engine that steps and effects know by name."""

    def __init__(self, handlers: Handlers, codec: Codec, *, required: dict[str, str]) -> None:
        self._handlers = handlers
        self._codec = codec
        self._given: dict[str, object] = {}
        """As they were given, by name."""
        self.required = required
        """Filled here: the capability that a handler requires, by name; most require none."""

    def add(
        self,
        name: str,
        function: object,
        *,
        concurrency: int | None = None,
        timeout: timedelta | None = None,
        capability: str = "",
    ) -> None:
        """Register one; the same again changes nothing."""
        before = self._given.get(name)
        required = capability or required_by(function)
        if before is not None and required != self.required.get(name, ""):
            told = f"the handler {name!r} was registered before with the capability {self.required.get(name, '')!r}"
            raise ConfigurationError(f"{told}, not {required!r}; register it once")
        # A bound method is equal to itself, but another object each time.
        if before is not None and before != function:
            raise ConfigurationError(f"there is already another handler {name!r}; {NAME_IT}")
        if before is None:
            made = named_handler(function, name, self._codec, required)
            self._handlers.register(name, made, concurrency=concurrency, timeout=timeout)
            self._given[name] = function
            if required:
                self.required[name] = required
