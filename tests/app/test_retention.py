"""What is deleted and what is kept: an instance goes when nothing of it is needed any more, and takes nothing with it that is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import timedelta

import pytest

from standfast import (
    ConflictError,
    Decision,
    EffectContext,
    Engine,
    Fail,
    Moment,
    NotFoundError,
    ProjectedEvent,
    Saga,
    Settings,
)
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place
from support.ruining import Ruin
from support.samples import END, Act, Answer, Do, Ledger, Noted, Notes, Puppet, act

DAY = timedelta(days=1)
SETTINGS = Settings(keep_finished=DAY)


def end_with(*asked: str) -> Callable[[Notes, Do, Moment], Answer]:
    """End at once, and have this done afterwards; what is `late` only after ten days."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(END))
        for what in asked:
            decision = decision.with_effect(Act(what), delay=10 * DAY if what == "late" else 0 * DAY)
        return decision

    return choose


class Names:
    """A read model in memory: the keys of the instances whose events it saw."""

    name = "names"

    def __init__(self) -> None:
        self.is_broken = False
        self.seen: list[str] = []

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        if self.is_broken:
            raise ConnectionError("the index is away")
        self.seen += [event.key for event in events]

    def clear(self, connection: object) -> None:
        self.seen.clear()


def is_kept(engine: Engine, key: str = "p-1") -> bool:
    """Whether an instance outlives a round of housekeeping."""
    engine.runtime.housekeeping.prune()
    return engine.futures.deciders.get(Puppet, key).exception() is None


def identity_of(engine: Engine, key: str = "p-1") -> InstanceId:
    """The id of an instance."""
    return engine.deciders.get(Puppet, key).id


def test_work_that_an_ended_instance_asked_for_is_done_before_it_goes(place: Place) -> None:
    """An effect that waits keeps its instance beyond `keep_finished`; once it was called, the instance goes."""
    calls = Ledger()
    engine = place.engine(SETTINGS).register(Puppet(end_with("late")), lambda context, effect: calls.add(effect.what))
    engine.deciders.execute(Puppet, Do("p-1"))
    engine.advance(days=5)
    assert is_kept(engine)
    engine.advance(days=6)
    assert calls.entries == ["late"]
    assert not is_kept(engine)


@pytest.mark.row("E-397", "G-11")
def test_a_dead_letter_keeps_its_instance(place: Place) -> None:
    """What gave up stays with its instance until an operator has dealt with it."""

    def fail(context: EffectContext, effect: Act) -> None:
        raise Fail("no")

    engine = place.engine(SETTINGS).register(Puppet(end_with("x")), fail)
    engine.deciders.execute(Puppet, Do("p-1"))
    engine.advance(days=5)
    assert is_kept(engine)
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.discard(letter)
    assert not is_kept(engine)


def test_a_message_that_waits_keeps_its_target(place: Place) -> None:
    """A command that was accepted for an ended instance is answered by it, and not by a new one under its key."""
    engine = place.engine(SETTINGS).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", END))
    engine.deciders.submit(Puppet, Do("p-1", "too late"))
    place.clock.move(5 * DAY)
    assert is_kept(engine)
    engine.drain()
    assert not is_kept(engine)


def test_events_outlive_a_projection_that_is_behind(place: Place) -> None:
    """What a projection has not read is not deleted, whoever feeds it, and however long it fails."""
    names = Names()
    names.is_broken = True
    settings = Settings(
        keep_finished=DAY, projection_pause=timedelta(0), longest_projection_pause=timedelta(0), projection_batch=1
    )
    engine = place.engine(settings).register(Puppet()).project(names)
    housekeeper = place.engine(SETTINGS).register(Puppet())
    for key in ("p-1", "p-2"):
        engine.deciders.execute(Puppet, Do(key, END))
    engine.advance(days=5)
    assert is_kept(housekeeper)
    (state,) = engine.projections.list()
    assert (state.lag, names.seen) == (2, [])
    names.is_broken = False
    engine.drain()
    assert names.seen == ["p-1", "p-2"]
    assert not is_kept(housekeeper)


def test_a_projection_counts_from_the_moment_it_is_registered(place: Place) -> None:
    """It has not read anything yet, and still no event is deleted under it."""
    engine = place.engine(SETTINGS).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", END))
    place.clock.move(5 * DAY)
    names = Names()
    engine.project(names)
    assert is_kept(engine)
    engine.drain()
    assert names.seen == ["p-1"]
    assert not is_kept(engine)


def test_a_projection_that_nobody_feeds_any_more_can_be_dropped(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Housekeeping says whom it waits for; one that is dropped holds nothing back, and one that is fed here is not dropped."""
    old = place.engine(SETTINGS).register(Puppet()).project(Names())
    with pytest.raises(ConflictError, match="this process feeds the projection 'names'"):
        old.projections.drop("names")
    engine = place.engine(SETTINGS).register(Puppet())
    engine.deciders.execute(Puppet, Do("p-1", END))
    engine.advance(days=5)
    assert is_kept(engine)
    assert is_kept(engine)
    said = [record.getMessage() for record in caplog.records if "projection" in record.getMessage()]
    assert len(said) == 1
    assert "'names'" in said[0]
    engine.projections.drop("names")
    with pytest.raises(NotFoundError, match="projection"):
        engine.projections.drop("names")
    assert engine.projections.list() == []
    assert not is_kept(engine)


@pytest.mark.parametrize("deletes", [True, False])
def test_a_command_id_outlives_its_instance(place: Place, *, deletes: bool) -> None:
    """However the instance went, a command with an id that was used is not carried out again within `keep_receipts`."""
    calls = Ledger()
    engine = place.engine(SETTINGS).register(Puppet(end_with("pay")), lambda context, effect: calls.add(effect.what))
    engine.deciders.execute(Puppet, Do("p-1"), command_id="pay-1")
    engine.drain()
    if deletes:
        engine.instances.delete(identity_of(engine))
    else:
        engine.advance(days=5)
    assert not is_kept(engine)
    engine.deciders.execute(Puppet, Do("p-1"), command_id="pay-1")
    engine.drain()
    assert calls.entries == ["pay"]
    engine.advance(days=31)
    engine.runtime.housekeeping.prune()
    engine.deciders.execute(Puppet, Do("p-1"), command_id="pay-1")
    engine.drain()
    assert calls.entries == ["pay", "pay"]


def leave_effect(engine: ManualEngine) -> None:
    """The instance has ended, and its effect waits."""
    engine.deciders.execute(Puppet, Do("p-1"))


def leave_letter(engine: ManualEngine) -> None:
    """The instance has ended, and its effect gave up."""
    leave_effect(engine)
    engine.advance(days=20)


def leave_message(engine: ManualEngine) -> None:
    """The instance has ended, all it asked for is done, and a message for it waits."""
    leave_letter(engine)
    engine.dead_letters.discard(engine.dead_letters.list()[0])
    engine.deciders.submit(Puppet, Do("p-1"))


def leave_events(engine: ManualEngine) -> None:
    """The instance has ended, and a projection has not read how."""
    leave_letter(engine)
    engine.dead_letters.discard(engine.dead_letters.list()[0])
    engine.project(Names())


LEFT = {
    "1 effect has still to be done": leave_effect,
    "1 dead letter": leave_letter,
    "1 message": leave_message,
    "'names' has not read its events": leave_events,
}


@pytest.mark.parametrize("said", LEFT)
def test_a_deletion_says_what_it_would_destroy(place: Place, said: str) -> None:
    """What is still needed is deleted only if the operator insists, who is told what it is and what to do."""

    def fail(context: EffectContext, effect: Act) -> None:
        raise Fail("no")

    engine = place.engine().register(Puppet(end_with("late")), fail)
    LEFT[said](engine)
    identity = identity_of(engine)
    with pytest.raises(ConflictError, match=said) as caught:
        engine.instances.delete(identity)
    assert "force=True" in str(caught.value)
    assert engine.futures.deciders.get(Puppet, "p-1").exception() is None
    engine.instances.delete(identity, force=True)
    assert engine.futures.deciders.get(Puppet, "p-1").exception() is not None
    assert engine.dead_letters.list() == []
    assert [each for each in engine.admin.backlog() if each.kind == "effect"] == []


def test_what_is_needed_does_not_keep_what_is_not(place: Place) -> None:
    """However many instances are kept for their letters, those that ended after them are found."""

    def fail(context: EffectContext, effect: Act) -> None:
        raise Fail("no")

    engine = place.engine(SETTINGS).register(Puppet(act), fail)
    for number in range(5):
        engine.deciders.execute(Puppet, Do(f"stuck-{number}", END))
    engine.drain()
    place.clock.move(timedelta(hours=1))
    engine.deciders.execute(Puppet, Do("p-1", "done"))
    engine.deciders.execute(Puppet, Do("p-1", END))
    engine.drain()
    for letter in engine.dead_letters.list(key="p-1"):
        engine.dead_letters.discard(letter)
    place.clock.move(5 * DAY)
    keeper = place.store.keeper()
    (found,) = keeper.expired(ended_before=place.clock.now(), limit=1)
    assert found.instance == identity_of(engine)


@pytest.mark.row("E-359")
def test_what_steps_gave_long_ago_takes_less_room_and_reads_the_same(place: Place) -> None:
    """After a year, a few at a time; what is younger, short or open stays as it is, and a second look changes nothing."""
    receipt = {"receipt": "paid in full, " * 80}
    saga = Saga("order").step("pay", lambda: receipt).step("note", lambda: {"ok": 1}).human("ask").build()
    engine = place.engine().register(saga)
    old = engine.start("order", {"lines": ["lamp"] * 200})
    engine.drain()

    def lengths() -> list[tuple[int, ...]]:
        asked = "select number, length(input), coalesce(length(output), 0) from {}steps where instance = ? order by 1"
        return Ruin(place.store).rows(asked, str(old.id))

    before, told = lengths(), (old.steps(), old.history())
    engine.advance(days=300)
    young = engine.start("order")
    engine.drain()
    assert lengths() == before
    engine.advance(days=70)
    after = lengths()
    assert [(small[1] < large[1], small[2] < large[2]) for small, large in zip(after, before, strict=True)] == [
        (True, True),
        (True, False),
        (False, False),
    ]
    assert (old.steps(), old.history()) == told
    other = place.engine().register(saga)
    assert [step.output for step in other.run(old.id).steps()] == [receipt, {"ok": 1}, None]
    assert old.verify().is_sound
    assert [step.output for step in young.steps()][:1] == [receipt]
    other.advance(days=3)
    assert lengths() == after
