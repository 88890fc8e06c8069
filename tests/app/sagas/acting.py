"""Handlers that do as the test says and whose calls are written down, and short questions about what became of a run."""

from __future__ import annotations

import threading

import standfast
from standfast import Calls, HistoryEntry, Step, StepContext
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.waiting import LONG_SECONDS, arrives

BROKEN = ValueError("broken")
"""What a handler raises that is to fail."""


class Actor:
    """A handler that does one thing after the other, and the last one ever after."""

    def __init__(self, name: str, stage: Stage) -> None:
        self.name = name
        self.acts: list[object] = [None]
        self._stage = stage

    def __call__(self, ctx: StepContext) -> object:
        """Raise what is an exception, call what can be called, return the rest."""
        act = self._stage.entered(self, ctx)
        if isinstance(act, BaseException):
            raise act
        return act(ctx) if callable(act) else act


class Stage:
    """All handlers of a test: who was called, in which order, with what."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._calls: list[tuple[str, StepContext]] = []
        self._actors: dict[str, Actor] = {}

    def does(self, name: str, *acts: object) -> Actor:
        """The handler with this name, which from now on does this, if acts are given."""
        actor = self._actors.setdefault(name, Actor(name, self))
        if acts:
            with self._lock:
                actor.acts = list(acts)
        return actor

    def entered(self, actor: Actor, context: StepContext) -> object:
        """A handler was called; what it does this time."""
        with self._lock:
            self._calls.append((actor.name, context))
            return actor.acts.pop(0) if len(actor.acts) > 1 else actor.acts[0]

    @property
    def calls(self) -> list[str]:
        """The names of the handlers that were called, in order."""
        with self._lock:
            return [name for name, _ in self._calls]

    def count(self, name: str) -> int:
        """How often a handler was called."""
        return self.calls.count(name)

    def contexts(self, name: str) -> list[StepContext]:
        """What a handler was told, call by call."""
        with self._lock:
            return [context for called, context in self._calls if called == name]

    def forget(self) -> None:
        """Begin a new list of calls."""
        with self._lock:
            self._calls = []


class Gate:
    """A handler that stands still until the test lets it go on."""

    def __init__(self, answer: object = None) -> None:
        self._answer = answer
        self._inside = threading.Event()
        self._open = threading.Event()
        self.was_told = False
        """Whether the handler knew, when it left, that its result was no longer wanted."""

    def __call__(self, ctx: StepContext) -> object:
        """Say that somebody is here, and wait."""
        self._inside.set()
        arrives(self._open)
        self.was_told = ctx.cancelled
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    def entered(self) -> Gate:
        """Wait until the handler stands here."""
        arrives(self._inside)
        return self

    def open(self) -> None:
        """Let it go on, now and whenever it comes again."""
        self._open.set()


def until_told(ctx: StepContext) -> None:
    """Work until the result is no longer wanted."""
    assert ctx.wait_cancelled(LONG_SECONDS), "nobody told the handler to stop"


# -- questions


def status(engine: Calls, instance: InstanceId) -> str:
    """The status of a run."""
    return engine.run(instance).describe().status


def statuses(engine: Calls, instance: InstanceId) -> dict[str, str]:
    """The status of each step, by name; of steps with the same name, that of the last one."""
    return {step.name: step.status for step in engine.run(instance).steps()}


def step(engine: Calls, instance: InstanceId, name: str) -> Step:
    """The last step with this name."""
    return [each for each in engine.run(instance).steps() if each.name == name][-1]


def history(engine: Calls, instance: InstanceId, *types: str) -> list[HistoryEntry]:
    """The events of these types, or all of them."""
    return [each for each in engine.run(instance).history() if not types or each.event_type in types]


def told(engine: Calls, instance: InstanceId) -> list[tuple[str, str]]:
    """What happened to whom, in order."""
    return [(each.event_type, each.step_name) for each in history(engine, instance)]


def life(engine: Calls, instance: InstanceId, name: str) -> list[str]:
    """The statuses that a step went through, one after the other."""
    seen = ["pending", *(each.status for each in history(engine, instance) if each.step_name == name and each.status)]
    return [each for place, each in enumerate(seen) if place == 0 or each != seen[place - 1]]


def person(name: str, *roles: str) -> standfast.Actor:
    """Somebody who acts, with these roles."""
    return standfast.Actor(id=name, roles=frozenset(roles))


def decide(engine: Calls, instance: InstanceId, name: str, decision: str = "confirmed", *, role: str = "") -> None:
    """Answer a step that waits for a person, as somebody who has the role that it asks for, if it asks for one."""
    who = person("ann", role) if role else person("ann")
    engine.acting(who).tasks.decide(step(engine, instance, name).id, decision)


def run(engine: ManualEngine, definition: str, given: object = None) -> InstanceId:
    """Start a saga and do all that follows, until nothing is left to do."""
    instance = engine.start(definition, given).id
    engine.drain()
    return instance
