"""Pauses in a process: what it knows of them.

Three things see to it that nothing of a paused definition begins, each where it costs nothing while there is no pause. A commit writes
what it asks for as held (`commit/draft`). Whoever claims work looks whether it is covered, and puts it back as held (`work/gate`). And the
walk finds what nobody has touched, a few rows at a time, in whichever process comes first (`loops/walker`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime

from standfast.store.ports.pauses import OF_INSTANTS, PauseRecord, holding
from standfast.store.records.instances import InstanceHeader, PendingTimerRecord
from standfast.store.sql.pause_propagation import due_as_things_are


class ActivePauses:
    """The pauses that this process knows of. Replaced whole by whoever watches; others read it without a lock."""

    def __init__(self) -> None:
        self.known: tuple[PauseRecord, ...] = ()
        """Those that have ended and are to be walked for included."""
        self.pauses: tuple[PauseRecord, ...] = ()
        """Those that stand; mostly none, and then nobody has anything to ask."""
        self.shifting: tuple[PauseRecord, ...] = ()
        """Those of the known ones that move timers when they end: until all of that is done, only the database knows when a timer is due."""
        self.shifts = 0
        """How often those have become others: whoever remembers timers forgets them then."""

    def become(self, known: Iterable[PauseRecord]) -> None:
        """Know these, and no others."""
        self.known = tuple(known)
        self.pauses = tuple(each for each in self.known if each.stands)
        shifting = tuple(each for each in self.known if each.clock == "stand_still")
        if shifting != self.shifting:
            self.shifting = shifting
            self.shifts += 1

    def over(self, header: InstanceHeader) -> tuple[PauseRecord, ...]:
        """Those that are about an instance, or about a step of it."""
        return holding(self.pauses, header.tenant, header.definition, header.definition_version)

    def due(
        self, header: InstanceHeader, language: str, timers: Mapping[str, PendingTimerRecord], now: datetime
    ) -> dict[str, datetime]:
        """When the timers of an instance are due: where clocks stand still, as if that ended now."""
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
        """Whether timers of an instance are moved by a pause, or will be."""
        about = (header.tenant, header.definition, header.definition_version)
        return any(each.covers(*about) for each in self.shifting)


def holds_call(pauses: Sequence[PauseRecord], step: str) -> bool:
    """Whether one of the pauses, all of which are about the instance, holds a call of this step."""
    return any(each.scope.is_about(step) for each in pauses)


def holds_timers(pauses: Sequence[PauseRecord]) -> tuple[PauseRecord, ...]:
    """Those of the pauses that hold timers too: timers are of no step."""
    return tuple(each for each in pauses if not each.scope.step)
