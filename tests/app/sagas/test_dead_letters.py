"""Steps that gave up and wait for an operator, and compensations that gave up: what is frozen meanwhile, and what is on record."""

from __future__ import annotations

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, history, life, run, status, statuses, step
from standfast import NotFoundError, Saga, SagaDefinition
from support.engines import Live, Place
from support.waiting import LONG_SECONDS, eventually

DLQ_REASON = "dlq enabled: rollback/compensation skipped"
EXHAUSTED = "compensation max retries exceeded"


def payment(stage: Stage, *, dlq: bool = True) -> SagaDefinition:
    """A reservation that can be undone, a save point, a payment that can be undone, and an end."""
    return (
        Saga("payment", dlq=dlq)
        .step("reserve", stage.does("reserve"))
        .on_failure("release", stage.does("release"))
        .save_point("safe")
        .step("charge", stage.does("charge"), attempts=3)
        .on_failure("refund", stage.does("refund"))
        .step("ship", stage.does("ship"))
        .build()
    )


def forked(stage: Stage) -> SagaDefinition:
    """Two branches and a join, with a step in front and one behind."""
    return (
        Saga("forked", dlq=True)
        .step("start", stage.does("start"))
        .fork(
            "fork",
            lambda branch: branch.step("fragile", stage.does("fragile"), attempts=1, priority=9),
            lambda branch: branch.step("steady", stage.does("steady")),
        )
        .join("join")
        .then("final", stage.does("final"))
        .build()
    )


# -- DLQ mode


@pytest.mark.row("F-231", "F-205", "F-206", "F-207", "F-208", "F-211", "F-214", "F-237", "F-238")
@pytest.mark.row("C-34")
def test_dlq_basic_workflow_failure(place: Place) -> None:
    """TestDLQ_BasicWorkflowFailure: after all attempts the step is paused, the instance in the dlq, one record written, nothing undone."""
    stage = Stage()
    stage.does("charge", BROKEN)
    engine = place.engine().register(payment(stage))
    instance = run(engine, "payment")
    assert stage.calls == ["reserve", "charge", "charge", "charge"]
    assert status(engine, instance) == "dlq"
    assert not engine.run(instance).describe().is_terminal
    assert statuses(engine, instance) == {"reserve": "completed", "safe": "completed", "charge": "paused"}
    assert len(engine.dead_letters.list()) == 1
    assert engine.admin.backlog() == []
    assert engine.execute_next() is False


@pytest.mark.row("F-209", "F-210")
def test_a_record_tells_all_about_the_failure(place: Place) -> None:
    """Instance, definition, step, its kind and number, what it worked on, the error, the reason and the time."""
    stage = Stage()
    stage.does("reserve", {"reserved": True})
    stage.does("charge", BROKEN)
    engine = place.engine().register(payment(stage))
    instance = run(engine, "payment", {"amount": 5})
    (letter,) = engine.dead_letters.list()
    assert (letter.instance, letter.definition, letter.source) == (instance, "payment", "step")
    assert (letter.name, letter.type, letter.number) == ("charge", "task", step(engine, instance, "charge").number)
    assert letter.payload == {"amount": 5, "reserved": True}
    assert letter.error == "ValueError: broken"
    assert letter.reason == DLQ_REASON
    assert letter.created_at == place.clock.now()


@pytest.mark.row("F-204", "F-237", "F-239")
@pytest.mark.parametrize("dlq", [True, False])
def test_the_mode_is_chosen_by_the_definition(place: Place, dlq: bool) -> None:  # noqa: FBT001 - both modes of the rule
    """The same graph is rolled back by default and waits for an operator in DLQ mode, where save points mean nothing."""
    stage = Stage()
    stage.does("charge", BROKEN)
    saga = payment(stage, dlq=dlq)
    assert saga.is_dlq_enabled is dlq
    engine = place.engine().register(saga)
    instance = run(engine, "payment")
    assert stage.count("charge") == 3
    assert stage.count("refund") == (0 if dlq else 1)
    assert stage.count("release") == 0
    assert status(engine, instance) == ("dlq" if dlq else "failed")
    assert statuses(engine, instance)["charge"] == ("paused" if dlq else "rolled_back")
    assert len(engine.dead_letters.list()) == (1 if dlq else 0)


@pytest.mark.row("F-204")
def test_the_classic_mode_is_the_default() -> None:
    """A saga that says nothing about it is rolled back after a failure."""
    assert Saga("plain").step("a", Stage().does("a")).build().is_dlq_enabled is False


@pytest.mark.row("F-212", "F-213")
@pytest.mark.row("C-22")
def test_a_running_sibling_is_frozen_but_may_finish(live: Live) -> None:
    """A sibling that runs when the instance enters the dlq reads `paused`; its result still counts, but nothing follows from it."""
    stage, gate = Stage(), Gate({"steady": "done"})
    stage.does("steady", gate)
    stage.does("fragile", lambda ctx: fail_beside(gate))
    engine = live.engine().register(forked(stage)).start_worker()
    instance = engine.start("forked").id
    eventually(lambda: status(engine, instance) == "dlq")
    assert statuses(engine, instance) == {
        "start": "completed",
        "fork": "completed",
        "fragile": "paused",
        "steady": "paused",
    }
    gate.open()
    eventually(lambda: statuses(engine, instance)["steady"] == "completed")
    assert gate.was_told is False
    assert stage.count("final") == 0
    assert "join" not in statuses(engine, instance)
    assert [each.data["target"] for each in history(engine, instance, "token_held")] == ["join"]
    assert status(engine, instance) == "dlq"


def fail_beside(gate: Gate) -> None:
    """Fail while another handler stands at the gate."""
    gate.entered()
    raise BROKEN


@pytest.mark.row("F-212", "F-214")
def test_work_that_nobody_has_begun_is_taken_back(place: Place) -> None:
    """The queue of the instance is cleared: a sibling that waits for its call reads `paused` and is not called."""
    stage = Stage()
    stage.does("fragile", BROKEN)
    engine = place.engine().register(forked(stage))
    instance = run(engine, "forked")
    assert stage.calls == ["start", "fragile"]
    assert statuses(engine, instance)["steady"] == "paused"
    assert engine.admin.backlog() == []
    assert engine.execute_next() is False


@pytest.mark.row("F-250")
def test_the_classic_life_of_a_failing_step(place: Place) -> None:
    """Pending, running, failed, compensation, rolled back."""
    stage = Stage()
    stage.does("charge", BROKEN)
    engine = place.engine().register(payment(stage, dlq=False))
    instance = run(engine, "payment")
    assert life(engine, instance, "charge") == ["pending", "running", "failed", "compensation", "rolled_back"]


# -- compensations that give up


def shop(stage: Stage, *, refunds: int) -> SagaDefinition:
    """The example of the specification: a payment whose refund may be tried so often."""
    return (
        Saga("order")
        .step("reserve", stage.does("reserve"))
        .on_failure("release", stage.does("release"))
        .step("charge-payment", stage.does("payment"), attempts=1)
        .on_failure("refund-payment", stage.does("refund"), max_retries=refunds)
        .then("ship-order", stage.does("shipping"))
        .build()
    )


@pytest.mark.row("F-234", "F-215")
def test_dlq_compensation_max_retries_exceeded(place: Place) -> None:
    """TestDLQ_CompensationMaxRetriesExceeded: the original step is on record, it and the instance are `failed`, the chain halts."""
    stage = Stage()
    stage.does("payment", BROKEN)
    stage.does("refund", BROKEN)
    engine = place.engine().register(shop(stage, refunds=2))
    instance = run(engine, "order")
    assert stage.calls == ["reserve", "payment", "refund", "refund"]
    assert status(engine, instance) == "failed"
    assert statuses(engine, instance) == {"reserve": "completed", "charge-payment": "failed"}
    (letter,) = engine.dead_letters.list(instance=instance)
    assert (letter.name, letter.reason, letter.source) == ("charge-payment", EXHAUSTED, "compensation")
    assert letter.number == step(engine, instance, "charge-payment").number
    assert engine.run(instance).describe().reason == "compensation_failed"


@pytest.mark.row("F-216")
@pytest.mark.row("C-14")
def test_a_compensation_that_may_not_be_called_fails_at_once(place: Place) -> None:
    """With a limit of zero there is no call, but both events and the same end as after a failing call."""
    stage = Stage()
    stage.does("payment", BROKEN)
    engine = place.engine().register(shop(stage, refunds=0))
    instance = run(engine, "order")
    assert stage.count("refund") == 0
    assert [each.event_type for each in history(engine, instance) if "compensation" in each.event_type] == [
        "compensation_started",
        "compensation_max_retries_exceeded",
    ]
    assert status(engine, instance) == "failed"
    found = step(engine, instance, "charge-payment")
    assert (found.status, found.compensation_retry_count) == ("failed", 0)
    (letter,) = engine.dead_letters.list()
    assert (letter.name, letter.reason) == ("charge-payment", EXHAUSTED)


@pytest.mark.parametrize("refunds", [2, 0])
def test_a_step_that_cannot_be_undone_says_why(place: Place, refunds: int) -> None:
    """Between two calls of its compensation and when that gave up the step shows the last error, and none once it is undone."""
    stage = Stage()
    stage.does("shipping", BROKEN)
    stage.does("refund", ConnectionError("down"))
    engine = place.engine().register(shop(stage, refunds=refunds))
    instance = engine.start("order").id
    while not stage.count("refund") and engine.execute_next():
        pass
    last = "ConnectionError: down" if refunds else "no call is allowed"
    found = step(engine, instance, "charge-payment")
    assert (found.status, found.error) == ("compensation" if refunds else "failed", last)
    engine.drain()
    found = step(engine, instance, "charge-payment")
    assert (found.status, found.error) == ("failed", last)
    assert step(engine, instance, "ship-order").error == "ValueError: broken"
    if refunds:
        stage.does("refund", None)
        engine.dead_letters.retry_compensation(engine.dead_letters.list()[0])
        engine.drain()
        found = step(engine, instance, "charge-payment")
        assert (found.status, found.error) == ("rolled_back", "")


def test_a_record_names_the_version_of_its_definition(place: Place) -> None:
    """Those of steps and those of compensations: which code to look at is the first thing that somebody asks."""
    stage = Stage()
    for name in ("charge", "payment", "refund"):
        stage.does(name, BROKEN)
    engine = place.engine().register(payment(stage)).register(shop(stage, refunds=1))
    run(engine, "payment")
    run(engine, "order")
    found = [(each.source, each.definition, each.definition_version) for each in engine.dead_letters.list()]
    assert found == [("step", "payment", "1"), ("compensation", "order", "1")]


# -- looking at records


@pytest.mark.row("F-218")
def test_records_are_listed_and_read(place: Place) -> None:
    """All of them, those of an instance or of a definition, page by page; and each by its id."""
    stage = Stage()
    for name in ("charge", "fragile"):
        stage.does(name, BROKEN)
    engine = place.engine().register(payment(stage)).register(forked(stage))
    paid, other, split = run(engine, "payment"), run(engine, "payment"), run(engine, "forked")
    letters = engine.dead_letters.list()
    assert [each.instance for each in letters] == [paid, other, split]
    assert [each.instance for each in engine.dead_letters.list(instance=other)] == [other]
    assert [each.instance for each in engine.dead_letters.list(definition="forked")] == [split]
    assert [each.instance for each in engine.dead_letters.list(source="compensation")] == []
    page = engine.dead_letters.list(limit=2)
    rest = engine.dead_letters.list(after=page[-1].id)
    assert [*page, *rest] == letters
    assert engine.dead_letters.get(letters[1].id) == letters[1]
    with pytest.raises(NotFoundError):
        engine.dead_letters.get(letters[-1].id + 1)


@pytest.mark.row("F-217")
def test_a_transient_failure_is_healed_without_losing_the_work_before(live: Live) -> None:
    """The use that dead letters are for: the outside world recovers, the step is put back, and nothing before it is repeated."""
    stage = Stage()
    stage.does("charge", BROKEN, BROKEN, BROKEN, None)
    engine = live.engine().register(payment(stage)).start_worker()
    instance = engine.start("payment").id
    eventually(lambda: status(engine, instance) == "dlq")
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    engine.run(instance).result(LONG_SECONDS)
    assert stage.calls == ["reserve", *["charge"] * 4, "ship"]
