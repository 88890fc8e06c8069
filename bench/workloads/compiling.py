"""Building a saga of a thousand steps: the builder, every check, and the hash. The unit of work is a whole definition."""

from __future__ import annotations

import time

from bench.figures import Figures, percentiles
from bench.rounds import Round
from bench.workloads.sagas import chain

NODES = 1_000
TIMES = 20


def measure(this: Round) -> Figures:
    """Build it again and again."""
    nodes = this.sized(NODES)
    took = []
    for _ in range(TIMES):
        begun = time.perf_counter()
        chain("large", nodes)
        took.append(time.perf_counter() - begun)
    p50, p99 = percentiles(took)
    return Figures(per_second=TIMES / sum(took), p50_ms=p50, p99_ms=p99)
