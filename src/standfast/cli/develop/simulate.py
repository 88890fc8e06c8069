"""Simulation of a process: an engine without threads, with a manual clock, and operations with fixed results."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import timedelta
from typing import NamedTuple

from standfast.app.engine import Engine
from standfast.engine.common.clock import DatabaseClock, ManualClock
from standfast.errors import ConfigurationError
from standfast.features.processes.views import ProcessDescriptor, ProcessEvent
from standfast.graph.definition import Definition
from standfast.kernel.codec.unique_keys import distinct
from standfast.kernel.durations import HOW_TO_WRITE, duration_of
from standfast.kernel.ids import InstanceId


class SimulationStep(NamedTuple):
    """A simulation step: an event with its data, or a wait."""

    event: str = ""
    data: dict[str, object] = {}  # noqa: RUF012 - never modified
    duration: timedelta | None = None


def act_of(text: str) -> SimulationStep:
    """An act as it is typed: `approved`, `approved={"notes": "fine"}`, or `+3d`."""
    if text.startswith("+"):
        duration = duration_of(text[1:])
        if duration is None:
            raise ConfigurationError(f"{text!r} is no time that could go by; {HOW_TO_WRITE}, behind the +")
        return SimulationStep(duration=duration)
    event, data = named_data(text)
    return SimulationStep(event=event, data=data)


def named_data(text: str) -> tuple[str, dict[str, object]]:
    """A name with a JSON object behind it, as in `approved={"notes": "fine"}`; the name alone brings nothing along."""
    name, sign, data = text.partition("=")
    try:
        found = json.loads(data, object_pairs_hook=distinct) if sign else {}
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"what stands behind {name}= is not JSON: {error}") from error
    if not name or not isinstance(found, dict):
        raise ConfigurationError(f'{text!r} cannot be read: write a name, or a name and an object: name={{"total": 5}}')
    return name, found


class Play:
    """One simulated instance."""

    def __init__(self, engine: Engine, clock: ManualClock, instance: InstanceId) -> None:
        self._engine = engine
        self._clock = clock
        self._instance = instance

    def stands(self) -> ProcessDescriptor:
        """How the instance stands."""
        return self._engine.processes.get(self._instance)

    def awaited(self) -> list[str]:
        """Return what could advance it: the events of its step, or what it waits for."""
        choices = [each.event for each in self.stands().choices]
        return choices or [each.waits_for for each in self._engine.run(self._instance).why().reasons if each.waits_for]

    def trail(self) -> list[ProcessEvent]:
        """Return the trail so far."""
        return self._engine.processes.events(self._instance, with_lifecycle=True)

    def perform(self, act: SimulationStep) -> None:
        """Perform a step, and all work that follows from it immediately."""
        if act.duration is not None:
            self._let_pass(act.duration)
        elif self.stands().step.type == "wait":
            self._engine.run(self._instance).signal(act.event, act.data)
        else:
            self._engine.processes.advance(self._instance, act.event, act.data)
        self._engine.drain()

    def _let_pass(self, duration: timedelta) -> None:
        """Whatever comes due on the way happens at its time."""
        end = self._clock.now() + duration
        self._engine.drain()
        while (due := self._engine.runtime.next_due()) is not None and due <= end:
            self._clock.move(max(due - self._clock.now(), timedelta(0)))
            self._engine.drain()
        self._clock.move(end - self._clock.now())


@contextmanager
def played(
    definition: Definition, url: str, given: dict[str, object], answers: Mapping[str, dict[str, object]]
) -> Iterator[Play]:
    """Start a simulated instance on a database; `answers` are the results of its operations, empty by default."""
    unknown = sorted(answers.keys() - definition.graph.handlers)
    if unknown:
        known = ", ".join(sorted(definition.graph.handlers)) or "none"
        raise ConfigurationError(f"{definition.name} has no operation {unknown[0]!r}; it has {known}")
    clock = ManualClock(DatabaseClock().now())
    engine = Engine(url, threads=False, clock=clock)
    try:
        engine.definitions.publish(definition)
        for handler in definition.graph.handlers:
            engine.handle(handler, _Operation(answers.get(handler, {})))
        play = Play(engine, clock, engine.processes.start(definition.name, given, version=definition.version).id)
        engine.drain()
        yield play
    finally:
        engine.stop()


class _Operation:
    """An operation that always answers the same."""

    def __init__(self, answer: dict[str, object]) -> None:
        self._answer = answer

    def execute(self) -> dict[str, object]:
        """Answer."""
        return self._answer
