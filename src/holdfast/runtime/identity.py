"""The only source of ids and chance, so that a test can replace it."""

from __future__ import annotations

import random
import secrets
from datetime import datetime
from typing import Protocol
from uuid import UUID

from holdfast.kernel.ids import make_uuid7

_BITS = 74


class Chance(Protocol):
    """Where ids and random numbers come from."""

    def new_id(self, now: datetime) -> UUID:
        """A new UUIDv7."""
        ...

    def share(self) -> float:
        """A number in [0, 1)."""
        ...


class SystemChance:
    """The operating system's randomness."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()

    def new_id(self, now: datetime) -> UUID:
        """A new UUIDv7."""
        return make_uuid7(now, secrets.randbits(_BITS))

    def share(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()


class SeededChance:
    """The same ids and numbers every time, for tests and simulations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - repeatable on purpose

    def new_id(self, now: datetime) -> UUID:
        """A new UUIDv7."""
        return make_uuid7(now, self._random.getrandbits(_BITS))

    def share(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()
