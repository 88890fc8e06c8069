"""One saga of five thousand steps in a row. The unit of work is a step.

What a step costs must not grow with the number of steps before it: `times_first_500` says how long the last five hundred took in relation to
the first five hundred, and `grown_mb` how much the memory of the process grew in between.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable

from bench.figures import Figures, peak_memory_mb
from bench.rounds import Round
from bench.watching import Commits
from bench.workers import WORKER
from standfast import Engine, Saga, SagaDefinition, handler

STEPS = 5_000
EDGE = 500
"""Steps at the beginning and at the end that are compared."""


def measure(this: Round) -> Figures:
    """Run it to its end."""
    steps = this.sized(STEPS, least=50)
    edge = min(EDGE, steps // 5)
    times: list[float] = []
    memory: list[float] = []

    @handler("note")
    async def note() -> None:
        times.append(time.perf_counter())
        if len(times) == edge:
            memory.append(peak_memory_mb())

    engine = Engine(this.url, settings=WORKER).register(_chain(note, steps)).start_worker()
    commits = Commits(engine)
    begun = time.perf_counter()
    engine.start("long").result()
    ended = time.perf_counter()
    engine.stop()
    assert len(times) == steps, f"{len(times)} calls for {steps} steps"
    first, last = times[edge - 1] - begun, ended - times[-edge]
    return Figures(
        per_second=steps / (ended - begun),
        commits_per_step=commits.count / steps,
        extra={"times_first_500": last / first, "grown_mb": peak_memory_mb() - memory[0]},
    )


def _chain(function: Callable[[], Awaitable[None]], steps: int) -> SagaDefinition:
    saga = Saga("long")
    for number in range(1, steps + 1):
        saga.step(f"step-{number}", function)
    return saga.build()
