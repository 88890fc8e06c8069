"""A field that was left to its default is stored with the value that it had, so that later code cannot change it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta

import msgspec
import pytest

from standfast import Decider, Decision, DefinitionError, Message, Moment, Saga, message
from support.engines import Place
from support.samples import Answer

HOUR = timedelta(hours=1)


@dataclass(frozen=True)
class Item:
    sku: str
    count: int = 1


@dataclass(frozen=True)
class Pick:
    workflow_id: str
    item: Item
    limit: int = 10
    rounds: int = 1


@dataclass(frozen=True)
class Picked:
    item: Item
    limit: int


@dataclass(frozen=True)
class Fetch:
    item: Item


class Basket(Decider[tuple[tuple[int, int], ...], Pick, Picked, Fetch]):
    """Its state is the counts and limits that it was given; the first command goes through everything that waits."""

    type = "basket"

    def initial(self) -> tuple[tuple[int, int], ...]:
        return ()

    def evolve(self, state: tuple[tuple[int, int], ...], event: Picked) -> tuple[tuple[int, int], ...]:
        return (*state, (event.item.count, event.limit))

    def decide(self, state: tuple[tuple[int, int], ...], command: Pick, moment: Moment) -> Answer:
        decision = Decision.event(Picked(command.item, command.limit))
        if not command.rounds or state:
            return decision
        told = Message(decider="basket", command=command, key=f"{command.workflow_id}-told")
        return decision.with_timer_after(HOUR, command).with_effect(Fetch(command.item)).with_message(told)


@message(name="Item")
@dataclass(frozen=True)
class LaterItem:
    sku: str
    count: int = 99


@message(name="Pick")
@dataclass(frozen=True)
class LaterPick:
    workflow_id: str
    item: LaterItem
    limit: int = 99
    rounds: int = 0


@message(name="Picked")
@dataclass(frozen=True)
class LaterPicked:
    item: LaterItem
    limit: int = 99


@message(name="Fetch")
@dataclass(frozen=True)
class LaterFetch:
    item: LaterItem


class LaterBasket(Decider[tuple[tuple[int, int], ...], LaterPick, LaterPicked, LaterFetch]):
    """The next release, with other defaults."""

    type = "basket"
    state_version = 2

    def initial(self) -> tuple[tuple[int, int], ...]:
        return ()

    def evolve(self, state: tuple[tuple[int, int], ...], event: LaterPicked) -> tuple[tuple[int, int], ...]:
        return (*state, (event.item.count, event.limit))

    def decide(self, state: tuple[tuple[int, int], ...], command: LaterPick, moment: Moment) -> Answer:
        return Decision.event(LaterPicked(command.item, command.limit))


KEYS = ("typed", "dynamic", "own reader", "submitted", "submitted by others")


def picked_in_every_way(place: Place) -> None:
    """One instance for each way in which a command comes, all without what has a default."""
    engine = place.engine().register(Basket())
    plain = {"item": {"sku": "lamp"}}
    engine.deciders.execute(Basket, Pick("typed", Item("lamp")))
    engine.deciders.execute_dynamic("basket", {"workflow_id": "dynamic", **plain}, command="Pick")
    engine.deciders.execute(Basket, msgspec.convert({"workflow_id": "own reader", **plain}, Pick))
    engine.deciders.submit(Basket, msgspec.convert({"workflow_id": "submitted", **plain}, Pick))
    written = engine.futures.deciders._message(
        engine.registry.get("default", "basket"), Pick(KEYS[-1], Item("lamp")), command_id="", comment=""
    )
    sparse = msgspec.json.encode({"workflow_id": KEYS[-1], **plain})
    place.store.writer().accept([msgspec.structs.replace(written, data=sparse)], place.clock.now())


def test_another_default_changes_nothing_that_has_happened(place: Place) -> None:
    """Histories, timers, messages and effects keep the values that the fields had when they were written, at any depth."""
    picked_in_every_way(place)
    first = place.engine().register(Basket())
    first.drain()
    histories = {key: first.deciders.history(Basket, key)[0] for key in KEYS}
    assert {each.event for each in histories.values()} == {Picked(Item("lamp"), 10)}
    place.must_fold = False  # The first engines cannot run what the second one does.
    fetched: list[object] = []
    later = place.engine().register(LaterBasket(), lambda context, effect: fetched.append(effect))
    later.advance(hours=2)
    for key in KEYS:
        assert later.deciders.state(LaterBasket, key) == ((1, 10), (1, 10))
        assert later.deciders.state(LaterBasket, f"{key}-told")[0] == (1, 10)
    assert set(fetched) == {LaterFetch(LaterItem("lamp", 1))}


def test_what_is_stored_does_not_depend_on_who_sends_it(place: Place) -> None:
    """Typed, as plain data, or read by the caller itself: the same bytes."""
    picked_in_every_way(place)
    engine = place.engine().register(Basket())
    engine.drain()
    reader = place.store.reader("default")
    stored = {reader.events(engine.deciders.get(Basket, key).id)[0].data for key in KEYS}
    assert stored == {b'{"item":{"sku":"lamp","count":1},"limit":10}'}


def test_a_command_id_stands_for_a_command_whoever_spells_it_out(place: Place) -> None:
    """The same command with a field said or left out is the same command, and is carried out once."""
    engine = place.engine().register(Basket())
    plain = {"workflow_id": "b", "item": {"sku": "lamp"}, "rounds": 0}
    engine.deciders.execute(Basket, Pick("b", Item("lamp"), rounds=0), command_id="once")
    engine.deciders.execute_dynamic("basket", plain, command="Pick", command_id="once")
    written = engine.futures.deciders._message(
        engine.registry.get("default", "basket"), Pick("b", Item("")), command_id="once", comment=""
    )
    sparse = msgspec.structs.replace(written, data=msgspec.json.encode(plain))
    place.store.writer().accept([sparse], place.clock.now())
    engine.drain()
    assert engine.dead_letters.list() == []
    assert engine.deciders.state(Basket, "b") == ((1, 10),)


def given(data: Item) -> Item:
    """A handler that answers with what it was given."""
    return data


def read(sku: str) -> Item:
    """A handler that reads its answer from elsewhere."""
    return msgspec.convert({"sku": sku}, Item)


@pytest.mark.parametrize("handler", [given, read])
def test_a_step_answers_in_full(place: Place, handler: Callable[..., Item]) -> None:
    """An answer in a class of the handler's own has all fields of the class."""
    engine = place.engine().register(Saga("s").step("a", handler).build())
    instance = engine.start("s", {"sku": "lamp"}).id
    engine.drain()
    assert engine.run(instance).result() == {"sku": "lamp", "count": 1}


def test_a_struct_that_omits_its_defaults_is_refused(place: Place) -> None:
    """Its author asked for what would let later code change the past: that is said when the decider is registered."""

    class Short(msgspec.Struct, omit_defaults=True):
        what: str = ""

    class Shortener(Decider[int, Pick, Short, None]):
        type = "shortener"

        def initial(self) -> int:
            return 0

        def evolve(self, state: int, event: Short) -> int:
            return state

        def decide(self, state: int, command: Pick, moment: Moment) -> Answer:
            return Decision.event(Short())

    with pytest.raises(DefinitionError, match="make Short without omit_defaults"):
        place.engine().register(Shortener())
