"""Invokers: they make the calls that steps name, each registered under a name.

An invoker comes with the application (`engine.invoker`), or with an installed distribution. The entry point of a
distribution, in the group `standfast.invokers`, is loaded if the settings name it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from typing import Final, cast

import msgspec

from standfast.errors import ConfigurationError, indefinite
from standfast.kernel.actor import Actor
from standfast.kernel.ids import InstanceId
from standfast.outbound.http import Outbound

GROUP: Final = "standfast.invokers"


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """One call for a step. It may be made more than once, after an unknown outcome; the key is the same then."""

    operation: str
    """The operation's name in the definition."""
    input: dict[str, object]
    """The input from the step's mapping."""
    arguments: Mapping[str, object] = {}
    """The definition's arguments to the invoker itself."""
    response_headers: tuple[str, ...] = ()
    """The response headers that the step's mapping reads, in lower case; all others are dropped."""
    idempotency_key: str
    """The same over all attempts of this call, and different from every other. Pass it to the receiving system."""
    time_limit: float | None = None
    """Seconds after which the result is no longer needed; None means no limit."""
    tenant: str
    instance: InstanceId
    workflow: str
    step: str
    attempt: int
    """1 for the first call."""
    actor: Actor
    trace: str = ""


class Invoker(ABC):
    """Makes calls of one kind."""

    @abstractmethod
    def operations(self) -> Iterable[str]:
        """Return all operations by name. A worker takes only work for operations that it has."""
        ...

    @abstractmethod
    def invoke(self, invocation: Invocation, /) -> object:
        """Make a call; return the `response` of the step as plain data. It is never called inside a transaction.

        `Fail` means that a retry cannot help. Any other error is retried by the step's policy.
        """
        ...

    def attach(self, outbound: Outbound, /) -> None:
        """Receive the engine's HTTP client; called once, before the first call."""
        del outbound


def installed_invoker(name: str) -> Invoker:
    """Load the invoker of an installed distribution; ConfigurationError if no entry point has this name."""
    from importlib.metadata import entry_points  # Few configurations name one, and the import is slow.

    found = {each.name: each for each in entry_points(group=GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        told = f"no installed distribution has the invoker {name!r}, which the settings name"
        raise ConfigurationError(f"{told}; installed are: {known}")
    where = f"the invoker {name!r} of the entry point {found[name].value!r}"
    try:
        made = cast("Callable[[], object]", found[name].load())()
    except Exception as error:
        raise ConfigurationError(f"{where} cannot be made: {type(error).__name__} {error}") from error
    return checked_invoker(made, where)


def checked_invoker(given: object, where: str) -> Invoker:
    """Return the object if it is an invoker; ConfigurationError otherwise."""
    if isinstance(given, type):
        raise ConfigurationError(f"{where} is a class; give an object of it")
    if not isinstance(given, Invoker):
        raise ConfigurationError(f"{where} is {indefinite(type(given))}; give an object of a class that is an Invoker")
    return given
