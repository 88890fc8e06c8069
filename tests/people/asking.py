"""A decider that sends the engine to find people, as a question of a workflow does."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from standfast import Decider, Decision, Effect, Engine, Failure, Moment
from standfast.graph.values.approver_rules import Ask
from standfast.machine.model.commands.run_commands import PeopleFound
from standfast.machine.model.engine_tasks import OWN_HANDLER, FindPeople, Person


@dataclass(frozen=True)
class Begin:
    """Ask these."""

    workflow_id: str
    asks: list[Ask]
    requester: str = ""
    data: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answered:
    """What came of it."""

    people: PeopleFound


@dataclass(frozen=True)
class Begun:
    """Somebody is being looked for."""


class Asking(Decider[PeopleFound | None, Begin | PeopleFound, Begun | Answered, FindPeople]):
    """Sends one errand and keeps its answer."""

    type = "expense"
    is_plain = True  # Like the machine of graphs, whose words these are.

    def initial(self) -> PeopleFound | None:
        """Nothing is known."""
        return None

    def decide(self, state: PeopleFound | None, command: Begin | PeopleFound, moment: Moment) -> Decision:
        """Send the engine out, or keep what it brings."""
        if isinstance(command, PeopleFound):
            return Decision(events=(Answered(command),))
        errand = FindPeople(step=1, node="approve", asks=command.asks, requester=command.requester, data=command.data)
        return Decision(events=(Begun(),), effects=(Effect(body=errand, handler=OWN_HANDLER),))

    def evolve(self, state: PeopleFound | None, event: Begun | Answered) -> PeopleFound | None:
        """Keep the answer."""
        return event.people if isinstance(event, Answered) else state

    def effect_failed(self, effect: FindPeople, failure: Failure) -> PeopleFound:
        """As a run has it."""
        return PeopleFound(step=effect.step, error=failure.error)


class Inquirer:
    """Asks the engine who is to be asked, by way of a decider, a commit, and a worker."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine.register(Asking())
        self._count = 0

    def found(self, *asks: Ask, requester: str = "", data: dict[str, Any] | None = None) -> PeopleFound:
        """All that the errand answers."""
        self._count += 1
        key = f"e-{self._count}"
        self.engine.deciders.execute(Asking, Begin(key, list(asks), requester, data or {}))
        self.engine.drain()
        found = self.engine.deciders.state(Asking, key)
        assert found is not None
        return found

    def names(self, *asks: Ask, requester: str = "") -> list[str]:
        """Those who are asked, in words."""
        return [shown(each) for each in self.found(*asks, requester=requester).people]


def shown(person: Person) -> str:
    """A person in a word or three."""
    name = f"role:{person.name}" if person.kind == "role" else person.name
    return f"{name} for {person.for_}" if person.for_ else name
