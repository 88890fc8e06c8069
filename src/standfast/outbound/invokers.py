"""Invokers: who makes the calls that steps of processes name, each by the name that definitions know it by.

An invoker comes with the application (`engine.invoker`), or with a distribution that is installed: its entry point in the group
`standfast.invokers` is loaded if the settings name it.
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
    """One call that a step wants made. It may be made more than once, when nobody knows whether it was: the key is the same then."""

    operation: str
    """What is called, as the definition names it."""
    input: dict[str, object]
    """What the step's mapping gives."""
    arguments: Mapping[str, object] = {}
    """What the definition says to the invoker itself."""
    response_headers: tuple[str, ...] = ()
    """The headers of an answer that the step's mapping reads, in lower case; nobody wants to know of others."""
    idempotency_key: str
    """The same over all calls that do this work, and different from that of every other; give it to the outside world."""
    time_limit: float | None = None
    """Seconds after which nobody waits for the answer any more; None means that somebody always does."""
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
        """All that it can call, by the names that definitions know them by: a worker takes only work of which it knows how it is done."""
        ...

    @abstractmethod
    def invoke(self, invocation: Invocation, /) -> object:
        """Make a call; what comes back is the `response` of the step, as plain data. It is never made inside a transaction.

        `Fail` means that trying again cannot help; after any other error it is tried again, by the step's rule.
        """
        ...

    def attach(self, outbound: Outbound, /) -> None:
        """Know the engine's way to other systems; called once, before the first call."""
        del outbound


def installed_invoker(name: str) -> Invoker:
    """The invoker that an installed distribution brings along under this name; ConfigurationError if there is none."""
    from importlib.metadata import entry_points  # Few name one, and it brings much along.

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
    """What can make calls."""
    if isinstance(given, type):
        raise ConfigurationError(f"{where} is a class; give an object of it")
    if not isinstance(given, Invoker):
        raise ConfigurationError(f"{where} is {indefinite(type(given))}; give an object of a class that is an Invoker")
    return given
