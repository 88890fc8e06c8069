"""Types become known to those who read them one after the other, whatever thread asks first.

msgspec looks at a type when somebody first reads it, and remembers what it has found so far while it is still looking. A thread that comes
in between reads by what is not there yet, and the process dies of it.
"""

from __future__ import annotations

import threading
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

TURN: Final = threading.RLock()
"""Held by whoever looks at a type for the first time."""
_settled: set[object] = set()


def settled(kind: T) -> T:
    """A type of which all is known, so that any number of threads may read it."""
    if kind not in _settled:
        with TURN:
            msgspec.json.Decoder(kind)
            _settled.add(kind)
    return kind
