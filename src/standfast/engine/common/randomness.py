"""Source of ids and random numbers, so that a test can replace it."""

from __future__ import annotations

import os
import random
import secrets
import threading
from datetime import datetime
from typing import Protocol
from uuid import UUID

from standfast.kernel.ids import make_uuid7, unix_milliseconds

_BITS = 74
_STEP = 40
"""Random bits between two ids of one millisecond, so that the number of ids between them cannot be inferred."""


class Randomness(Protocol):
    """Generator of ids and random numbers."""

    def new_id(self, now: datetime) -> UUID:
        """Returns a new UUIDv7."""
        ...

    def share(self) -> float:
        """Returns a random number in [0, 1)."""
        ...


class SeededRandomness:
    """Reproducible ids and numbers, for tests and simulations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - ids must be unique, not secret
        self._guard = threading.Lock()
        self._last = (0, 0)
        """The millisecond and the random part of the last id."""

    def new_id(self, now: datetime) -> UUID:
        """Return a new UUIDv7, greater than the earlier ones of the same millisecond, because lists are ordered by id."""
        millisecond = unix_milliseconds(now)
        with self._guard:
            at, last = self._last
            rest = (
                last + 1 + self._random.getrandbits(_STEP) if at == millisecond else self._random.getrandbits(_BITS - 1)
            )
            self._last = (millisecond, rest)
        return make_uuid7(now, rest)

    def share(self) -> float:
        """Return a random number in [0, 1)."""
        return self._random.random()


class SystemRandomness(SeededRandomness):
    """Generator seeded by the operating system. One system call per id would be a tenth of the cost of a commit."""

    def __init__(self) -> None:
        super().__init__(secrets.randbits(256))
        os.register_at_fork(after_in_child=self._reseed)  # A forked process must not generate the same ids.

    def _reseed(self) -> None:
        self._guard = threading.Lock()  # Another thread may hold the lock at the fork.
        self._last = (0, 0)
        self._random.seed(secrets.randbits(256))
