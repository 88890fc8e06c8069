"""The machine itself: a decider that runs one graph."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import ClassVar

from standfast.errors import ReplayError
from standfast.graph.index import GraphIndex, Others
from standfast.graph.model import Graph
from standfast.kernel.codec.message_types import DEFAULT_LIMIT
from standfast.kernel.decider import Decider, Failure, Status
from standfast.kernel.decision import Answer
from standfast.kernel.moment import Moment
from standfast.kernel.retry import RetryPolicy
from standfast.kernel.rows import Record
from standfast.machine.dispatch import decide
from standfast.machine.model.commands.run_commands import (
    Command,
    EndNotice,
    FailStep,
    NoteMissingHandler,
    PeopleFound,
    PeopleReviewed,
    RunEffect,
    RunStep,
)
from standfast.machine.model.commands.timers import DEADLINE
from standfast.machine.model.engine_tasks import FindPeople, Notify, Post, ReviewPeople
from standfast.machine.model.events import Event
from standfast.machine.model.folds.fold import evolve
from standfast.machine.model.rows.step_rows import RowProjection
from standfast.machine.model.state import RunState
from standfast.machine.nodes import kind_of
from standfast.machine.status import status_of

GRAPH_LANGUAGE = "$graph"
"""What all graphs speak: whoever can run one of them can read the commands and effects of all."""
LONGEST_WAIT = timedelta(days=366)
"""For the next call, whatever a handler asks for: what is longer is a mistake, and may lie beyond the calendar."""


class GraphMachine(Decider[RunState, Command, Event, RunEffect]):
    """Runs a graph. The data of its tokens takes at most `limit` bytes."""

    state_version: ClassVar[int] = 2
    is_plain: ClassVar[bool] = True  # What comes from outside is made plain, and a copy, before it becomes a command.
    has_steps: ClassVar[bool] = True
    carries_state: ClassVar[bool] = True
    deadline_timer: ClassVar[str] = DEADLINE
    language = GRAPH_LANGUAGE

    def __init__(
        self,
        graph: Graph,
        *,
        limit: int = DEFAULT_LIMIT,
        others: Others | None = None,
        retry: RetryPolicy | None = None,
    ) -> None:
        self.graph = graph
        # Every graph has a type of its own, where a decider written by hand has one for its class.
        self.type = graph.name  # type: ignore[misc]
        self.definition_version = graph.version
        self.kind = graph.kind
        self.routes = GraphIndex(graph, limit, others=others, retry=retry or RetryPolicy())
        """That of the version which runs begin with; `routes_of` tells that of one run."""
        # Runs know since the second who was asked what is decided. Those of documents know since the second who wrote them, since the third
        # what was approved, since the fourth who was asked. The last one, of all that keep deciders apart, knows who has voted on what ended
        # otherwise. Those of documents know since the sixth which refusals stand. What was kept before is made from the history again.
        is_plain = graph.document is None and not self.routes.tells_deciders_apart
        self.state_version = 2 if is_plain else 3 if graph.document is None else 6  # type: ignore[misc]
        self.asks_people = self.routes.asks_people
        """Whether a run, or one that it starts, may ask somebody in particular."""

    def initial(self) -> RunState:
        """A run that has not begun."""
        return RunState()

    def evolve(self, state: RunState, event: Event) -> RunState:
        """The run after an event."""
        return evolve(self.routes_of(state), state, event)

    def decide(self, state: RunState, command: Command, moment: Moment) -> Answer:
        """What happens next."""
        return decide(self.routes_of(state), state, command, moment)

    def status(self, state: RunState) -> Status:
        """Where the run stands."""
        return status_of(self.routes_of(state), state)

    def subject(self, state: RunState) -> str:
        """Who wants the run, whoever has started or forked it."""
        return state.requester

    def routes_of(self, state: RunState) -> GraphIndex:
        """The graph that a run follows: the one that it began with, or the version that its document was moved to."""
        followed = state.workflow
        if followed is None:
            return self.routes
        found = self.routes.others(followed.tenant, followed.version)
        if found is None:
            told = f"the version {followed.version!r} of {self.type!r} is not there, which a document was moved to"
            raise ReplayError(f"{told}; restore its definition")
        return found

    def key_of(self, command: Command) -> str:
        """Empty: a run is found by its id, or by the key it was started with; a command does not name it."""
        del command
        return ""

    def effect_failed(self, effect: RunEffect, failure: Failure) -> Command | None:
        """Every failure of a handler is the machine's to decide about, and that of an errand too."""
        if isinstance(effect, Notify):
            return EndNotice(
                step=effect.step, key=effect.key, channel=effect.channel, to=effect.to, error=failure.error
            )
        if isinstance(effect, Post):
            return EndNotice(step=effect.step, key=effect.key, channel="webhook", to=effect.url, error=failure.error)
        if isinstance(effect, FindPeople):
            return PeopleFound(step=effect.step, error=failure.error)
        if isinstance(effect, RunStep) and effect.is_detached:
            key = f"{effect.step}/step/operation"
            return EndNotice(step=effect.step, key=key, channel="operation", to=effect.node, error=failure.error)
        if isinstance(effect, ReviewPeople):
            return PeopleReviewed(step=effect.step, error=failure.error)
        if not isinstance(effect, RunStep):
            return None  # Nobody can look for early events: the dead letter says so, and later ones still come.
        return FailStep(
            step=effect.step,
            error=failure.error,
            is_final=failure.is_final,
            after=None if failure.after is None else min(failure.after, LONGEST_WAIT),
            was_called=failure.was_called,
        )

    def keeps_letter(self, effect: RunEffect) -> bool:
        """A notice that nobody waits for is a dead letter when it gave up: an operator sees it, and has it sent once its channel is back."""
        is_detached = isinstance(effect, RunStep) and effect.is_detached
        return is_detached or (isinstance(effect, Notify) and not effect.waits) or isinstance(effect, Post)

    def handler_missing(self, effect: RunEffect, handler: str) -> Command | None:
        """The history tells that a step waits for a handler that nobody has; errands are run by every worker."""
        if not isinstance(effect, RunStep) or effect.is_detached:
            return None
        return NoteMissingHandler(step=effect.step, handler=handler)

    def rows_of(self, state: RunState, event: Event) -> Sequence[Record]:
        """The rows that change with an event."""
        return RowProjection(self.routes_of(state), kind_of, state).records_of(event)
