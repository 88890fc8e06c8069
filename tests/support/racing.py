"""Things that happen at the same moment, over and over: each of them on a thread of its own, and what became of each."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Sequence
from functools import partial

import pytest

from standfast import Engine, RejectedError, SagaDefinition
from standfast.app.api.sync import Run
from support.campaigns import RACES
from support.engines import Live
from support.waiting import LONG_SECONDS, together

TIMES = RACES
TAKEN = "taken"

PROCESSES = pytest.mark.parametrize("processes", [1, 2])
"""For races of two threads in one engine, and of two engines that share nothing but the database."""

Group = Sequence[Callable[[], object]]


def raced(groups: Iterable[Group], *, lanes: int = 2) -> list[list[str]]:
    """Call those of each group at the same moment, group after group; for each call TAKEN, or the code that refused it.

    The next group is asked for when all calls of the one before have returned, so that a generator can prepare it.
    """
    left, now, outcomes = iter(groups), list[Callable[[], object]](), list[list[str]]()

    def prepare() -> None:
        now[:] = next(left, ())
        outcomes.extend([[""] * lanes] if now else [])

    meeting = threading.Barrier(lanes, action=prepare)

    def run(place: int) -> None:
        while True:
            try:
                meeting.wait(LONG_SECONDS)
                if not now:
                    return
                outcomes[-1][place] = tried(now[place])
            except threading.BrokenBarrierError:
                return  # Another lane tells why.
            except BaseException:
                meeting.abort()
                raise

    together(*(partial(run, place) for place in range(lanes)))
    return outcomes


def tried(call: Callable[[], object]) -> str:
    """Whether a call was taken, or the code that refused it."""
    try:
        call()
    except RejectedError as error:
        return error.reason
    return TAKEN


def rivals(live: Live, *sagas: SagaDefinition, processes: int = 2) -> tuple[Engine, Engine]:
    """Two processes on one database, or one that is asked by two threads. Nobody works yet."""
    engines = [live.engine() for _ in range(processes)]
    for engine in engines:
        for saga in sagas:
            engine.register(saga)
    return engines[0], engines[-1]


def begun(engine: Engine, saga: SagaDefinition, given: object = None, *, times: int = TIMES) -> list[Run[object]]:
    """So many runs of a saga, begun together."""
    replies = [engine.futures.start(saga, given) for _ in range(times)]
    return [engine.run(each.result(LONG_SECONDS).id) for each in replies]


def endings(engine: Engine, runs: Iterable[Run[object]]) -> list[str]:
    """The statuses in which runs end."""
    waited = [(each, engine.futures.run(each.id).result()) for each in runs]
    for _, reply in waited:
        reply.exception(LONG_SECONDS)
    return [each.describe().status for each, _ in waited]
