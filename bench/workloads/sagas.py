"""W1 and W2: sagas whose handlers do nothing.

W1 is a saga of ten steps in a row: a thousand of them in flight, and then one at a time. W2 is a saga that fans out to fifty steps and joins
them, one at a time. The unit of work of W1 is a step, that of the others a whole saga.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bench.figures import Figures, percentiles
from bench.rounds import Round
from bench.watching import Commits
from bench.workers import WORKER
from standfast import Branch, Engine, Saga, SagaDefinition, handler
from standfast.store.opening import open_store

STEPS = 10
SAGAS = 1_000
ALONE = 300
BRANCHES = 50
WARM = 20
"""Sagas that are not counted, so that everything is prepared."""


@handler("nothing")
async def nothing() -> None:
    """What a handler costs that does nothing."""


def prepare(this: Round) -> None:
    """Make the tables."""
    open_store(this.url).close()


def chain(name: str, steps: int) -> SagaDefinition:
    """A saga of steps in a row."""
    saga = Saga(name)
    for number in range(1, steps + 1):
        saga.step(f"step-{number}", nothing)
    return saga.build()


def fan(name: str, branches: int) -> SagaDefinition:
    """A saga of steps side by side, and a join."""

    def branch(number: int) -> Callable[[Branch], object]:
        return lambda way: way.step(f"step-{number}", nothing)

    return Saga(name).fork("fan", *[branch(number) for number in range(1, branches + 1)]).join("meet").build()


def measure_many(this: Round) -> Figures:
    """W1: started from one thread, all in flight."""
    count = this.sized(SAGAS)
    engine = Engine(this.url, settings=WORKER).register(chain("ten", STEPS)).start_worker()
    one_by_one(engine, "ten", 3)
    commits = Commits(engine)
    begun = time.perf_counter()
    asyncio.run(all_at_once(engine, "ten", count))
    ended = time.perf_counter()
    engine.stop()
    return Figures(
        per_second=count * STEPS / (ended - begun),
        commits_per_step=commits.count / (count * STEPS),
        extra={"sagas_per_second": count / (ended - begun)},
    )


def measure_alone(this: Round) -> Figures:
    """W1 alone: each is started when the one before has ended."""
    return _alone(this, chain("ten", STEPS))


def measure_fan(this: Round) -> Figures:
    """W2: each is started when the one before has ended."""
    return _alone(this, fan("fan", BRANCHES))


def _alone(this: Round, saga: SagaDefinition) -> Figures:
    engine = Engine(this.url, settings=WORKER).register(saga).start_worker()
    one_by_one(engine, saga.name, WARM)
    commits = Commits(engine)
    took = one_by_one(engine, saga.name, this.sized(ALONE))
    engine.stop()
    p50, p99 = percentiles(took)
    return Figures(
        per_second=len(took) / sum(took), p50_ms=p50, p99_ms=p99, extra={"commits_per_saga": commits.count / len(took)}
    )


def one_by_one(engine: Engine, name: str, count: int) -> list[float]:
    """Start each when the one before has ended; how long each took."""
    took = []
    for _ in range(count):
        begun = time.perf_counter()
        engine.start(name).result()
        took.append(time.perf_counter() - begun)
    return took


async def all_at_once(engine: Engine, name: str, count: int) -> None:
    """Start all, and wait for all."""

    async def one() -> None:
        run = await engine.futures.start(name)
        await run.result()

    await asyncio.gather(*(one() for _ in range(count)))
