"""Protection of engines against `os.fork`. A child has its parent's memory but none of its threads, and must not use its connections.

A lock held by a thread of the parent stays locked in the child forever. The parent's server would take the child's
statements for the parent's. The child must therefore open its own engine.
"""

from __future__ import annotations

import os
from typing import Protocol
from weakref import WeakSet

from standfast.engine.concurrency.replies import callbacks

INHERITED = (
    "this engine belongs to the process that opened it, of which this one is a child: open an engine after the fork"
)


class ProcessBound(Protocol):
    """An object that works only in the process that made it."""

    is_inherited: bool
    """Whether this process is a forked child of that one."""


_made_here: WeakSet[ProcessBound] = WeakSet()
_kept: list[ProcessBound] = []
"""Keeps the parent's objects alive in the child. Their finalizers would close connections that the parent uses."""


def belongs_here(thing: ProcessBound) -> None:
    """Mark an object as inherited in every forked child of this process."""
    _made_here.add(thing)


def _begin_in_child() -> None:
    for each in list(_made_here):
        each.is_inherited = True
        _kept.append(each)
    _made_here.clear()
    callbacks.begin_anew()


if hasattr(os, "register_at_fork"):  # Platforms without fork need no protection.
    os.register_at_fork(after_in_child=_begin_in_child)
