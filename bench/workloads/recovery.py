"""Recovery: how long work lies still when its worker is killed.

A process takes all the jobs in hand and is killed with SIGKILL; another engine, which has nothing to do, gets them when the dead one's
lease runs out. The clock runs from the signal until every job has ended and that is committed. The latencies are those from the signal
to the calls of the handlers. The lease is the default one, shortened when the scale is smaller than 1.
"""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from datetime import timedelta

from bench.figures import Figures, percentiles
from bench.jobs import Finish, Run, commands, open_jobs
from bench.rounds import Round
from bench.watching import Calls, wait_until_empty
from bench.workloads.queue import enqueue
from standfast import EffectContext, Engine, Settings
from standfast.store.opening import open_store

JOBS = 500
SHORTEST_LEASE_SECONDS = 0.6


def prepare(this: Round) -> None:
    """Make the tables."""
    open_store(this.url).close()


def measure(this: Round) -> Figures:
    """Kill a worker and see its work done by another."""
    calls = Calls()

    async def handle(_context: EffectContext, _effect: Run) -> Finish:
        calls.note()
        return Finish()

    count, settings = this.sized(JOBS), _settings(this)
    engine = open_jobs(this.url, handle, settings)
    enqueue(engine, commands(count))
    victim = _start_victim(this, count)
    engine.start_worker()
    killed = time.perf_counter()
    victim.kill()
    victim.wait()
    calls.wait_for(count)
    wait_until_empty(engine)
    seconds = time.perf_counter() - killed
    _check(engine, count)
    engine.stop()
    p50, p99 = percentiles([at - killed for at in calls.times])
    return Figures(
        p50_ms=p50,
        p99_ms=p99,
        extra={"seconds": seconds, "lease_seconds": settings.lease.total_seconds(), "jobs": count},
    )


def _check(engine: Engine, count: int) -> None:
    ended = engine.instances.list(status="completed", limit=count + 1)
    assert len(ended) == count, f"{len(ended)} of {count} jobs have ended"
    assert all(header.version == 2 for header in ended), "a command was applied twice"


def _settings(this: Round) -> Settings:
    default = Settings()
    share = min(1.0, max(this.scale, SHORTEST_LEASE_SECONDS / default.lease.total_seconds()))
    return Settings(lease=default.lease * share, beat_interval=default.beat_interval * share)


def _start_victim(this: Round, count: int) -> subprocess.Popen[str]:
    """A worker that has all the jobs in hand and will never finish them."""
    arguments = (this.url, str(count), str(_settings(this).lease.total_seconds()))
    command = [sys.executable, "-m", "bench.workloads.recovery", *arguments]
    victim = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert victim.stdout is not None
    if victim.stdout.readline() != "holding\n":
        raise RuntimeError("the worker that was to be killed ended by itself")
    return victim


def hold(url: str, count: int, lease: timedelta) -> None:
    """Be the worker that is killed; end, too, when the process is gone that was to do it."""
    calls, holding = Calls(), threading.Event()

    async def handle(_context: EffectContext, _effect: Run) -> None:
        calls.note()
        if len(calls.times) == count:
            holding.set()
        await asyncio.sleep(3600)

    open_jobs(url, handle, Settings(lease=lease, beat_interval=lease / 4)).start_worker()
    holding.wait()
    print("holding", flush=True)
    sys.stdin.read()
    os._exit(0)


if __name__ == "__main__":
    hold(sys.argv[1], int(sys.argv[2]), timedelta(seconds=float(sys.argv[3])))
