"""Connections that are not ours, as callers have them: the driver's own, or what Django or SQLAlchemy has around it."""

from __future__ import annotations

import inspect
from typing import TypeVar

from standfast.errors import ConfigurationError, indefinite

C = TypeVar("C")

_WRAPPINGS = ("driver_connection", "connection")
"""Where wrappers keep what they wrap: a pooled connection of SQLAlchemy; its connections and those of Django."""
_DEEPEST = 3


def unwrapped(given: object, driver: type[C], url: str) -> C:
    """The driver's connection that a caller gave, be it wrapped; ConfigurationError if there is none."""
    found: object = given
    for _ in range(_DEEPEST):
        if _is_idle(found):
            raise ConfigurationError(
                f"{indefinite(type(given))} has no transaction that it knows of, so that its commit would do nothing: begin one with it"
            )
        if isinstance(found, driver):
            return found
        for name in _WRAPPINGS:
            inner = getattr(found, name, None)
            if inspect.ismethod(inner) and _is_session(found) and not inspect.iscoroutinefunction(inner):
                inner = inner()
            if inner is not None and not inspect.isroutine(inner):
                found = inner
                break
        else:
            break
    if isinstance(found, driver):
        return found
    if inspect.iscoroutinefunction(getattr(found, "execute", None)):
        raise ConfigurationError(
            f"{indefinite(type(given))} is one for coroutines, which cannot be waited for here; give one of {driver.__module__}, "
            "in a plain function; with it as it is, on Postgres, `select standfast.submit(…)` hands a command in"
        )
    what = f"{driver.__module__.split('.')[0]} connection"
    raise ConfigurationError(
        f"give a {what} to {url}, or what Django or SQLAlchemy has around one, not {indefinite(type(given))}"
    )


def _is_session(found: object) -> bool:
    """Whether it is a session of SQLAlchemy, which has its connection at hand when it is asked."""
    return hasattr(found, "get_bind")


def _is_idle(found: object) -> bool:
    """Whether a wrapper says that it has begun nothing, as SQLAlchemy's do: one that is begun behind its back it would not commit."""
    has_begun = getattr(found, "in_transaction", None)
    return inspect.ismethod(has_begun) and not has_begun()
