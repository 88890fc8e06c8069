"""Calls by subject are made when they are first asked for: there are many subjects, and a request asks for one or two of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def subject(calls: object, name: str, makers: Mapping[str, Callable[[Any], object]], source: Callable[[], Any]) -> Any:
    """The calls of a subject that nobody has asked for yet; AttributeError if there is none of this name."""
    made = makers.get(name)
    if made is None:
        raise AttributeError(f"{type(calls).__name__!r} object has no attribute {name!r}", name=name, obj=calls)
    found = made(source())
    setattr(calls, name, found)
    return found
