"""What goes wrong in a run of the chaos test: everything that is left to chance follows from one seed.

A mood is drawn for each call of a handler from the work's idempotency key and the number of the call, so that a call that is made again after a
crash misbehaves in the same way, and the later calls of any work behave: whatever is told to try again comes through in the end.
"""

from __future__ import annotations

import hashlib
import os
from typing import Literal, get_args

from support.campaigns import SEED

SECONDS = float(os.environ.get("STANDFAST_CHAOS_SECONDS", "60"))
"""How long things go wrong on each store; the curtain falls a while later."""
LONG_SECONDS = float(os.environ.get("STANDFAST_CHAOS_LONG_SECONDS", "900"))

Mood = Literal[
    "well",
    "raises",
    "asks for a retry",
    "asks for a retry in thirty thousand years",
    "exits",
    "interrupts",
    "cancels",
    "is too slow",
    "hangs",
    "leaks",
    "answers what cannot be stored",
    "spoils its data",
    "dies",
]

_RARE: tuple[Mood, ...] = ("hangs", "dies", "answers what cannot be stored")
_COMMON: tuple[Mood, ...] = tuple(each for each in get_args(Mood) if each not in {*_RARE, "well"})
_BAD_IN_PERCENT, _RARE_IN_PERCENT = 25, 2
_MOST_BAD_CALLS = 3
"""Calls of one piece of work that may go wrong; there are more attempts than that, kills and takeovers included."""

Raised = Literal[
    "ValueError", "SystemExit", "KeyboardInterrupt", "CancelledError", "GeneratorExit", "RecursionError", "MemoryError"
]
RAISED: tuple[Raised, ...] = get_args(Raised)


def draw(*parts: object) -> int:
    """A number that depends on the seed and the parts alone."""
    digest = hashlib.blake2b("\x1f".join(map(str, (SEED, *parts))).encode(), digest_size=8).digest()
    return int.from_bytes(digest)


def mood(key: str, attempt: int) -> Mood:
    """How a call of a handler behaves."""
    if attempt > _MOST_BAD_CALLS:
        return "well"
    chance = draw("mood", key, attempt)
    if chance % 100 < _RARE_IN_PERCENT:
        return _RARE[chance // 100 % len(_RARE)]
    if chance % 100 < _BAD_IN_PERCENT:
        return _COMMON[chance // 100 % len(_COMMON)]
    return "well"
