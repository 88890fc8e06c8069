"""Lazy creation of API namespaces. There are many, and a request uses one or two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def subject(calls: object, name: str, makers: Mapping[str, Callable[[Any], object]], source: Callable[[], Any]) -> Any:
    """Create a namespace on first access; AttributeError if no namespace has this name."""
    made = makers.get(name)
    if made is None:
        raise AttributeError(f"{type(calls).__name__!r} object has no attribute {name!r}", name=name, obj=calls)
    found = made(source())
    setattr(calls, name, found)
    return found
