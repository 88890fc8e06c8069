"""Health of an engine.

Each part that can stop reports its own problem within a time limit. The check needs no I/O and no long lock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple, Protocol

import msgspec

from standfast.store.ports.store import Store
from standfast.store.records.instances import Maintenance


class Watched(Protocol):
    """A part of an engine that can stop: a loop, a committer or a thread pool."""

    @property
    def name(self) -> str:
        """Name of the part for operators."""
        ...

    def problem(self) -> str:
        """Describes the problem of the part. Empty if there is none."""
        ...


class Health(msgspec.Struct, frozen=True, kw_only=True):
    """Health of an engine."""

    is_healthy: bool
    """Whether there are no problems. An engine whose worker is not started does less, and may be healthy."""
    needs_restart: bool
    """Whether a restart of this process may cure a problem. False if every problem has an external cause: a database
    that is unavailable, locked, full or read-only, or a notification channel without a name."""
    problems: list[str]
    """The problems, each with the affected part: "due work: has not gone well for 12 s: …"."""
    has_worker: bool
    """Whether this process runs effects, timers and messages. Without a worker it only accepts commands and answers
    queries."""
    maintenance: Maintenance
    """The maintenance mode of all processes: "pause" stops work, "refuse" also refuses commands. Empty without
    maintenance. Maintenance is not a problem."""
    pauses: list[str]
    """Descriptions of the active pauses that this process knows. A pause is not a problem."""
    incidents: list[str]
    """Descriptions of the incidents that this process has found. They are: instances that have not ended and cannot
    be woken, tasks without an eligible approver, work that no code can read, and calls that may hang. An incident
    stops no part of the engine, so it is not a problem, but an operator should investigate it."""
    loops: dict[str, float]
    """Seconds since the last successful round of each loop. An idle loop rests, for up to a minute."""


class HealthProblem(NamedTuple):
    """The problem of one part."""

    told: str
    is_outside: bool
    """Whether the cause lies outside this process."""


_WAITING: Final = "is_kept_waiting"
"""Attribute of the parts that can wait for something outside this process. They recover without a restart. Most
parts do not have it."""


def problems_of(parts: Sequence[Watched]) -> list[HealthProblem]:
    """Return the problems of the parts."""
    return [
        HealthProblem(f"{part.name}: {said}", is_outside=bool(getattr(part, _WAITING, False)))
        for part in parts
        if (said := part.problem())
    ]


class WriteLock:
    """The write lock of the database, as far as other processes hold it."""

    name = "database"
    is_kept_waiting = True

    def __init__(self, store: Store, *, limit: float) -> None:
        self._store = store
        self._limit = limit

    def problem(self) -> str:
        """Describes why this process cannot write. Empty if it can."""
        locked = self._store.locked_for()
        return f"another process has held its write lock for {locked:.0f} s" if locked >= self._limit else ""
