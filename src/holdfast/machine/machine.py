"""The machine itself: a decider that runs one graph."""

from __future__ import annotations

from typing import ClassVar

from holdfast.kernel.decider import Decider, Failure, Status
from holdfast.kernel.decision import Answer
from holdfast.kernel.moment import Moment
from holdfast.machine.commands import Command, FailStep, RunStep
from holdfast.machine.deciding import decide
from holdfast.machine.events import Event
from holdfast.machine.evolving import evolve
from holdfast.machine.graph import Graph
from holdfast.machine.routes import Routes
from holdfast.machine.state import State


class GraphMachine(Decider[State, Command, Event, RunStep]):
    """Runs a graph."""

    state_version: ClassVar[int] = 1

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.type = graph.name  # type: ignore[misc]
        self._routes = Routes(graph)

    def initial(self) -> State:
        """A run that has not begun."""
        return State()

    def evolve(self, state: State, event: Event) -> State:
        """The run after an event."""
        return evolve(self._routes, state, event)

    def decide(self, state: State, command: Command, moment: Moment) -> Answer:
        """What happens next."""
        return decide(self._routes, state, command, moment)

    def status(self, state: State) -> Status:
        """Where the run stands."""
        return Status("running" if state.status == "new" else state.status, state.reason)

    def key_of(self, command: Command) -> str:
        """Runs are found by their id, or by the key they were started with; a command does not name them."""
        del command
        return ""

    def effect_failed(self, effect: RunStep, failure: Failure) -> Command | None:
        """Every failure of a handler is the machine's to decide about."""
        return FailStep(
            step=effect.step,
            error=failure.error,
            is_final=failure.is_final,
            after=failure.after,
            was_called=failure.was_called,
        )
