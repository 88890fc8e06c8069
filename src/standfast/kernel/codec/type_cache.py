"""Serializes the analysis of types by msgspec.

msgspec caches a type while it is still analysing it. A second thread would use the incomplete entry and crash the
process.
"""

from __future__ import annotations

import threading
from typing import Final, TypeVar

import msgspec

T = TypeVar("T")

TURN: Final = threading.RLock()
"""Held while a type is analysed for the first time."""
_settled: set[object] = set()


def settled(kind: T) -> T:
    """Analyse a type completely, and return it. Afterwards any number of threads may decode it."""
    if kind not in _settled:
        with TURN:
            msgspec.json.Decoder(kind)
            _settled.add(kind)
    return kind
