"""The queue of a saga: what a row says, who claims it, and that each is done once."""

from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from app.sagas.acting import BROKEN, Stage, run, status, step
from standfast import Saga, Settings, StepContext
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import DEFAULT_TENANT, StoredEffect
from support.desks import Desk
from support.engines import Live, Place
from support.inside import beat, claim_one
from support.waiting import eventually, together


def queued(place: Place, instance: InstanceId) -> list[StoredEffect]:
    """The rows of the queue that belong to an instance."""
    effects, _ = place.store.reader(DEFAULT_TENANT).work(instance)
    return effects


@pytest.mark.row("F-094", "F-095", "F-096", "F-101", "F-113")
def test_a_step_that_waits_is_a_row_of_the_queue(place: Place) -> None:
    """The row names instance, step, handler and priority, and when it was written."""
    engine = place.engine().register(Saga("s").step("a", "work", priority=7).build())
    engine.advance(seconds=3)
    instance = engine.start("s", {"n": 1}).id
    (row,) = queued(place, instance)
    assert (row.instance, row.handler, row.priority, row.created_at) == (instance, "work", 7, place.clock.now())
    body = msgspec.json.decode(row.data)
    assert [each.name for each in engine.run(instance).steps() if each.number == body["step"]] == ["a"]


@pytest.mark.row("F-094", "F-095")
def test_a_compensation_that_waits_is_a_row_of_the_same_queue(place: Place) -> None:
    """In a rollback the queue holds the call of the compensation, and it is empty once all is over."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("s").step("a", stage.does("a", BROKEN), attempts=1, priority=40).on_failure("undo a", stage.does("undo a"))
    )
    instance = engine.register(saga.build()).start("s").id
    engine.execute_next()
    (row,) = queued(place, instance)
    body = msgspec.json.decode(row.data)
    assert (row.handler, row.priority, body["node"], body["is_compensation"]) == ("undo a", 40, "a", True)
    engine.drain()
    assert queued(place, instance) == []


@pytest.mark.row("F-097", "F-113")
def test_the_priority_of_a_row_lies_between_0_and_100(place: Place) -> None:
    """The database itself refuses any other."""
    engine = place.engine()
    for priority in (0, 100):
        engine.register(Saga(f"p{priority}").step("a", "work", priority=priority).build())
        (row,) = queued(place, engine.start(f"p{priority}").id)
        assert row.priority == priority
    for priority in (-1, 101):
        with pytest.raises(Exception, match=r"(?i)check"):
            Desk(place.store).run(f"update {{}}effects set priority = {priority}")


@pytest.mark.row("F-098")
def test_a_row_is_not_claimed_before_its_time(place: Place) -> None:
    """A call that is put off stands in the queue with its time, and until then there is nothing to do."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("s").step("a", stage.does("a", BROKEN, None), delay=60).build())
    instance = engine.start("s").id
    assert engine.execute_next()
    (row,) = queued(place, instance)
    assert row.parked_until == place.clock.now() + timedelta(seconds=60)
    assert not engine.execute_next()
    engine.advance(seconds=59)
    assert stage.count("a") == 1
    engine.advance(seconds=1)
    assert (stage.count("a"), status(engine, instance)) == (2, "completed")


@pytest.mark.row("F-099")
def test_a_step_says_when_a_worker_took_it(place: Place) -> None:
    """Nothing before that; from then on the time of the claim, which may be long after the step was queued."""
    stage, engine, seen = Stage(), place.engine(), list[object]()
    look = stage.does("a", lambda ctx: seen.append(step(engine, ctx.instance, "a").started_at))
    instance = engine.register(Saga("s").step("a", look).build()).start("s").id
    assert step(engine, instance, "a").started_at is None
    place.clock.move(timedelta(seconds=5))
    engine.drain()
    assert seen == [place.clock.now()]


@pytest.mark.row("F-099")
@pytest.mark.parametrize("start_after", [0, 3600])
def test_a_step_began_when_its_first_call_was_taken(place: Place, start_after: int) -> None:
    """While it runs, between two calls, in the second one and once it has ended: it is always the same time."""
    stage, engine, seen = Stage(), place.engine(), list[object]()

    def look(ctx: StepContext) -> None:
        seen.append(step(engine, ctx.instance, "a").started_at)
        if ctx.attempt == 1:
            raise BROKEN

    saga = Saga("s").step("a", stage.does("a", look), start_after=start_after, delay=60)
    instance = engine.register(saga.build()).start("s").id
    place.clock.move(timedelta(seconds=start_after + 5))
    begun = place.clock.now()
    engine.drain()
    seen.append(step(engine, instance, "a").started_at)
    engine.advance(seconds=60)
    seen.append(step(engine, instance, "a").started_at)
    assert (status(engine, instance), seen) == ("completed", [begun] * 4)
    assert step(engine, instance, "a").completed_at == place.clock.now()


@pytest.mark.row("F-099")
def test_a_step_that_was_never_called_never_began(place: Place) -> None:
    """Neither while its saga waits for an operator nor after the end."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s", dlq=True).fork(
        "f",
        lambda one: one.step("bad", stage.does("bad", BROKEN), attempts=1, priority=9),
        lambda two: two.step("cold", stage.does("cold")),
    )
    instance = run(engine.register(saga.join("met").build()), "s")
    cold = step(engine, instance, "cold")
    assert (cold.status, cold.started_at) == ("paused", None)
    engine.futures.run(instance).cancel()
    engine.drain()
    cold = step(engine, instance, "cold")
    assert (cold.status, cold.started_at, cold.retry_count) == ("skipped", None, 0)


@pytest.mark.row("F-063")
def test_a_call_whose_worker_died_still_counts(place: Place) -> None:
    """Nobody has it in hand until another worker looks at it: the step was called all the same."""
    stage, engine = Stage(), place.engine()
    engine.register(Saga("s").step("a", "work").build()).handle("work", stage.does("a"))
    instance = engine.start("s").id
    beat(engine)
    assert claim_one(engine, "work")
    before = step(engine, instance, "a")
    place.clock.move(timedelta(minutes=1))
    beat(place.engine())
    after = step(engine, instance, "a")
    assert (before.status, before.retry_count) == (after.status, after.retry_count) == ("running", 1)


@pytest.mark.row("F-100")
def test_a_row_names_the_worker_that_has_it(place: Place) -> None:
    """Nobody before it is claimed; then the worker, which is listed under its name."""
    engine, stage, seen = place.engine(Settings(worker_name="worker1")), Stage(), list[str]()

    def look(ctx: StepContext) -> None:
        (row,) = queued(place, ctx.instance)
        seen.extend(each.name for each in engine.admin.workers() if each.id == row.owner)

    instance = engine.register(Saga("s").step("a", stage.does("a", look)).build()).start("s").id
    (before,) = queued(place, instance)
    assert (before.owner, before.attempts) == (None, 0)
    place.engine(Settings(worker_name="worker2")).drain()
    engine.drain()
    assert seen == ["worker1"]


@pytest.mark.row("F-102")
def test_a_look_into_the_queue_does_one_thing(place: Place) -> None:
    """One row is claimed and dealt with, if there is one; a handler that fails is recorded and not raised."""
    stage, engine = Stage(), place.engine()
    assert not engine.execute_next()
    saga = Saga("s").step("a", stage.does("a")).step("b", stage.does("b", BROKEN), attempts=1)
    instance = engine.register(saga.build()).start("s").id
    assert engine.execute_next()
    assert (stage.calls, step(engine, instance, "a").status) == (["a"], "completed")
    assert engine.execute_next()
    assert (stage.calls, step(engine, instance, "b").error) == (["a", "b"], "ValueError: broken")
    assert not engine.execute_next()


@pytest.mark.row("F-103")
def test_two_workers_never_call_the_same_step(place: Place) -> None:
    """While one worker has a row in hand, another one finds nothing."""
    stage, first, second = Stage(), place.engine(), place.engine()
    saga = Saga("s").step("a", stage.does("a", lambda ctx: found.append(second.execute_next()))).build()
    found: list[bool] = []
    second.register(saga)
    instance = first.register(saga).start("s").id
    first.drain()
    assert (found, stage.calls, status(first, instance)) == ([False], ["a"], "completed")


@pytest.mark.row("F-103")
def test_many_workers_share_a_queue_without_overlap(live: Live) -> None:
    """Three processes at one queue: every step of every instance is called once, by one of them."""
    stage = Stage()
    saga = Saga("s").step("a", "a").step("b", "b").build()
    engines = [live.engine().register(saga) for _ in range(3)]
    for number, engine in enumerate(engines):
        for name in "ab":
            engine.handle(name, stage.does(f"{name} in {number}"))
    client = live.engine().register(saga)
    started = [client.start("s").id for _ in range(20)]
    together(*[engine.start_worker for engine in engines])
    eventually(lambda: all(status(client, each) == "completed" for each in started))
    keys = [
        ctx.idempotency_key for number in range(3) for name in "ab" for ctx in stage.contexts(f"{name} in {number}")
    ]
    assert len(keys) == len(set(keys)) == 40


@pytest.mark.row("F-037", "F-115")
def test_steps_with_a_higher_priority_are_claimed_first(place: Place) -> None:
    """Of two steps that wait, the more urgent one is called first, whichever was written first."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s").fork(
        "f",
        lambda one: one.step("low", stage.does("low"), priority=10),
        lambda two: two.step("high", stage.does("high"), priority=90),
        lambda three: three.step("middle", stage.does("middle"), priority=50),
    )
    engine.register(saga.join("met").build()).start("s")
    engine.drain()
    assert stage.calls == ["high", "middle", "low"]
