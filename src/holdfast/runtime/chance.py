"""The only source of ids and chance, so that a test can replace it."""

from __future__ import annotations

import os
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


class SeededChance:
    """The same ids and numbers every time, for tests and simulations."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)  # noqa: S311 - ids must be unique, not secret

    def new_id(self, now: datetime) -> UUID:
        """A new UUIDv7."""
        return make_uuid7(now, self._random.getrandbits(_BITS))

    def share(self) -> float:
        """A number in [0, 1)."""
        return self._random.random()


class SystemChance(SeededChance):
    """Seeded by the operating system. Ids are made often, and a system call for each would be a tenth of a commit's cost."""

    def __init__(self) -> None:
        super().__init__(secrets.randbits(256))
        os.register_at_fork(after_in_child=self._reseed)  # Two processes must not make the same ids.

    def _reseed(self) -> None:
        self._random.seed(secrets.randbits(256))
