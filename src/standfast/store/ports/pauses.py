"""Pauses of wider scope than one instance: whose work is held back, and what the engine asks of a database about them.

The rows of `pauses` are what counts. Effects and timers follow them: one is held for as long as a pause covers it. A commit that knows of
a pause writes what it asks for as held, and whoever claims work that is covered puts it back as held. All the rest is brought into line by
a walk over both tables (`store/sql/pause_propagation`), which any process goes on with.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import PauseClock
from standfast.store.records.instances import SHARED_TENANT, EffectClaim, TimerClaim

ALL_TENANTS = SHARED_TENANT

OF_INSTANTS: Final = frozenset({("$graph", "resume"), ("$schedule", "tick")})
"""The timers that stand for an instant and not for a length of time, by language and key: the end of a pause of one run, and the next time of a
schedule. Pauses hold them like others, and no clock that stands still makes them later."""

LAG = timedelta(seconds=2)
"""How long a process may go on as if a pause had not begun or ended; every one that lives looks far more often."""


class PauseScope(NamedTuple):
    """Whose work a pause holds back; what is empty is not asked about."""

    tenant: str
    """`*` for all tenants."""
    definition: str = ""
    version: str = ""
    step: str = ""
    """Calls of this step alone, and of what follows from it under its name; timers are of no step."""

    def is_about(self, step: str) -> bool:
        """Whether it is about the calls of a step. The name of a step stands for those that follow from it too: `review` for `review/approved`."""
        return not self.step or step == self.step or step.startswith(f"{self.step}/")

    def __str__(self) -> str:
        """In words."""
        of = f"{self.definition!r}{f' version {self.version}' if self.version else ''}"
        told = [f"step {self.step!r}"] if self.step else []
        told += [of] if self.definition else []
        return " of ".join(told or ["everything"]) + (
            " of all tenants" if self.tenant == ALL_TENANTS else f" of tenant {self.tenant!r}"
        )


class PauseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One pause, as long as it stands and afterwards."""

    scope: PauseScope
    clock: PauseClock = "run_on"
    reason: str = ""
    paused_by: str
    paused_at: datetime
    until: datetime | None = None
    """When it ends by itself; None if somebody has to end it."""
    ended_at: datetime | None = None
    ended_by: str = ""
    ended_why: str = ""
    walks: int = 0
    """How often the walk has passed since it began or ended: 2 means that nothing is left to do."""
    id: int = 0
    """Given by the database."""

    @property
    def stands(self) -> bool:
        """Whether it holds work back."""
        return self.ended_at is None

    @property
    def changed_at(self) -> datetime:
        """When it began, or ended."""
        return self.ended_at or self.paused_at

    def covers(self, tenant: str, definition: str, version: str) -> bool:
        """Whether it is about the instances of a definition, or about one of their steps."""
        scope = self.scope
        return (
            scope.tenant in {tenant, ALL_TENANTS}
            and scope.definition in {definition, ""}
            and scope.version in {version, ""}
        )


def pause_of(row: Sequence[Any]) -> PauseRecord:
    """A row as the statements of both drivers give it, its instants already read."""
    (number, tenant, definition, version, step, clock, reason, *rest) = row
    paused_by, paused_at, until, ended_at, ended_by, ended_why, walks = rest
    return PauseRecord(
        id=number,
        scope=PauseScope(tenant, definition, version, step),
        clock=clock,
        reason=reason,
        paused_by=paused_by,
        paused_at=paused_at,
        until=until,
        ended_at=ended_at,
        ended_by=ended_by,
        ended_why=ended_why,
        walks=walks,
    )


def holding(pauses: Iterable[PauseRecord], tenant: str, definition: str, version: str) -> tuple[PauseRecord, ...]:
    """Those of the pauses that stand and are about an instance."""
    return tuple(each for each in pauses if each.stands and each.covers(tenant, definition, version))


class PausedEffect(NamedTuple):
    """What is asked about an effect to find out whether it is covered."""

    instance: InstanceId
    number: int
    tenant: str
    definition: str
    definition_version: str
    language: str
    type: str
    version: int
    data: bytes
    """Empty unless a pause names a step."""
    rank: int
    held_at: datetime | None


class PausedTimer(NamedTuple):
    """What is asked about a timer to find out whether it is covered."""

    instance: InstanceId
    key: str
    number: int
    tenant: str
    definition: str
    definition_version: str
    language: str
    due_at: datetime
    held_at: datetime | None
    frozen_at: datetime | None


class HeldTimer(NamedTuple):
    """A timer that somebody has just claimed and that is covered."""

    claim: TimerClaim
    frozen_at: datetime | None
    """Since when its clock stands still; None if it runs on."""


class HeldCount(NamedTuple):
    """How much is held of one version of a definition."""

    tenant: str
    definition: str
    version: str
    effects: int
    timers: int


class Stride(NamedTuple):
    """What one stride of the walk came to."""

    released: int
    """Effects and timers that may be taken now."""
    held: int
    is_over: bool
    """Whether there is nothing more to walk for just now."""


StepOf = Callable[[PausedEffect], str]
"""Which step an effect is of; empty if it is of none, or if it cannot be read."""


class Pauses(Protocol):
    """Pauses and what they hold. Instants are those of the engine's clock."""

    def begin(self, pause: PauseRecord) -> PauseRecord:
        """Have a pause stand; the one that stands for the very same scope already, if there is one."""
        ...

    def end(self, number: int, *, by: str, why: str, at: datetime) -> bool:
        """Let a pause stand no longer; False if it does not stand."""
        ...

    def standing(self) -> list[PauseRecord]:
        """Those that stand, and those that have ended and whose work is not all let go; oldest first."""
        ...

    def get(self, number: int) -> PauseRecord | None:
        """One pause, whether it stands or has ended."""
        ...

    def listed(self, tenant: str, *, before: int | None, limit: int) -> list[PauseRecord]:
        """All pauses that concern a tenant, `*` for those of every tenant, newest first; those with smaller numbers than `before`."""
        ...

    def counts(self) -> list[HeldCount]:
        """How much is held, by version of a definition."""
        ...

    def held_effects(self, tenant: str, definition: str) -> list[PausedEffect]:
        """The held effects of a definition, or of all if none is named, with their data; of all tenants if that is `*`."""
        ...

    def stride(self, step_of: StepOf, *, now: datetime, limit: int) -> Stride:
        """Go on with the walk, or begin one if there is reason to: look at up to `limit` rows and bring them into line."""
        ...

    def is_astray(self) -> bool:
        """Whether something is held although no pause stands or has to be walked for: a process that knew too little wrote it."""
        ...

    def versions(self, instances: Sequence[InstanceId]) -> dict[InstanceId, str]:
        """Which versions of their definitions instances run."""
        ...

    def hold_back(self, claims: Sequence[EffectClaim], *, at: datetime) -> None:
        """Give claimed effects back untried, as held."""
        ...

    def hold_timers(self, timers: Sequence[HeldTimer], *, at: datetime) -> None:
        """Give claimed timers back as held."""
        ...

    def prune(self, *, before: datetime, limit: int) -> int:
        """Forget pauses that ended before an instant; how many."""
        ...
