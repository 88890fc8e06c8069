"""Handles rows that cannot be read, because other software wrote them. They must not block the others."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import TypeVar

R = TypeVar("R")
T = TypeVar("T")

_log = logging.getLogger("standfast.store")


LEFT_ALONE = timedelta(minutes=1)
"""How long an unreadable effect is left to processes that may be able to read it."""


def readable(read: Callable[[R], T], rows: Iterable[R], put_back: Callable[[R], object] | None = None) -> list[T]:
    """Convert rows to records, without unreadable ones. These are logged, and returned by `put_back`."""
    found = []
    for row in rows:
        try:
            found.append(read(row))
        except Exception:  # noqa: BLE001 - whatever the fault of the row
            _log.exception("row_unreadable reader=%s: repair the row, or delete it", read.__name__)
            if put_back is not None:
                put_back(row)
    return found
