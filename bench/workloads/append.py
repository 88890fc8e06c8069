"""W4: load an instance and append one event to it, for each of many instances, one command an append, many callers.

The unit of work is an append. The instances are made beforehand by another process, so that nothing is in memory: every append reads
its instance and its history first. Callers are coroutines, or threads that wait for each answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from bench.figures import Figures, percentiles
from bench.rounds import Round
from bench.watching import Commits
from standfast import Decider, Decision, Engine, Moment

INSTANCES = 10_000
IN_FLIGHT = 1_000
"""Coroutines that send commands at the same time."""
THREADS = 16


@dataclass(frozen=True, slots=True)
class Open:
    """Begin an order."""

    workflow_id: str


@dataclass(frozen=True, slots=True)
class AddItem:
    """Put something into the order."""

    workflow_id: str
    sku: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Opened:
    """The order exists."""

    name: str


@dataclass(frozen=True, slots=True)
class ItemAdded:
    """There is more in the order."""

    sku: str
    quantity: int


@dataclass(frozen=True, slots=True)
class Order:
    """What is in it."""

    name: str = ""
    items: tuple[tuple[str, int], ...] = ()


class Orders(Decider[Order, Open | AddItem, Opened | ItemAdded, None]):
    """An aggregate with one kind of change."""

    type = "orders"

    def initial(self) -> Order:
        """An empty order."""
        return Order()

    def evolve(self, state: Order, event: Opened | ItemAdded) -> Order:
        """Take the name, or one more item."""
        if isinstance(event, Opened):
            return Order(event.name)
        return Order(state.name, (*state.items, (event.sku, event.quantity)))

    def decide(self, state: Order, command: Open | AddItem, moment: Moment) -> Decision:  # noqa: ARG002 - the contract
        """Every command is one event."""
        if isinstance(command, Open):
            return Decision((Opened(command.workflow_id),))
        return Decision((ItemAdded(command.sku, command.quantity),))


def prepare(this: Round) -> None:
    """Make the instances, each with one event."""
    engine = Engine(this.url).register(Orders())
    count = this.sized(INSTANCES)
    for first in range(0, count, IN_FLIGHT):
        orders = range(first, min(first + IN_FLIGHT, count))
        for reply in [engine.futures.deciders.execute(Orders, Open(f"order-{i}")) for i in orders]:
            reply.result()
    engine.stop()


def measure_coroutines(this: Round) -> Figures:
    """Callers are a thousand coroutines, each of which awaits its answer before it sends the next command."""
    return _measure(this, lambda engine, count: asyncio.run(_append_awaiting(engine, count)))


def measure_threads(this: Round) -> Figures:
    """Callers are sixteen threads, each of which waits for its answer before it sends the next command."""
    return _measure(this, _append_waiting)


def _measure(this: Round, append_all: Callable[[Engine, int], list[float]]) -> Figures:
    count = this.sized(INSTANCES)
    engine = Engine(this.url).register(Orders())
    commits = Commits(engine)
    begun = time.perf_counter()
    waits = append_all(engine, count)
    ended = time.perf_counter()
    assert engine.deciders.get(Orders, f"order-{count - 1}").version == 2, "an append is missing"
    engine.stop()
    p50, p99 = percentiles(waits)
    return Figures(per_second=count / (ended - begun), p50_ms=p50, p99_ms=p99, commits_per_step=commits.count / count)


async def _append_awaiting(engine: Engine, count: int) -> list[float]:
    async def append(i: int) -> float:
        begun = time.perf_counter()
        await engine.futures.deciders.execute(Orders, AddItem(f"order-{i}", "sku-12345", 3))
        return time.perf_counter() - begun

    async def call(first: int) -> list[float]:
        return [await append(i) for i in range(first, count, IN_FLIGHT)]

    told = await asyncio.gather(*(call(first) for first in range(min(IN_FLIGHT, count))))
    return [wait for waits in told for wait in waits]


def _append_waiting(engine: Engine, count: int) -> list[float]:
    def append(i: int) -> float:
        begun = time.perf_counter()
        engine.deciders.execute(Orders, AddItem(f"order-{i}", "sku-12345", 3))
        return time.perf_counter() - begun

    with ThreadPoolExecutor(THREADS) as callers:
        return list(callers.map(append, range(count)))
