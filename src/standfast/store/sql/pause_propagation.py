"""Applies pauses to stored effects and timers in batches, each in its own transaction.

The position is stored in the database, so that any process can continue a pass. A pass begins when a pause has begun or
ended. A second one begins when all processes must have noticed the change, and corrects what others wrote meanwhile.
While pauses are active, passes are repeated periodically.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, NamedTuple, Protocol
from uuid import UUID

import msgspec

from standfast.kernel.codec.type_cache import settled
from standfast.kernel.durations import later
from standfast.kernel.ids import InstanceId
from standfast.store.ports.pauses import (
    LAG,
    OF_INSTANTS,
    PausedEffect,
    PausedTimer,
    PauseRecord,
    StepOf,
    Stride,
    holding,
)

AGAIN = timedelta(minutes=5)
"""Interval between two passes without a changed pause."""

BEFORE_ALL = UUID(int=0)
"""Less than every instance id."""

_MICROSECOND = timedelta(microseconds=1)
SETTLED = 2
"""Passes after which a pause needs no more work."""


class PropagationPosition(msgspec.Struct, kw_only=True, omit_defaults=True):
    """The stored position of a pass."""

    began_at: datetime
    about: list[tuple[int, bool]]
    """The pauses at the start of the pass, and whether they were active. Later changes need another pass."""
    table: Literal["effects", "timers"] = "effects"
    instance: UUID = BEFORE_ALL
    """Instance of the last row examined."""
    number: int = -1
    key: str = ""
    """Number of that effect, or key of that timer."""
    ended_at: datetime | None = None
    """End of the pass. None while it runs."""


class ChangedEffect(NamedTuple):
    """The required state of an effect."""

    instance: InstanceId
    number: int
    rank: int
    held_at: datetime | None


class ChangedTimer(NamedTuple):
    """The required state of a timer."""

    instance: InstanceId
    key: str
    number: int
    due_before: datetime
    """Its due time when it was read. If it was moved since, it is left unchanged."""
    due_at: datetime
    held_at: datetime | None
    frozen_at: datetime | None


class PausePropagationPort(Protocol):
    """The transaction that a pass needs. It excludes other passes."""

    def read_walk(self) -> str:
        """Return the stored position. Empty without one."""
        ...

    def write_walk(self, walk: str) -> None:
        """Store the position."""
        ...

    def standing(self) -> list[PauseRecord]:
        """Return the active pauses, and ended ones that are not settled."""
        ...

    def walked(self, pause: PauseRecord, walks: int) -> None:
        """Store the number of passes for a pause, unless it has ended since it was read."""
        ...

    def is_astray(self) -> bool:
        """Return whether any work is held."""
        ...

    def effects(self, after: tuple[UUID, int], limit: int, *, whole: bool) -> list[PausedEffect]:
        """Return the next effects; `whole` includes their data."""
        ...

    def timers(self, after: tuple[UUID, str], limit: int) -> list[PausedTimer]:
        """Return the next timers."""
        ...

    def change_effects(self, changed: Sequence[ChangedEffect]) -> None:
        """Update effects."""
        ...

    def change_timers(self, changed: Sequence[ChangedTimer]) -> None:
        """Update timers."""
        ...


def propagate_batch(ground: PausePropagationPort, step_of: StepOf, *, now: datetime, limit: int) -> Stride:
    """Examine the next rows of the pass, and update those that differ from their required state."""
    pauses = ground.standing()
    walk = _walk(ground, pauses, now)
    if walk is None:
        return Stride(0, 0, is_over=True)
    released = held = 0
    if walk.table == "effects":
        looked_at, changed = _effects(ground, walk, pauses, step_of=step_of, now=now, limit=limit)
        released, held = _counted([each.held_at for each in changed])
        if looked_at < limit:
            walk.table, walk.instance = "timers", BEFORE_ALL
    else:
        looked_at, moved = _timers(ground, walk, pauses, now=now, limit=limit)
        released, held = _counted([each.held_at for each in moved])
        if looked_at < limit:
            walk.ended_at = now
            for each in pauses:
                if (each.id, each.stands) in walk.about and each.walks < SETTLED:
                    ground.walked(each, SETTLED if walk.began_at >= each.changed_at + LAG else 1)
    ground.write_walk(msgspec.json.encode(walk).decode())
    return Stride(released, held, is_over=False)


def next_propagation_at(pauses: Sequence[PauseRecord]) -> datetime | None:
    """Return when the next pass for changed pauses is due, or None."""
    due = [each.changed_at + (LAG if each.walks else timedelta(0)) for each in pauses if each.walks < SETTLED]
    return min(due, default=None)


def _walk(ground: PausePropagationPort, pauses: Sequence[PauseRecord], now: datetime) -> PropagationPosition | None:
    """Return the current pass, or a new one if it is due."""
    kept = ground.read_walk()
    walk = msgspec.json.decode(kept, type=settled(PropagationPosition)) if kept else None
    if walk is not None and walk.ended_at is None:
        return walk
    new = PropagationPosition(began_at=now, about=[(each.id, each.stands) for each in pauses])
    due = next_propagation_at(pauses)
    if due is not None and due <= now:
        return new
    is_long_ago = walk is None or not walk.ended_at or not walk.ended_at <= now < walk.ended_at + AGAIN
    # Without pauses all held work is held by mistake, and is released soon.
    return new if (is_long_ago if pauses else ground.is_astray()) else None


def _counted(held: Sequence[datetime | None]) -> tuple[int, int]:
    released = sum(at is None for at in held)
    return released, len(held) - released


def _effects(
    ground: PausePropagationPort,
    walk: PropagationPosition,
    pauses: Sequence[PauseRecord],
    *,
    step_of: StepOf,
    now: datetime,
    limit: int,
) -> tuple[int, list[ChangedEffect]]:
    whole = any(pause.scope.step for pause in pauses)
    found = ground.effects((walk.instance, walk.number), limit, whole=whole)
    changed = []
    for each in found:
        about = holding(pauses, each.tenant, each.definition, each.definition_version)
        step = step_of(each) if any(pause.scope.step for pause in about) else ""
        is_held = any(pause.scope.is_about(step) for pause in about)
        if is_held and each.held_at is None:
            changed.append(ChangedEffect(each.instance, each.number, each.rank, now))
        elif not is_held and each.held_at is not None:
            # Its rank shifts by the time for which it was held, so that it overtakes no effect that has waited longer.
            rank = each.rank + max(now - each.held_at, timedelta(0)) // _MICROSECOND
            changed.append(ChangedEffect(each.instance, each.number, rank, None))
    if changed:
        ground.change_effects(changed)
    if found:
        walk.instance, walk.number = found[-1].instance, found[-1].number
    return len(found), changed


def _timers(
    ground: PausePropagationPort, walk: PropagationPosition, pauses: Sequence[PauseRecord], *, now: datetime, limit: int
) -> tuple[int, list[ChangedTimer]]:
    found = ground.timers((walk.instance, walk.key), limit)
    changed = [new for each in found if (new := _changed_timer(each, pauses, now)) is not None]
    if changed:
        ground.change_timers(changed)
    if found:
        walk.instance, walk.key = found[-1].instance, found[-1].key
    return len(found), changed


def _changed_timer(timer: PausedTimer, pauses: Sequence[PauseRecord], now: datetime) -> ChangedTimer | None:
    """Return the required state of a timer, or None if it is correct."""
    whole = [pause for pause in pauses if not pause.scope.step]
    about = holding(whole, timer.tenant, timer.definition, timer.definition_version)
    held_at = (timer.held_at or now) if about else None
    due_at, frozen_at = timer.due_at, timer.frozen_at
    if (timer.language, timer.key) in OF_INSTANTS:
        frozen_at = None
    elif (stopped := frozen_since(about)) is not None:
        frozen_at = timer.frozen_at or stopped
    elif timer.frozen_at is not None:
        covering = [each for each in whole if each.covers(timer.tenant, timer.definition, timer.definition_version)]
        due_at = later(due_at, max(_thawed_at(covering, now) - timer.frozen_at, timedelta(0)))
        frozen_at = None
    if (held_at, frozen_at) == (timer.held_at, timer.frozen_at):
        return None
    return ChangedTimer(timer.instance, timer.key, timer.number, timer.due_at, due_at, held_at, frozen_at)


def frozen_since(pauses: Sequence[PauseRecord]) -> datetime | None:
    """Return since when active pauses stop the clock. None if it runs."""
    return min((each.paused_at for each in pauses if each.clock == "stand_still"), default=None)


def due_as_things_are(
    due_at: datetime, frozen_at: datetime | None, covering: Sequence[PauseRecord], now: datetime
) -> datetime:
    """Return when a timer would be due if the pauses that cover its instance ended now."""
    stopped = frozen_since([each for each in covering if each.stands])
    frozen_at = frozen_at or stopped
    if frozen_at is None:
        return due_at
    thawed = _thawed_at(covering, now) if stopped is None else now
    return later(due_at, max(thawed - frozen_at, timedelta(0)))


def _thawed_at(covering: Sequence[PauseRecord], now: datetime) -> datetime:
    """Return when the last pause that stopped the clock ended."""
    ended = [each.ended_at for each in covering if each.ended_at is not None and each.clock == "stand_still"]
    return max(ended, default=now)
