"""Rows that cannot be read, because something other than the engine wrote them: they must not keep the others from being worked on."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from typing import TypeVar

R = TypeVar("R")
T = TypeVar("T")

_log = logging.getLogger("holdfast.store")


def readable(read: Callable[[R], T], rows: Iterable[R]) -> list[T]:
    """The rows as records, without those that cannot be read; the log tells of them."""
    found = []
    for row in rows:
        try:
            found.append(read(row))
        except Exception:  # noqa: BLE001 - whatever is wrong with it
            _log.exception("a row that was claimed cannot be read by %s; repair it or delete it", read.__name__)
    return found
