"""Waiting for time and for signals: how long, for what, what came early, and what ends the wait."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from app.sagas.acting import Stage, history, run, status, statuses, step
from standfast import NotFoundError, PayloadError, RejectedError, ReusedIdError, Saga, SagaDefinition
from standfast.features.sagas.builder import Build
from standfast.graph.model import Losers
from standfast.machine.nodes.wait import MOST_KEPT
from support.engines import Live, Place
from support.waiting import LONG_SECONDS, eventually, together


def signalled(stage: Stage, *, timeout: float | None = None, on_timeout: Build | None = None) -> SagaDefinition:
    """A step, a wait for a signal, and a step behind it."""
    return (
        Saga("signalled")
        .step("before", stage.does("before"))
        .on_failure("undo", stage.does("undo"))
        .wait_for("paid", "payment", timeout=timeout, on_timeout=on_timeout)
        .then("after", stage.does("after"))
        .build()
    )


# -- time


@pytest.mark.parametrize("duration", [90, timedelta(seconds=90)])
def test_a_wait_lasts_as_long_as_it_says(place: Place, duration: timedelta | float) -> None:
    """Not a moment shorter; nobody is occupied meanwhile, and what follows goes on by itself."""
    stage = Stage()
    engine = place.engine().register(Saga("slow").wait("rest", duration).step("after", stage.does("after")).build())
    instance = run(engine, "slow")
    assert statuses(engine, instance) == {"rest": "running"}
    engine.advance(seconds=89)
    assert stage.calls == []
    engine.advance(seconds=1)
    assert stage.calls == ["after"]
    assert status(engine, instance) == "completed"


def test_a_wait_survives_a_restart(place: Place) -> None:
    """The time goes on while no process runs; the next one finds the wait over."""
    stage = Stage()
    saga = Saga("slow").wait("rest", 3600).step("after", stage.does("after")).build()
    instance = run(place.engine().register(saga), "slow")
    place.clock.move(timedelta(hours=2))
    other = place.engine().register(saga)
    other.drain()
    assert status(other, instance) == "completed"
    assert stage.calls == ["after"]


def test_a_wait_ends_by_itself_in_a_live_engine(live: Live) -> None:
    """Real time goes by."""
    stage = Stage()
    saga = Saga("brief").wait("rest", 0.05).step("after", stage.does("after")).build()
    engine = live.engine().register(saga).start_worker()
    engine.start("brief").result(LONG_SECONDS)
    assert stage.calls == ["after"]


@pytest.mark.parametrize("word", ["cancel", "abort"])
def test_a_wait_is_skipped_when_the_saga_is_stopped(place: Place, word: str) -> None:
    """Its timer goes with it: when the time would be over nothing happens any more."""
    stage = Stage()
    saga = Saga("slow").wait("rest", 60).step("after", stage.does("after")).build()
    engine = place.engine().register(saga)
    instance = run(engine, "slow")
    stopped = engine.acting("ann").futures.run(instance)
    stop = stopped.cancel if word == "cancel" else stopped.abort
    stop("no")
    engine.drain()
    before = history(engine, instance)
    engine.advance(minutes=2)
    assert statuses(engine, instance) == {"rest": "skipped"}
    assert history(engine, instance) == before
    assert stage.calls == []


# -- signals


def test_a_signal_ends_the_wait_and_brings_its_payload(place: Place) -> None:
    """What the signal brings is the answer of the step, and laid over the data."""
    stage = Stage()
    engine = place.engine().register(signalled(stage))
    instance = run(engine, "signalled", {"order": 7})
    assert statuses(engine, instance)["paid"] == "running"
    assert engine.admin.backlog() == []
    engine.run(instance).signal("payment", {"amount": 5})
    engine.drain()
    assert stage.contexts("after")[0].input == {"order": 7, "amount": 5}
    assert step(engine, instance, "paid").output == {"amount": 5}
    assert engine.run(instance).result() == {"order": 7, "amount": 5}


@pytest.mark.parametrize(("payload", "data"), [(None, {}), (7, {"paid": 7}), (["a"], {"paid": ["a"]}), ({}, {})])
def test_a_signal_may_bring_anything_or_nothing(place: Place, payload: object, data: dict[str, object]) -> None:
    """What is no object is found under the name of the step."""
    engine = place.engine().register(signalled(Stage()))
    instance = run(engine, "signalled")
    engine.run(instance).signal("payment", payload)
    engine.drain()
    assert engine.run(instance).result() == data


@pytest.mark.row("G-09")
def test_a_signal_that_came_early_is_taken_at_once(place: Place) -> None:
    """It is kept until somebody waits for it, also over a restart."""
    stage = Stage()
    engine = place.engine().register(signalled(stage))
    instance = engine.start("signalled").id
    engine.run(instance).signal("payment", {"amount": 5})
    assert stage.calls == []
    other = place.engine().register(signalled(stage))
    other.drain()
    assert stage.calls == ["before", "after"]
    assert other.run(instance).result() == {"amount": 5}


def test_signals_are_taken_in_the_order_in_which_they_came(place: Place) -> None:
    """Each wait takes one of them; what nobody waits for stays and does no harm."""
    stage = Stage()
    saga = Saga("twice").wait_for("one", "go").wait_for("two", "go").step("after", stage.does("after")).build()
    engine = place.engine().register(saga)
    instance = engine.start("twice", delay=60).id
    for payload in ("first", "second", "third"):
        engine.run(instance).signal("go", payload)
    engine.advance(seconds=60)
    assert engine.run(instance).result() == {"one": "first", "two": "second"}


def test_a_signal_of_another_name_does_not_end_the_wait(place: Place) -> None:
    """Names tell signals apart."""
    engine = place.engine().register(signalled(Stage()))
    instance = run(engine, "signalled")
    engine.run(instance).signal("refund", {"amount": 5})
    engine.drain()
    assert statuses(engine, instance)["paid"] == "running"


def test_one_signal_wakes_one_of_two_waits(place: Place) -> None:
    """Two branches wait for the same signal: each needs one of its own."""
    saga = (
        Saga("both")
        .fork("fork", lambda one: one.wait_for("left", "go"), lambda two: two.wait_for("right", "go"))
        .join("join")
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "both")
    engine.run(instance).signal("go", 1)
    engine.drain()
    assert sorted(statuses(engine, instance)[name] for name in ("left", "right")) == ["completed", "running"]
    engine.run(instance).signal("go", 2)
    engine.drain()
    assert engine.run(instance).result() == {"left": 1, "right": 2}


def test_many_signals_at_once_are_all_kept(live: Live) -> None:
    """None is lost and none counts twice, whichever engine takes it."""
    saga = Saga("gather")
    for number in range(10):
        saga.wait_for(f"wait {number}", "part")
    engines = [live.engine().register(saga.build()).start_worker() for _ in range(2)]
    instance = engines[0].start("gather").id
    together(*(partial(engines[number % 2].run(instance).signal, "part", number) for number in range(10)))
    result = engines[0].run(instance).result(LONG_SECONDS)
    assert isinstance(result, dict)
    assert sorted(result.values()) == list(range(10))


def parts() -> SagaDefinition:
    """Two waits for signals of one name."""
    return Saga("parts").wait_for("one", "part").wait_for("two", "part").build()


def test_a_signal_with_an_id_counts_once(place: Place) -> None:
    """A webhook that is delivered twice, to whichever process, ends one wait; also when the run has ended by then."""
    first, second = (place.engine().register(parts()) for _ in range(2))
    instance = run(first, "parts")
    for engine in (first, second, first):
        engine.run(instance).signal("part", {"n": 1}, command_id="w-1")
        engine.drain()
    assert status(second, instance) == "running"
    second.run(instance).signal("part", {"m": 2}, command_id="w-2")
    second.drain()
    assert second.run(instance).result() == {"n": 1, "m": 2}
    for engine in (first, second):
        engine.run(instance).signal("part", {"m": 2}, command_id="w-2")
    with pytest.raises(RejectedError):
        first.run(instance).signal("part", {"m": 2}, command_id="w-3")
    assert len(history(first, instance, "signal_received")) == 2


def test_an_id_stands_for_one_signal_of_one_run(place: Place) -> None:
    """Another payload or another name under it is refused; to another run it is another id."""
    engine = place.engine().register(parts())
    one, other = run(engine, "parts"), run(engine, "parts")
    engine.run(one).signal("part", 1, command_id="w-1")
    for name, payload in (("part", 2), ("part", None), ("else", 1)):
        with pytest.raises(ReusedIdError):
            engine.run(one).signal(name, payload, command_id="w-1")
    engine.run(other).signal("part", 2, command_id="w-1")
    engine.drain()
    assert [engine.run(each).describe().context for each in (one, other)] == [{"one": 1}, {"one": 2}]
    with pytest.raises(PayloadError, match="command id"):
        engine.run(one).signal("part", 1, command_id=7)  # type: ignore[arg-type]


def test_a_signal_with_an_id_that_comes_everywhere_at_once_counts_once(live: Live) -> None:
    """However many engines are told of it at the same moment."""
    engines = [live.engine().register(parts()).start_worker() for _ in range(2)]
    instance = engines[0].start("parts").id
    again = [partial(engines[number % 2].run(instance).signal, "part", 1, command_id="w-1") for number in range(10)]
    together(*again)
    assert len(history(engines[0], instance, "signal_received")) == 1
    engines[1].run(instance).signal("part", 2, command_id="w-2")
    assert engines[0].run(instance).result(LONG_SECONDS) == {"one": 1, "two": 2}


@pytest.mark.row("G-09")
def test_a_signal_too_many_is_refused_and_told_what_to_do(place: Place) -> None:
    """Whoever sends more than an instance keeps is refused; the instance goes on, and takes the next one when there is room."""
    engine = place.engine().register(signalled(Stage()))
    instance = engine.start("signalled").id
    for number in range(MOST_KEPT):
        engine.run(instance).signal("payment", number)
    with pytest.raises(RejectedError, match="send it again when one does") as caught:
        engine.run(instance).signal("payment", "one more")
    assert caught.value.reason == "too_many_signals"
    engine.drain()
    assert engine.run(instance).result() == {"paid": 0}


@pytest.mark.parametrize("has_way", [True, False])
def test_a_signal_that_does_not_come_in_time(place: Place, has_way: bool) -> None:  # noqa: FBT001 - a case of the rule
    """When its time is over the step is left by its way for that, or has failed; a signal afterwards changes nothing."""
    stage = Stage()
    way: Build | None = (lambda other: other.step("remind", stage.does("remind"))) if has_way else None
    engine = place.engine().register(signalled(stage, timeout=60, on_timeout=way))
    instance = run(engine, "signalled")
    engine.advance(seconds=60)
    assert status(engine, instance) == ("completed" if has_way else "failed")
    assert stage.calls == (["before", "remind"] if has_way else ["before", "undo"])
    assert len(history(engine, instance, "timeout")) == 1
    with pytest.raises(RejectedError) as caught:
        engine.run(instance).signal("payment", 1)
    assert caught.value.reason == "already_terminal"


def test_a_signal_in_time_puts_an_end_to_the_timeout(place: Place) -> None:
    """The timer goes with the wait."""
    stage = Stage()
    engine = place.engine().register(signalled(stage, timeout=60))
    instance = run(engine, "signalled")
    engine.run(instance).signal("payment", {"amount": 5})
    engine.advance(minutes=5)
    assert status(engine, instance) == "completed"
    assert history(engine, instance, "timeout") == []


def test_a_signal_needs_an_instance_and_a_name(place: Place) -> None:
    """An unknown instance and an empty name are errors, and nothing is kept."""
    engine = place.engine().register(signalled(Stage()))
    instance = run(engine, "signalled")
    before = history(engine, instance)
    with pytest.raises(NotFoundError):
        engine.run("00000000-0000-7000-8000-000000000000").signal("payment")
    for bad in ("", "x" * 10_000):
        with pytest.raises(PayloadError):
            engine.run(instance).signal(bad)
    with pytest.raises(PayloadError):
        engine.run(instance).signal("payment", object())
    assert history(engine, instance) == before


# -- the whole run


@pytest.mark.row("G-37")
def test_a_deadline_cancels_the_saga(place: Place) -> None:
    """When its time is over the run is cancelled like by a person: what waits is skipped, what was done is undone."""
    stage = Stage()
    saga = (
        Saga("limited", deadline=timedelta(hours=1))
        .step("before", stage.does("before"))
        .on_failure("undo", stage.does("undo"))
        .human("ask")
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "limited")
    engine.advance(minutes=59)
    assert status(engine, instance) == "running"
    engine.advance(minutes=1)
    assert status(engine, instance) == "cancelled"
    assert statuses(engine, instance) == {"before": "rolled_back", "ask": "skipped"}
    assert engine.run(instance).describe().error == "the deadline has passed"
    (started,) = history(engine, instance, "cancellation_started")
    assert started.data["requested_by"] == "system"


def test_a_deadline_does_not_touch_a_saga_that_has_ended(place: Place) -> None:
    """Completed in time: the deadline goes with the run."""
    stage = Stage()
    engine = place.engine().register(Saga("quick", deadline=60).step("work", stage.does("work")).build())
    instance = run(engine, "quick")
    before = history(engine, instance)
    engine.advance(minutes=5)
    assert status(engine, instance) == "completed"
    assert history(engine, instance) == before


@pytest.mark.parametrize("losers", ["undo", "finish"])
def test_a_deadline_does_not_touch_a_saga_whose_way_is_over(place: Place, losers: Losers) -> None:
    """What is left to do is about losers, who wait for an operator or finish: the work of the winner stands."""
    stage = Stage()
    stage.does("release A", ValueError("broken"))
    saga = (
        Saga("buy", deadline=3600)
        .fork(
            "ask",
            lambda branch: (
                branch.step("reserve A", stage.does("reserve A"))
                .on_failure("release A", stage.does("release A"), attempts=1)
                .wait("long", 7200)
            ),
            lambda branch: branch.step("B", stage.does("B")).on_failure("undo B", stage.does("undo B")),
        )
        .join("first", "any", losers=losers)
        .step("ship", stage.does("ship"))
        .on_failure("call back", stage.does("call back"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "buy")
    before = status(engine, instance)
    assert before == ("dlq" if losers == "undo" else "running")
    engine.advance(hours=1)
    assert (status(engine, instance), stage.calls[-1]) == (before, "release A" if losers == "undo" else "ship")
    if losers == "undo":
        (letter,) = engine.dead_letters.list(instance=instance)
        engine.run(instance).skip(letter.number, reason="released by hand")
    engine.advance(hours=1)
    assert status(engine, instance) == "completed"
    assert (stage.count("undo B"), stage.count("call back")) == (0, 0)


def test_a_deadline_reaches_a_saga_that_waits_for_an_operator(place: Place) -> None:
    """A dead letter does not keep a run alive beyond its time."""
    stage = Stage()
    stage.does("bad", ValueError("broken"))
    engine = place.engine().register(
        Saga("dead", dlq=True, deadline=60).step("bad", stage.does("bad"), attempts=1).build()
    )
    instance = run(engine, "dead")
    assert status(engine, instance) == "dlq"
    engine.advance(seconds=60)
    assert status(engine, instance) == "cancelled"
    assert engine.dead_letters.list() == []


@pytest.mark.parametrize("delay", [60, timedelta(minutes=1)])
def test_a_delayed_start_puts_the_first_step_off(place: Place, delay: timedelta | float) -> None:
    """The instance is there and pending at once; its first step begins after the delay, and a deadline counts from then."""
    stage = Stage()
    engine = place.engine().register(Saga("later", deadline=30).step("work", stage.does("work")).human("ask").build())
    instance = engine.start("later", {"n": 1}, delay=delay).id
    engine.advance(seconds=59)
    assert status(engine, instance) == "pending"
    assert engine.run(instance).steps() == []
    assert stage.calls == []
    engine.advance(seconds=1)
    assert stage.calls == ["work"]
    engine.advance(seconds=29)
    assert status(engine, instance) == "running"
    engine.advance(seconds=1)
    assert status(engine, instance) == "cancelled"


@pytest.mark.parametrize("word", ["cancel", "abort"])
def test_a_delayed_start_can_be_stopped(place: Place, word: str) -> None:
    """What has not begun never begins."""
    stage = Stage()
    engine = place.engine().register(Saga("later").step("work", stage.does("work")).build())
    instance = engine.start("later", delay=60).id
    stopped = engine.acting("ann").futures.run(instance)
    stop = stopped.cancel if word == "cancel" else stopped.abort
    stop("no")
    engine.advance(minutes=2)
    assert status(engine, instance) == ("cancelled" if word == "cancel" else "aborted")
    assert stage.calls == []


def test_a_delay_cannot_be_negative(place: Place) -> None:
    """It is refused, and no instance is there."""
    engine = place.engine().register(Saga("later").step("work", Stage().does("work")).build())
    with pytest.raises(PayloadError):
        engine.start("later", delay=-1)
    assert engine.runs.list().items == []


def test_a_live_deadline_tells_running_handlers(live: Live) -> None:
    """A handler that runs when the time is over is told to stop."""
    stage = Stage()
    stage.does("long", lambda ctx: ctx.wait_cancelled(LONG_SECONDS))
    engine = live.engine().register(Saga("limited", deadline=0.3).step("long", stage.does("long")).build())
    engine.start_worker()
    instance = engine.start("limited").id
    eventually(lambda: status(engine, instance) == "cancelled")
    assert stage.contexts("long")[0].cancelled
