"""What the parts of one engine share.

What drafts need to know besides their instance.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from standfast.engine.commit.facts import FactSource
from standfast.engine.commit.fairness import TenantFairness
from standfast.engine.commit.submission import Submission
from standfast.engine.commit.work_rows import Lessee
from standfast.engine.common.clock import Clock
from standfast.engine.common.handlers import Handlers
from standfast.engine.common.interceptors import Interceptors
from standfast.engine.common.pauses import ActivePauses
from standfast.engine.common.randomness import Randomness
from standfast.engine.common.settings import Settings
from standfast.engine.common.telemetry import Telemetry
from standfast.errors import PayloadError
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program, Programs
from standfast.store.records.instances import Word


class ReadableTypes(Protocol):
    """What this process can read. Work in other words is left to processes that know them."""

    def commands(self) -> Sequence[Word]:
        """The commands that timers and messages may bring."""
        ...

    def effects(self) -> Sequence[Word]:
        """The effects that handlers can be called for."""
        ...

    def speaker(self, language: str, /) -> Program:
        """A program that reads and writes this language; NotFoundError if nobody here speaks it."""
        ...


class ProgramCatalog(ReadableTypes, Protocol):
    """The definitions that this process can run."""

    def get(self, tenant: str, name: str, version: str = "", /) -> Program:
        """The program of a definition of a tenant, or of a shared one; NotFoundError if there is none."""
        ...


class EngineContext:
    """The surroundings of one engine. Nothing here is shared between engines."""

    def __init__(
        self,
        settings: Settings,
        *,
        clock: Clock,
        chance: Randomness,
        programs: Programs,
        languages: ReadableTypes,
        submit: Callable[[Submission], None],
        find_key: Callable[[str, InstanceId], str],
    ) -> None:
        self.settings = settings
        self.clock = clock
        self.chance = chance
        self.programs = programs
        """The program of a definition; NotFoundError if nobody registered it."""
        self.languages = languages
        self.submit = submit
        """Hands a command to the committer."""
        self.find_key = find_key
        """The business key of a tenant's instance; empty if it has none."""
        self.telemetry = Telemetry()
        self.handlers = Handlers()


_log = logging.getLogger("standfast")


class DraftContext:
    """The same for all drafts of a committer."""

    def __init__(
        self,
        programs: Programs,
        standing: ActivePauses,
        companions: Interceptors,
        *,
        facts: FactSource,
        shares: TenantFairness | None,
        ageing: float,
        snapshot_events: int,
        observe: bool,
    ) -> None:
        self.programs = programs
        self.standing = standing
        """The pauses that this process knows of."""
        self.companions = companions
        self.shares = shares
        """Whose turn it is; None if all tenants stand in one line."""
        self.ageing = ageing
        self.snapshot_events = snapshot_events
        self.observe = observe
        self.lessee: Lessee | None = None
        """The worker of this process, while it takes work."""
        self.facts = facts
        """Where facts come from that decisions are based on."""
        self._warned: set[str] = set()

    @classmethod
    def of(
        cls,
        programs: Programs,
        settings: Settings,
        standing: ActivePauses,
        companions: Interceptors,
        *,
        facts: FactSource,
    ) -> DraftContext:
        """What the settings say."""
        return cls(
            programs,
            standing,
            companions,
            facts=facts,
            shares=None if settings.tenant_rate is None else TenantFairness(settings.tenant_rate),
            ageing=settings.ageing_rate,
            snapshot_events=settings.snapshot_events,
            observe=settings.observe_inputs,
        )

    def without_lessee(self) -> DraftContext:
        """The same for commits that hand nothing over, because nobody learns for certain what became of them."""
        other = DraftContext(
            self.programs,
            self.standing,
            self.companions,
            facts=self.facts,
            shares=self.shares,
            ageing=self.ageing,
            snapshot_events=self.snapshot_events,
            observe=self.observe,
        )
        other._warned = self._warned
        return other

    def warn_of_snapshots(self, decider: str, reason: PayloadError) -> None:
        """A state cannot be kept as a snapshot. That is said once for each decider: all is well, but long histories are slow."""
        if decider not in self._warned:
            self._warned.add(decider)
            _log.warning("an instance of %r gets no snapshots, so each load replays its history: %s", decider, reason)
