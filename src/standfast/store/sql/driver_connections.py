"""Finds the driver's connection in a caller's object: the connection itself, or a wrapper of Django or SQLAlchemy."""

from __future__ import annotations

import inspect
from typing import TypeVar

from standfast.errors import ConfigurationError, indefinite

C = TypeVar("C")

_WRAPPINGS = ("driver_connection", "connection")
"""Attributes in which wrappers keep their connection: pooled connections of SQLAlchemy, and those of Django."""
_DEEPEST = 3


def unwrapped(given: object, driver: type[C], url: str) -> C:
    """Return the driver's connection of a caller's object. Raises ConfigurationError if there is none."""
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
    """Return whether the object is a session of SQLAlchemy, which returns its connection on request."""
    return hasattr(found, "get_bind")


def _is_idle(found: object) -> bool:
    """Return whether a wrapper reports no transaction, as SQLAlchemy's may.

    It would not commit one begun behind its back.
    """
    has_begun = getattr(found, "in_transaction", None)
    return inspect.ismethod(has_begun) and not has_begun()
