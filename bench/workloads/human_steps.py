"""Processes whose people act, in a database with few and with very many finished instances: advances, and lists.

The unit of work of an advance is one call by one of 64 callers, from a human step to the next; the instances were started by another
process, so that each of them is loaded first. Lists are asked by one person, one kind after the other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice

from bench.callers import call_all
from bench.figures import Figures, percentile, percentiles
from bench.rounds import Round
from bench.watching import Commits
from bench.workloads.filling import fill
from bench.workloads.waiting import IN_FLIGHT, WARM, settle
from standfast import Actor, Engine, load_processes
from standfast.app.api.sync import Processes
from standfast.kernel.ids import InstanceId

FEW, MANY = 1_000, 1_000_000
ADVANCES = 4_000
OPEN = 500
"""Instances that wait for somebody while lists are asked for."""
TIMES = 100
WARM_UP = 5

TEXT = """
domain: bench
workflows:
  - id: request
    timeout: 30d
    on_timeout: expired
    steps:
      - {id: write, type: action, assignee: {role: clerk}, form: {type: object, properties: {n: {type: integer}}}}
      - {id: review, type: approval, assignee: {role: boss}}
      - {id: done, type: terminal}
      - {id: refused, type: terminal}
      - {id: expired, type: terminal}
    transitions:
      - {from: write, event: sent, to: review}
      - {from: review, event: approved, to: done, condition: workflow.n < 100}
      - {from: review, event: rejected, to: refused}
"""
CLERK = Actor(id="cleo", roles=frozenset({"clerk"}))
BOSS = Actor(id="bea", roles=frozenset({"boss"}))

LISTS: dict[str, Callable[[Processes], object]] = {
    "all": lambda processes: processes.list(),
    "active": lambda processes: processes.list(status="active"),
    "completed": lambda processes: processes.list(status="completed"),
    "role": lambda processes: processes.list(role="clerk"),
    "mine": lambda processes: processes.list(mine=True),
    "key": lambda processes: processes.list(key="open-7"),
    "done_key": lambda processes: processes.list(key="done-7"),
    "subject": lambda processes: processes.list(subject_id="ann"),
    "definition": lambda processes: processes.list(workflow_id="request", status="active"),
}


def preparation(finished: int, waiting: int) -> Callable[[Round], None]:
    """What makes so many finished instances, and so many that wait for somebody."""

    def prepare(this: Round) -> None:
        with _opened(this) as engine:
            ended = engine.acting("ann").processes.start("request", {"n": 1}, key="first").id
            engine.acting(CLERK).processes.advance(ended, "sent", {"n": 2})
            engine.acting(BOSS).processes.advance(ended, "approved")
        fill(this, ended, this.sized(finished))
        with _opened(this) as engine:
            numbers = iter(range(WARM + this.sized(waiting, least=WARM)))
            while some := list(islice(numbers, IN_FLIGHT)):
                starting = engine.futures.acting("ann").processes
                settle([starting.start("request", {"n": 1}, key=f"open-{number}", patience=0) for number in some])

    return prepare


def measure_advance(this: Round) -> Figures:
    """Each caller advances one instance after the other."""
    with _opened(this) as engine:
        waiting = _waiting(engine, "clerk")
        calls = engine.acting(CLERK).processes

        def advance(instance: InstanceId) -> None:
            calls.advance(instance, "sent", {"n": 2}, patience=0)

        call_all(advance, waiting[:WARM])
        commits = Commits(engine)
        answers = call_all(advance, waiting[WARM:])
        assert len(_waiting(engine, "boss")) == len(waiting), "an advance is missing"
    p50, p99 = percentiles(answers.waits)
    return Figures(
        per_second=answers.per_second, p50_ms=p50, p99_ms=p99, commits_per_step=commits.count / len(answers.begun)
    )


def measure_advance_in_turn(this: Round) -> Figures:
    """One caller alone: what an advance costs."""
    with _opened(this) as engine:
        calls, waits = engine.acting(CLERK).processes, []
        for number, instance in enumerate(_waiting(engine, "clerk")):
            begun = time.perf_counter()
            calls.advance(instance, "sent", {"n": 2}, patience=0)
            if number >= WARM:
                waits.append(time.perf_counter() - begun)
    p50, p99 = percentiles(waits)
    return Figures(per_second=len(waits) / sum(waits), p50_ms=p50, p99_ms=p99)


def measure_lists(this: Round) -> Figures:
    """Ask for one list after the other."""
    waits: dict[str, list[float]] = {name: [] for name in LISTS}
    with _opened(this) as engine:
        processes = engine.acting(CLERK).processes
        assert processes.list(mine=True).items, "nobody waits"
        for number in range(WARM_UP + this.sized(TIMES)):
            for name, ask in LISTS.items():
                begun = time.perf_counter()
                ask(processes)
                if number >= WARM_UP:
                    waits[name].append(time.perf_counter() - begun)
    everything = [wait for each in waits.values() for wait in each]
    p50, p99 = percentiles(everything)
    return Figures(
        per_second=len(everything) / sum(everything),
        p50_ms=p50,
        p99_ms=p99,
        extra={
            "p95_ms": percentile(everything, 0.95),
            "slowest_p95_ms": max(percentile(each, 0.95) for each in waits.values()),
            **{f"{name}_p95_ms": percentile(each, 0.95) for name, each in waits.items()},
            **{f"{name}_p50_ms": percentile(each, 0.50) for name, each in waits.items()},
        },
    )


@contextmanager
def _opened(this: Round) -> Iterator[Engine]:
    with Engine(this.url) as engine:
        for definition in load_processes(TEXT):
            engine.register(definition)
        yield engine


def _waiting(engine: Engine, role: str) -> list[InstanceId]:
    """All that wait for somebody with a role."""
    found: list[InstanceId] = []
    cursor = None
    while True:
        page = engine.processes.list(role=role, cursor=cursor, limit=1000)
        found += [each.id for each in page.items]
        cursor = page.next
        if cursor is None:
            return found
