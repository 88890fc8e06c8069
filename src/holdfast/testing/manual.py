"""The real engine without threads and with a clock that the test moves.

engine = ManualEngine().register(Order(), charge)
engine.execute(Order, PlaceOrder("o-1"))
engine.drain()
engine.advance(hours=72)
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Self

from holdfast.app.engine import Engine
from holdfast.kernel.wire import Codec, JsonCodec
from holdfast.runtime.clock import ManualClock
from holdfast.runtime.identity import SeededChance
from holdfast.runtime.settings import Settings
from holdfast.store.opening import open_store
from holdfast.store.port import Store

START = datetime(2030, 1, 1, 12, tzinfo=UTC)


class ManualEngine(Engine):
    """An engine that does nothing by itself: `drain` does all that is due, `advance` lets time go by.

    It is the same code on the same stores as in production, in memory by default. Calls are answered when they return, but for the end
    of a workflow, which comes when the engine is driven so far: to wait for it before raises DeadlockError. A call takes as long as
    the clock is moved while it runs. Ids are the same in every run on a new database; each engine on one database makes its own,
    and `seed` chooses them.
    """

    def __init__(
        self,
        url: str = "sqlite://",
        *,
        settings: Settings | None = None,
        codec: Codec | None = None,
        store: Store | None = None,
        clock: ManualClock | None = None,
        seed: int | None = None,
    ) -> None:
        self.clock = clock or ManualClock(START)
        opened = store or open_store(url, codec=(codec or JsonCodec()).name)
        if seed is None:
            seed = opened.keeper().next_number("test engines")
        super().__init__(
            url,
            settings=settings,
            codec=codec,
            store=opened,
            clock=self.clock,
            chance=SeededChance(seed),
            threads=False,
        )
        self._owns_store = store is None

    def advance(self, duration: timedelta | None = None, **parts: float) -> Self:
        """Let time go by, for example `advance(hours=72)`: everything that comes due on the way happens at its time."""
        end = self.clock.now() + (duration or timedelta(**parts))
        self.drain()
        while (due := self.runtime.next_due()) is not None and due <= end:
            self.clock.move(max(due - self.clock.now(), timedelta(0)))
            self.drain()
        self.clock.move(end - self.clock.now())
        self.drain()
        return self
