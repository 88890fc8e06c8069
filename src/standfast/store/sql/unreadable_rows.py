"""Rows that cannot be read, because something other than the engine wrote them: they must not keep the others from being worked on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TypeVar

R = TypeVar("R")
T = TypeVar("T")

_log = logging.getLogger("standfast.store")


LEFT_ALONE = timedelta(minutes=1)
"""For how long an effect that cannot be read is left to processes that may be able to."""


def readable(read: Callable[[R], T], rows: Iterable[R], put_back: Callable[[R], object] | None = None) -> list[T]:
    """The rows as records, without those that cannot be read; the log tells of them, and `put_back` gives them back."""
    found = []
    for row in rows:
        try:
            found.append(read(row))
        except Exception:  # noqa: BLE001 - whatever is wrong with it
            _log.exception("a row cannot be read by %s; repair it or delete it", read.__name__)
            if put_back is not None:
                put_back(row)
    return found
