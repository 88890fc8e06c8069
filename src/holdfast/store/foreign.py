"""Connections that are not ours, as callers have them: the driver's own, or what Django or SQLAlchemy has around it."""

from __future__ import annotations

import inspect
from typing import TypeVar

from holdfast.errors import ConfigurationError, indefinite

C = TypeVar("C")

_WRAPPINGS = ("driver_connection", "connection")
"""Where wrappers keep what they wrap: a pooled connection of SQLAlchemy; its connections and those of Django."""
_DEEPEST = 3


def unwrapped(given: object, driver: type[C], url: str) -> C:
    """The driver's connection that a caller gave, be it wrapped; ConfigurationError if there is none."""
    found: object = given
    for _ in range(_DEEPEST):
        if isinstance(found, driver):
            return found
        for name in _WRAPPINGS:
            inner = getattr(found, name, None)
            if inner is not None and not inspect.isroutine(inner):
                found = inner
                break
        else:
            break
    if isinstance(found, driver):
        return found
    what = f"{driver.__module__.split('.')[0]} connection"
    raise ConfigurationError(
        f"give a {what} to {url}, or what Django or SQLAlchemy has around one, not {indefinite(type(given))}"
    )
