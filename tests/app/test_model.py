"""What a decider is to an engine: four kinds of values, pure functions, decisions that become rows."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from standfast import (
    CommandError,
    Decision,
    Ignored,
    Moment,
    NotFoundError,
    PayloadError,
    RejectedError,
    Rejection,
    Settings,
    Status,
)
from standfast.store.records.instances import Address
from support.engines import Place
from support.samples import (
    END,
    Act,
    Add,
    Answer,
    Counter,
    Do,
    Doll,
    Noted,
    Notes,
    Order,
    OrderState,
    Paid,
    Pay,
    Placed,
    Puppet,
    Shipped,
    Shop,
    act,
    done,
    note,
)
from support.samples import Place as PlaceOrder


@pytest.mark.row("D-001", "D-103")
def test_an_order_runs_from_its_four_kinds_of_values(place: Place) -> None:
    """State, command, event and effect are all that an author declares; nothing else has to be switched on."""
    shop = Shop()
    engine = place.engine().register(Order(), shop)
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    engine.drain()
    assert engine.deciders.state(Order, "o-1") == OrderState("shipped", 5)
    assert [each.event for each in engine.deciders.history(Order, "o-1") if not each.type.startswith("$")] == [
        Placed(5),
        Paid(),
        Shipped(),
    ]
    assert shop.ledger.entries == ["Charge", "Deliver"]


@pytest.mark.row("D-002", "D-014")
def test_deciding_and_replaying_again_changes_nothing(place: Place) -> None:
    """The same events give the same state each time they are read, and a decision leaves no trace but its events."""
    engine = place.engine().register(Counter())
    for _ in range(3):
        engine.deciders.execute(Counter, Add("c-1", 2))
    states = [engine.deciders.state(Counter, "c-1") for _ in range(3)]
    assert states == [6, 6, 6]
    assert place.engine().register(Counter()).deciders.state(Counter, "c-1") == 6


@pytest.mark.row("D-003")
def test_the_same_key_under_two_types_is_two_instances(place: Place) -> None:
    """Type and key together name an instance."""
    engine = place.engine().register(Puppet()).register(Doll())
    engine.deciders.execute(Puppet, Do("x", "one"))
    engine.deciders.execute(Doll, Do("x", "two"))
    assert engine.deciders.state(Puppet, "x") == ("one",)
    assert engine.deciders.state(Doll, "x") == ("two",)
    assert len({head.id for head in engine.instances.list()}) == 2


@pytest.mark.row("D-004")
def test_stored_rows_carry_the_type_name(place: Place) -> None:
    """The constant type name is what instances and their pending work are stored under."""
    engine = place.engine().register(Order())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    assert [head.definition for head in engine.instances.list()] == ["order"]
    assert {(each.kind, each.name) for each in engine.admin.backlog()} == {("effect", "order"), ("timer", "order")}


@pytest.mark.row("D-005")
def test_a_decision_without_events_is_refused_and_writes_nothing(place: Place) -> None:
    """There is no decision without an event: the command fails and the instance is not even born."""
    engine = place.engine().register(Puppet(lambda state, command, moment: Decision(())))
    with pytest.raises(CommandError, match="at least one event") as caught:
        engine.deciders.execute(Puppet, Do("p-1"))
    assert caught.value.code == "decider_failed"
    with pytest.raises(NotFoundError):
        engine.deciders.state(Puppet, "p-1")


@pytest.mark.row("D-006")
def test_with_effect_puts_an_effect_into_the_outbox(place: Place) -> None:
    """An effect of a decision waits for its handler in the same commit as the events."""
    engine = place.engine().register(Order())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    found = engine.deciders.get(Order, "o-1")
    assert [(effect.type, effect.handler, effect.attempts) for effect in found.effects] == [("Charge", "order", 0)]


@pytest.mark.row("D-007", "D-009")
@pytest.mark.parametrize("is_absolute", [False, True])
def test_timers_are_due_when_the_decision_says(place: Place, *, is_absolute: bool) -> None:
    """`with_timer_after` counts from the commit; `with_timer_at` names the instant."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted("set"))
        hour = timedelta(hours=1)
        if is_absolute:
            return decision.with_timer_at(moment.now + hour, Do("p-1", "rang"))
        return decision.with_timer_after(hour, Do("p-1", "rang"))

    engine = place.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1"))
    (timer,) = engine.deciders.get(Puppet, "p-1").timers
    assert (timer.command, timer.due_at) == ("Do", place.clock.now() + timedelta(hours=1))


@pytest.mark.row("D-008")
def test_a_decision_keeps_the_order_of_its_events(place: Place) -> None:
    """Several events, effects and timers of one decision get consecutive numbers in the order given."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted("a"), Noted("b")).with_event(Noted("c"))
        decision = decision.with_effect(Act("1")).with_effect(Act("2"))
        for hours in (1, 2):
            decision = decision.with_timer_after(timedelta(hours=hours), Do("p-1"))
        return decision

    engine = place.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1"))
    found = engine.deciders.get(Puppet, "p-1")
    assert [(each.sequence, each.event) for each in found.history] == [
        (1, Noted("a")),
        (2, Noted("b")),
        (3, Noted("c")),
    ]
    assert [effect.key.split(":")[1] for effect in found.effects] == ["0", "1"]
    assert len(found.timers) == 2


@pytest.mark.row("D-010")
@pytest.mark.parametrize("key", ["", None, 7])
def test_a_command_that_names_no_instance_is_refused(place: Place, key: object) -> None:
    """A command without a usable key is refused before anything is written."""
    engine = place.engine().register(Puppet())
    with pytest.raises(PayloadError, match=r"which instance it is for|workflow_id must be str") as caught:
        engine.deciders.execute(Puppet, Do(key))  # type: ignore[arg-type]
    assert caught.value.code == "bad_payload"
    assert engine.instances.list() == []


@pytest.mark.row("D-010")
def test_an_author_may_tell_the_key_in_another_way(place: Place) -> None:
    """`key_of` is where a decider says which instance a command is for; a method `workflow_id()` will do as well."""

    class Spoken(Do):
        def workflow_id(self) -> str:  # type: ignore[override]
            return "spoken"

    class Custom(Puppet):
        type = "custom"

        def key_of(self, command: Do) -> str:
            return command.what

    assert Puppet().key_of(Spoken.__new__(Spoken)) == "spoken"
    engine = place.engine().register(Custom())
    engine.deciders.execute(Custom, Do("", "my-key"))
    assert engine.deciders.state(Custom, "my-key") == ("my-key",)


@pytest.mark.row("D-011")
def test_a_terminal_state_sets_the_end(place: Place) -> None:
    """The event that makes an instance terminal marks it as completed; by default no state is terminal."""
    engine = place.engine().register(Puppet()).register(Counter())
    engine.deciders.execute(Puppet, Do("p-1", "go"))
    assert engine.deciders.get(Puppet, "p-1").completed_at is None
    engine.deciders.execute(Puppet, Do("p-1", END))
    ended = engine.deciders.get(Puppet, "p-1")
    assert (ended.status, ended.completed_at) == ("completed", place.clock.now())
    engine.deciders.execute(Counter, Add("c-1"))
    assert engine.deciders.get(Counter, "c-1").status == "running"


@pytest.mark.row("D-012")
def test_commands_for_an_instance_that_has_ended_are_skipped(place: Place) -> None:
    """A late command is a success without event, effect or error."""
    engine = place.engine().register(Puppet(lambda s, c, m: note(s, c, m) if c.what == END else act(s, c, m)), done)
    engine.deciders.execute(Puppet, Do("p-1", END))
    engine.deciders.execute(Puppet, Do("p-1", "late"))
    found = engine.deciders.get(Puppet, "p-1")
    assert (found.state, found.version, found.effects) == ((END,), 1, [])


@pytest.mark.row("D-013")
def test_nothing_in_memory_is_needed(place: Place) -> None:
    """An engine that was never seen before goes on where another one stopped, at every step."""
    shop = Shop()
    place.engine().register(Order(), shop).deciders.execute(Order, PlaceOrder("o-1", 5))
    place.engine().register(Order()).deciders.execute(Order, Pay("o-1"))
    last = place.engine().register(Order(), shop)
    last.drain()
    assert last.deciders.state(Order, "o-1").status == "shipped"


@pytest.mark.row("D-013")
@pytest.mark.row("G-28")
def test_snapshots_are_only_a_cache(place: Place) -> None:
    """With a snapshot every few events the state is the same as without one, also for a reader that ignores them."""

    class Newer(Counter):
        state_version = 2

    engine = place.engine(Settings(snapshot_events=4)).register(Counter())
    for _ in range(25):
        engine.deciders.execute(Counter, Add("c-1"))
    kept = place.store.reader("default").load(Address(tenant="default", definition="counter", key="c-1"))
    assert kept is not None
    assert kept.snapshot is not None
    assert place.engine().register(Counter()).deciders.state(Counter, "c-1") == 25
    assert place.engine().register(Newer()).deciders.state(Newer, "c-1") == 25


@pytest.mark.row("D-014")
def test_decisions_get_the_world_as_an_argument(place: Place) -> None:
    """Time, actor, ids and numbers come in as the moment, so that a decider needs no clock and no chance."""
    seen: list[Moment] = []
    names: list[UUID] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        seen.append(moment)
        names.append(moment.derive_id("box"))
        return Decision.event(Noted(command.what)).with_effect(Act("x"))

    engine = place.engine().register(Puppet(choose))
    calls = engine.as_tenant("default", actor="ann")
    for _ in range(2):
        calls.deciders.execute(Puppet, Do("p-1", "x"), comment="because")
    assert [(each.now, each.actor.id, each.comment, each.version, each.issued) for each in seen] == [
        (place.clock.now(), "ann", "because", 0, 0),
        (place.clock.now(), "ann", "because", 1, 1),
    ]
    assert names[0] != names[1]
    assert names[0] == seen[0].derive_id("box")


@pytest.mark.row("D-123")
def test_the_first_command_meets_the_initial_state(place: Place) -> None:
    """An instance without events is decided on the type's initial state."""
    met: list[Notes] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        met.append(state)
        return note(state, command, moment)

    place.engine().register(Puppet(choose)).deciders.execute(Puppet, Do("p-1", "x"))
    assert met == [()]


def test_a_rejection_is_an_error_with_the_deciders_code(place: Place) -> None:
    """A decider that refuses outright writes nothing, and the caller gets its code."""
    choose = Rejection(code="too_early", message="come back later")
    engine = place.engine().register(Puppet(lambda state, command, moment: choose))
    with pytest.raises(RejectedError, match="come back later") as caught:
        engine.deciders.execute(Puppet, Do("p-1"))
    assert (caught.value.code, caught.value.reason) == ("rejected", "too_early")
    assert engine.instances.list() == []


def test_ignoring_a_command_is_a_success_that_writes_nothing(place: Place) -> None:
    """`Ignored` neither creates an instance nor adds an event to one."""
    engine = place.engine().register(
        Puppet(lambda s, c, m: note(s, c, m) if c.what else Ignored(reason="nothing to do"))
    )
    engine.deciders.execute(Puppet, Do("p-1"))
    assert engine.instances.list() == []
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.deciders.execute(Puppet, Do("p-1"))
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def test_a_decider_may_show_any_status(place: Place) -> None:
    """The status row is what the decider says of its state."""

    class Pausing(Puppet):
        type = "pausing"

        def status(self, state: Notes) -> Status:
            return Status("paused", "approval") if state[-1] == "wait" else Status("running")

    engine = place.engine().register(Pausing())
    engine.deciders.execute(Pausing, Do("p-1", "wait"))
    found = engine.deciders.get(Pausing, "p-1")
    assert (found.status, found.reason) == ("paused", "approval")
