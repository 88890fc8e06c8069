"""Port for pauses that cover more than one instance.

The rows of `pauses` are authoritative. An effect or timer is held for as long as a pause covers it. A commit that knows
of a pause writes covered work as held, and a claimer puts covered work back as held. All other rows are updated in
batches (`store/sql/pause_propagation`), by one process at a time.
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
"""Timers for a fixed time instead of a duration, by language and key: the end of a run's pause, and the next fire of
a schedule. Pauses hold them, but never delay them."""

LAG = timedelta(seconds=2)
"""How long a process may overlook a change of pauses. Live processes check far more often."""


class PauseScope(NamedTuple):
    """The scope of a pause. Empty fields match all."""

    tenant: str
    """`*` for all tenants."""
    definition: str = ""
    version: str = ""
    step: str = ""
    """Only calls of this step and of its derived steps. Timers belong to no step."""

    def is_about(self, step: str) -> bool:
        """Return whether the scope covers calls of a step.

        It includes derived steps: `review` covers `review/approved`.
        """
        return not self.step or step == self.step or step.startswith(f"{self.step}/")

    def __str__(self) -> str:
        """Describe the scope."""
        of = f"{self.definition!r}{f' version {self.version}' if self.version else ''}"
        told = [f"step {self.step!r}"] if self.step else []
        told += [of] if self.definition else []
        return " of ".join(told or ["everything"]) + (
            " of all tenants" if self.tenant == ALL_TENANTS else f" of tenant {self.tenant!r}"
        )


class PauseRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A pause, active or ended."""

    scope: PauseScope
    clock: PauseClock = "run_on"
    reason: str = ""
    paused_by: str
    paused_at: datetime
    until: datetime | None = None
    """When it expires. None if it must be ended explicitly."""
    ended_at: datetime | None = None
    ended_by: str = ""
    ended_why: str = ""
    walks: int = 0
    """Completed propagation passes since it began or ended. 2 means that nothing is left to do."""
    id: int = 0
    """Assigned by the database."""

    @property
    def stands(self) -> bool:
        """Whether it is active."""
        return self.ended_at is None

    @property
    def changed_at(self) -> datetime:
        """When it began, or ended."""
        return self.ended_at or self.paused_at

    def covers(self, tenant: str, definition: str, version: str) -> bool:
        """Return whether it covers the instances of a definition, or one of their steps."""
        scope = self.scope
        return (
            scope.tenant in {tenant, ALL_TENANTS}
            and scope.definition in {definition, ""}
            and scope.version in {version, ""}
        )


def pause_of(row: Sequence[Any]) -> PauseRecord:
    """Build a record from a row of either driver, with parsed times."""
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
    """Return the active pauses that cover an instance."""
    return tuple(each for each in pauses if each.stands and each.covers(tenant, definition, version))


class PausedEffect(NamedTuple):
    """An effect, with the columns that decide whether a pause covers it."""

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
    """A timer, with the columns that decide whether a pause covers it."""

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
    """A claimed timer that a pause covers."""

    claim: TimerClaim
    frozen_at: datetime | None
    """Since when its clock is stopped. None if it runs."""


class HeldCount(NamedTuple):
    """The amount of held work of one version of a definition."""

    tenant: str
    definition: str
    version: str
    effects: int
    timers: int


class Stride(NamedTuple):
    """The result of one propagation batch."""

    released: int
    """Number of effects and timers that became claimable."""
    held: int
    is_over: bool
    """Whether the pass is complete."""


StepOf = Callable[[PausedEffect], str]
"""Returns the step of an effect. Empty if it has none or cannot be read."""


class Pauses(Protocol):
    """The pauses and the work that they hold. Times are those of the engine's clock."""

    def begin(self, pause: PauseRecord) -> PauseRecord:
        """Begin a pause, or return the active one with the same scope."""
        ...

    def end(self, number: int, *, by: str, why: str, at: datetime) -> bool:
        """End a pause. Return False if it is not active."""
        ...

    def standing(self) -> list[PauseRecord]:
        """Return the active pauses, and ended ones whose work is not completely released, oldest first."""
        ...

    def get(self, number: int) -> PauseRecord | None:
        """Return a pause, active or ended."""
        ...

    def listed(self, tenant: str, *, before: int | None, limit: int) -> list[PauseRecord]:
        """Return all pauses that concern a tenant, `*` for those of all tenants, below the number `before`, newest first."""
        ...

    def counts(self) -> list[HeldCount]:
        """Return the amount of held work by version of a definition."""
        ...

    def held_effects(self, tenant: str, definition: str) -> list[PausedEffect]:
        """Return the held effects of a definition, or of all, with their data. `*` means all tenants."""
        ...

    def stride(self, step_of: StepOf, *, now: datetime, limit: int) -> Stride:
        """Update the next batch of up to `limit` rows, starting a pass if one is due."""
        ...

    def is_astray(self) -> bool:
        """Return whether work is held although no pause is active or being propagated.

        A process with outdated knowledge wrote it.
        """
        ...

    def versions(self, instances: Sequence[InstanceId]) -> dict[InstanceId, str]:
        """Return the definition versions of instances."""
        ...

    def hold_back(self, claims: Sequence[EffectClaim], *, at: datetime) -> None:
        """Put claimed effects back as held, without counting an attempt."""
        ...

    def hold_timers(self, timers: Sequence[HeldTimer], *, at: datetime) -> None:
        """Put claimed timers back as held."""
        ...

    def prune(self, *, before: datetime, limit: int) -> int:
        """Delete pauses that ended before a time. Return their number."""
        ...
