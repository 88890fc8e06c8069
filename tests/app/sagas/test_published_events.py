"""Published events: who gets them, early and late, one of several, all of several, and what they start."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from app.sagas.acting import BROKEN, Stage, history, run, status, step
from standfast import (
    Actor,
    Capabilities,
    DefinitionError,
    NotFoundError,
    PayloadError,
    RequestContext,
    ReusedIdError,
    Saga,
    SagaDefinition,
    Settings,
    event,
)
from standfast.features.runs.reads import folded_workflow
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import SUBSCRIPTIONS
from standfast.machine.model.state import RunState
from standfast.testing import ManualEngine
from support.engines import Place
from support.inside import store_of

DAY = timedelta(days=1)


def paying(stage: Stage, name: str = "paying", **options: Any) -> SagaDefinition:
    """A wait for the payment of an order, and a step behind it."""
    given: dict[str, Any] = {"key": "order", **options}
    return Saga(name).wait_for_event("paid", "payment", **given).then("after", stage.does("after")).build()


def begun(engine: ManualEngine, order: object = "o-1", name: str = "paying") -> InstanceId:
    """A run that waits, or has found what it waits for."""
    return run(engine, name, {"order": order})


def waits(engine: ManualEngine, instance: InstanceId) -> list[tuple[str, str]]:
    """What a run waits for, with the keys."""
    rows = store_of(engine).reader(engine.request.tenant).rows(SUBSCRIPTIONS, instance)
    return [(row.signal, row.correlation) for row in rows]


# -- who gets an event


@pytest.mark.row("R-055")
@pytest.mark.row("R-062")
@pytest.mark.row("E-768")
def test_a_step_goes_on_with_the_event_that_it_waits_for(place: Place) -> None:
    """Only with that event and that key; what it brings is found under the name of the step."""
    stage = Stage()
    engine = place.engine().register(paying(stage))
    instance = begun(engine)
    assert waits(engine, instance) == [("payment", "o-1")]
    engine.publish("payment", "o-2", {"amount": 1})
    engine.publish("refund", "o-1", {"amount": 2})
    engine.publish("payment", "", {"amount": 3})
    engine.drain()
    assert stage.calls == []
    engine.publish("payment", "o-1", {"amount": 4})
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["after"])
    assert engine.run(instance).result(timeout=0) == {"order": "o-1", "paid": {"amount": 4}}
    assert waits(engine, instance) == []


@pytest.mark.row("R-081")
@pytest.mark.row("E-766")
def test_an_event_reaches_all_who_wait_for_it(place: Place) -> None:
    """Runs of any definition; those who wait for something else go on waiting."""
    stage = Stage()
    engine = place.engine().register(paying(stage)).register(paying(stage, "other"))
    engine.register(Saga("elsewhere").wait_for_event("sent", "shipment", key="order").build())
    reached = [begun(engine), begun(engine), begun(engine, name="other")]
    missed = begun(engine, name="elsewhere")
    engine.publish("payment", "o-1")
    engine.drain()
    assert [status(engine, each) for each in reached] == ["completed"] * 3
    assert status(engine, missed) == "running"


def test_more_wait_than_are_looked_at_at_once(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever waits gets the event, page by page, each once, also a step that waits for it twice."""
    monkeypatch.setattr("standfast.features.events.routing.PAGE", 3)
    stage = Stage()
    engine = place.engine().register(paying(stage))
    twice = (event("payment", key="order", name="a"), event("payment", key="order", name="b"))
    engine.register(Saga("twice").wait_for_events("both", *twice).build())
    reached = [begun(engine) for _ in range(4)]
    halves = [begun(engine, name="twice") for _ in range(4)]
    engine.publish("payment", "o-1", ttl=0)
    engine.drain()
    assert [status(engine, each) for each in reached] == ["completed"] * 4
    assert [len(waits(engine, each)) for each in halves] == [1] * 4


def test_one_who_fails_keeps_nobody_else_from_an_event(place: Place) -> None:
    """Each waiter is told by itself: one whose next step fails is rolled back, the others go on."""
    stage = Stage()
    stage.does("after", lambda ctx: None if ctx.input["order"] == "good" else (_ for _ in ()).throw(BROKEN))
    saga = Saga("paying").wait_for_event("paid", "payment").then("after", stage.does("after"), attempts=1).build()
    engine = place.engine().register(saga)
    runs = [begun(engine, order) for order in ("good", "bad", "good")]
    engine.publish("payment", payload={"amount": 7})
    engine.drain()
    assert [status(engine, each) for each in runs] == ["completed", "failed", "completed"]
    assert {ctx.input["paid"]["amount"] for ctx in stage.contexts("after")} == {7}  # type: ignore[index]


def test_a_condition_on_the_payload_chooses_events(place: Place) -> None:
    """It reads the data and what the event brings; one that cannot be answered lets nothing through."""
    stage = Stage()
    engine = place.engine().register(paying(stage, match="event.amount >= input.total"))
    early = run(engine, "paying", {"order": "o-1", "total": 10})
    for payload in ({"amount": 9}, {"sum": 99}, None, "10"):
        engine.publish("payment", "o-1", payload)
    engine.drain()
    late = run(engine, "paying", {"order": "o-1", "total": 10})
    assert [status(engine, each) for each in (early, late)] == ["running", "running"]
    engine.publish("payment", "o-1", {"amount": 10})
    engine.drain()
    assert [status(engine, each) for each in (early, late)] == ["completed", "completed"]


@pytest.mark.row("E-768")
def test_later_conditions_read_what_an_event_brought(place: Place) -> None:
    """Under the name of the step that waited for it."""
    stage = Stage()
    saga = Saga("paying").wait_for_event("paid", "payment").condition("enough", "paid.amount > 10", lambda way: way)
    engine = place.engine().register(saga.then("after", stage.does("after")).build())
    for amount in (5, 50):
        begun(engine)
        engine.publish("payment", payload={"amount": amount}, ttl=0)
        engine.drain()
    assert [ctx.input["paid"] for ctx in stage.contexts("after")] == [{"amount": 50}]


@pytest.mark.parametrize("order", [None, "", True, {"a": 1}, "x" * 2000, 0.5])
def test_a_key_that_is_none_fails_the_step(place: Place, order: object) -> None:
    """Nobody could ever publish for it; the sentence says what a key is, and nothing waits."""
    stage = Stage()
    engine = place.engine().register(paying(stage))
    instance = begun(engine, order)
    assert status(engine, instance) == "failed"
    error = engine.run(instance).describe().error
    assert ("has no key to wait for" in error, len(error) < 300) == (True, True)
    assert waits(engine, instance) == []


def test_a_number_is_a_key(place: Place) -> None:
    """As the text that it is written as."""
    engine = place.engine().register(paying(Stage()))
    instance = begun(engine, 42)
    engine.publish("payment", "42")
    engine.drain()
    assert status(engine, instance) == "completed"


def test_an_event_is_published_for_a_number(place: Place) -> None:
    """A whole number is the key that a step waits for which finds it in the data; a truth value is none."""
    engine = place.engine().register(Saga("s").wait_for_event("paid", "pay", key="order").build())
    instance = run(engine, "s", {"order": 5})
    with pytest.raises(PayloadError, match="the key must be text"):
        engine.publish("pay", True)
    engine.publish("pay", 5, {"amount": 1})
    engine.drain()
    assert status(engine, instance) == "completed"


@pytest.mark.row("E-766")
def test_other_tenants_get_nothing(place: Place) -> None:
    """Neither those who wait, nor those who look, nor a list; and the same id is another event."""
    stage = Stage()
    engine = place.engine().register(paying(stage))
    rival = engine.as_tenant("rival")
    instance = begun(engine)
    rival.publish("payment", "o-1", event_id="e-1")
    engine.drain()
    assert status(engine, instance) == "running"
    assert engine.events.list() == []
    with pytest.raises(NotFoundError):
        engine.events.get("e-1")
    assert [each.id for each in rival.events.list()] == ["e-1"]
    engine.publish("payment", "o-1", {"other": 1}, event_id="e-1")
    engine.drain()
    assert status(engine, instance) == "completed"


def test_a_signal_is_no_event(place: Place) -> None:
    """A signal goes to one run by its id; an event of the same name does not end the wait for it, nor the other way round."""
    engine = place.engine().register(Saga("signalled").wait_for("paid", "payment").build()).register(paying(Stage()))
    signalled, waiting = begun(engine, name="signalled"), begun(engine)
    engine.publish("payment")
    engine.run(waiting).signal("payment")
    engine.drain()
    assert [status(engine, each) for each in (signalled, waiting)] == ["running", "running"]


def test_somebody_may_answer_in_numberof_an_event(place: Place) -> None:
    """An operator who has the step tells that what it waits for has happened."""
    engine = place.engine().register(paying(Stage()))
    instance = begun(engine)
    engine.tasks.decide(step(engine, instance, "paid").id, "ok", data={"by": "hand"})
    engine.drain()
    assert engine.run(instance).result(timeout=0) == {"order": "o-1", "paid": {"by": "hand"}}
    assert waits(engine, instance) == []


def test_a_publisher_needs_the_capability_of_the_step(place: Place) -> None:
    """An event of somebody without it does not count, early or late; that of somebody who has it does."""
    engine = place.engine().register(paying(Stage(), capability="payments.confirm"))
    instance = begun(engine)
    engine.acting(Actor(id="eve")).publish("payment", "o-1")
    engine.drain()
    late = begun(engine)
    assert [status(engine, each) for each in (instance, late)] == ["running", "running"]
    engine.acting(Actor(id="ann", capabilities=frozenset({"payments.confirm"}))).publish("payment", "o-1")
    engine.drain()
    assert [status(engine, each) for each in (instance, late)] == ["completed", "completed"]
    (received,) = history(engine, instance, "event_received")
    assert received.data["publisher"] == "ann"


CONFIRMER = Actor(id="bank", capabilities=frozenset({"payments.confirm"}))


@pytest.mark.parametrize("match_one", [False, True])
def test_an_early_event_that_does_not_count_hides_none_behind_it(place: Place, match_one: bool, caplog: Any) -> None:  # noqa: FBT001 - a parameter
    """The wait goes on to the next event that counts; what is passed over stands in the log."""
    engine = place.engine().register(paying(Stage(), capability="payments.confirm"))
    for publisher in (Actor(id="eve"), Actor(id="eve"), CONFIRMER):
        engine.acting(publisher).publish("payment", "o-1", {"by": publisher.id}, match_one=match_one)
        place.clock.move(timedelta(seconds=1))
    engine.drain()
    instance = begun(engine)
    assert engine.run(instance).result(timeout=0) == {"order": "o-1", "paid": {"by": "bank"}}
    [told] = [each.getMessage() for each in caplog.records if "event_does_not_count" in each.getMessage()]
    assert "publisher=eve lacks=payments.confirm" in told


def test_early_events_that_do_not_count_hide_none_of_several(place: Place) -> None:
    """The same where a step waits for several events."""
    saga = Saga("both").wait_for_events(
        "both", event("a", key="order"), event("b", key="order"), need="all", capability="payments.confirm"
    )
    engine = place.engine().register(saga.build())
    for publisher in (Actor(id="eve"), CONFIRMER):
        for name in ("a", "b"):
            engine.acting(publisher).publish(name, "o-1", publisher.id)
        place.clock.move(timedelta(seconds=1))
    engine.drain()
    instance = begun(engine, name="both")
    assert engine.run(instance).result(timeout=0) == {"order": "o-1", "both": {"a": "bank", "b": "bank"}}


@pytest.mark.parametrize("match_one", [False, True])
def test_an_event_whose_publisher_may_not_go_on_hides_none_behind_it(place: Place, match_one: bool) -> None:  # noqa: FBT001 - a parameter
    """A guard on the way behind the wait bars a publisher; the history tells whose event was declined, and the wait goes on to the next one."""
    stage = Stage()
    engine = place.engine()
    nodes: dict[str, object] = {
        "w": {"id": "w", "op": {"op": "wait_events", "events": [{"event": "payment"}]}},
        "a": {"id": "a", "op": {"op": "task", "work": {"handler": "a"}}},
    }
    edge = {"source": "w", "target": "a", "capability": "payments.confirm"}
    engine.handle("a", stage.does("a"))
    engine.definitions.publish(
        {"kind": "process", "name": "p", "version": "1", "entry": "w", "nodes": nodes, "edges": [edge]}
    )
    for publisher in (Actor(id="eve"), Actor(id="mal"), CONFIRMER):
        engine.acting(publisher).publish("payment", match_one=match_one)
        place.clock.move(timedelta(seconds=1))
    engine.drain()
    instance = begun(engine, name="p")
    assert stage.calls == ["a"]
    assert [each.data["publisher"] for each in history(engine, instance, "event_declined")] == ["eve", "mal"]
    assert engine.instances.verify(instance).is_sound


def test_why_tells_of_events_that_do_not_count(place: Place) -> None:
    """Whoever asks why a run waits learns of an event that is kept and whose publisher may not bring it."""
    engine = place.engine().register(paying(Stage(), capability="payments.confirm"))
    engine.acting(Actor(id="eve")).publish("payment", "o-1")
    engine.drain()
    told = engine.run(begun(engine)).why().words
    assert (
        "1 event that is kept does not count, because its publisher lacks the capability 'payments.confirm': 'eve'"
        in told
    )


# -- who published an event, by the time that it counts

CONFIRMS = Capabilities({"confirmer": ["payments.confirm"], "starter": ["orders.start"]})


def staffed(place: Place, role: str) -> ManualEngine:
    """An engine whose directory has Ann, with a role."""
    engine = place.engine(capabilities=CONFIRMS)
    engine.directory.put("ann")
    engine.directory.grant("ann", role)
    return engine


@pytest.mark.parametrize("lost", ["role", "person"])
def test_a_wait_judges_a_publisher_as_they_are_when_it_ends(place: Place, lost: str) -> None:
    """The event of somebody who has lost the right since does not count, and opens no way; once they have it again, a new one does."""
    engine = staffed(place, "confirmer").register(paying(Stage(), capability="payments.confirm"))
    engine.acting("ann").publish("payment", "o-1")
    engine.drain()
    if lost == "role":
        engine.directory.revoke("ann", "confirmer")
    else:
        engine.directory.deactivate("ann")
    instance = begun(engine)
    assert status(engine, instance) == "running"
    assert "'ann'" in engine.run(instance).why().words
    if lost == "role":
        engine.directory.grant("ann", "confirmer")
    else:
        engine.directory.activate("ann")
    engine.acting("ann").publish("payment", "o-1")
    engine.drain()
    assert status(engine, instance) == "completed"


def test_an_event_that_is_under_way_counts_by_the_rights_of_its_arrival(place: Place) -> None:
    """The same for whoever waits already when it is published, and for what the publisher may do behind the wait."""
    saga = Saga("paying").wait_for_event("paid", "payment", key="order")
    saga = saga.condition("may?", '"payments.confirm" in actor.capabilities', lambda way: way.save_point("no"))
    engine = staffed(place, "confirmer").register(saga.save_point("yes").build())
    engine.register(paying(Stage(), name="guarded", capability="payments.confirm"))
    free, guarded = begun(engine), begun(engine, name="guarded")
    engine.acting("ann").publish("payment", "o-1")
    engine.directory.revoke("ann", "confirmer")
    engine.drain()
    assert [status(engine, each) for each in (free, guarded)] == ["completed", "running"]
    assert {each.name for each in engine.run(free).steps()} >= {"no"}


def test_what_a_service_came_with_counts_without_an_entry_in_the_directory(place: Place) -> None:
    """The capabilities of a program that the directory does not have are those of its request, early and late."""
    engine = staffed(place, "confirmer").register(paying(Stage(), capability="payments.confirm"))
    waits_already = begun(engine)
    bank = Actor(id="bank", kind="service", capabilities=frozenset({"payments.confirm"}))
    engine.acting(bank).publish("payment", "o-1")
    engine.drain()
    assert [status(engine, each) for each in (waits_already, begun(engine))] == ["completed", "completed"]


# -- early events


@pytest.mark.row("G-09", "EO-37", "E-753")
@pytest.mark.row("R-083")
def test_an_early_event_is_found(place: Place) -> None:
    """It is kept for its time to live, also across processes; a week if nobody says otherwise."""
    stage = Stage()
    place.engine().register(paying(stage)).publish("payment", "o-1", {"amount": 4})
    place.clock.move(timedelta(days=6, hours=23))
    engine = place.engine()
    engine.handle("after", stage.does("after"))
    engine.drain()
    instance = begun(engine)
    assert status(engine, instance) == "completed"
    place.clock.move(timedelta(hours=1))
    late = begun(engine)
    assert status(engine, late) == "running"


@pytest.mark.row("G-09", "EO-37")
@pytest.mark.row("R-083")
@pytest.mark.parametrize(("ttl", "setting"), [(0, 7 * DAY), (timedelta(0), 7 * DAY), (None, timedelta(0))])
def test_without_a_time_to_live_an_event_is_forgotten(
    place: Place, ttl: float | timedelta | None, setting: timedelta
) -> None:
    """Those who wait when it is published get it, and nobody later."""
    engine = place.engine(Settings(event_ttl=setting)).register(paying(Stage()))
    early = begun(engine)
    engine.publish("payment", "o-1", event_id="e-1", ttl=ttl)
    engine.drain()
    late = begun(engine)
    assert [status(engine, each) for each in (early, late)] == ["completed", "running"]
    assert engine.events.list() == []
    assert engine.events.get("e-1").status == "over"


def looping(stage: Stage) -> dict[str, object]:
    """A wait that is entered again and again, as data: only such workflows may go in circles."""
    saga = Saga("paying").wait_for_event("paid", "payment", key="order").then("after", stage.does("after")).build()
    graph = saga.graph
    return {
        "kind": "process",
        "name": "looping",
        "version": "1",
        "entry": "paid",
        "nodes": {name: msgspec.to_builtins(node) for name, node in graph.nodes.items()},
        "edges": [{"source": "paid", "target": "after"}, {"source": "after", "target": "paid", "rework": True}],
    }


def test_a_run_takes_an_event_once_also_in_a_loop(place: Place) -> None:
    """However often it waits for it while it is kept; and what has expired is remembered no longer."""
    stage, engine = Stage(), place.engine()
    engine.handle("after", stage.does("after"))
    engine.definitions.publish(looping(stage))
    for number in (1, 2):
        engine.publish("payment", "o-1", number, event_id=f"e-{number}", ttl=DAY)
        engine.advance(seconds=1)
    instance = begun(engine, name="looping")
    assert [each.data["id"] for each in history(engine, instance, "event_received")] == ["e-1", "e-2"]
    assert status(engine, instance) == "suspended"
    engine.advance(2 * DAY)
    engine.publish("payment", "o-1", 3, event_id="e-3", ttl=DAY)
    engine.drain()
    with engine._desk.reader.look() as reader:
        state = folded_workflow(engine._desk, reader, instance).state
    assert isinstance(state, RunState)
    assert list(state.taken) == ["e-3"]


def test_an_event_that_is_met_both_ways_counts_once(place: Place) -> None:
    """It is published when the run waits already but has not looked yet: it is told of it, finds it too, and takes it for one of two."""
    engine = place.engine()
    twice = (event("payment", key="order", name="a"), event("payment", key="order", name="b"))
    engine.register(Saga("twice").wait_for_events("both", *twice).build())
    found = engine.start("twice", {"order": "o-1"})
    engine.publish("payment", "o-1", 1)
    engine.drain()
    assert (len(history(engine, found.id, "event_received")), status(engine, found.id)) == (1, "running")
    engine.publish("payment", "o-1", 2)
    engine.drain()
    assert found.result(timeout=0) == {"order": "o-1", "both": {"a": 1, "b": 2}}


def test_an_event_whose_time_is_over_is_not_found_although_it_is_there(place: Place) -> None:
    """Nobody has worked since, so that its row is there still."""
    engine = place.engine().register(paying(Stage()))
    engine.publish("payment", "o-1", ttl=60)
    engine.drain()
    place.clock.move(timedelta(seconds=60))
    instance = engine.start("paying", {"order": "o-1"}).id
    while engine.execute_next():
        pass
    engine.drain()
    assert (status(engine, instance), history(engine, instance, "event_received")) == ("running", [])


def test_what_follows_an_event_is_its_publishers_doing(place: Place) -> None:
    """Conditions behind the wait read who published it, also where it came early."""
    saga = Saga("paying").wait_for_event("paid", "payment", key="order")
    saga = saga.condition("finance?", '"finance" in actor.roles', lambda way: way.save_point("other"))
    engine = place.engine().register(saga.save_point("books").build())
    fay = Actor(id="fay", roles=frozenset({"finance"}))
    for order, actor in (("o-1", fay), ("o-2", Actor(id="bob"))):
        late = begun(engine, order)
        engine.acting(actor).publish("payment", order)
        engine.drain()
        for instance in (late, begun(engine, order)):
            passed = {each.name for each in engine.run(instance).steps()}
            assert ("books" in passed, "other" in passed) == (actor is fay, actor is not fay)


def hurried(stage: Stage, **options: Any) -> SagaDefinition:
    """A wait of an hour, with a step behind it for those that came, and another one for those that did not."""
    saga = Saga("hurried").wait_for_event(
        "paid",
        "payment",
        key="order",
        timeout=timedelta(hours=1),
        on_timeout=lambda way: way.then("late", stage.does("late")),
        **options,
    )
    return saga.then("after", stage.does("after")).build()


@pytest.mark.parametrize("match_one", [False, True])
@pytest.mark.parametrize(("minute", "behind"), [(59, "after"), (60, "after"), (61, "late")])
def test_an_event_that_was_published_in_time_is_in_time(
    place: Place,
    minute: int,
    behind: str,
    match_one: bool,  # noqa: FBT001 - a parameter
) -> None:
    """It counts by the instant of its publication, also if nobody worked until the wait was over."""
    stage = Stage()
    engine = place.engine().register(hurried(stage))
    instance = begun(engine, name="hurried")
    place.clock.move(timedelta(minutes=minute))
    engine.publish("payment", "o-1", match_one=match_one)
    place.clock.move(timedelta(hours=9))
    engine.drain()
    assert (stage.calls, status(engine, instance)) == ([behind], "completed")
    assert engine.instances.verify(instance).is_sound


def test_an_event_that_was_published_before_maintenance_is_in_time(place: Place) -> None:
    """Maintenance holds its delivery up, and not its time."""
    stage = Stage()
    engine = place.engine().register(hurried(stage))
    begun(engine, name="hurried")
    engine.advance(minutes=59)
    engine.admin.pause_processing()
    engine.publish("payment", "o-1")
    engine.advance(hours=2)
    engine.admin.resume_processing()
    engine.drain()
    assert stage.calls == ["after"]


def test_of_several_events_those_in_time_count_and_the_wait_ends_without_the_rest(place: Place) -> None:
    """If too few were published in time, the step has timed out, and an event from afterwards does not help."""
    stage = Stage()
    saga = Saga("several").wait_for_events(
        "both",
        event("a", key="order"),
        event("b", key="order"),
        need="all",
        timeout=timedelta(hours=1),
        on_timeout=lambda way: way.then("late", stage.does("late")),
    )
    engine = place.engine().register(saga.build())
    instance = begun(engine, name="several")
    place.clock.move(timedelta(minutes=59))
    engine.publish("a", "o-1")
    place.clock.move(timedelta(minutes=59))
    engine.publish("b", "o-1")
    engine.drain()
    assert (stage.calls, len(history(engine, instance, "event_received"))) == (["late"], 1)


def test_the_time_of_a_wait_ends_with_it(place: Place) -> None:
    """Once the event is there no timer is left, although the run goes on."""
    saga = Saga("paying").wait_for_event("paid", "payment", key="order", timeout=60).wait_for("rest", "go").build()
    engine = place.engine().register(saga)
    instance = begun(engine)
    engine.publish("payment", "o-1")
    engine.drain()
    assert status(engine, instance) == "running"
    assert store_of(engine).reader("default").work(instance)[1] == []


def test_the_same_id_is_the_same_event(place: Place) -> None:
    """What is delivered twice counts once; another content under the same id is refused, and changes nothing."""
    stage = Stage()
    engine = place.engine().register(paying(stage))
    first = engine.publish("payment", "o-1", {"amount": 1}, event_id="e-1")
    assert engine.publish("payment", "o-1", {"amount": 1}, event_id="e-1") == first == "e-1"
    with pytest.raises(ReusedIdError):
        engine.publish("payment", "o-1", {"amount": 2}, event_id="e-1")
    engine.drain()
    assert [each.payload for each in engine.events.list()] == [{"amount": 1}]
    begun(engine)
    assert stage.calls == ["after"]


def test_an_id_counts_longer_than_its_event_is_kept(place: Place) -> None:
    """A delivery that is repeated after the event was forgotten is no new event."""
    engine = place.engine().register(paying(Stage()))
    engine.publish("payment", "o-1", event_id="e-1", ttl=0)
    engine.advance(3 * DAY)
    instance = begun(engine)
    engine.publish("payment", "o-1", event_id="e-1", ttl=0)
    engine.drain()
    assert status(engine, instance) == "running"


# -- several events


def several(need: Any, **options: Any) -> SagaDefinition:
    """A wait for three events."""
    names = [event(name, key="order") for name in ("a", "b", "c")]
    return Saga("paying").wait_for_events("all", *names, need=need, **options).build()


@pytest.mark.parametrize(("need", "enough"), [("all", 3), ("any", 1), (2, 2), (1, 1), (3, 3)])
@pytest.mark.parametrize("is_early", [True, False])
def test_several_events_are_waited_for(place: Place, need: object, enough: int, is_early: bool) -> None:  # noqa: FBT001 - a parameter
    """All, the first, or a number of them; what each one brought is found by its name."""
    engine = place.engine().register(several(need))
    instance = None if is_early else begun(engine)
    for number, name in enumerate("cab"[:enough]):
        if instance is not None:
            assert status(engine, instance) == "running"
            assert len(waits(engine, instance)) == 3 - number
        engine.publish(name, "o-1", {"from": name})
        engine.drain()
    instance = instance or begun(engine)
    expected = {name: {"from": name} for name in "cab"[:enough]}
    assert engine.run(instance).result(timeout=0) == {"order": "o-1", "all": expected}
    assert waits(engine, instance) == []


def test_the_same_event_may_be_waited_for_under_two_names(place: Place) -> None:
    """Two keys, or two conditions; one event counts for one of them."""
    both = (event("ok", key="a", name="first"), event("ok", key="b", name="second"))
    engine = place.engine().register(Saga("both").wait_for_events("oks", *both).build())
    instance = run(engine, "both", {"a": "ann", "b": "bob"})
    engine.publish("ok", "bob", 2)
    engine.publish("ok", "ann", 1)
    engine.drain()
    assert engine.run(instance).result(timeout=0)["oks"] == {"first": 1, "second": 2}  # type: ignore[index]


def test_events_that_came_are_kept_until_the_time_is_over(place: Place) -> None:
    """A wait for all of them runs out although some came; then it is left by its timeout, and nothing waits any more."""
    stage = Stage()
    saga = several("all", timeout=60, on_timeout=lambda way: way.step("late", stage.does("late")))
    engine = place.engine().register(saga)
    instance = begun(engine)
    engine.publish("a", "o-1", ttl=0)
    engine.advance(seconds=60)
    assert (stage.calls, status(engine, instance), waits(engine, instance)) == (["late"], "completed", [])


# -- for one taker


def takers(engine: ManualEngine, runs: list[InstanceId]) -> list[int]:
    """Which of the runs have gone on."""
    return [number for number, each in enumerate(runs) if status(engine, each) == "completed"]


@pytest.mark.row("E-766")
def test_one_of_those_who_wait_gets_an_event_for_one(place: Place) -> None:
    """The next event goes to the next one; the event tells who has it."""
    engine = place.engine().register(paying(Stage()))
    runs = [begun(engine) for _ in range(3)]
    for number in (1, 2, 3):
        engine.publish("payment", "o-1", event_id=f"e-{number}", match_one=True)
        engine.drain()
        assert len(takers(engine, runs)) == number
    assert {engine.events.get(f"e-{number}").taken_by for number in (1, 2, 3)} == set(runs)
    assert engine.events.list() == []


def test_early_events_for_one_are_found_one_by_one(place: Place) -> None:
    """Each goes to one of those who begin to wait later, the oldest first."""
    engine = place.engine().register(paying(Stage()))
    for number in (1, 2):
        engine.publish("payment", "o-1", number, event_id=f"e-{number}", match_one=True)
        engine.advance(seconds=1)
    runs = [begun(engine) for _ in range(3)]
    assert [engine.run(each).result(timeout=0)["paid"] for each in runs[:2]] == [1, 2]  # type: ignore[index]
    assert status(engine, runs[2]) == "running"


def test_whoever_cannot_use_an_event_for_one_leaves_it_to_the_next(place: Place) -> None:
    """A condition that does not hold is a no, which the history shows; the next one in line gets it."""
    engine = place.engine().register(paying(Stage(), match="event.size == input.size"))
    runs = [run(engine, "paying", {"order": "o-1", "size": size}) for size in (1, 2, 3)]
    engine.publish("payment", "o-1", {"size": 3}, match_one=True)
    engine.drain()
    assert takers(engine, runs) == [2]
    declined = [len(history(engine, each, "event_declined")) for each in runs]
    assert declined[2] == 0
    engine.publish("payment", "o-1", {"size": 9}, event_id="e-9", match_one=True)
    engine.drain()
    late = run(engine, "paying", {"order": "o-1", "size": 9})
    assert status(engine, late) == "completed", "nobody wanted it, so it was kept"


def test_an_event_for_one_that_nobody_waits_for_ends(place: Place) -> None:
    """Without a time to live at once, else when it is over."""
    engine = place.engine().register(paying(Stage(), match="event == 5"))
    begun(engine)
    engine.publish("payment", "o-1", event_id="e-1", match_one=True, ttl=0)
    engine.publish("payment", "o-1", event_id="e-2", match_one=True, ttl=60)
    engine.drain()
    assert [engine.events.get(each).status for each in ("e-1", "e-2")] == ["over", "kept"]
    engine.advance(seconds=60)
    assert engine.events.get("e-2").status == "over"


def test_who_lost_an_event_to_another_looks_for_the_next_one(place: Place) -> None:
    """Two who begin at the same moment want the only event; the one who does not get it looks again, and gets the next one."""
    engine = place.engine().register(paying(Stage()))
    runs, sought = begun_together(engine, runs=2, events=1)
    assert (len(takers(engine, runs)), sorted(sought)) == (1, [0, 1])
    engine.publish("payment", "o-1", match_one=True)
    engine.drain()
    assert takers(engine, runs) == [0, 1]


def test_many_who_begin_at_once_do_not_all_want_the_same_event(place: Place) -> None:
    """Each takes the oldest that nobody else wants. Those for whom there is none wait in different lines, and look again when theirs is over.

    So what they say to one another grows with their number, and not with its square.
    """
    engine = place.engine().register(paying(Stage()))
    runs, sought = begun_together(engine, runs=4, events=4)
    assert (takers(engine, runs), sought) == ([0, 1, 2, 3], [0, 0, 0, 0])
    runs, sought = begun_together(engine, runs=12, events=4)
    assert (len(takers(engine, runs)), sum(sought) < 20) == (4, True), sought


def begun_together(engine: ManualEngine, *, runs: int, events: int) -> tuple[list[InstanceId], list[int]]:
    """Runs that have all looked for early events before any of them is told anything; and how often each looked again."""
    for _ in range(events):
        engine.publish("payment", "o-1", match_one=True)
    engine.drain()
    begun = [engine.start("paying", {"order": "o-1"}).id for _ in range(runs)]
    while engine.execute_next():
        pass
    engine.drain()
    return begun, [len(history(engine, each, "events_sought")) for each in begun]


# -- what is kept


@pytest.mark.row("EO-37")
def test_kept_events_are_listed_and_found(place: Place) -> None:
    """Oldest first, page by page, of one name or of all, with all that was said."""
    engine = place.engine()
    ann = engine.acting(RequestContext(actor=Actor(id="ann")))
    for number in range(3):
        ann.publish("a" if number else "b", f"k-{number}", number, event_id=f"e-{number}", ttl=60)
        place.clock.move(timedelta(seconds=1))
    engine.drain()
    assert [each.id for each in engine.events.list(event="a")] == ["e-1", "e-2"]
    first, second = engine.events.list(limit=2)
    assert [each.id for each in engine.events.list(after=second)] == ["e-2"]
    assert (first.event, first.key, first.payload, first.publisher) == ("b", "k-0", 0, "ann")
    assert first.expires_at == first.published_at + timedelta(seconds=60)
    assert engine.events.get("e-0") == first
    with pytest.raises(NotFoundError, match="e-9"):
        engine.events.get("e-9")


def test_events_do_not_show_among_the_instances_of_users(place: Place) -> None:
    """Unless they are asked for."""
    engine = place.engine().register(paying(Stage()))
    instance = begun(engine)
    engine.publish("payment", "o-1", event_id="e-1")
    engine.drain()
    assert [each.id for each in engine.instances.list()] == [instance]
    assert engine.instances.list(key="e-1") == []
    assert [each.key for each in engine.instances.list(kind="event")] == ["e-1"]
    assert [each.key for each in engine.instances.list(definition="$event")] == ["e-1"]
    assert [each.id for each in engine.runs.list().items] == [instance]


def test_events_that_are_over_are_deleted(place: Place) -> None:
    """A day after their end, although everything else is kept for ever."""
    engine = place.engine().register(paying(Stage()))
    instance = begun(engine)
    engine.publish("payment", "o-1", event_id="e-1", ttl=60)
    engine.advance(timedelta(hours=24))
    assert engine.events.get("e-1").status == "over"
    engine.advance(timedelta(hours=2))
    with pytest.raises(NotFoundError):
        engine.events.get("e-1")
    assert engine.run(instance).describe().status == "completed"


# -- bad input


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"event": ""}, "event must be non-empty text"),
        ({"event": 5}, "event must be non-empty text"),
        ({"event": "x" * 2000}, "event is longer than"),
        ({"event": "a", "key": None}, "key must be text"),
        ({"event": "a", "key": "nul\x00"}, "NUL"),
        ({"event": "a", "key": 10**600}, "key must be text"),
        ({"event": "a", "key": -(10**5000)}, "key must be text, not an int"),
        ({"event": "a", "event_id": 5}, "event id must be text"),
        ({"event": "a", "payload": "x" * 2000}, "the payload takes 2002 bytes and the limit is 1000"),
        ({"event": "a", "payload": object()}, "object"),
        ({"event": "a", "ttl": -1}, "ttl must be from nothing"),
        ({"event": "a", "ttl": "soon"}, "ttl must be a timedelta"),
        ({"event": "a", "ttl": float("nan")}, "ttl must be"),
        ({"event": "a", "ttl": timedelta(days=50_000)}, "ttl must be from nothing"),
        ({"event": "a", "match_one": "yes"}, "match_one must be True or False"),
    ],
)
def test_a_bad_event_is_refused(place: Place, given: dict[str, Any], sentence: str) -> None:
    """With a sentence, and nothing is published."""
    engine = place.engine(Settings(max_payload_bytes=1000))
    with pytest.raises(PayloadError, match=sentence):
        engine.publish(**given)
    assert engine.instances.list(kind="event") == []


def test_what_does_not_fit_into_the_data_fails_the_step(place: Place) -> None:
    """The payload is within its limit, and the data with it is not."""
    engine = place.engine(Settings(max_payload_bytes=1000)).register(paying(Stage()))
    instance = run(engine, "paying", {"order": "o-1", "rest": "x" * 600})
    engine.publish("payment", "o-1", "y" * 600)
    engine.drain()
    assert status(engine, instance) == "failed"
    assert "would make the data larger" in engine.run(instance).describe().error


@pytest.mark.parametrize(
    ("build", "code"),
    [
        (lambda saga: saga.wait_for_events("w"), "no_event"),
        (lambda saga: saga.wait_for_event("w", ""), "no_event"),
        (lambda saga: saga.wait_for_event("w", "a", key="1 +"), "bad_expression"),
        (lambda saga: saga.wait_for_event("w", "a", key=5), "bad_expression"),
        (lambda saga: saga.wait_for_event("w", "a", match="event ="), "bad_expression"),
        (lambda saga: saga.wait_for_events("w", "a"), "event"),
        (lambda saga: saga.wait_for_events("w", event("a"), event("a")), "duplicate_event"),
        (lambda saga: saga.wait_for_events("w", event("a"), need=2), "event_need"),
        (lambda saga: saga.wait_for_events("w", event("a"), need=0), "event_need"),
        (lambda saga: saga.wait_for_events("w", event("a"), need="some"), "event_need"),
        (lambda saga: saga.step("s", "s").trigger(""), "no_event"),
        (lambda saga: saga.step("s", "s").trigger("a", key="1 +"), "bad_expression"),
        (lambda saga: saga.step("s", "s").trigger("a", when="event ="), "bad_expression"),
        (lambda saga: saga.step("s", "s").trigger("a", input={"x": "("}), "bad_expression"),
    ],
)
def test_a_wait_that_could_never_end_is_refused(build: Any, code: str) -> None:
    """When the saga is built, with a code and a sentence."""
    with pytest.raises(DefinitionError) as refused:
        build(Saga("s")).build()
    assert code in {each.code for each in refused.value.diagnostics}


# -- triggers


@pytest.mark.row("G-42")
@pytest.mark.row("R-084")
def test_an_event_starts_what_it_triggers(place: Place) -> None:
    """Once for each event, with what it brings as input; other events start nothing."""
    stage = Stage()
    engine = place.engine().register(Saga("order").trigger("order.created").step("pay", stage.does("pay")).build())
    for _ in range(2):
        engine.publish("order.created", payload={"order": 1}, event_id="e-1")
        engine.publish("order.deleted", payload={"order": 2}, event_id="e-2")
        engine.drain()
    assert [ctx.input for ctx in stage.contexts("pay")] == [{"order": 1}]
    (started,) = engine.runs.list().items
    assert engine.events.get("e-1").started == [started.id]
    assert engine.events.get("e-2").started == []


def test_a_trigger_says_which_events_count_and_what_the_run_gets(place: Place) -> None:
    """Its expressions read the payload, and the key that the event was published for."""
    saga = Saga("order").trigger(
        "order.created", key="id", when="event.total > 10", input={"sum": "total", "for": "key"}
    )
    engine = place.engine().register(saga.step("pay", "pay").build())
    engine.publish("order.created", "ann", {"id": "o-1", "total": 5})
    engine.publish("order.created", "bob", {"id": "o-2", "total": 50})
    engine.publish("order.created", "bob", {"id": "o-2", "total": 51}, event_id="again")
    engine.publish("order.created", "bob", {"total": 52}, event_id="keyless")
    engine.drain()
    (started,) = engine.runs.list().items
    assert (started.key, engine.run(started.id).describe().input) == ("o-2", {"sum": 50, "for": "bob"})
    (failure,) = engine.events.get("again").failures
    assert "order" in failure
    assert "was started before" in failure
    assert len(engine.events.get("keyless").failures) == 1


def test_each_trigger_of_a_workflow_is_a_start_of_its_own(place: Place) -> None:
    """An event that two of them wait for starts two runs, each once, however often it is published."""
    saga = Saga("order").trigger("order.created", input={"n": "1"}).trigger("order.created", input={"n": "2"})
    engine = place.engine().register(saga.wait_for("rest", "go").build())
    for _ in range(2):
        engine.publish("order.created", event_id="e-1")
        engine.drain()
    given = [engine.run(each.id).describe().input for each in engine.runs.list().items]
    assert sorted(map(str, given)) == ["{'n': 1}", "{'n': 2}"]


@pytest.mark.row("R-084")
def test_an_event_with_the_longest_id_starts_what_it_triggers(place: Place) -> None:
    """Once, whatever its id is: what makes the start happen once is no longer than a key may be."""
    engine = place.engine().register(Saga("order").trigger("order.created").wait_for("rest", "go").build())
    for each in ("x" * 512, "x" * 511 + "y", "x" * 512):
        engine.publish("order.created", event_id=each)
        engine.drain()
        assert engine.events.get(each).failures == []
    assert len(engine.runs.list().items) == 2


def test_the_newest_version_of_a_workflow_is_triggered(place: Place) -> None:
    """Also in a process that has met neither; one whose newest version has no trigger is not started."""
    first = place.engine()
    for version in (1, 2, 10):
        first.register(Saga("order", version).trigger("created").step("pay", "pay").build())
    first.register(Saga("former", 1).trigger("created").step("pay", "pay").build())
    first.register(Saga("former", 2).step("pay", "pay").build())
    engine = place.engine()
    engine.publish("created")
    engine.drain()
    assert [(each.definition, each.definition_version) for each in engine.instances.list()] == [("order", "10")]


def test_a_trigger_counts_for_the_tenant_of_the_event(place: Place) -> None:
    """A shared workflow is started for that tenant; another tenant's own is not."""
    engine = place.engine().register(Saga("shared").trigger("created").step("pay", "pay").build())
    saga = Saga("own").trigger("created").step("pay", "pay").build()
    engine.as_tenant("rival").definitions.publish(saga)
    engine.as_tenant("other").publish("created")
    engine.as_tenant("rival").publish("created")
    engine.drain()
    names = {
        tenant: sorted(each.definition for each in engine.as_tenant(tenant).instances.list())
        for tenant in ("default", "other", "rival")
    }
    assert names == {"default": [], "other": ["shared"], "rival": ["own", "shared"]}


def test_a_publisher_starts_only_what_he_may(place: Place) -> None:
    """The right to start a workflow is asked of whoever published the event; he is who wants the run."""
    engine = place.engine().register(
        Saga("order", capability="orders.start").trigger("created").step("pay", "pay").build()
    )
    engine.acting(Actor(id="eve")).publish("created", event_id="e-1")
    engine.acting(Actor(id="ann", capabilities=frozenset({"orders.*"}))).publish("created", event_id="e-2")
    engine.drain()
    (started,) = engine.instances.list()
    assert started.started_by == "ann"
    assert "orders.start" in engine.events.get("e-1").failures[0]
    assert engine.events.get("e-2").started == [started.id]


@pytest.mark.parametrize("lost", ["role", "person"])
def test_a_trigger_judges_a_publisher_as_they_are_when_the_run_starts(place: Place, lost: str) -> None:
    """What was published before the right was lost starts nothing afterwards, and the event tells why."""
    engine = staffed(place, "starter").register(
        Saga("order", capability="orders.start").trigger("created").step("pay", "pay").build()
    )
    engine.admin.pause_processing()
    engine.acting("ann").publish("created", event_id="e-1")
    if lost == "role":
        engine.directory.revoke("ann", "starter")
    else:
        engine.directory.deactivate("ann")
    engine.admin.resume_processing()
    engine.drain()
    found = engine.events.get("e-1")
    assert (found.started, len(found.failures), engine.instances.list()) == ([], 1, [])
    assert ("orders.start" if lost == "role" else "deactivated") in found.failures[0]


def test_a_trigger_of_a_service_counts_with_what_came_with_the_request(place: Place) -> None:
    """A program that the directory does not have starts runs by the capabilities of its request."""
    engine = staffed(place, "starter").register(
        Saga("order", capability="orders.start").trigger("created").step("pay", "pay").build()
    )
    shop = Actor(id="shop", kind="service", capabilities=frozenset({"orders.start"}))
    engine.acting(shop).publish("created", event_id="e-1")
    engine.drain()
    assert len(engine.events.get("e-1").started) == 1
