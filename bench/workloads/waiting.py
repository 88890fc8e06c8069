"""What people and operators do to runs that wait: they pause them, let them go on, and decide.

Each run asks somebody and then calls a handler. Sixty-four callers at a time; the runs were made by another process, so that each of
them is loaded first. Latency: from the call to its answer for a pause, and from the call to the run's next handler otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from itertools import islice
from typing import Any, TypeVar

from bench.callers import CALLERS, Arrivals, call_all
from bench.figures import Figures, percentiles
from bench.rounds import Round
from bench.watching import Commits
from bench.workers import WORKER
from standfast import Engine, Run, Saga
from standfast.engine.concurrency.replies import Reply

T = TypeVar("T")

RUNS = 2_000
WARM = CALLERS
"""Runs that are not counted, so that everything is prepared."""
IN_FLIGHT = 500
BOSSES = CALLERS
ROLE = "boss"


@contextmanager
def opened(this: Round, arrivals: Arrivals | None = None) -> Iterator[Engine]:
    """An engine that knows runs which ask somebody and then call a handler; it does not work before it is started."""
    noted = arrivals or Arrivals()

    async def go(number: int) -> None:
        noted.note(number)

    expense = Saga("expense").human("approve", subject="Pay {number}?", role=ROLE).step("go", go).build()
    with Engine(this.url, settings=WORKER).register(expense) as engine:
        yield engine


def start(engine: Engine, count: int, **data: object) -> None:
    """Start runs with the numbers from 0 on."""
    numbers = iter(range(count))
    while some := list(islice(numbers, IN_FLIGHT)):
        settle([engine.futures.start("expense", {"number": number, **data}, key=str(number)) for number in some])


def started(engine: Engine) -> list[Run[Any]]:
    """The runs, in the order of their numbers."""
    found, cursor = [], None
    while True:
        page = engine.runs.list(definition="expense", cursor=cursor, limit=IN_FLIGHT)
        found += page.items
        cursor = page.next
        if cursor is None:
            return [engine.run(each.id) for each in sorted(found, key=lambda each: int(each.key))]


def question(run: Run[Any]) -> str:
    """The name of the question that a run asks: it is its first step."""
    return f"{run.id}:1"


def settle(replies: Sequence[Reply[T]]) -> list[T]:
    """Wait for all of these; what each answers."""
    return [reply.result() for reply in replies]


def asking(this: Round) -> None:
    """Make runs that wait for somebody who is in the directory."""
    with opened(this) as engine:
        start(engine, WARM + this.sized(RUNS))
        for number in range(BOSSES):
            engine.directory.put(f"boss-{number}")
            engine.directory.grant(f"boss-{number}", ROLE, begins_at=datetime(2026, 1, 1, tzinfo=UTC))


def held(this: Round) -> None:
    """Make runs that are paused, and would go on if they were not: somebody has decided."""
    with opened(this) as engine:
        start(engine, WARM + this.sized(RUNS))
        hold(engine, started(engine))


def hold(engine: Engine, runs: Sequence[Run[Any]]) -> None:
    """Pause runs, and decide what they ask."""
    for first in range(0, len(runs), IN_FLIGHT):
        some = runs[first : first + IN_FLIGHT]
        settle([engine.futures.run(run.id).pause() for run in some])
        settle([engine.futures.tasks.approve(question(run)) for run in some])


def measure_pause(this: Round) -> Figures:
    """Each caller pauses one run after the other."""
    with opened(this) as engine:
        runs = started(engine)
        call_all(lambda run: run.pause(), runs[:WARM])
        commits = Commits(engine)
        answers = call_all(lambda run: run.pause(), runs[WARM:])
        assert {run.describe().status for run in runs[:: len(runs) // 10]} == {"paused"}, "a pause is missing"
    p50, p99 = percentiles(answers.waits)
    return Figures(
        per_second=answers.per_second, p50_ms=p50, p99_ms=p99, commits_per_step=commits.count / len(answers.begun)
    )


def measure_resume(this: Round) -> Figures:
    """Each caller resumes one run after the other, and a handler is called for each of them."""
    return _until_called(this, lambda _engine: lambda run: run.resume())


def measure_approval(this: Round) -> Figures:
    """Each caller decides one question after the other, in the name of somebody who has the role by the directory."""

    def approving(engine: Engine) -> Callable[[Run[Any]], None]:
        bosses = [engine.acting(f"boss-{number}").tasks for number in range(BOSSES)]
        return lambda run: bosses[run.id.int % BOSSES].approve(question(run))

    return _until_called(this, approving)


def _until_called(this: Round, calling: Callable[[Engine], Callable[[Run[Any]], None]]) -> Figures:
    arrivals = Arrivals()
    with opened(this, arrivals) as engine:
        engine.start_worker()
        runs = started(engine)
        call = calling(engine)
        call_all(call, runs[:WARM])
        arrivals.wait_for(WARM)
        answers = call_all(call, runs[WARM:])
        arrivals.wait_for(len(runs))
    p50, p99 = percentiles(answers.waits_for(arrivals, first=WARM))
    _, answered = percentiles(answers.waits)
    return Figures(per_second=answers.per_second, p50_ms=p50, p99_ms=p99, extra={"answered_p99_ms": answered})
