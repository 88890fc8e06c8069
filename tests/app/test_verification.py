"""Proof that what is stored of a decider's instance is what its history says."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import pytest

from standfast import Decider, Decision, Instance, MessagePackCodec, Moment, NotFoundError, Settings
from standfast.testing import ManualEngine
from support.desks import Desk
from support.engines import Place
from support.samples import Add, Counter, Do, Order, Puppet, Shop
from support.samples import Place as PlaceOrder


def test_deciders_can_be_verified(place: Place) -> None:
    """By key or by id: the row, the status and the snapshot of an instance agree with its events."""
    engine = place.engine(Settings(snapshot_events=2)).register(Order(), Shop()).register(Counter())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    for _ in range(5):
        engine.deciders.execute(Counter, Add("c-1"))
    engine.drain()
    for decider, key, events in ((Order, "o-1", 4), (Counter, "c-1", 5)):
        shown: Instance[object] = engine.deciders.get(decider.type, key)
        for found in (
            engine.futures.deciders.verify(decider, key),
            engine.futures.instances.verify(shown.id),
            engine.futures.instances.verify(shown),
        ):
            checked = found.result()
            assert (checked.instance, checked.version, checked.differences) == (shown.id, events, [])


@pytest.mark.row("EC-23")
@pytest.mark.parametrize(
    ("statement", "what"),
    [
        ("update {}instances set status = 'completed'", "status"),
        ("update {}instances set reason = 'forged'", "reason"),
        ("update {0}snapshots set data = (select data from {0}snapshots order by version desc limit 1)", "state"),
        ("update {0}snapshots set data = (select data from {0}snapshots where length(data) > 1)", "snapshot"),
    ],
)
def test_what_was_tampered_with_is_found(place: Place, statement: str, what: str) -> None:
    """A row or a snapshot that the events contradict is named."""
    place.must_fold = False
    engine = place.engine(Settings(snapshot_events=1)).register(Counter()).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", "a state of another shape"))
    for key in ("c-1", "c-2", "c-2"):
        engine.deciders.execute(Counter, Add(key))
    Desk(place.store).run(statement)
    found = engine.deciders.verify(Counter, "c-1")
    assert [each.partition(":")[0] for each in found.differences] == [what]


def test_a_snapshot_of_other_code_is_no_difference(place: Place) -> None:
    """What this code would not read is not compared: it is made anew when the instance goes on."""
    engine = place.engine(Settings(snapshot_events=1)).register(Counter())
    for _ in range(2):
        engine.deciders.execute(Counter, Add("c-1"))
    Desk(place.store).run("update {}snapshots set state_version = state_version + 1")
    assert engine.deciders.verify(Counter, "c-1").differences == []


def test_an_instance_that_does_not_exist_cannot_be_verified(place: Place) -> None:
    """It is an error, not sound."""
    with pytest.raises(NotFoundError, match="no instance 'c-1'"):
        place.engine().register(Counter()).deciders.verify(Counter, "c-1")


@dataclass
class Measure:
    """Asks for a measurement."""

    workflow_id: str
    value: float


@dataclass
class Measured:
    """What was measured."""

    value: float


@dataclass
class Series:
    """All that was measured."""

    values: list[float] = field(default_factory=list)


class Sensor(Decider[Series, Measure, Measured, None]):
    """Keeps what it is told, also that there was nothing to measure."""

    type = "sensor"

    def initial(self) -> Series:
        return Series()

    def evolve(self, state: Series, event: Measured) -> Series:
        return Series([*state.values, event.value])

    def decide(self, state: Series, command: Measure, moment: Moment) -> Decision:
        return Decision(events=(Measured(command.value),))


def test_what_is_not_equal_to_itself_is_no_difference() -> None:
    """NaN that came back as NaN is what the history says."""
    engine = ManualEngine(codec=MessagePackCodec(), settings=Settings(snapshot_events=1)).register(Sensor())
    for value in (1.5, math.nan, math.inf):
        engine.deciders.execute(Sensor, Measure("s-1", value))
    assert engine.deciders.verify(Sensor, "s-1").differences == []
