"""W3: no-op jobs, enqueued and drained by one process.

The unit of work is a job. First a thousand jobs by one command, as queues enqueue them in bulk, all before the first is drained. Then each
by a command of its own on an instance of its own: all enqueued before the first is drained; both at once; and with a handler that
answers with a command, so that each job is two decisions and ends its instance.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterable

from bench.figures import Figures, percentiles
from bench.jobs import Enqueue, EnqueueMany, Finish, Jobs, Run, batches, commands, open_jobs
from bench.rounds import Round
from bench.watching import Calls, Commits, wait_until_empty
from standfast import EffectContext, Engine, Reply
from standfast.store.opening import open_store

JOBS = 10_000
BULK = 1_000
"""Jobs that one command enqueues in bulk."""
IN_FLIGHT = 1_000
"""Commands that one caller has sent and not yet heard of."""


def prepare(this: Round) -> None:
    """Make the tables."""
    open_store(this.url).close()


def measure_bulk(this: Round) -> Figures:
    """Enqueue everything, many jobs by one command, then start to work."""
    return _in_turn(this, batches(this.sized(JOBS), BULK))


def measure_in_turn(this: Round) -> Figures:
    """Enqueue everything, each job by a command of its own, then start to work."""
    return _in_turn(this, commands(this.sized(JOBS)))


def measure_answered(this: Round) -> Figures:
    """As in turn, but each handler returns a command, which ends its instance."""
    return _in_turn(this, commands(this.sized(JOBS)), Finish())


def _in_turn(this: Round, jobs: Iterable[Enqueue | EnqueueMany], answer: Finish | None = None) -> Figures:
    calls = Calls()

    async def handle(_context: EffectContext, _effect: Run) -> Finish | None:
        calls.note()
        return answer

    count = this.sized(JOBS)
    engine = open_jobs(this.url, handle)
    commits = Commits(engine)
    begun = time.perf_counter()
    enqueue(engine, jobs)
    enqueued = time.perf_counter()
    engine.start_worker()
    ended = _done(engine, calls, count)
    return Figures(
        per_second=count / (ended - begun),
        commits_per_step=commits.count / count,
        extra={"enqueue_per_second": count / (enqueued - begun), "drain_per_second": count / (ended - enqueued)},
    )


def measure_together(this: Round) -> Figures:
    """Enqueue into an engine that works already. The latency is that from the call to its handler, with many in flight."""
    sent: dict[int, float] = {}
    calls = Calls()
    waits: list[float] = []

    async def handle(_context: EffectContext, effect: Run) -> None:
        calls.note()
        waits.append(calls.times[-1] - sent[effect.i])

    count = this.sized(JOBS)
    engine = open_jobs(this.url, handle).start_worker()
    commits = Commits(engine)
    begun = time.perf_counter()
    enqueue(engine, commands(count), sent)
    ended = _done(engine, calls, count)
    p50, p99 = percentiles(waits)
    return Figures(per_second=count / (ended - begun), p50_ms=p50, p99_ms=p99, commits_per_step=commits.count / count)


def _done(engine: Engine, calls: Calls, count: int) -> float:
    """When all jobs were done and committed, each once; the engine is stopped then."""
    calls.wait_for(count)
    wait_until_empty(engine)
    ended = time.perf_counter()
    engine.stop()
    assert len(calls.times) == count, f"{len(calls.times)} calls for {count} jobs"
    return ended


def enqueue(engine: Engine, jobs: Iterable[Enqueue | EnqueueMany], sent: dict[int, float] | None = None) -> None:
    """Send the commands from one thread; back when all are committed."""
    pending: deque[Reply[None]] = deque()
    for job in jobs:
        if sent is not None and isinstance(job, Enqueue):
            sent[job.i] = time.perf_counter()
        pending.append(engine.futures.deciders.execute(Jobs, job))
        if len(pending) >= IN_FLIGHT:
            pending.popleft().result()
    for reply in pending:
        reply.result()
