"""The only source of ids and chance, so that a test can replace it."""

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
"""Bits by which one id is greater than the last one of its millisecond, so that nobody can tell how many were made."""


class Randomness(Protocol):
    """Where ids and random numbers come from."""

    def new_id(self, now: datetime) -> UUID:
        """A new UUIDv7."""
        ...

    def share(self) -> float:
        """A number in [0, 1)."""
        ...


class SeededRandomness:
    """The same ids and numbers every time, for tests and simulations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - ids must be unique, not secret
        self._guard = threading.Lock()
        self._last = (0, 0)
        """The millisecond of the last id, and the rest of that id."""

    def new_id(self, now: datetime) -> UUID:
        """A new UUIDv7, greater than those that were made before it for the same millisecond: lists are in the order of ids."""
        millisecond = unix_milliseconds(now)
        with self._guard:
            at, last = self._last
            rest = (
                last + 1 + self._random.getrandbits(_STEP) if at == millisecond else self._random.getrandbits(_BITS - 1)
            )
            self._last = (millisecond, rest)
        return make_uuid7(now, rest)

    def share(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()


class SystemRandomness(SeededRandomness):
    """Seeded by the operating system. Ids are made often, and a system call for each would be a tenth of a commit's cost."""

    def __init__(self) -> None:
        super().__init__(secrets.randbits(256))
        os.register_at_fork(after_in_child=self._reseed)  # Two processes must not make the same ids.

    def _reseed(self) -> None:
        self._guard = threading.Lock()  # Another thread may have held it.
        self._last = (0, 0)
        self._random.seed(secrets.randbits(256))
