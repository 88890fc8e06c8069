"""What a forked child has of the engines of its parent: their memory, but none of their threads, and no right to their connections.

A lock that a thread of the parent held stays locked in the child for ever, and what the child says on a connection the parent's server
takes for the parent's words. So the child is told to open an engine of its own before it touches either.
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
    """Something that works only in the process that made it."""

    is_inherited: bool
    """Whether this process is a child of that one."""


_made_here: WeakSet[ProcessBound] = WeakSet()
_kept: list[ProcessBound] = []
"""Nothing of the parent's is let go of in the child, which would hang up where the parent speaks."""


def belongs_here(thing: ProcessBound) -> None:
    """Have a thing know when it finds itself in a child of this process."""
    _made_here.add(thing)


def _begin_in_child() -> None:
    for each in list(_made_here):
        each.is_inherited = True
        _kept.append(each)
    _made_here.clear()
    callbacks.begin_anew()


if hasattr(os, "register_at_fork"):  # Where there is no fork nobody needs it.
    os.register_at_fork(after_in_child=_begin_in_child)
