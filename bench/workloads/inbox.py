"""Inbox: how long somebody waits for the list of what they are asked, with few and with very many open questions of others.

The unit of work is one question of `engine.tasks`, asked by one person who is in the directory: she is asked by name and by a role, one
colleague has delegated questions to her, and she stands in for another. Her own questions are as many in both rows; all of them, and
those of the others, are put through the engine. The kinds of questions are asked in turn; each has its own figures beside those of all.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import NamedTuple

import psycopg

from bench.figures import Figures, percentile, percentiles
from bench.rounds import Round
from bench.workloads.waiting import settle
from standfast import Actor, Engine, Saga
from standfast.app.api.sync import Tasks

FEW, MANY = 1_000, 100_000
TIMES = 100
WARM_UP = 5
IN_FLIGHT = 1_000
COLLEAGUES = 500
"""Those whom the other questions ask."""
LONG_AGO = datetime(2026, 1, 1, tzinfo=UTC)
SOON = timedelta(milliseconds=1)

QUESTIONS: dict[str, Callable[[Tasks], object]] = {
    "mine": lambda tasks: tasks.list(mine=True),
    "roles": lambda tasks: tasks.list(role="boss"),
    "overdue": lambda tasks: tasks.list(mine=True, is_overdue=True),
    "all_overdue": lambda tasks: tasks.list(is_overdue=True),
    "definition": lambda tasks: tasks.list(definition="late"),
    "mine_of_definition": lambda tasks: tasks.list(mine=True, definition="late"),
    "key": lambda tasks: tasks.list(key="ada-3"),
    "requested": lambda tasks: tasks.list(requested_by_me=True),
    "decided": lambda tasks: tasks.decided(),
    "counts": lambda tasks: tasks.counts(),
}


class Asking(NamedTuple):
    """Questions of one kind."""

    definition: str
    approver: str
    requester: str
    key: str


OWN = [
    *(Asking("sell", "ada", "rita", f"ada-{number}") for number in range(20)),
    *(Asking("sell", "bert", "rita", f"bert-{number}") for number in range(10)),
    *(Asking("sell", "carl", "rita", f"carl-{number}") for number in range(10)),
    *(Asking("release", "", "rita", f"boss-{number}") for number in range(20)),
    *(Asking("late", "ada", "rita", f"late-{number}") for number in range(10)),
    *(Asking("sell", "rita", "ada", f"wish-{number}") for number in range(10)),
    *(Asking("sell", "ada", "rita", f"done-{number}") for number in range(20)),
]


def preparation(waiting: int) -> Callable[[Round], None]:
    """What puts this many questions."""

    def prepare(this: Round) -> None:
        with _opened(this) as engine:
            _people(engine)
            _put(engine, iter(OWN))
            for each in engine.acting("bert").tasks.list(mine=True):
                engine.acting("bert").tasks.delegate(each, "ada")
            for each in engine.acting("ada").tasks.list(mine=True):
                if each.key.startswith("done-"):
                    engine.acting("ada").tasks.approve(each)
            _put(engine, _of_others(this.sized(waiting)))
            # Last: while nobody has a role that the directory knows, nobody looks up whom a question names.
            engine.directory.grant("ada", "boss", begins_at=LONG_AGO)
        _gather_statistics(this)

    return prepare


def measure(this: Round) -> Figures:
    """Ask one question after the other."""
    waits: dict[str, list[float]] = {name: [] for name in QUESTIONS}
    with _opened(this) as engine:
        tasks = engine.acting(Actor(id="ada", capabilities=frozenset({"execution:read"}))).tasks
        assert len(tasks.list(mine=True)) == 70, "questions are missing"
        for number in range(WARM_UP + this.sized(TIMES)):
            for name, ask in QUESTIONS.items():
                begun = time.perf_counter()
                ask(tasks)
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
            **{f"{name}_p50_ms": percentile(each, 0.50) for name, each in waits.items()},
        },
    )


def _opened(this: Round) -> Engine:
    engine = Engine(this.url)
    engine.register(Saga("sell").human("approve", subject="Sell {n}?", ask="rule:approver").build())
    engine.register(Saga("late").human("approve", subject="Sell {n}?", ask="rule:approver", due=SOON).build())
    return engine.register(Saga("release").human("approve", subject="Release {n}?", role="boss").build())


def _people(engine: Engine) -> None:
    for name in ("ada", "bert", "carl", "rita"):
        engine.directory.put(name)
    engine.directory.delegate("carl", "ada", begins_at=LONG_AGO)


def _of_others(count: int) -> Iterator[Asking]:
    for number in range(count):
        yield Asking("sell", f"user-{number % COLLEAGUES}", f"user-{number % (COLLEAGUES - 1)}", f"k-{number}")


def _put(engine: Engine, wanted: Iterator[Asking]) -> None:
    while some := list(islice(wanted, IN_FLIGHT)):
        settle(
            [
                engine.futures.acting(each.requester).start(
                    each.definition, {"approver": each.approver, "n": 1}, key=each.key
                )
                for each in some
            ]
        )


def _gather_statistics(this: Round) -> None:
    """As a database has them that has stood for a while."""
    if this.is_postgres:
        with psycopg.connect(this.url, autocommit=True) as connection:
            connection.execute("vacuum (analyze)")
    else:
        connection_ = sqlite3.connect(this.path, isolation_level=None)
        connection_.execute("pragma wal_checkpoint(truncate)")
        connection_.close()
