"""How an engine is. Each part of it that can stop says so itself, in words, within a bound; asking costs no I/O and takes no long lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from standfast.store.ports.store import Store
from standfast.store.records.instances import Maintenance


class Watched(Protocol):
    """A part of an engine that can stop: a loop, a committer, threads."""

    @property
    def name(self) -> str:
        """How operators know it."""
        ...

    def problem(self) -> str:
        """What keeps it from its work, in words; empty if nothing does."""
        ...


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Whether an engine does its work."""

    is_healthy: bool
    """Whether there are no problems. An engine whose worker is not started has less to do, and may be healthy."""
    needs_restart: bool
    """Whether one of the problems may be cured by another process in the place of this one: not while a database that is away, locked, full or
    read-only, or a channel that nobody has named, is all that keeps it from its work."""
    problems: list[str]
    """What keeps the engine from its work, each with the part that is concerned: "due work: has not gone well for 12 s: …"."""
    has_worker: bool
    """Whether this process runs effects, timers and messages; without a worker it only takes commands and answers questions."""
    maintenance: Maintenance
    """What maintenance mode holds back in all processes: "pause" work, "refuse" commands too; empty if there is none. It is no problem."""
    pauses: list[str]
    """What is paused, in words, as far as this process knows. It is no problem either."""
    incidents: list[str]
    """What somebody should look at, in words, as far as this process has looked: instances that have not ended and that nothing can ever wake,
    questions that nobody can decide, work that no code can read, calls that may hang. They keep no part of the
    engine from its work, so they are no problem either; but somebody should look at them."""
    loops: dict[str, float]
    """Seconds since each loop last went well. A loop that has nothing to do rests, some of them for a minute."""


class HealthProblem(NamedTuple):
    """What one part complains of."""

    told: str
    is_outside: bool
    """Whether its cause is outside of this process."""


_WAITING: Final = "is_kept_waiting"
"""What parts have that may be kept waiting from outside of this process, so that they go on by themselves and a restart cures nothing; most have it not."""


def problems_of(parts: Sequence[Watched]) -> list[HealthProblem]:
    """What the parts complain of."""
    return [
        HealthProblem(f"{part.name}: {said}", is_outside=bool(getattr(part, _WAITING, False)))
        for part in parts
        if (said := part.problem())
    ]


class WriteLock:
    """The right to write into the database, as far as other processes keep it from this one."""

    name = "database"
    is_kept_waiting = True

    def __init__(self, store: Store, *, limit: float) -> None:
        self._store = store
        self._limit = limit

    def problem(self) -> str:
        """What keeps this process from writing, in words; empty if nothing does."""
        locked = self._store.locked_for()
        return f"another process has held its write lock for {locked:.0f} s" if locked >= self._limit else ""
