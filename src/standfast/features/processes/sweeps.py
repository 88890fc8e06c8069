"""A look at all timers that are due, for those who have no worker, or do not want to wait for one."""

from __future__ import annotations

import threading

from standfast.engine.dispatcher import Dispatcher
from standfast.engine.loops.due_work import MOST, DueWork
from standfast.store.ports.store import StoreParts


def fire_due_timers(service: Dispatcher) -> int:
    """Hand in all that is due, and wait until each of it is settled; how many there were."""
    settled = threading.Semaphore(0)
    begun: list[DueWork] = []

    def sweep(parts: StoreParts) -> int:
        due = DueWork(
            parts,
            service.shared,
            standing=service.standing,
            vocabularies=service.vocabularies,
            effects_ready=service.hint,
        )
        begun.append(due)
        count = 0
        while True:
            fired, _ = due.fire(settled.release)
            count += fired
            if fired < MOST:
                return count

    count = service.operate(sweep)
    if service.has_threads:
        patience = service.shared.settings.patience.total_seconds()
        for _ in range(count):
            if not settled.acquire(timeout=patience):
                break  # The database is away; what is in hand comes due again.
    for due in begun:
        service.operate(lambda _parts, due=due: due.chores.run())  # type: ignore[misc]
    return count
