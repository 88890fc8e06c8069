"""The smallest decider with an effect: a job is enqueued, its effect runs, and it may say that it has ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass

from bench.workers import WORKER
from standfast import Decider, Decision, Effect, EffectContext, Engine, Ignored, Moment, Settings


@dataclass(frozen=True, slots=True)
class Enqueue:
    """There is a job to do."""

    workflow_id: str
    i: int


@dataclass(frozen=True, slots=True)
class EnqueueMany:
    """There are many jobs to do."""

    workflow_id: str
    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Finish:
    """The job is done."""


@dataclass(frozen=True, slots=True)
class Enqueued:
    """The job waits."""

    i: int


@dataclass(frozen=True, slots=True)
class ManyEnqueued:
    """Many jobs wait."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The job has ended."""


@dataclass(frozen=True, slots=True)
class Run:
    """Do the job."""

    i: int


@dataclass(frozen=True, slots=True)
class State:
    """Whether the job has ended."""

    is_done: bool = False


Command = Enqueue | EnqueueMany | Finish
Event = Enqueued | ManyEnqueued | Finished


class Jobs(Decider[State, Command, Event, Run]):
    """Jobs: one on an instance of its own, or many on one."""

    type = "jobs"

    def initial(self) -> State:
        """Nothing was asked for."""
        return State()

    def evolve(self, state: State, event: Event) -> State:
        """Only the end matters."""
        return State(is_done=True) if isinstance(event, Finished) else state

    def decide(self, state: State, command: Command, moment: Moment) -> Decision | Ignored:
        """A job is enqueued once; it may finish once."""
        if isinstance(command, Finish):
            return Decision((Finished(),))
        if isinstance(command, EnqueueMany):
            jobs = range(command.first, command.first + command.count)
            return Decision(
                (ManyEnqueued(command.first, command.count),), effects=tuple(Effect(body=Run(i)) for i in jobs)
            )
        if moment.version or state.is_done:
            return Ignored(reason="enqueued before")
        return Decision.event(Enqueued(command.i)).with_effect(Run(command.i))

    def is_terminal(self, state: State) -> bool:
        """A finished job has ended."""
        return state.is_done


Handler = Callable[[EffectContext, Run], Awaitable[Finish | None]]


def commands(count: int) -> Iterator[Enqueue]:
    """This many jobs, each on an instance of its own."""
    return (Enqueue(f"job-{i}", i) for i in range(count))


def batches(count: int, size: int) -> Iterator[EnqueueMany]:
    """This many jobs, so many of them by one command."""
    return (EnqueueMany(f"batch-{first}", first, min(size, count - first)) for first in range(0, count, size))


def open_jobs(url: str, handler: Handler, settings: Settings | None = None) -> Engine:
    """An engine that knows jobs; it does not work before it is started."""
    return Engine(url, settings=settings or WORKER).register(Jobs(), handler)
