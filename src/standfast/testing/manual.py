"""The real engine without threads and with a clock that the test moves.

engine = ManualEngine().register(Order(), charge)
engine.deciders.execute(Order, PlaceOrder("o-1"))
engine.drain()
engine.advance(hours=72)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Self

from standfast.app.engine import Engine
from standfast.engine.common.clock import ManualClock
from standfast.engine.common.randomness import SeededRandomness
from standfast.engine.common.settings import Settings
from standfast.errors import ConfigurationError
from standfast.kernel.codec.codecs import Codec, JsonCodec
from standfast.outbound.invokers import Invoker
from standfast.people.capabilities import CapabilityResolver
from standfast.people.directory import Directory
from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from standfast.store.records.instances import DEFAULT_TENANT

START = datetime(2030, 1, 1, 12, tzinfo=UTC)


class ManualEngine(Engine):
    """An engine without background work: `drain` does all due work, `advance` moves the clock.

    It is the same code on the same stores as in production, in memory by default. Calls return when they are answered.
    To wait for the end of a workflow before the engine was driven so far raises DeadlockError. A call takes as long as
    the clock is moved while it runs.

    Work for a handler that is not registered is a mistake of the test. `drain` and `advance` do the rest and then raise
    ConfigurationError. `is_alone=False` disables that, for a test with several engines on one database.

    Ids are the same in every run on a new database. Each engine on one database makes its own, and `seed` chooses them.
    """

    def __init__(  # noqa: PLR0913 - those of an engine, by name
        self,
        url: str = "sqlite://",
        *,
        settings: Settings | None = None,
        codec: Codec | None = None,
        tenant: str = DEFAULT_TENANT,
        store: Store | None = None,
        clock: ManualClock | None = None,
        seed: int | None = None,
        is_alone: bool = True,
        directory: Directory | None = None,
        capabilities: CapabilityResolver | Sequence[CapabilityResolver] | None = None,
        invokers: Mapping[str, Invoker] | None = None,
    ) -> None:
        self.clock = clock or ManualClock(START)
        opened = store or open_store(url, codec=(codec or JsonCodec()).name)
        try:
            if seed is None:
                seed = opened.keeper().next_number("test engines")
            super().__init__(
                url,
                settings=settings,
                codec=codec,
                tenant=tenant,
                store=opened,
                clock=self.clock,
                chance=SeededRandomness(seed),
                threads=False,
                directory=directory,
                capabilities=capabilities,
                invokers=invokers,
            )
        except BaseException:
            if store is None:
                opened.close()
            raise
        self._opened = opened if store is None else None
        self._is_alone = is_alone

    def _leave(self) -> None:
        super()._leave()
        if self._opened is not None:
            self._opened.close()

    def drain(self) -> int:
        """Do all due work and its consequences; return the number of items."""
        done = super().drain()
        self._check_handlers()
        return done

    def advance(self, duration: timedelta | None = None, **parts: float) -> Self:
        """Move the clock, for example `advance(hours=72)`; everything due on the way happens at its time.

        That includes maintenance: reports of missing handlers, retention of command ids and finished instances, and
        recovery of silent workers' leases.
        """
        end = self.clock.now() + _length(duration, parts)
        super().drain()
        while (due := self.runtime.next_due()) is not None and due <= end:
            wait = max(due - self.clock.now(), timedelta(0))
            self.clock.move(wait)
            if not super().drain() and not wait:
                break  # Maintenance mode, or a schema that is newer than the code, holds due work.
        self.clock.move(end - self.clock.now())
        self.drain()
        return self

    def _check_handlers(self) -> None:
        missing = self.admin.missing_handlers() if self._is_alone else []
        if missing:
            waiting = ", ".join(f"{each.handler!r} ({each.waiting} waiting)" for each in missing)
            raise ConfigurationError(
                f"effects wait for handlers that are not registered: {waiting}; give register(decider, handler) or handle(name, function), "
                "or open the engine with is_alone=False if others on its database have them"
            )


def _length(duration: object, parts: dict[str, float]) -> timedelta:
    """Return the length of the interval."""
    if duration is None:
        return timedelta(**parts)
    if isinstance(duration, timedelta) and not parts:
        return duration
    raise TypeError(
        "say how long in words or give a timedelta: advance(seconds=5), advance(hours=72) or advance(timedelta(days=1))"
    )
