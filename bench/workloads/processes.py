"""W1 shared: the sagas of W1 by two processes on one database, beside the same number by one.

Each process starts its share of the sagas and works on whatever there is. The clock runs from the first start to the last end. The unit of
work is a step; `times_one` is what two make of what one makes, on the same machine: with two cores, the database has its share of both.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time

import msgspec

from bench.figures import Figures
from bench.rounds import Round
from bench.workers import WORKER
from bench.workloads.sagas import SAGAS, STEPS, all_at_once, chain, one_by_one
from standfast import Engine

PROCESSES = 2


def measure(this: Round) -> Figures:
    """One process, and then two."""
    count = this.sized(SAGAS, least=PROCESSES)
    alone, shared = (_rate(this.url, count, processes) for processes in (1, PROCESSES))
    return Figures(per_second=shared, extra={"times_one": shared / alone})


def _rate(url: str, count: int, processes: int) -> float:
    share = count // processes
    players = [_start(url, share) for _ in range(processes)]
    for player in players:
        assert player.stdout is not None
        player.stdout.readline()
    spans = []
    for player in players:
        assert player.stdin is not None
        player.stdin.write("go\n")
        player.stdin.flush()
    for player in players:
        told, _ = player.communicate()
        spans.append(msgspec.json.decode(told, type=tuple[float, float]))
    return share * processes * STEPS / (max(end for _, end in spans) - min(begin for begin, _ in spans))


def _start(url: str, count: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "bench.workloads.processes", url, str(count)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _play(url: str, count: int) -> None:
    """One of the processes: ready, and then its share."""
    engine = Engine(url, settings=WORKER).register(chain("ten", STEPS)).start_worker()
    one_by_one(engine, "ten", 3)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    sys.stdin.readline()
    begun = time.time()
    asyncio.run(all_at_once(engine, "ten", count))
    ended = time.time()
    engine.stop()
    sys.stdout.write(msgspec.json.encode((begun, ended)).decode())


if __name__ == "__main__":
    _play(sys.argv[1], int(sys.argv[2]))
