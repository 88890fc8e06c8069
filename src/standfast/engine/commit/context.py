"""Collaborators shared within one engine, and the context that drafts need besides their instance."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Protocol

from standfast.engine.commit.cache import FoldCache
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
    """The message types that this process can read. Work of other types is left to processes that know them."""

    def commands(self) -> Sequence[Word]:
        """Returns the commands that timers and messages may carry."""
        ...

    def effects(self) -> Sequence[Word]:
        """Returns the effects that handlers can be called for."""
        ...

    def speaker(self, language: str, /) -> Program:
        """Returns a program that reads and writes this language.

        Raises NotFoundError if no program in this process does.
        """
        ...


class ProgramCatalog(ReadableTypes, Protocol):
    """The definitions that this process can run."""

    def get(self, tenant: str, name: str, version: str = "", /) -> Program:
        """The program of a definition of a tenant, or of a shared one; NotFoundError if there is none."""
        ...


class EngineContext:
    """The shared collaborators of one engine. Engines share none of them."""

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
        """Returns the program of a definition. Raises NotFoundError if it is not registered."""
        self.languages = languages
        self.submit = submit
        """Submits a command to the committer."""
        self.find_key = find_key
        """Returns the business key of a tenant's instance, empty if it has none."""
        self.telemetry = Telemetry()
        self.handlers = Handlers()
        self.folds = FoldCache()
        """What readers have folded."""


_log = logging.getLogger("standfast")


class DraftContext:
    """The context shared by all drafts of a committer."""

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
        """The active pauses that this process knows."""
        self.companions = companions
        self.shares = shares
        """Fair scheduling between tenants. None means one queue for all tenants."""
        self.ageing = ageing
        self.snapshot_events = snapshot_events
        self.observe = observe
        self.lessee: Lessee | None = None
        """The worker of this process, while it accepts work."""
        self.facts = facts
        """Source of the facts that decisions are based on."""
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
        """Build the context from the settings."""
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
        """Return the same context without a worker, for commits that must not hand over effects because their outcome may stay unknown."""
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
        """Warn, once per decider, that its state cannot be stored as a snapshot.

        Commits are unaffected, but long histories load slowly.
        """
        if decider not in self._warned:
            self._warned.add(decider)
            _log.warning("snapshot_unsupported decider=%r: each load replays the whole history: %s", decider, reason)
