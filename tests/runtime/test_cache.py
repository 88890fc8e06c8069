"""What a process remembers of instances, and what it does when memory is small, old or wrong."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from standfast import Decider, Decision, Moment, Settings
from standfast.engine.commit.cache import CachedInstance, InstanceCache
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import Address
from support.engines import Place
from support.samples import Add, Added, Answer, Counter, Do, Noted, Notes, Puppet


def address(key: str, tenant: str = "default") -> Address:
    """Where a counter is found."""
    return Address(tenant=tenant, definition="counter", key=key)


def tracked(place: Place, key: str) -> CachedInstance:
    """A counter as stored."""
    engine = place.engine().register(Counter())
    engine.deciders.execute(Counter, Add(key))
    loaded = place.store.reader("default").load(address(key))
    assert loaded is not None
    return CachedInstance.of(loaded, engine.registry.get("default", "counter"))


def test_memory_keeps_what_was_used_last(place: Place) -> None:
    """When it is full, the instance that was not used for the longest time is forgotten."""
    memory = InstanceCache(2)
    first, second, third = (tracked(place, f"c-{number}") for number in (1, 2, 3))
    memory.keep(first)
    memory.keep(second)
    assert memory.find(address("c-1")) is first
    memory.keep(third)
    assert memory.find(address("c-2")) is None
    assert memory.find(address("c-1")) is first
    assert memory.find(Address(tenant="default", instance=third.header.id)) is third


def test_an_instance_is_in_one_hand_at_a_time(place: Place) -> None:
    """Whoever made it has it in hand until he releases it; then one gets it, and the row is known to all meanwhile."""
    memory = InstanceCache(2)
    made = tracked(place, "c-1")
    memory.keep(made)
    assert memory.take(made.header.id) is None
    made.free.append(None)
    assert memory.take(made.header.id) is made
    assert memory.take(made.header.id) is None
    assert memory.header(made.header.id) is made.header


def test_nobody_takes_what_a_committer_has_in_hand(place: Place) -> None:
    """From the reading of an instance until everybody was told of its commit; who takes it then leaves nothing but the database to others."""
    taken: list[object] = []
    named: list[InstanceId] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        named.append(moment.instance)
        taken.append(engine.service.committer.take(moment.instance))
        return Decision.event(Noted(command.what))

    engine = place.engine().register(Puppet(choose))
    for what in "abc":
        engine.deciders.execute(Puppet, Do("p-1", what))
    assert taken == [None, None, None]
    mine = engine.service.committer.take(named[0])
    assert mine is not None
    engine.deciders.execute(Puppet, Do("p-1", "d"))
    assert (mine.state, engine.deciders.state(Puppet, "p-1")) == (("a", "b", "c"), ("a", "b", "c", "d"))


def test_memory_knows_tenants_apart(place: Place) -> None:
    """An instance is not found under another tenant's name, by key or by id."""
    memory = InstanceCache(9)
    mine = tracked(place, "c-1")
    memory.keep(mine)
    assert memory.find(address("c-1", "other")) is None
    assert memory.find(Address(tenant="other", instance=mine.header.id)) is None
    memory.forget(mine.header.id)
    assert memory.find(address("c-1")) is None


def test_an_engine_without_memory_works_the_same(place: Place) -> None:
    """With a cache of nothing every command reads its instance anew."""
    engine = place.engine(Settings(cache_size=0, snapshot_events=2)).register(Counter())
    for _ in range(7):
        engine.deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.state(Counter, "c-1") == 7


class Secretive(Decider[Callable[[], int], Add, Added, None]):
    """Its state is a function, which no codec can store."""

    type = "secretive"

    def initial(self) -> Callable[[], int]:
        return lambda: 0

    def evolve(self, state: Callable[[], int], event: Added) -> Callable[[], int]:
        total = state() + event.by
        return lambda: total

    def decide(self, state: Callable[[], int], command: Add, moment: Moment) -> Answer:
        return Decision.event(Added(command.by))


def test_a_state_that_cannot_be_stored_has_no_snapshot(place: Place) -> None:
    """A decider whose state is no plain data works without snapshots, however long its history."""
    engine = place.engine(Settings(snapshot_events=2)).register(Secretive())
    for _ in range(9):
        engine.deciders.execute(Secretive, Add("s-1"))
    assert engine.deciders.state(Secretive, "s-1")() == 9
    loaded = place.store.reader("default").load(Address(tenant="default", definition="secretive", key="s-1"))
    assert loaded is not None
    assert loaded.snapshot is None
    place.must_fold = False  # Functions cannot be compared.


def test_a_snapshot_waits_until_the_events_outweigh_the_last_one(place: Place) -> None:
    """A state that grows is written down ever more rarely, so that snapshots cost no more than the history itself."""
    engine = place.engine(Settings(snapshot_events=1)).register(Puppet())
    reader, where = place.store.reader("default"), Address(tenant="default", definition="puppet", key="p-1")
    kept: dict[int, int] = {}
    engine.deciders.execute(Puppet, Do("p-1", "first"))
    identity = engine.deciders.get(Puppet, "p-1").id
    for number in range(60):
        engine.deciders.execute(Puppet, Do("p-1", f"note {number}"))
        loaded = reader.load(where)
        assert loaded is not None
        assert loaded.snapshot is not None
        kept[loaded.snapshot.version] = len(loaded.snapshot.data)
    sizes = {event.sequence: len(event.data) for event in reader.events(identity)}
    assert len(kept) > 3
    for before, after in pairwise(kept):
        assert sum(sizes[number] for number in range(before + 1, after + 1)) >= kept[before]
