"""Steps that wait for a person: how they wait, who may answer what, and what follows from the answer."""

from __future__ import annotations

from functools import partial
from typing import Any, Literal

import pytest

from app.sagas.acting import BROKEN, Stage, decide, history, life, person, run, status, statuses, step
from standfast import Calls, NotFoundError, PayloadError, RejectedError, Saga, SagaDefinition
from standfast.kernel.ids import InstanceId
from support.engines import Live, Place
from support.inside import worker_of
from support.waiting import eventually, together

ANN, BOB = person("ann", "manager"), person("bob", "manager")


def approval(stage: Stage) -> SagaDefinition:
    """The example of the specification: a document is processed, approved by a person, and filed."""
    return (
        Saga("document-approval")
        .step("process-document", stage.does("document-processor"))
        .on_failure("shred", stage.does("shred"))
        .wait_human_confirm("human-approval", subject="Is it good?", role="manager")
        .then("approve-document", stage.does("approval"))
        .build()
    )


def waiting(engine: Calls, instance: InstanceId) -> str:
    """The id of the step that waits for a person, found as a user of the example would."""
    for each in engine.run(instance).steps():
        if each.name == "human-approval" and each.status == "waiting_decision":
            return each.id
    raise AssertionError("nothing waits for a decision")


@pytest.mark.row("F-142")
def test_a_human_step_waits(place: Place) -> None:
    """The step waits for its decision, nothing behind it runs, nothing is left to do, and the instance is still active."""
    stage = Stage()
    engine = place.engine().register(approval(stage))
    instance = run(engine, "document-approval")
    assert statuses(engine, instance) == {"process-document": "completed", "human-approval": "waiting_decision"}
    assert stage.calls == ["document-processor"]
    assert engine.execute_next() is False
    assert status(engine, instance) == "running"


@pytest.mark.row("F-142", "F-144", "F-149")
def test_the_example_of_an_approval_runs_as_narrated(place: Place) -> None:
    """Start, find the waiting step by its name and status, confirm: the next step runs and the saga is completed."""
    stage = Stage()
    engine = place.engine().register(approval(stage))
    instance = run(engine, "document-approval-v1")
    engine.acting(person("manager@company.com", "manager")).tasks.decide(
        waiting(engine, instance), "confirmed", comment="fine"
    )
    assert statuses(engine, instance)["human-approval"] == "confirmed"
    engine.drain()
    assert stage.calls == ["document-processor", "approval"]
    assert status(engine, instance) == "completed"
    assert life(engine, instance, "human-approval") == ["pending", "waiting_decision", "confirmed"]
    (approved,) = history(engine, instance, "approved")
    assert (approved.actor, approved.comment) == ("manager@company.com", "fine")


@pytest.mark.row("F-143", "F-146")
@pytest.mark.parametrize("decision", ["confirmed", "rejected"])
@pytest.mark.parametrize("comment", ["", "because"])
def test_a_decision_is_kept_with_its_circumstances(place: Place, decision: str, comment: str) -> None:
    """Who decided what, when and why stays on record, with or without a comment."""
    engine = place.engine().register(approval(Stage()))
    instance = run(engine, "document-approval")
    engine.advance(minutes=5)
    where = waiting(engine, instance)
    engine.acting(ANN).tasks.decide(where, decision, comment=comment)
    (task,) = engine.run(instance).tasks()
    assert (task.step_id, task.decided_by, task.decision, task.comment) == (where, "ann", decision, comment)
    assert task.decided_at == place.clock.now()


@pytest.mark.row("F-146")
def test_whoever_the_calls_are_made_for_has_decided(place: Place) -> None:
    """The actor of the calls is recorded, which is the system itself if nobody was named; one may act for another."""
    engine = place.engine().register(approval(Stage()))
    ann = engine.as_tenant(engine.request.tenant, actor=ANN)
    found = []
    for calls in (engine, ann, ann.acting(BOB)):
        instance = run(engine, "document-approval")
        calls.tasks.approve(waiting(engine, instance))
        (approved,) = history(engine, instance, "approved")
        (task,) = engine.run(instance).tasks()
        found.append((task.decided_by, approved.actor))
    assert found == [("system", "system"), ("ann", "ann"), ("bob", "bob")]


@pytest.mark.row("F-145", "EC-10")
def test_a_rejection_aborts_the_instance(place: Place) -> None:
    """After a rejection nothing more runs and nothing is undone."""
    stage = Stage()
    engine = place.engine().register(approval(stage))
    instance = run(engine, "document-approval")
    decide(engine, instance, "human-approval", "rejected", role="manager")
    engine.drain()
    assert status(engine, instance) == "aborted"
    assert statuses(engine, instance) == {"process-document": "completed", "human-approval": "rejected"}
    assert stage.calls == ["document-processor"]


@pytest.mark.row("F-145")
def test_a_rejection_stops_the_other_branches(place: Place) -> None:
    """Branches beside the rejected question are stopped as in an abort."""
    stage = Stage()
    saga = (
        Saga("beside")
        .fork(
            "fork",
            lambda branch: branch.human("ask"),
            lambda branch: branch.step("work", stage.does("work")),
        )
        .join("join")
        .build()
    )
    engine = place.engine().register(saga)
    instance = engine.start("beside").id
    decide(engine, instance, "ask", "rejected")
    engine.drain()
    assert status(engine, instance) == "aborted"
    assert statuses(engine, instance)["work"] == "skipped"
    assert stage.calls == []


def test_a_rejection_may_have_a_way_of_its_own(place: Place) -> None:
    """Where the saga says what follows a rejection, that is taken, and the saga does not come back to the main way."""
    stage = Stage()
    saga = (
        Saga("other way")
        .human("ask", on_rejected=lambda other: other.step("apologise", stage.does("apologise")))
        .then("celebrate", stage.does("celebrate"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "other way")
    decide(engine, instance, "ask", "rejected")
    engine.drain()
    assert stage.calls == ["apologise"]
    assert status(engine, instance) == "completed"


def refusing(stage: Stage, *, dlq: bool = False) -> SagaDefinition:
    """Something is reserved, and a person's rejection has to undo it."""
    return (
        Saga("refusing", dlq=dlq)
        .step("reserve", stage.does("reserve"))
        .on_failure("release", stage.does("release"))
        .human("ask", on_rejected="fail")
        .then("celebrate", stage.does("celebrate"))
        .build()
    )


def test_a_rejection_may_undo_what_was_done(place: Place) -> None:
    """Where the step says so it has failed by a rejection: the saga is rolled back, and who rejected stays on record."""
    stage = Stage()
    engine = place.engine().register(refusing(stage))
    instance = run(engine, "refusing")
    engine.acting(ANN).tasks.decide(step(engine, instance, "ask").id, "rejected", comment="too dear")
    engine.drain()
    assert stage.calls == ["reserve", "release"]
    assert stage.contexts("release")[0].failed_step == "ask"
    assert status(engine, instance) == "failed"
    (task,) = engine.run(instance).tasks()
    assert (task.decision, task.decided_by, task.comment) == ("rejected", "ann", "too dear")
    assert engine.instances.verify(instance).is_sound


def test_a_rejection_that_fails_waits_for_an_operator_in_dlq_mode(place: Place) -> None:
    """It is a failure like every other: an operator has the person asked again."""
    stage = Stage()
    engine = place.engine().register(refusing(stage, dlq=True))
    instance = run(engine, "refusing")
    decide(engine, instance, "ask", "rejected")
    assert status(engine, instance) == "dlq"
    (letter,) = engine.dead_letters.list(instance=instance)
    assert (letter.name, letter.error) == ("ask", "'ask' was rejected")
    engine.dead_letters.requeue(letter)
    assert [each.decision for each in engine.run(instance).tasks()] == ["rejected", ""]
    decide(engine, instance, "ask")
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["reserve", "celebrate"])


def test_a_rejection_of_a_branch_that_is_not_needed_does_not_end_the_saga(place: Place) -> None:
    """A step that has failed fails its branch, and a join that can do without it goes on."""
    saga = (
        Saga("two bosses")
        .fork(
            "ask",
            lambda branch: branch.human("first", on_rejected="fail"),
            lambda branch: branch.human("second", on_rejected="abort"),
        )
        .join("one of them", "any")
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "two bosses")
    decide(engine, instance, "first", "rejected")
    assert status(engine, instance) == "running"
    decide(engine, instance, "second", "rejected")
    assert status(engine, instance) == "aborted"


@pytest.mark.parametrize("has_way", [True, False])
def test_a_question_that_nobody_answers_in_time(place: Place, has_way: bool) -> None:  # noqa: FBT001 - a case of the rule
    """When its time is over the step is left by its way for that, or has failed."""
    stage = Stage()
    saga = Saga("patience").step("before", stage.does("before"))
    saga.human(
        "ask",
        timeout=60,
        on_timeout=(lambda other: other.step("remind", stage.does("remind"))) if has_way else None,
    )
    engine = place.engine().register(saga.then("after", stage.does("after")).build())
    instance = run(engine, "patience")
    engine.advance(seconds=59)
    assert statuses(engine, instance)["ask"] == "waiting_decision"
    engine.advance(seconds=1)
    assert status(engine, instance) == ("completed" if has_way else "failed")
    assert stage.calls == (["before", "remind"] if has_way else ["before"])
    (task,) = engine.run(instance).tasks()
    assert task.decided_at is not None


@pytest.mark.parametrize("decision", ["confirmed", "rejected"])
def test_the_steps_behind_find_the_decision_in_the_data(
    place: Place, decision: Literal["confirmed", "rejected"]
) -> None:
    """Who decided what, when and why, and what was given with it, under the name of the step; conditions can ask for it."""
    stage = Stage()
    saga = (
        Saga("asking")
        .human("ask", on_rejected=lambda way: way.step("refused", stage.does("refused")))
        .condition("large", "ask.data.sum > 100 and ask.decided_by == 'ann'")
        .step("audit", stage.does("audit"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "asking", {"x": 1})
    (task,) = engine.tasks.list()
    at = place.clock.now().isoformat()
    engine.acting(ANN).tasks.decide(task.step_id, decision, comment="why", data={"sum": 500})
    engine.drain()
    (context,) = stage.contexts("audit" if decision == "confirmed" else "refused")
    answer = {"status": decision, "decided_by": "ann", "decided_at": at, "comment": "why", "data": {"sum": 500}}
    assert context.input == {"x": 1, "ask": answer}
    assert step(engine, instance, "ask").output == answer
    assert engine.run(instance).describe().context["ask"] == answer


# -- decisions that are refused


@pytest.mark.row("F-147")
def test_a_second_decision_is_refused(place: Place) -> None:
    """The first decision stays."""
    engine = place.engine().register(approval(Stage()))
    instance = run(engine, "document-approval")
    where = waiting(engine, instance)
    engine.acting(ANN).tasks.decide(where, "confirmed")
    with pytest.raises(RejectedError) as caught:
        engine.acting(BOB).tasks.decide(where, "rejected")
    assert caught.value.reason == "already_decided"
    assert "confirmed by 'ann' at 20" in str(caught.value)
    (task,) = engine.run(instance).tasks()
    assert (task.decided_by, task.decision) == ("ann", "confirmed")


@pytest.mark.row("F-147")
@pytest.mark.parametrize("has_ended", [False, True])
def test_the_same_decision_by_the_same_person_again_is_no_news(place: Place, *, has_ended: bool) -> None:
    """A second click does nothing and is no error, also after the saga has ended; other data, or another person, is a conflict."""
    engine = place.engine().register(approval(Stage()))
    instance = run(engine, "document-approval")
    where = waiting(engine, instance)
    engine.acting(ANN).tasks.decide(where, "confirmed", data={"sum": 5})
    if has_ended:
        engine.drain()
    before = history(engine, instance)
    engine.acting(ANN).tasks.decide(where, "confirmed", data={"sum": 5}, comment="again")
    for actor, data in ((BOB, {"sum": 5}), (ANN, {"sum": 6})):
        with pytest.raises(RejectedError) as caught:
            engine.acting(actor).tasks.decide(where, "confirmed", data=data)
        assert caught.value.reason == "already_decided"
    assert history(engine, instance) == before


@pytest.mark.row("F-147")
def test_only_a_step_that_waits_can_be_decided(place: Place) -> None:
    """A step that is unknown, of another kind, or not reached yet takes no decision, and nothing is stored."""
    engine = place.engine().register(approval(Stage()))
    instance = engine.start("document-approval").id
    before = history(engine, instance)
    for where in (step(engine, instance, "process-document").id, f"{instance}:2", f"{instance}:99"):
        with pytest.raises(RejectedError) as caught:
            engine.acting(ANN).tasks.decide(where, "confirmed")
        assert caught.value.reason == "not_waiting"
    for where in ("nonsense", f"{instance}", ""):
        with pytest.raises(PayloadError):
            engine.acting(ANN).tasks.decide(where, "confirmed")
    with pytest.raises(NotFoundError):
        engine.acting(ANN).tasks.decide("00000000-0000-7000-8000-000000000000:1", "confirmed")
    assert history(engine, instance) == before
    assert engine.run(instance).tasks() == []


@pytest.mark.row("F-147")
def test_a_skipped_question_takes_no_decision(place: Place) -> None:
    """After the saga was cancelled the step is skipped, and a decision about it is an error."""
    engine = place.engine().register(approval(Stage()))
    instance = run(engine, "document-approval")
    where = waiting(engine, instance)
    engine.acting("ann").futures.run(instance).cancel("no")
    engine.drain()
    with pytest.raises(RejectedError) as caught:
        engine.acting(BOB).tasks.decide(where, "confirmed")
    assert caught.value.reason == "already_terminal"
    (task,) = engine.run(instance).tasks()
    assert (task.decision, task.decided_by) == ("cancelled", "")


@pytest.mark.row("F-147")
def test_of_two_decisions_at_the_same_moment_one_counts(live: Live) -> None:
    """Exactly one of many that decide at once succeeds, and its word is the one that is kept."""
    stage = Stage()
    engines = [live.engine().register(approval(stage)).start_worker() for _ in range(2)]
    instance = engines[0].start("document-approval").id
    (task,) = eventually(engines[0].tasks.list)
    where, accepted = task.step_id, list[str]()

    def vote(number: int) -> None:
        reply = (
            engines[number % 2].acting(person(f"voter {number}", "manager")).futures.tasks.decide(where, "confirmed")
        )
        if reply.exception() is None:
            accepted.append(f"voter {number}")

    together(*(partial(vote, number) for number in range(8)))
    engines[0].run(instance).result(30)
    assert len(accepted) == 1
    (task,) = engines[0].run(instance).tasks()
    assert [task.decided_by] == accepted
    assert stage.count("approval") == 1


@pytest.mark.row("F-148")
@pytest.mark.parametrize("decision", ["maybe", "", "CONFIRMED", "approved"])
def test_an_unknown_decision_is_refused(place: Place, decision: str) -> None:
    """Only `confirmed` and `rejected` are decisions, which whoever tries another one is told; the step goes on waiting."""
    engine = place.engine().register(approval(Stage()))
    instance = run(engine, "document-approval")
    with pytest.raises((PayloadError, RejectedError), match=r"'confirmed', 'rejected'|empty"):
        engine.acting(ANN).tasks.decide(waiting(engine, instance), decision)
    assert statuses(engine, instance)["human-approval"] == "waiting_decision"


# -- finding questions


@pytest.mark.row("F-149")
def test_open_questions_are_listed(place: Place) -> None:
    """All that wait for an answer are listed oldest first, by role and page by page; answered ones only with their instance."""
    stage = Stage()
    other = Saga("other").human("sign", role="clerk").build()
    engine = place.engine().register(approval(stage)).register(other)
    first, second = run(engine, "document-approval"), run(engine, "document-approval")
    engine.advance(minutes=1)
    third = run(engine, "other")
    open_ones = engine.tasks.list()
    assert {each.instance for each in open_ones} == {first, second, third}
    assert [each.instance for each in engine.tasks.list(role="clerk")] == [third]
    (page,) = engine.tasks.list(limit=1)
    rest = engine.tasks.list(after=page)
    assert [page, *rest] == open_ones
    assert open_ones[-1].instance == third
    assert open_ones[0].subject == "Is it good?"
    decide(engine, third, "sign", role="clerk")
    assert {each.instance for each in engine.tasks.list()} == {first, second}
    assert [each.decision for each in engine.run(third).tasks()] == ["confirmed"]


# -- what a question shows


def paying(**options: Any) -> SagaDefinition:
    """An invoice that somebody has to release."""
    return Saga("paying").step("look up", lambda: {"supplier": {"name": "ACME"}}).human("ask", **options).build()


def test_a_question_is_asked_with_values_of_the_data(place: Place) -> None:
    """The subject is a template, filled in when the question is asked, and stays what it was."""
    engine = place.engine().register(paying(subject="Pay {amount} to {supplier.name}{note?}? {{sic}}"))
    instance = run(engine, "paying", {"amount": 12.5})
    (task,) = engine.tasks.list()
    assert task.subject == "Pay 12.5 to ACME? {sic}"
    decide(engine, instance, "ask")
    (task,) = engine.run(instance).tasks()
    assert (task.subject, task.decision) == ("Pay 12.5 to ACME? {sic}", "confirmed")
    assert engine.instances.verify(instance).is_sound


def test_a_question_shows_what_its_author_chose(place: Place) -> None:
    """The values that the step names, by their paths, as they were when it was asked; what is not there is null."""
    engine = place.engine().register(paying(shows=["amount", "supplier.name", "note"]))
    instance = run(engine, "paying", {"amount": 5, "secret": "x"})
    (task,) = engine.tasks.list()
    assert (task.subject, task.data) == ("ask", {"amount": 5, "supplier.name": "ACME", "note": None})
    decide(engine, instance, "ask")
    assert engine.run(instance).tasks()[0].data == task.data
    assert engine.instances.verify(instance).is_sound


def test_a_question_shows_nothing_that_nobody_chose(place: Place) -> None:
    """Whoever may answer need not see the whole data."""
    engine = place.engine().register(paying())
    run(engine, "paying", {"amount": 5})
    assert engine.tasks.list()[0].data == {}


def test_a_question_that_cannot_be_put_into_words_fails_its_step(place: Place) -> None:
    """Nobody is asked with a hole in the subject: the step has failed, and the error says which value is missing."""
    engine = place.engine().register(paying(subject="Pay {amount}?"))
    instance = run(engine, "paying")
    assert status(engine, instance) == "failed"
    assert "amount" in step(engine, instance, "ask").error
    assert engine.tasks.list() == []
    (task,) = engine.run(instance).tasks()
    assert (task.subject, task.decision) == ("Pay {amount}?", "failed")
    assert engine.instances.verify(instance).is_sound


# -- how a question lives on


@pytest.mark.row("F-150")
def test_a_question_survives_a_restart_and_occupies_nobody(place: Place) -> None:
    """Nothing runs and nothing is queued while a person thinks; another process takes the answer and goes on."""
    stage = Stage()
    before = place.engine().register(approval(stage))
    instance = run(before, "document-approval")
    assert not worker_of(before).is_busy
    assert before.admin.backlog() == []
    after = place.engine().register(approval(stage))
    after.acting(ANN).tasks.decide(waiting(after, instance), "confirmed")
    after.drain()
    assert status(after, instance) == "completed"
    assert stage.calls == ["document-processor", "approval"]


@pytest.mark.row("F-151")
def test_a_decision_during_a_pause_counts_when_the_saga_goes_on(place: Place) -> None:
    """While another step waits for an operator the decision is recorded, and what follows from it is put off."""
    stage = Stage()
    stage.does("fragile", BROKEN, None)
    saga = (
        Saga("patient", dlq=True)
        .fork(
            "fork",
            lambda branch: branch.human("ask").step("follows", stage.does("follows")),
            lambda branch: branch.step("fragile", stage.does("fragile"), attempts=1),
        )
        .join("join")
        .then("final", stage.does("final"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "patient")
    assert status(engine, instance) == "dlq"
    decide(engine, instance, "ask")
    engine.drain()
    assert engine.run(instance).tasks()[0].decision == "confirmed"
    assert statuses(engine, instance)["ask"] == "confirmed"
    assert stage.count("follows") == 0
    (letter,) = engine.dead_letters.list(instance=instance)
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == ["final", "follows", "fragile", "fragile"]


# -- and in a rollback


@pytest.mark.row("F-165")
def test_a_cancellation_skips_an_open_question(place: Place) -> None:
    """A step that waits for a decision is skipped when the saga is cancelled."""
    engine = place.engine().register(approval(Stage()))
    instance = run(engine, "document-approval")
    engine.acting("ann").futures.run(instance).cancel("no")
    engine.drain()
    assert statuses(engine, instance) == {"process-document": "rolled_back", "human-approval": "skipped"}


@pytest.mark.row("F-165")
def test_a_cancellation_rolls_a_confirmed_question_back(place: Place) -> None:
    """A step that was confirmed is rolled back when the saga is cancelled later."""
    engine = place.engine().register(approval(Stage()))
    instance = run(engine, "document-approval")
    decide(engine, instance, "human-approval", role="manager")
    engine.acting("ann").futures.run(instance).cancel("no")
    engine.drain()
    assert statuses(engine, instance) == {
        "process-document": "rolled_back",
        "human-approval": "rolled_back",
        "approve-document": "skipped",
    }


@pytest.mark.row("F-165")
def test_a_rejected_question_stays_rejected(place: Place) -> None:
    """A rejection has ended the saga: it can no longer be cancelled, and the step stays as it is."""
    engine = place.engine().register(approval(Stage()))
    instance = run(engine, "document-approval")
    decide(engine, instance, "human-approval", "rejected", role="manager")
    with pytest.raises(RejectedError):
        engine.acting("ann").run(instance).cancel("no")
    assert statuses(engine, instance)["human-approval"] == "rejected"


@pytest.mark.row("F-256")
def test_a_failure_rolls_a_confirmed_question_back(place: Place) -> None:
    """In a rollback after a failure a confirmed question counts as executed; what undoes it is called."""
    stage = Stage()
    saga = (
        Saga("undone")
        .human("ask")
        .on_failure("tell", stage.does("tell"))
        .then("fragile", stage.does("fragile", BROKEN), attempts=1)
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "undone")
    decide(engine, instance, "ask")
    engine.drain()
    assert status(engine, instance) == "failed"
    assert statuses(engine, instance) == {"ask": "rolled_back", "fragile": "rolled_back"}
    assert stage.calls == ["fragile", "tell"]


def test_a_question_holds_nothing_that_a_database_cannot_keep(place: Place) -> None:
    """A value with a NUL character is shown without it; the step before it has done nothing wrong."""
    saga = Saga("pay").human("ok", subject="Pay {supplier}?").build()
    engine = place.engine().register(saga)
    engine.start("pay", {"supplier": "AC\0ME"})
    engine.drain()
    (task,) = engine.tasks.list()
    assert task.subject == "Pay ACME?"
