"""The pauses that a process knows.

Three mechanisms keep work of a paused definition from starting, each where it costs nothing without pauses. A commit
writes its work as held (`commit/draft`). A claimer checks its work and puts covered rows back as held
(`worker/pause_filter`). Batches of the remaining rows are updated in the background, in one process at a time
(`loops/pause_propagation`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from standfast.store.ports.pauses import OF_INSTANTS, PauseRecord, holding
from standfast.store.records.instances import InstanceHeader, PendingTimerRecord
from standfast.store.sql.pause_propagation import due_as_things_are


class ActivePauses:
    """The pauses that this process knows.

    The watching thread replaces the tuples as a whole; others read them without a lock.
    """

    def __init__(self) -> None:
        self.known: tuple[PauseRecord, ...] = ()
        """All known pauses, including ended ones that are still being propagated."""
        self.pauses: tuple[PauseRecord, ...] = ()
        """The active pauses. Usually empty, and then no check is made."""
        self.shifting: tuple[PauseRecord, ...] = ()
        """The known pauses that move timers when they end. Until they are propagated, only the database knows when a
        timer is due."""
        self.shifts = 0
        """Number of changes to these pauses. Caches of timers are evicted when it changes."""

    def become(self, known: Iterable[PauseRecord]) -> None:
        """Replace the known pauses."""
        self.known = tuple(known)
        self.pauses = tuple(each for each in self.known if each.stands)
        shifting = tuple(each for each in self.known if each.clock == "stand_still")
        if shifting != self.shifting:
            self.shifting = shifting
            self.shifts += 1

    def over(self, header: InstanceHeader) -> tuple[PauseRecord, ...]:
        """Return the pauses that cover an instance or one of its steps."""
        return holding(self.pauses, header.tenant, header.definition, header.definition_version)

    def due(
        self, header: InstanceHeader, language: str, timers: Mapping[str, PendingTimerRecord], now: datetime
    ) -> dict[str, datetime]:
        """Return the due times of an instance's timers. A paused timer is computed as if its pause ended now."""
        if not self.shifting:
            return {key: each.due_at for key, each in timers.items()}
        about = (header.tenant, header.definition, header.definition_version)
        covering = [each for each in self.shifting if each.covers(*about) and not each.scope.step]
        return {
            key: each.due_at
            if (language, key) in OF_INSTANTS
            else due_as_things_are(each.due_at, each.frozen_at, covering, now)
            for key, each in timers.items()
        }

    def moves_timers(self, header: InstanceHeader) -> bool:
        """Return whether a pause moves timers of the instance, now or when it ends."""
        about = (header.tenant, header.definition, header.definition_version)
        return any(each.covers(*about) for each in self.shifting)


def holds_call(pauses: Sequence[PauseRecord], step: str) -> bool:
    """Return whether one of these pauses, which cover the instance, holds a call of this step."""
    return any(each.scope.is_about(step) for each in pauses)


def holds_timers(pauses: Sequence[PauseRecord]) -> tuple[PauseRecord, ...]:
    """Return the pauses that also hold timers. A timer belongs to no step."""
    return tuple(each for each in pauses if not each.scope.step)
