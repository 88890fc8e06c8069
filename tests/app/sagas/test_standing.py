"""What is told of a workflow that has trouble, or that somebody waits for in vain: which step, what is wrong, what to do."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, decide, run, status
from standfast import DeadlockError, Engine, Fail, Saga, SagaDefinition, WorkflowFailedError
from standfast.engine.concurrency.replies import Reply
from standfast.kernel.ids import InstanceId
from support.engines import Live, Place
from support.waiting import LONG_SECONDS, eventually

SOON = 0.05
"""Seconds to wait for what does not come."""


def importing(stage: Stage, *, dlq: bool = True) -> SagaDefinition:
    """Two steps, of which the second may give up."""
    return (
        Saga("import", dlq=dlq)
        .step("fetch", stage.does("fetch"))
        .on_failure("forget", stage.does("forget"), attempts=1)
        .step("load", stage.does("load"), attempts=1)
        .build()
    )


def failing(*, dlq: bool = True) -> tuple[Stage, SagaDefinition]:
    """The saga whose second step gives up."""
    stage = Stage()
    stage.does("load", Fail("row 7 is no row"))
    return stage, importing(stage, dlq=dlq)


# -- what is wrong with it


def test_the_error_of_an_instance_in_the_dlq_names_the_step_and_the_remedy(place: Place) -> None:
    """It says who gave up, why, and what to do; when the instance goes on there is no error any more."""
    stage, saga = failing()
    engine = place.engine().register(saga)
    instance = run(engine, "import")
    found = engine.run(instance).describe()
    assert found.error == (
        "'load' gave up: Fail: row 7 is no row; requeue its dead letter, with another input if need be, or cancel the workflow"
    )
    assert (found.status, found.reason) == ("dlq", "dlq")
    stage.does("load", None)
    (letter,) = engine.dead_letters.list(instance=instance)
    engine.dead_letters.requeue(letter)
    assert engine.run(instance).describe().error == ""
    engine.drain()
    assert (status(engine, instance), engine.run(instance).describe().error) == ("completed", "")


def test_all_steps_that_gave_up_are_named(live: Live) -> None:
    """Each of several dead letters has its word."""
    stage, gates = Stage(), [Gate(Fail("no a")), Gate(Fail("no b"))]
    saga = (
        Saga("both", dlq=True)
        .fork(
            "f",
            lambda way: way.step("a", stage.does("a", gates[0]), attempts=1),
            lambda way: way.step("b", stage.does("b", gates[1]), attempts=1),
        )
        .join("j")
        .build()
    )
    engine = live.engine().register(saga).start_worker()
    instance = engine.start("both").id
    for gate in [each.entered() for each in gates]:
        gate.open()
    eventually(lambda: len(engine.dead_letters.list(instance=instance)) == 2)
    told = engine.run(instance).describe().error.partition("; ")[0]
    assert sorted(told.split(", and ")) == ["'a' gave up: Fail: no a", "'b' gave up: Fail: no b"]


def test_a_cancellation_of_what_waited_for_an_operator_has_its_own_reason(place: Place) -> None:
    """The trouble before is over with it."""
    engine = place.engine().register(failing()[1])
    instance = run(engine, "import")
    engine.futures.run(instance).cancel("not worth it")
    assert engine.run(instance).describe().error == ""
    engine.drain()
    found = engine.run(instance).describe()
    assert (found.status, found.error) == ("cancelled", "not worth it")


def test_the_error_of_a_failed_instance_names_the_step(place: Place) -> None:
    """Also where its result is asked for."""
    engine = place.engine().register(failing(dlq=False)[1])
    instance = run(engine, "import")
    found = engine.run(instance).describe()
    assert (found.status, found.error) == ("failed", "'load' failed: Fail: row 7 is no row")
    with pytest.raises(WorkflowFailedError, match="because it failed: 'load' failed: Fail: row 7 is no row") as caught:
        engine.run(instance).result()
    assert caught.value.reason == found.error


def test_a_step_that_names_itself_is_named_once(place: Place) -> None:
    """What the machine says of a step begins with its name already."""
    engine = place.engine().register(Saga("ask").human("approve", on_rejected="fail").build())
    instance = run(engine, "ask")
    decide(engine, instance, "approve", "rejected")
    assert engine.run(instance).describe().error == "'approve' was rejected"


def test_the_error_of_a_rollback_that_halted_names_the_remedy(place: Place) -> None:
    """A compensation that gave up can be tried again."""
    stage, saga = failing(dlq=False)
    stage.does("forget", BROKEN)
    engine = place.engine().register(saga)
    instance = run(engine, "import")
    found = engine.run(instance).describe()
    assert found.reason == "compensation_failed"
    assert found.error == (
        "'fetch' could not be undone: ValueError: broken; try it again with retry_compensation of its dead letter"
        " (until that is discarded), or, if you undid it by hand, skip step 1 of this workflow (it turned back because of: Fail: row 7 is no row)"
    )


# -- what somebody waits for in vain


def told_late(reply: Reply[object]) -> str:
    """What is said when nobody has waited long enough."""
    with pytest.raises(TimeoutError) as caught:
        reply.result(SOON)
    assert str(caught.value).startswith(f"no answer within {SOON} seconds; ")
    return str(caught.value).partition("; ")[2]


def in_dlq(engine: Engine, instance: InstanceId) -> None:
    """Wait until the instance is in the dlq."""
    eventually(lambda: engine.run(instance).describe().status == "dlq")


def test_the_result_of_an_instance_in_the_dlq_waits_for_an_operator(live: Live) -> None:
    """Nothing goes on by itself, and whoever waits is told what has to be done."""
    engine = live.engine().register(failing()[1]).start_worker()
    instance = engine.start("import").id
    in_dlq(engine, instance)
    assert (
        told_late(engine.futures.run(instance).result())
        == f"the workflow waits for an operator: {engine.run(instance).describe().error}"
    )


def test_the_result_of_work_that_nobody_does_names_the_call_that_starts_a_worker(live: Live) -> None:
    """An engine takes commands without a worker; if there is none anywhere, nothing happens."""
    engine = live.engine().register(importing(Stage()))
    instance = engine.start("import").id
    told = told_late(engine.futures.run(instance).result())
    assert told == "'fetch' waits for a worker; no worker runs, in this process or another: start_worker() starts one"
    engine.start_worker()
    engine.run(instance).result(LONG_SECONDS)


def test_the_result_of_work_that_no_worker_has_a_handler_for(live: Live) -> None:
    """A worker runs, and whoever waits is not told that the work goes on."""
    engine = live.engine().register(Saga("order").step("ship", "depot.ship").build()).start_worker()
    instance = engine.start("order").id
    told = told_late(engine.futures.run(instance).result())
    assert told.startswith("no live worker has the handler 'depot.ship': register it with engine.handle")
    engine.handle("depot.ship", lambda: {"parcel": 7})
    assert engine.run(instance).result(LONG_SECONDS) == {"parcel": 7}


def test_the_result_of_work_that_another_process_does(live: Live) -> None:
    """The work goes on, but not here."""
    stage, gate = Stage(), Gate()
    stage.does("fetch", gate)
    other = live.engine().register(importing(stage)).start_worker()
    engine = live.engine()
    instance = other.start("import").id
    gate.entered()
    told = told_late(engine.futures.run(instance).result())
    assert (
        told
        == "the work goes on in another process, at 'fetch'; no worker runs in this process: start_worker() starts one"
    )
    assert told_late(other.futures.run(instance).result()) == "the work goes on, at 'fetch'"
    gate.open()
    other.run(instance).result(LONG_SECONDS)


def test_the_result_of_a_workflow_that_waits_for_the_world(live: Live) -> None:
    """Who, or what, has to come first is named."""
    saga = (
        Saga("waiting")
        .fork(
            "all",
            lambda way: way.human("approve"),
            lambda way: way.wait_for("payment", "paid"),
            lambda way: way.wait("cool down", timedelta(days=9)),
            lambda way: way.call("deliver", "delivery"),
        )
        .join("met")
        .build()
    )
    delivery = Saga("delivery").human("sign").build()
    engine = live.engine().register(delivery).register(saga).start_worker()
    instance = engine.start("waiting").id
    eventually(lambda: len(engine.tasks.list()) == 2)
    told = told_late(engine.futures.run(instance).result())
    assert told == (
        "'approve' waits for a person to decide, 'payment' waits for the signal 'paid', 'cool down' waits for its time to come, "
        "'deliver' waits for another workflow to end"
    )


def test_maintenance_mode_holds_up_a_result(live: Live) -> None:
    """While all work is paused, that is what is told."""
    engine = live.engine().register(importing(Stage())).start_worker()
    engine.admin.pause_processing()
    instance = engine.start("import").id
    assert (
        told_late(engine.futures.run(instance).result())
        == "maintenance mode holds up all work: admin.resume_processing() ends it"
    )
    engine.admin.resume_processing()
    engine.run(instance).result(LONG_SECONDS)


def test_a_cancellation_that_takes_long_tells_where_it_stands(live: Live) -> None:
    """The reply of `cancel` waits for the end of the workflow like that of `result`."""
    stage, gate = Stage(), Gate()
    stage.does("forget", gate)
    stage.does("load", Fail("no"))
    engine = live.engine().register(importing(stage)).start_worker()
    instance = engine.start("import").id
    in_dlq(engine, instance)
    cancelled = engine.futures.run(instance).cancel("enough")
    gate.entered()
    with pytest.raises(TimeoutError, match="the work goes on, at 'fetch'"):
        cancelled.result(SOON)
    gate.open()
    assert cancelled.result(LONG_SECONDS) == "cancelled"


def test_an_engine_that_is_driven_tells_what_driving_cannot_bring(place: Place) -> None:
    """It says to drive it only while that helps; an instance in the dlq waits for an operator here, too."""
    engine = place.engine().register(failing()[1])
    instance = engine.start("import").id
    with pytest.raises(DeadlockError, match=r"call drain\(\) or advance\(\) first; .*; 'fetch' waits for a worker"):
        engine.run(instance).result()
    engine.drain()
    with pytest.raises(
        DeadlockError, match="not there: the workflow waits for an operator: 'load' gave up: Fail: row 7"
    ):
        engine.run(instance).result()


def test_whoever_looks_again_and_again_does_not_ask_the_database(live: Live) -> None:
    """A wait of no length is a look: it is told that the work goes on, and the store is not asked where it stands."""
    engine = live.engine().register(Saga("s").human("ask").build())
    reply = engine.futures.run(engine.start("s").id).result()
    for _ in range(3):
        with pytest.raises(TimeoutError, match=r"the work goes on; whoever waits for 0\.05 seconds or more is told"):
            reply.result(0)
    with pytest.raises(TimeoutError, match="ask"):
        reply.result(SOON)
