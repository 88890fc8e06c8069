"""The engine that a test drives: what it says instead of waiting for ever, its ids, its clock."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from standfast import (
    ConfigurationError,
    DeadlockError,
    Decision,
    Engine,
    Message,
    Moment,
    Reply,
    Saga,
    SagaDefinition,
    Settings,
    StepContext,
)
from standfast.engine.common.telemetry import HandlerMissingObserved, Happening
from standfast.store.records.instances import Wanted
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.engines import Place
from support.samples import END, Act, Add, Answer, Counter, Do, Doll, Noted, Notes, Puppet, act, done

DAY = timedelta(days=1)

WAITS = Saga("waits").step("a", lambda: None).wait("b", 10).build()


def running(engine: Engine) -> UUID:
    """An instance that needs somebody to drive the engine."""
    return engine.register(WAITS).start("waits").id


ASKED: list[Callable[[Engine, UUID], Reply[Any]]] = [
    lambda engine, instance: engine.futures.run(instance).result(),
    lambda engine, instance: engine.futures.run(instance).cancel(),
    lambda engine, instance: engine.futures.run(instance).result().then(str),
    lambda engine, instance: engine.as_tenant("default").futures.run(instance).result(),
]
"""What is answered only when the workflow has ended; a cancellation waits for the step that is under way."""


@pytest.mark.row("D-114")
@pytest.mark.parametrize("ask", ASKED)
def test_an_answer_that_nobody_brings_is_not_waited_for(place: Place, ask: Callable[..., Reply[object]]) -> None:
    """An engine that only moves when it is told raises at once and says what to call; the answer comes with the time."""
    engine = place.engine()
    reply = ask(engine, running(engine))
    waits: list[Callable[[], object]] = [reply.result, reply.exception, lambda: asyncio.run(awaited(reply))]
    for wait in waits:
        with pytest.raises(DeadlockError, match=r"call drain\(\) or advance\(\) first"):
            wait()
    assert not reply.done()
    engine.advance(seconds=10)
    assert reply.done()
    assert reply.exception() is None


async def awaited(reply: Reply[object]) -> object:
    """What a coroutine gets."""
    return await reply


def test_a_plain_engine_without_threads_says_it_too() -> None:
    """The rule is that of every engine that is driven by its caller."""
    with Engine("sqlite://", threads=False) as engine, pytest.raises(DeadlockError, match=r"drain\(\)"):
        engine.run(running(engine)).result()


def test_a_handler_that_waits_for_its_own_engine_fails(place: Place) -> None:
    """Inside a handler nobody else drives the engine: waiting there would never end."""
    engine = place.engine()

    def wait(ctx: StepContext) -> object:
        return engine.run(ctx.instance).result()

    instance = engine.register(Saga("s").step("a", wait, attempts=1).build()).start("s").id
    engine.drain()
    assert "drain()" in engine.run(instance).describe().error


def one_step(name: str) -> SagaDefinition:
    """A saga of one step."""
    return Saga(name).step("a", lambda: None).build()


@pytest.mark.row("D-114")
def test_engines_on_one_database_do_not_repeat_their_ids(place: Place) -> None:
    """A second engine, after a restart or beside the first, makes ids of its own."""
    made: list[UUID] = []
    for name in ("s", "s", "t"):
        engine = ManualEngine(store=place.store, clock=place.clock)
        instance = engine.register(one_step(name)).start(name).id
        engine.register(Counter()).deciders.execute(Counter, Add(str(instance)))
        engine.drain()
        assert engine.run(instance).describe().status == "completed"
        made += [instance, engine.deciders.get(Counter, str(instance)).id, engine.runtime.identity]
        engine.stop()
    first, second = (ManualEngine(store=place.store, clock=place.clock).register(one_step("s")) for _ in range(2))
    made += [engine.start("s").id for engine in (first, second, first, second)]
    assert len({*made}) == len(made)


@pytest.mark.row("D-114")
def test_ids_on_a_new_database_are_always_the_same(place: Place) -> None:
    """A test that is run again sees the same ids; `seed` makes others, and the same ones for the same seed."""
    here = ManualEngine(store=place.store, clock=place.clock).register(one_step("s")).start("s").id
    there = ManualEngine().register(one_step("s")).start("s").id
    assert here == there
    seeded = [ManualEngine(seed=7).register(one_step("s")).start("s").id for _ in range(2)]
    assert seeded[0] == seeded[1] != here


HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)


def act_or_note(state: Notes, command: Do, moment: Moment) -> Answer:
    """Ask for an effect, unless the command tells of one; and note the seconds since the start of the test."""
    noted = Decision.event(Noted(f"{command.what} {(moment.now - START).total_seconds():g}"))
    return noted.with_effect(Act(command.what)) if command.what == "x" else noted


class Told(Puppet):
    """Notes when it is told that nobody can do what it asked for."""

    def handler_missing(self, effect: Act, handler: str) -> Do:
        return Do("", "missed")


def test_an_instance_hears_of_a_missing_handler_at_its_time(place: Place) -> None:
    """While time goes by, the instances are told when they would be told by an engine with threads, and what follows is done."""
    engine = place.engine().register(Told(act_or_note))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(minutes=2.5)
    assert engine.deciders.state(Puppet, "p-1") == ("x 0", "missed 5", "missed 65", "missed 125")


def test_a_saga_hears_of_a_missing_handler_at_its_time(place: Place) -> None:
    """Its history tells it once, when the time is over that a handler may be away."""
    saga = Saga("elsewhere").step("a", "far away").build()
    engine = place.engine().register(saga)
    instance = engine.start("elsewhere").id
    engine.advance(minutes=1.5)
    told = [
        each.timestamp - START
        for each in engine.run(instance).history()
        if each.event_type == "step_skipped_missing_handler"
    ]
    assert told == [5 * SECOND]


def test_time_is_not_walked_through_for_the_log_alone(place: Place) -> None:
    """Where no instance wants to know, a handler that is missing is reported when there is something to do, or at the end."""
    heard: list[Happening] = []
    engine = place.engine().register(Puppet(act_or_note)).listen(heard.append)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(days=30)
    assert [each for each in heard if isinstance(each, HandlerMissingObserved)] == [
        HandlerMissingObserved(handler="puppet", waiting=1)
    ]


@pytest.mark.parametrize("wait", [timedelta(0), SECOND])
def test_a_window_of_no_length_ends(place: Place, wait: timedelta) -> None:
    """However short the settings make the time between two reports, time goes on."""
    settings = Settings(missing_handler_cooldown=wait, missing_handler_throttle=timedelta(0))
    engine = place.engine(settings).register(Told(act_or_note))
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(wait)
    assert engine.deciders.state(Puppet, "p-1") == ("x 0", f"missed {wait.total_seconds():g}")


def test_command_ids_are_forgotten_on_the_way(place: Place) -> None:
    """A command id is free again after `keep_receipts`, also for what happens while time goes by."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        noted = Decision.event(Noted(command.what))
        if command.what != "start":
            return noted
        told = Message(decider="doll", command=Do("d-1", "again"), command_id="once")
        return noted.with_message(told).with_timer_after(2 * HOUR, Do("p-1", "start")) if len(state) < 2 else noted

    engine = place.engine(Settings(keep_receipts=HOUR)).register(Puppet(choose)).register(Doll())
    engine.deciders.execute(Puppet, Do("p-1", "start"))
    engine.advance(hours=3)
    assert engine.deciders.state(Doll, "d-1") == ("again", "again")
    engine.advance(hours=3)
    assert engine.deciders.state(Puppet, "p-1") == ("start", "start", "start")


def test_finished_instances_go_on_the_way(place: Place) -> None:
    """What ended is gone once `keep_finished` is over, and its key is free for what comes later on the way."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        told = Message(decider="doll", command=Do("d-1", END))
        noted = Decision.event(Noted(command.what)).with_message(told)
        return noted if state else noted.with_timer_after(2 * HOUR, Do("p-1", "again"))

    engine = place.engine(Settings(keep_finished=HOUR)).register(Puppet(choose)).register(Doll())
    engine.deciders.execute(Puppet, Do("p-1", "once"))
    engine.advance(hours=2.5)
    (doll,) = [each for each in engine.instances.list() if each.definition == "doll"]
    assert doll.ended_at == START + 2 * HOUR
    engine.advance(hours=1)
    assert [each.definition for each in engine.instances.list()] == ["puppet"]


def test_work_of_the_dead_is_taken_over_at_its_time(place: Place) -> None:
    """The lease of another engine that does nothing any more runs out on the way, and its work is done then."""
    called: list[timedelta] = []
    dead = place.engine().register(Puppet(act_or_note), lambda context, effect: None)
    dead.runtime.heartbeat.step()
    dead.deciders.execute(Puppet, Do("p-1", "x"))
    assert len(dead.runtime.intake.claim([Wanted("puppet", 1)], 1)) == 1
    alive = place.engine()
    alive.register(Puppet(act_or_note), lambda context, effect: called.append(place.clock.now() - START))
    alive.advance(hours=1)
    assert [each - timedelta(microseconds=1) for each in called] == [Settings().lease]


@pytest.mark.row("G-03")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_call_that_takes_too_long_by_the_clock_of_the_test_has_failed(place: Place, *, is_async: bool) -> None:
    """A handler that lets the time of the test go by, as a slow one would, comes back too late."""
    took: list[timedelta] = []
    engine = place.engine()

    def slow(ctx: StepContext) -> str:
        duration = timedelta(seconds=31) if ctx.attempt == 1 else timedelta(seconds=29)
        place.clock.move(duration)
        took.append(duration)
        return "done"

    async def slow_too(ctx: StepContext) -> str:
        return slow(ctx)

    saga = Saga("s").step("a", slow_too if is_async else slow, timeout=30, attempts=2).build()
    instance = engine.register(saga).start("s").id
    engine.drain()
    assert engine.run(instance).result() == {"a": "done"}
    assert [each.seconds for each in took] == [31, 29]
    (first, *_) = [each for each in engine.run(instance).history() if each.event_type == "step_retry"]
    assert "no answer within 30" in first.error


def test_work_that_waits_for_a_handler_that_nobody_has_is_a_mistake_of_the_test(place: Place) -> None:
    """Everything else is done first; then the handler is named, and how to give it. An engine among others leaves the work to them."""
    engine = ManualEngine(store=place.store, clock=place.clock).register(Puppet(act)).register(Doll(act), done)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.deciders.execute(Doll, Do("d-1", "x"))
    drives: list[Callable[[], object]] = [engine.drain, lambda: engine.advance(hours=1)]
    for drive in drives:
        with pytest.raises(
            ConfigurationError, match=r"'puppet' \(1 waiting\); give register\(decider, handler\) or handle"
        ):
            drive()
        assert engine.deciders.get(Doll, "d-1").effects == []
    other = place.engine().register(Puppet(act))
    other.drain()
    helper = place.engine().register(Puppet(act), done)
    helper.drain()
    engine.drain()


@pytest.mark.parametrize("how", ["a step", "an effect"])
def test_a_misspelt_handler_does_not_go_unnoticed(how: str) -> None:
    """A name that nobody registered is told, for steps and for effects of deciders."""
    engine = ManualEngine().register(Saga("s").step("a", "mialer").build())
    engine.register(Puppet(lambda *_: Decision.event(Noted("x")).with_effect(Act("x"), handler="mialer")))
    engine.handle("mailer", done)
    if how == "a step":
        engine.start("s")
    else:
        engine.deciders.execute(Puppet, Do("p-1"))
    with pytest.raises(ConfigurationError, match="'mialer'"):
        engine.drain()


@pytest.mark.parametrize("wrong", [lambda engine: engine.advance(5), lambda engine: engine.advance(DAY, hours=1)])
def test_time_is_given_with_its_unit(wrong: Callable[[Any], object]) -> None:
    """A bare number, or a length twice, is told how to be said; no time at all may be said."""
    with ManualEngine() as engine:
        begun = engine.clock.now()
        with pytest.raises(TypeError, match=r"advance\(seconds=5\)"):
            wrong(engine)
        engine.advance().advance(timedelta(0)).advance(seconds=0).advance(DAY).advance(seconds=1.5)
        assert engine.clock.now() - begun == timedelta(days=1, seconds=1.5)
