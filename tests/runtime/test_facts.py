"""A decision reads facts from outside of its instance, and the commit checks that they still hold."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta

import pytest

from standfast import CommandError, Decider, Decision, Moment, RejectedError, Rejection
from standfast.kernel.facts import (
    SETTINGS_FACT,
    DocumentFact,
    FactKey,
    PersonFact,
    document_fact,
    person_fact,
    rules_fact,
)
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.waiting import together

pytestmark = pytest.mark.row("E-572")

CUSTOMER = """
entity_type: customer
version: 1
fields: {credit: {type: money}}
lifecycle: {version: 1, initial: open, terminal: [closed], states: {open: {window: editable}, closed: {window: locked}}, transitions: [{name: close, from: [open], to: closed}]}
"""


@dataclass(frozen=True)
class Ask:
    """Read a fact, and write down what it says."""

    key: str
    kind: str
    of: str = ""
    name: str = ""


@dataclass(frozen=True)
class Told:
    """What the fact said, and its version."""

    said: str
    version: int


@dataclass
class Notes:
    """What was written down. Deciding spoils it on purpose before a fact is asked for."""

    said: list[str] = field(default_factory=list)


class Reader(Decider[Notes, Ask, Told, None]):
    """Writes down what facts say."""

    type = "reader"

    def __init__(self) -> None:
        self.before_commit: list[Callable[[], object]] = []
        """What happens while a decision is made; each once."""
        self.decisions = 0

    def initial(self) -> Notes:
        return Notes()

    def key_of(self, command: Ask) -> str:
        return command.key

    def evolve(self, state: Notes, event: Told) -> Notes:
        return Notes([*state.said, event.said])

    def decide(self, state: Notes, command: Ask, moment: Moment) -> Decision:
        self.decisions += 1
        state.said.append("spoilt")
        found = moment.facts.get(FactKey(command.kind, command.of, command.name))  # type: ignore[arg-type]
        state.said.remove("spoilt")
        while self.before_commit:
            self.before_commit.pop()()
        return Decision(events=(Told(_words(found.value), found.version),))


def _words(value: object) -> str:
    match value:
        case PersonFact():
            return ",".join(sorted(value.roles)) if value.is_active else "inactive"
        case DocumentFact():
            return f"{value.status} {value.data.get('credit')}"
        case list():
            return ",".join(each.name for each in value)
        case _:
            return str(value)


def asked(engine: ManualEngine, key: FactKey, *, instance: str = "r") -> str:
    """Have a fact read; what the history of the instance says of it."""
    engine.deciders.execute(Reader, Ask(instance, key.kind, key.of, key.name))
    state = engine.deciders.state(Reader, instance)
    assert isinstance(state, Notes)
    assert "spoilt" not in state.said
    return state.said[-1]


def test_a_person_is_read_as_they_are_now(place: Place) -> None:
    """What a process remembers of a person does not count once another process has changed it."""
    one, other = place.engine().register(Reader()), place.engine()
    other.directory.put("ann")
    other.directory.grant("ann", "finance")
    assert asked(one, person_fact("ann")) == "finance"
    other.directory.grant("ann", "boss")
    assert asked(one, person_fact("ann")) == "boss,finance"
    other.directory.revoke("ann", "finance")
    assert asked(one, person_fact("ann")) == "boss"
    other.directory.deactivate("ann")
    assert asked(one, person_fact("ann")) == "inactive"


def test_what_ends_by_itself_ends_without_a_change(place: Place) -> None:
    """A grant that was remembered ends at its time, although nobody has changed anything."""
    engine = place.engine().register(Reader())
    engine.directory.put("ann")
    engine.directory.grant("ann", "finance", ends_at=place.clock.now() + timedelta(hours=1))
    assert asked(engine, person_fact("ann")) == "finance"
    engine.advance(hours=1)
    assert not asked(engine, person_fact("ann"))


def test_settings_and_rules_are_read_as_they_are_now(place: Place) -> None:
    """Settings and rules count with the commit that decides, in every process."""
    one, other = place.engine().register(Reader()), place.engine()
    assert asked(one, SETTINGS_FACT) == "{}"
    other.charters.publish_settings({"most": 9})
    assert asked(one, SETTINGS_FACT) == "{'most': 9}"
    one.contracts.publish(CUSTOMER)
    other.charters.publish_rules(
        "customer",
        [
            {"name": "cap", "effect": "block", "on": ["close"], "reason": "no"},
            {"name": "all", "effect": "block", "reason": "no"},
        ],
    )
    assert asked(one, rules_fact("customer", "close")) == "cap,all"
    assert asked(one, rules_fact("customer", "update")) == "all"
    other.charters.publish_rules("customer", [])
    assert not asked(one, rules_fact("customer", "close"))


def test_another_document_is_read_as_it_is_now(place: Place) -> None:
    """A document that is not there, one that is made, and one that is changed or moved: each is seen by the next decision."""
    one, other = place.engine().register(Reader()), place.engine()
    one.contracts.publish(CUSTOMER)
    key = document_fact("customer", "C1")
    assert asked(one, key) == "None"
    other.documents.create("customer", {"credit": 500}, id="C1")
    assert asked(one, key) == "open 500"
    other.documents.mutate("customer", "C1", {"credit": 0})
    assert asked(one, key) == "open 0"
    other.documents.transition("customer", "C1", "close")
    assert asked(one, key) == "closed 0"


def test_a_fact_that_changes_before_the_commit_is_read_again(place: Place) -> None:
    """A decision that was made on a fact which has changed by the time of the commit is not written: it is made anew."""
    reader = Reader()
    one, other = place.engine().register(reader), place.engine()
    one.contracts.publish(CUSTOMER)
    other.directory.put("ann")
    other.documents.create("customer", {"credit": 500}, id="C1")
    asked(one, person_fact("ann"))
    asked(one, document_fact("customer", "C1"))
    asked(one, SETTINGS_FACT)
    reader.before_commit.append(lambda: other.directory.grant("ann", "boss"))
    assert asked(one, person_fact("ann")) == "boss"
    reader.before_commit.append(lambda: other.documents.mutate("customer", "C1", {"credit": 0}))
    assert asked(one, document_fact("customer", "C1")) == "open 0"
    reader.before_commit.append(lambda: other.charters.publish_settings({"most": 9}))
    assert asked(one, SETTINGS_FACT) == "{'most': 9}"


def test_a_remembered_fact_is_not_read_again(place: Place) -> None:
    """A fact that has not changed costs one decision, and no look at the directory."""
    reader = Reader()
    engine = place.engine().register(reader)
    engine.directory.put("ann")
    asked(engine, person_fact("ann"))
    before = reader.decisions
    asked(engine, person_fact("ann"))
    assert reader.decisions == before + 1


def test_a_fact_is_read_where_the_decision_asks_for_it(place: Place) -> None:
    """A decision that asks for a fact which nobody remembers is made twice: from memory, and where the fact is read when it asks."""
    reader = Reader()
    engine = place.engine().register(reader)
    engine.charters.publish_settings({"most": 9})
    assert asked(engine, SETTINGS_FACT) == "{'most': 9}"
    assert reader.decisions == 2


class Gatekeeper(Reader):
    """Takes commands while ann is a boss."""

    type = "gatekeeper"

    def decide(self, state: Notes, command: Ask, moment: Moment) -> Decision | Rejection:  # type: ignore[override]
        del state, command
        self.decisions += 1
        found = moment.facts.get(person_fact("ann")).value
        assert isinstance(found, PersonFact)
        return (
            Decision(events=(Told("in", 0),))
            if "boss" in found.roles
            else Rejection(code="shut", message="the gate is shut")
        )


def test_a_refusal_stands_if_its_facts_are_the_newest(place: Place) -> None:
    """One that rests on what is remembered is decided once, if the instance was just read and nothing has changed since; otherwise anew."""
    gate = Gatekeeper()
    one, other = place.engine().register(gate), place.engine().register(Gatekeeper())
    other.directory.put("ann")
    other.directory.grant("ann", "boss")
    calls = one.acting("bob").deciders
    for key in "abc":
        other.deciders.execute(Gatekeeper, Ask(key, ""))
    other.directory.revoke("ann", "boss")
    with pytest.raises(RejectedError, match="shut"):
        calls.execute(Gatekeeper, Ask("a", ""))
    before = gate.decisions
    with pytest.raises(RejectedError, match="shut"):
        calls.execute(Gatekeeper, Ask("b", ""))
    assert gate.decisions - before == 1
    other.directory.grant("ann", "boss")
    calls.execute(Gatekeeper, Ask("c", ""))
    assert gate.decisions - before == 3


def test_facts_of_another_tenant_are_others(place: Place) -> None:
    """A decision reads the people, settings and documents of its own tenant and partition alone."""
    engine = place.engine().register(Reader())
    engine.as_tenant("acme").directory.put("ann")
    engine.as_tenant("acme").directory.grant("ann", "boss")
    engine.as_tenant("acme").charters.publish_settings({"most": 9})
    assert not asked(engine, person_fact("ann"))
    assert asked(engine, SETTINGS_FACT) == "{}"
    calls = engine.as_tenant("acme")
    calls.deciders.execute(Reader, Ask("r", "person", "", "ann"))
    assert calls.deciders.state(Reader, "r").said == ["boss"]


class Insatiable(Decider[None, Ask, Told, None]):
    """Asks for one fact after the other."""

    type = "insatiable"

    def initial(self) -> None:
        return None

    def key_of(self, command: Ask) -> str:
        return command.key

    def evolve(self, state: None, event: Told) -> None:
        return None

    def decide(self, state: None, command: Ask, moment: Moment) -> Decision:
        for number in range(100):
            moment.facts.get(person_fact(f"{command.name}{number}"))
        return Decision(events=(Told("", 0),))


def test_a_decision_that_asks_without_end_fails(place: Place) -> None:
    """A decider that asks for more facts than a commit reads fails, and says for what it asked."""
    engine = place.engine().register(Insatiable())
    with pytest.raises(CommandError, match="person:ann"):
        engine.deciders.execute(Insatiable, Ask("r", "person", "", "ann"))


def test_readers_and_writers_of_facts_race(live: Live) -> None:
    """However decisions and changes of a fact meet, a history never says less than was so when the decision was asked for."""
    reader = Reader()
    one, other = live.engine().register(reader), live.engine()
    one.start_worker()
    other.start_worker()
    other.directory.put("ann")
    rounds = 25
    seen: list[tuple[int, int]] = []
    granted = [0]

    def grant() -> None:
        for number in range(rounds):
            other.directory.grant("ann", f"r{number}")
            granted[0] = number + 1

    def ask() -> None:
        for number in range(rounds):
            least = granted[0]
            one.deciders.execute(Reader, Ask(f"i{number % 5}", "person", "", "ann"))
            said = one.deciders.state(Reader, f"i{number % 5}").said[-1]
            seen.append((least, len(list(filter(None, said.split(","))))))

    together(grant, ask)
    assert all(found >= least for least, found in seen), seen
