"""Putting dead letters back to work: what is reset, what goes on by itself, and what is refused."""

from __future__ import annotations

from functools import partial

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, history, life, run, status, statuses, step
from standfast import (
    Actor,
    Calls,
    ConflictError,
    NotFoundError,
    PayloadError,
    RejectedError,
    Saga,
    SagaDefinition,
    StandfastError,
)
from standfast.features.sagas.builder import Build
from standfast.kernel.ids import InstanceId
from support.engines import Live, Place
from support.inside import beat, claim_one
from support.waiting import LONG_SECONDS, eventually, together


def payment(stage: Stage, *, once: bool = False) -> SagaDefinition:
    """A step that may fail between two others, in DLQ mode."""
    return (
        Saga("payment", dlq=True)
        .step("reserve", stage.does("reserve"))
        .on_failure("release", stage.does("release"))
        .step("charge", stage.does("charge"), attempts=1 if once else 2, once=once)
        .step("ship", stage.does("ship"))
        .build()
    )


def forked(stage: Stage, *names: str, attempts: int = 1) -> SagaDefinition:
    """Branches with a join, the first one called first."""

    def build(place: int, name: str) -> Build:
        return lambda branch: branch.step(name, stage.does(name), attempts=attempts, priority=90 - place)

    return (
        Saga("forked", dlq=True)
        .fork("fork", *(build(place, name) for place, name in enumerate(names)))
        .join("join")
        .then("final", stage.does("final"))
        .build()
    )


def requeue(engine: Calls, instance: InstanceId, name: str = "", new: object = None) -> None:
    """Put the dead letter of a step back to work; the only one, if no name is given."""
    letters = engine.dead_letters.list(instance=instance)
    (letter,) = [each for each in letters if not name or each.name == name]
    engine.dead_letters.requeue(letter.id, new)


@pytest.mark.row("F-232", "F-219", "F-221", "F-222", "F-225", "F-249", "EC-03", "EC-17")
def test_dlq_requeue_from_dlq(place: Place) -> None:
    """TestDLQ_RequeueFromDLQ: the step is called again with its original input, the saga goes on, the record is gone."""
    stage = Stage()
    stage.does("charge", BROKEN, BROKEN, None)
    engine = place.engine().register(payment(stage))
    instance = run(engine, "payment", {"amount": 5})
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    assert status(engine, instance) == "running"
    engine.drain()
    assert status(engine, instance) == "completed"
    assert stage.calls == ["reserve", "charge", "charge", "charge", "ship"]
    assert stage.contexts("charge")[-1].input == {"amount": 5}
    assert engine.dead_letters.list() == []
    assert life(engine, instance, "charge") == ["pending", "running", "paused", "pending", "running", "completed"]
    with pytest.raises(NotFoundError):
        engine.dead_letters.requeue(letter.id)


@pytest.mark.row("F-233", "F-219", "E-787")
def test_dlq_requeue_with_new_input(place: Place) -> None:
    """TestDLQ_RequeueWithNewInput: the step, and what follows it, work on the input that the operator gave."""
    stage = Stage()
    stage.does("charge", BROKEN, BROKEN, None)
    engine = place.engine().register(payment(stage))
    instance = run(engine, "payment", {"payment_id": "bad", "status": "invalid"})
    fixed = {"payment_id": "fixed-payment-123", "amount": 100.0, "currency": "USD", "status": "valid"}
    requeue(engine, instance, new=fixed)
    assert step(engine, instance, "charge").input == fixed
    told = history(engine, instance)
    failed = [each.error for each in told if each.event_type in {"step_retry", "step_paused"}]
    assert (len(failed), all(failed)) == (2, True)  # The attempts before stay on record,
    assert told[0].data["input"] == {"payment_id": "bad", "status": "invalid"}  # and so does the input that they had.
    assert [each.actor for each in told if each.event_type == "step_requeued"] == ["system"]
    engine.drain()
    assert status(engine, instance) == "completed"
    assert stage.contexts("charge")[-1].input == fixed
    assert stage.contexts("ship")[0].input == fixed


@pytest.mark.row("F-219")
def test_a_new_input_must_be_an_object(place: Place) -> None:
    """Anything else is refused, and the record stays."""
    stage = Stage()
    stage.does("charge", BROKEN)
    engine = place.engine().register(payment(stage))
    instance = run(engine, "payment")
    with pytest.raises(PayloadError):
        requeue(engine, instance, new=[1, 2])
    assert len(engine.dead_letters.list()) == 1
    assert status(engine, instance) == "dlq"


@pytest.mark.row("F-220")
def test_a_requeued_step_begins_anew(place: Place) -> None:
    """Before anybody calls it: pending, no error, no calls counted, not started, not completed."""
    stage = Stage()
    stage.does("charge", BROKEN)
    engine = place.engine().register(payment(stage))
    instance = run(engine, "payment")
    before = step(engine, instance, "charge")
    assert (before.status, before.retry_count, before.error) == ("paused", 2, "ValueError: broken")
    requeue(engine, instance)
    after = step(engine, instance, "charge")
    assert (after.status, after.error, after.retry_count, after.compensation_retry_count) == ("pending", "", 0, 0)
    assert (after.started_at, after.completed_at) == (None, None)
    assert [each.name for each in engine.run(instance).steps()] == ["reserve", "charge"]


@pytest.mark.row("F-223", "F-213", "EC-08")
def test_a_join_waits_for_the_requeued_branch(place: Place) -> None:
    """The sibling is done; after the requeue the flow goes on by itself, and the join meets after the requeued step."""
    stage = Stage()
    stage.does("fragile", BROKEN, None)
    engine = place.engine().register(forked(stage, "steady", "fragile"))
    instance = run(engine, "forked")
    assert status(engine, instance) == "dlq"
    assert statuses(engine, instance)["steady"] == "completed"
    requeue(engine, instance)
    assert "join" not in statuses(engine, instance)
    engine.drain()
    assert status(engine, instance) == "completed"
    assert stage.calls == ["steady", "fragile", "fragile", "final"]


@pytest.mark.row("F-223", "F-213")
def test_a_branch_that_arrived_during_the_pause_goes_on_with_the_saga(live: Live) -> None:
    """A sibling that finished while the saga was paused is held before the join and released by the requeue."""
    stage, gate = Stage(), Gate("late")
    stage.does("steady", gate)

    def fail_beside(_ctx: object) -> None:
        gate.entered()
        raise BROKEN

    stage.does("fragile", fail_beside, "mended")
    engine = live.engine().register(forked(stage, "fragile", "steady")).start_worker()
    instance = engine.start("forked").id
    eventually(lambda: status(engine, instance) == "dlq")
    gate.open()
    eventually(lambda: statuses(engine, instance)["steady"] == "completed")
    requeue(engine, instance)
    assert engine.run(instance).result(LONG_SECONDS) == {"steady": "late", "fragile": "mended"}
    assert stage.count("final") == 1


@pytest.mark.row("F-224")
@pytest.mark.row("C-22")
def test_everything_that_was_frozen_goes_on(place: Place) -> None:
    """Siblings that were never called have no record of their own, and are called after the requeue."""
    stage = Stage()
    stage.does("fragile", BROKEN, None)
    engine = place.engine().register(forked(stage, "fragile", "second", "third"))
    instance = run(engine, "forked")
    assert stage.calls == ["fragile"]
    assert [statuses(engine, instance)[name] for name in ("second", "third")] == ["paused", "paused"]
    requeue(engine, instance)
    engine.drain()
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == ["final", "fragile", "fragile", "second", "third"]


@pytest.mark.row("F-224")
def test_a_frozen_sibling_whose_worker_was_lost_goes_on(place: Place) -> None:
    """A sibling was claimed by a worker that died while the saga was paused: it is called again and the saga completes."""
    stage = Stage()
    stage.does("fragile", BROKEN, BROKEN, None)
    saga = forked(stage, "fragile", "steady", attempts=2)
    engine, lost = place.engine().register(saga), place.engine().register(saga)
    instance = engine.start("forked").id
    beat(lost)
    assert len(claim_one(lost, "steady")) == 1
    engine.drain()
    assert status(engine, instance) == "dlq"
    assert stage.calls == ["fragile", "fragile"]
    assert statuses(engine, instance)["steady"] == "paused"
    requeue(engine, instance)
    engine.advance(engine.settings.lease * 2)
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == ["final", "fragile", "fragile", "fragile", "steady"]


@pytest.mark.row("F-226")
def test_of_two_requeues_at_the_same_moment_one_counts(live: Live) -> None:
    """One succeeds, the others get an error, and the handler is called once more."""
    stage = Stage()
    stage.does("charge", BROKEN, BROKEN, None)
    engines = [live.engine().register(payment(stage)).start_worker() for _ in range(2)]
    instance = engines[0].start("payment").id
    eventually(lambda: status(engines[0], instance) == "dlq")
    (letter,) = engines[0].dead_letters.list()
    errors: list[BaseException | None] = []

    def put_back(number: int) -> None:
        errors.append(engines[number % 2].futures.dead_letters.requeue(letter.id).exception(LONG_SECONDS))

    together(*(partial(put_back, number) for number in range(6)))
    engines[0].run(instance).result(LONG_SECONDS)
    assert errors.count(None) == 1
    assert all(isinstance(error, StandfastError) for error in errors if error is not None)
    assert stage.count("charge") == 3


@pytest.mark.row("F-227")
def test_each_dead_step_is_requeued_by_itself(live: Live) -> None:
    """Two branches are dead: requeueing one leaves the other paused and the instance running; after both the saga completes."""
    stage, gate = Stage(), Gate(BROKEN)
    stage.does("one", gate, "mended")
    stage.does("two", gate, "mended")
    engine = live.engine().register(forked(stage, "one", "two")).start_worker()
    instance = engine.start("forked").id
    eventually(lambda: stage.count("one") and stage.count("two"))
    gate.open()
    eventually(lambda: len(engine.dead_letters.list()) == 2)
    assert status(engine, instance) == "dlq"
    requeue(engine, instance, "one")
    eventually(lambda: statuses(engine, instance)["one"] == "completed")
    assert status(engine, instance) == "running"
    assert statuses(engine, instance)["two"] == "paused"
    assert [each.name for each in engine.dead_letters.list()] == ["two"]
    assert stage.count("final") == 0
    requeue(engine, instance, "two")
    assert engine.run(instance).result(LONG_SECONDS) == {"one": "mended", "two": "mended"}


@pytest.mark.row("F-228", "ED-18")
def test_a_step_that_fails_again_is_dead_again(place: Place) -> None:
    """Each time there is a fresh record, the instance is back in the dlq, and all attempts count anew."""
    stage = Stage()
    stage.does("charge", *[BROKEN] * 6, None)
    engine = place.engine().register(payment(stage))
    instance = run(engine, "payment")
    seen: set[int] = set()
    for calls in (2, 4, 6):
        assert status(engine, instance) == "dlq"
        assert stage.count("charge") == calls
        (letter,) = engine.dead_letters.list()
        assert letter.id not in seen
        seen.add(letter.id)
        engine.dead_letters.requeue(letter.id)
        engine.drain()
    assert status(engine, instance) == "completed"


@pytest.mark.row("F-230")
def test_a_step_that_is_called_once_may_be_requeued(place: Place) -> None:
    """The operator's word is a new permission: there is one more call."""
    stage = Stage()
    stage.does("charge", BROKEN, None)
    engine = place.engine().register(payment(stage, once=True))
    instance = run(engine, "payment")
    assert stage.count("charge") == 1
    requeue(engine, instance)
    engine.drain()
    assert stage.count("charge") == 2
    assert status(engine, instance) == "completed"


# -- compensations


def failing_to_undo(stage: Stage) -> SagaDefinition:
    """Three steps, the last one fails, and the second cannot be undone at first."""
    return (
        Saga("stuck")
        .step("a", stage.does("a", {"a": 1}))
        .on_failure("undo a", stage.does("undo a"))
        .step("b", stage.does("b", {"b": 2}))
        .on_failure("undo b", stage.does("undo b"), attempts=2)
        .step("c", stage.does("c", BROKEN), attempts=1)
        .build()
    )


@pytest.mark.row("F-229")
@pytest.mark.row("C-23")
def test_a_compensation_is_not_requeued_but_retried(place: Place) -> None:
    """Requeueing it is a conflict that keeps the record; retrying it goes on with the rollback from there."""
    stage = Stage()
    stage.does("undo b", BROKEN, BROKEN, BROKEN, None)
    engine = place.engine().register(failing_to_undo(stage))
    instance = run(engine, "stuck")
    assert status(engine, instance) == "failed"
    assert stage.calls == ["a", "b", "c", "undo b", "undo b"]
    (letter,) = engine.dead_letters.list()
    with pytest.raises(ConflictError):
        engine.dead_letters.requeue(letter.id)
    assert engine.dead_letters.list() == [letter]
    engine.dead_letters.retry_compensation(letter.id)
    assert status(engine, instance) == "running"
    engine.drain()
    assert status(engine, instance) == "failed"
    assert engine.run(instance).describe().reason == ""
    assert statuses(engine, instance) == {"a": "rolled_back", "b": "rolled_back", "c": "rolled_back"}
    assert stage.calls == ["a", "b", "c", *["undo b"] * 4, "undo a"]
    assert stage.contexts("undo b")[-1].output == {"b": 2}
    assert engine.dead_letters.list() == []


@pytest.mark.row("F-229")
def test_a_compensation_that_fails_again_is_dead_again(place: Place) -> None:
    """The record is written anew, and the rest of the rollback still waits."""
    stage = Stage()
    stage.does("undo b", BROKEN)
    engine = place.engine().register(failing_to_undo(stage))
    instance = run(engine, "stuck")
    (first,) = engine.dead_letters.list()
    engine.dead_letters.retry_compensation(first.id)
    engine.drain()
    (second,) = engine.dead_letters.list()
    assert second.id != first.id
    assert status(engine, instance) == "failed"
    assert statuses(engine, instance)["a"] == "completed"
    with pytest.raises(NotFoundError):
        engine.dead_letters.retry_compensation(first.id)


def test_a_resume_waives_no_compensation(place: Place) -> None:
    """A resume ends a pause and nothing else: a rollback that waits for an operator is not paused, and its letter stays."""
    stage = Stage()
    stage.does("undo b", BROKEN)
    engine = place.engine().register(failing_to_undo(stage))
    instance = run(engine, "stuck")
    with pytest.raises(RejectedError, match="If you undid it by hand, skip step 2") as caught:
        engine.run(instance).resume("by hand")
    engine.drain()
    assert (caught.value.reason, engine.dead_letters.count(), stage.count("undo a")) == ("not_paused", 1, 0)


def test_a_second_click_waives_nothing_else(place: Place) -> None:
    """Who goes on without a compensation names its step, so that the same call again does not waive the next one that gives up."""
    stage = Stage()
    stage.does("undo a", BROKEN)
    stage.does("undo b", BROKEN)
    engine = place.engine().register(failing_to_undo(stage))
    instance = run(engine, "stuck")
    operator = engine.acting(Actor(id="olga", capabilities=frozenset({"execution:repair"}))).run(instance)
    operator.skip(2, reason="b is undone by hand")
    engine.drain()
    with pytest.raises(RejectedError) as caught:
        operator.skip(2, reason="b is undone by hand")
    engine.drain()
    assert caught.value.reason == "not_dead"
    assert [each.name for each in engine.dead_letters.list()] == ["a"]
    with pytest.raises(RejectedError, match="has no outcomes"):
        operator.skip(1, reason="a too", outcome="ok")
    operator.skip(1, reason="a too")
    engine.drain()
    assert (engine.run(instance).describe().reason, engine.dead_letters.list()) == ("", [])
    told = [(each.actor, each.action, each.reason) for each in engine.run(instance).audit()][-2:]
    assert told == [("olga", "skip", "b is undone by hand"), ("olga", "skip", "a too")]
    assert engine.instances.verify(instance).is_sound


@pytest.mark.row("F-229")
def test_records_go_with_a_cancelled_or_aborted_saga(place: Place) -> None:
    """Once the instance was cancelled or aborted there is nothing to requeue any more."""
    stage = Stage()
    stage.does("charge", BROKEN)
    engine = place.engine().register(payment(stage))
    for word in ("cancel", "abort"):
        instance = run(engine, "payment")
        (letter,) = engine.dead_letters.list(instance=instance)
        stopped = engine.acting("ann").futures.run(instance)
        stopped.cancel("no") if word == "cancel" else stopped.abort("no")
        engine.drain()
        with pytest.raises(NotFoundError):
            engine.dead_letters.requeue(letter.id)
        assert engine.dead_letters.list(instance=instance) == []


def test_a_step_is_not_retried_as_a_compensation(place: Place) -> None:
    """The record of a step is requeued; the other operation is refused, and so is forgetting it."""
    stage = Stage()
    stage.does("charge", BROKEN)
    engine = place.engine().register(payment(stage))
    run(engine, "payment")
    (letter,) = engine.dead_letters.list()
    for refused in (engine.dead_letters.retry_compensation, engine.dead_letters.discard):
        with pytest.raises(ConflictError):
            refused(letter.id)
    assert engine.dead_letters.list() == [letter]


def test_a_saga_with_dead_steps_does_not_simply_resume(place: Place) -> None:
    """As long as steps are dead they have to be requeued; one that does not wait for an operator has nothing to resume."""
    stage = Stage()
    stage.does("charge", BROKEN)
    engine = place.engine().register(payment(stage))
    instance = engine.start("payment").id
    with pytest.raises(RejectedError) as caught:
        engine.run(instance).resume()
    assert caught.value.reason == "not_paused"
    engine.drain()
    with pytest.raises(RejectedError) as caught:
        engine.run(instance).resume()
    assert caught.value.reason == "dead_letters"


@pytest.mark.row("F-235")
@pytest.mark.parametrize(("fails", "limit"), [("validate-payment", 2), ("process-payment", 3), ("notify-user", 1)])
def test_the_example_of_a_payment_with_dead_letters(place: Place, fails: str, limit: int) -> None:
    """Three steps with limits 2, 3 and 1: whichever of them fails is called so often, requeued, and the saga completes."""
    stage = Stage()
    stage.does(fails, *[BROKEN] * limit, None)
    limits = {"validate-payment": 2, "process-payment": 3, "notify-user": 1}
    saga = Saga("payment-processing", 1, dlq=True)
    for name, attempts in limits.items():
        saga.step(name, stage.does(name), max_retries=attempts)
    engine = place.engine().register(saga.build())
    instance = engine.start("payment-processing-v1", {"amount": 100}).id
    while engine.execute_next():
        pass
    assert status(engine, instance) == "dlq"
    assert stage.count(fails) == limit
    requeue(engine, instance)
    while engine.execute_next():
        pass
    assert status(engine, instance) == "completed"
    assert stage.calls == [name for name in limits for _ in range(limit + 1 if name == fails else 1)]
    assert [each.event_type for each in history(engine, instance)][-1] == "workflow_completed"


def test_what_is_undone_after_a_requeue_has_the_key_of_the_first_call(place: Place) -> None:
    """Whoever looks a charge up by the key of its refund finds it, however often it was requeued."""
    stage = Stage()
    stage.does("charge", BROKEN, BROKEN, None)
    saga = (
        Saga("keys", dlq=True)
        .step("charge", stage.does("charge"), attempts=1)
        .on_failure("refund", stage.does("refund"))
        .wait("long", 3600)
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "keys")
    for _ in range(2):
        (letter,) = engine.dead_letters.list()
        engine.dead_letters.requeue(letter.id)
        engine.drain()
    engine.futures.run(instance).cancel()
    engine.drain()
    (key,) = {each.idempotency_key for each in stage.contexts("charge")}
    assert [each.idempotency_key for each in stage.contexts("refund")] == [f"{key}!"]
