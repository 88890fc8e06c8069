"""Pausing one run and letting it go on: what is held, what the clock does, who may, what is written down."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from app.sagas.acting import BROKEN, Gate, Stage, decide, history, life, run, status, statuses, step, told
from standfast import (
    Actor,
    Escalation,
    ForbiddenError,
    NotFoundError,
    PayloadError,
    RejectedError,
    RequestContext,
    ResumeOption,
    Saga,
    SagaDefinition,
)
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.steps import PauseClock
from standfast.machine.recovery.pause import REQUESTED
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.waiting import LONG_SECONDS, eventually

OPERATOR = Actor(id="olga", capabilities=frozenset({"execution:read", "execution:pause", "execution:resume"}))
NOBODY = InstanceId(UUID("00000000-0000-7000-8000-000000000000"))


def asking(stage: Stage) -> SagaDefinition:
    """A step, a question, and a step behind it."""
    return (
        Saga("asking")
        .step("before", stage.does("before"))
        .human("ask", timeout=3600)
        .step("after", stage.does("after"))
        .build()
    )


def resting(stage: Stage, *, deadline: timedelta | None = None) -> SagaDefinition:
    """A wait of an hour, and a step behind it."""
    return Saga("resting", deadline=deadline).wait("rest", 3600).step("after", stage.does("after")).build()


def refused(call: Callable[[], object]) -> str:
    """The code that a call is refused with."""
    with pytest.raises(RejectedError) as raised:
        call()
    return raised.value.reason


# -- what is held


@pytest.mark.row("G-26", "R-096")
@pytest.mark.row("R-001", "R-002", "R-004", "R-020", "R-042", "R-043", "R-127", "R-140")
def test_a_paused_run_goes_on_where_it_was(place: Place) -> None:
    """A decision is taken while the run is paused, and its way goes on with the resume, also in another process; nothing is done twice."""
    stage = Stage()
    engine = place.engine().register(asking(stage))
    instance = run(engine, "asking")
    engine.run(instance).pause("month end")
    assert status(engine, instance) == "paused"
    assert [each.id for each in engine.runs.paused(next_step="ask")] == [instance]
    decide(engine, instance, "ask")
    engine.drain()
    assert engine.runs.paused(next_step="ask") == []
    assert [each.id for each in engine.runs.paused(next_step="after", reason=REQUESTED)] == [instance]
    with pytest.raises(PayloadError, match="next step"):
        engine.runs.paused(next_step=7)  # type: ignore[arg-type]
    assert (stage.calls, statuses(engine, instance)["ask"]) == (["before"], "confirmed")
    shown = engine.run(instance).describe()
    assert (shown.paused_reason, shown.paused_step, shown.next_step, shown.paused_by) == (
        REQUESTED,
        "ask",
        "after",
        "system",
    )
    assert "month end" in shown.error
    other = place.engine().register(asking(stage))
    other.run(instance).resume()
    other.drain()
    assert (stage.calls, status(other, instance)) == (["before", "after"], "completed")
    assert other.runs.paused(next_step="after") == []


@pytest.mark.row("R-140")
def test_running_handlers_finish_and_what_follows_is_held(live: Live) -> None:
    """A handler that runs when the pause comes ends as always; the next one is not called before the resume."""
    stage, gate = Stage(), Gate({"done": True})
    saga = Saga("busy").step("one", stage.does("one", gate)).step("two", stage.does("two")).build()
    with live.engine() as engine:
        engine.register(saga).start_worker()
        found = engine.start("busy")
        gate.entered()
        found.pause()
        gate.open()
        eventually(lambda: step(engine, found.id, "one").status == "completed")
        assert (stage.calls, found.describe().next_step) == (["one"], "two")
        found.resume()
        assert found.result(timeout=LONG_SECONDS) == {"done": True}
        assert stage.calls == ["one", "two"]


@pytest.mark.row("R-036", "R-049")
def test_a_failure_while_paused_has_no_consequences_yet(live: Live) -> None:
    """A step that gives up is undone, with all before it, once the run goes on, and not earlier."""
    stage, gate = Stage(), Gate(BROKEN)
    saga = (
        Saga("busy")
        .step("one", stage.does("one"))
        .on_failure("undo", stage.does("undo"))
        .step("two", stage.does("two", gate), max_retries=1)
        .build()
    )
    with live.engine() as engine:
        engine.register(saga).start_worker()
        found = engine.start("busy")
        gate.entered()
        found.pause()
        gate.open()
        eventually(lambda: bool(history(engine, found.id, "failure_held")))
        assert (found.describe().status, stage.count("undo")) == ("paused", 0)
        found.resume()
        eventually(lambda: found.describe().status == "failed")
        assert stage.calls == ["one", "two", "undo"]
        assert life(engine, found.id, "two")[-3:] == ["paused", "failed", "rolled_back"]


def test_a_failure_while_paused_can_wait_for_an_operator_afterwards(live: Live) -> None:
    """Where failures wait for an operator the dead letter is there once the run goes on; it is requeued as always."""
    stage, gate = Stage(), Gate(BROKEN)
    saga = Saga("busy", dlq=True).step("one", stage.does("one", gate, None), max_retries=1).build()
    with live.engine() as engine:
        engine.register(saga).start_worker()
        found = engine.start("busy")
        gate.entered()
        found.pause()
        gate.open()
        eventually(lambda: bool(history(engine, found.id, "failure_held")))
        assert engine.dead_letters.count() == 0
        found.resume()
        eventually(lambda: found.describe().status == "dlq")
        assert refused(found.resume) == "dead_letters"
        engine.dead_letters.requeue(engine.dead_letters.list()[0])
        found.result(timeout=LONG_SECONDS)


def test_branches_are_held_and_meet_after_the_resume(place: Place) -> None:
    """Each branch stays where it is, and the join waits; afterwards all of them go on."""
    stage = Stage()
    saga = (
        Saga("forked")
        .fork(
            "split",
            lambda b: b.human("left").step("l", stage.does("l")),
            lambda b: b.human("right").step("r", stage.does("r")),
        )
        .join("met")
        .step("after", stage.does("after"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "forked")
    engine.run(instance).pause()
    decide(engine, instance, "left")
    decide(engine, instance, "right")
    engine.drain()
    assert stage.calls == []
    engine.run(instance).resume()
    engine.drain()
    assert (sorted(stage.calls[:2]), stage.calls[2:], status(engine, instance)) == (["l", "r"], ["after"], "completed")


# -- the clock


@pytest.mark.row("E-770")
def test_timers_that_pass_fire_after_the_resume(place: Place) -> None:
    """With `run_on`, which is the default, a timer keeps its instant: due while paused, it fires once the run goes on."""
    stage = Stage()
    engine = place.engine().register(resting(stage))
    instance = run(engine, "resting")
    engine.run(instance).pause()
    engine.advance(hours=2)
    assert (stage.calls, status(engine, instance)) == ([], "paused")
    engine.run(instance).resume()
    engine.drain()
    assert (stage.calls, status(engine, instance)) == (["after"], "completed")


def test_timers_that_have_not_passed_keep_their_instants(place: Place) -> None:
    """With `run_on` a pause that ends before the timer is due changes nothing about it."""
    stage = Stage()
    engine = place.engine().register(resting(stage))
    instance = run(engine, "resting")
    engine.run(instance).pause(clock="run_on")
    engine.advance(minutes=30)
    engine.run(instance).resume()
    engine.advance(minutes=29)
    assert stage.calls == []
    engine.advance(minutes=1)
    assert stage.calls == ["after"]


def test_time_can_stand_still(place: Place) -> None:
    """With `stand_still` the time that was left is left after the pause: for waits, and for the deadline of the run."""
    stage = Stage()
    engine = place.engine().register(resting(stage, deadline=timedelta(minutes=90)))
    instance = run(engine, "resting")
    engine.advance(minutes=20)
    engine.run(instance).pause(clock="stand_still")
    engine.advance(days=3)
    engine.run(instance).resume()
    engine.advance(minutes=39)
    assert (stage.calls, status(engine, instance)) == ([], "running")
    engine.advance(minutes=1)
    assert (stage.calls, status(engine, instance)) == (["after"], "completed")


@pytest.mark.parametrize(("clock", "left"), [("run_on", 10), ("stand_still", 40)])
def test_a_call_that_is_put_off_keeps_its_time(place: Place, clock: PauseClock, left: int) -> None:
    """The start delay of a first call and the wait before another one are clocks like any other: a pause does not begin them anew.

    Nor does it cut them short.
    """
    stage = Stage()
    saga = Saga("late").step("a", stage.does("a", BROKEN, None), start_after=3600, delay=3600, cap=3600).build()
    engine = place.engine().register(saga)
    instance = run(engine, "late")
    for calls in (["a"], ["a", "a"]):
        engine.advance(minutes=20)
        engine.run(instance).pause(clock=clock)
        engine.advance(minutes=30)
        engine.run(instance).resume()
        engine.advance(minutes=left, microseconds=-1)
        assert stage.calls == calls[1:]
        engine.advance(microseconds=1)
        assert stage.calls == calls
    assert status(engine, instance) == "completed"


def test_a_call_whose_time_passes_while_paused_is_made_afterwards(place: Place) -> None:
    """At once, if the clock has run on."""
    stage = Stage()
    engine = place.engine().register(Saga("late").step("a", stage.does("a"), start_after=3600).build())
    instance = run(engine, "late")
    engine.run(instance).pause()
    engine.advance(hours=2)
    engine.run(instance).resume()
    engine.drain()
    assert (stage.calls, status(engine, instance)) == (["a"], "completed")


def test_a_question_does_not_time_out_while_its_run_is_paused(place: Place) -> None:
    """Clocks stand still: the timeout of a step is held with all other timers; answered meanwhile, it never comes."""
    stage = Stage()
    engine = place.engine().register(asking(stage))
    instance = run(engine, "asking")
    engine.run(instance).pause(clock="stand_still")
    engine.advance(hours=5)
    decide(engine, instance, "ask")
    engine.run(instance).resume()
    engine.advance(hours=5)
    assert status(engine, instance) == "completed"
    assert history(engine, instance, "timed_out") == []


def test_a_deadline_that_passes_while_paused_ends_the_run_afterwards(place: Place) -> None:
    """The deadline of a run is a timer like any other."""
    engine = place.engine().register(resting(Stage(), deadline=timedelta(minutes=30)))
    instance = run(engine, "resting")
    engine.run(instance).pause()
    engine.advance(hours=2)
    assert status(engine, instance) == "paused"
    engine.run(instance).resume()
    engine.drain()
    assert status(engine, instance) == "cancelled"


@pytest.mark.row("R-025")
def test_a_pause_can_end_by_itself(place: Place) -> None:
    """At the instant that it names, and the request says that it was the time."""
    stage = Stage()
    engine = place.engine().register(resting(stage))
    instance = run(engine, "resting")
    until = place.clock.now() + timedelta(hours=3)
    engine.run(instance).pause(until=until)
    assert engine.run(instance).describe().paused_until == until
    engine.advance(hours=2)
    assert status(engine, instance) == "paused"
    engine.advance(hours=1)
    assert (stage.calls, status(engine, instance)) == (["after"], "completed")
    assert [each.triggered_by for each in engine.run(instance).resume_requests()] == ["timeout"]


def test_a_pause_that_ended_early_does_not_end_again(place: Place) -> None:
    """The timer of a pause goes with it: the next pause is another one."""
    engine = place.engine().register(resting(Stage()))
    found = engine.run(run(engine, "resting"))
    found.pause(until=timedelta(minutes=10))
    found.resume()
    found.pause()
    engine.advance(hours=3)
    assert found.describe().status == "paused"


def test_a_delayed_start_is_held(place: Place) -> None:
    """A run that has not begun does not begin while it is paused."""
    stage = Stage()
    engine = place.engine().register(asking(stage))
    found = engine.start("asking", delay=timedelta(hours=1))
    found.pause()
    engine.advance(hours=2)
    assert stage.calls == []
    found.resume()
    engine.drain()
    assert stage.calls == ["before"]


# -- resuming with data


@pytest.mark.row("R-015", "R-044", "R-115")
def test_what_a_resume_brings_is_found_by_conditions(place: Place) -> None:
    """Under `resume`, for all conditions behind it; the data of the run stays as it was, byte for byte."""
    stage = Stage()
    saga = (
        Saga("choosing")
        .human("ask")
        .condition("big", "resume.amount > 10", otherwise=lambda b: b.step("small", stage.does("small")))
        .step("large", stage.does("large"))
        .build()
    )
    engine = place.engine().register(saga)
    given = {"z": [1, {"a": "ü"}], "a": 1.5}
    instance = engine.start("choosing", given).id
    engine.drain()
    before = msgspec.json.encode(engine.run(instance).describe().context)
    engine.run(instance).pause()
    engine.run(instance).resume(data={"amount": 11})
    assert msgspec.json.encode(engine.run(instance).describe().context) == before
    assert engine.run(instance).describe().resume_data == {"amount": 11}
    decide(engine, instance, "ask")
    engine.drain()
    assert stage.calls == ["large"]


@pytest.mark.row("R-044")
def test_what_people_and_events_bring_is_found_by_conditions(place: Place) -> None:
    """The last decision under `approval`, the last signal under `event`."""
    stage = Stage()
    saga = (
        Saga("choosing")
        .human("ask")
        .wait_for("paid", "payment")
        .condition(
            "both",
            "approval.status == 'confirmed' && event.payload.amount > 10",
            otherwise=lambda b: b.step("no", stage.does("no")),
        )
        .step("yes", stage.does("yes"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "choosing")
    decide(engine, instance, "ask")
    engine.run(instance).signal("payment", {"amount": 11})
    engine.drain()
    assert stage.calls == ["yes"]


# -- refusals and repetition


@pytest.mark.row("R-037", "R-060", "R-142")
def test_only_what_can_be_paused_is_paused_and_only_that_goes_on(place: Place) -> None:
    """What is paused, has ended or undoes itself is not paused; what is not paused does not go on; each says so, and nothing changes."""
    stage = Stage()
    engine = place.engine().register(asking(stage))
    found = engine.run(run(engine, "asking"))
    assert refused(found.resume) == "not_paused"
    found.pause()
    version = engine.instances.list()[0].version
    assert refused(found.pause) == "already_paused"
    assert engine.instances.list()[0].version == version
    found.resume()
    assert refused(lambda: found.pause(until=place.clock.now())) == "time_passed"
    found.abort()
    assert (refused(found.pause), refused(found.resume)) == ("already_terminal", "already_terminal")
    with pytest.raises(NotFoundError):
        engine.run(NOBODY).pause()
    with pytest.raises(NotFoundError):
        engine.run(NOBODY).resume()


@pytest.mark.row("R-142")
def test_what_undoes_itself_is_not_paused(live: Live) -> None:
    """A rollback goes to its end."""
    stage, gate = Stage(), Gate()
    saga = (
        Saga("back")
        .step("one", stage.does("one"))
        .on_failure("undo", stage.does("undo", gate))
        .step("two", stage.does("two", BROKEN), max_retries=1)
        .build()
    )
    with live.engine() as engine:
        engine.register(saga).start_worker()
        found = engine.start("back")
        gate.entered()
        assert refused(found.pause) == "rollback_in_progress"
        gate.open()
        eventually(lambda: found.describe().status == "failed")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run.pause(clock="backwards"), "run_on, stand_still"),
        (lambda run: run.pause(until=datetime(2030, 1, 1)), "with a time zone"),  # noqa: DTZ001 - that is the mistake
        (lambda run: run.pause(until="tomorrow"), "with a time zone"),
        (lambda run: run.pause(7), "must be text"),
        (lambda run: run.resume(data=[1]), "as a dict"),
        (lambda run: run.resume(triggered_by="magic"), "manual, approval, event, timeout"),
        (lambda run: run.resume(task=f"{NOBODY}:1"), "another run"),
    ],
)
def test_what_makes_no_sense_is_refused(place: Place, call: Callable[[Any], object], message: str) -> None:
    """The sentence says what would."""
    engine = place.engine().register(asking(Stage()))
    found = engine.run(run(engine, "asking"))
    with pytest.raises(PayloadError, match=message):
        call(found)
    assert found.resume_requests() == []


@pytest.mark.row("C-48")
@pytest.mark.row("R-065", "R-116")
def test_the_same_trigger_twice_is_one_resume(place: Place) -> None:
    """Told again it does nothing, also when the run is paused again by then, and after its end; another one is refused."""
    stage = Stage()
    engine = place.engine().register(asking(stage))
    found = engine.run(run(engine, "asking"))
    found.pause()
    found.resume(triggered_by="event", triggered_by_id="e-1")
    found.resume(triggered_by="event", triggered_by_id="e-1")
    found.pause()
    found.resume(triggered_by="event", triggered_by_id="e-1")
    assert found.describe().status == "paused"
    found.resume(triggered_by="event", triggered_by_id="e-2")
    assert refused(lambda: found.resume(triggered_by_id="e-3")) == "not_paused"
    found.abort()
    found.resume(triggered_by="event", triggered_by_id="e-1")
    assert len(history(engine, found.id, "workflow_resumed")) == 2


@pytest.mark.row("R-065")
def test_an_idempotency_key_is_a_trigger(place: Place) -> None:
    """A manual resume is the same one when the key of its request is."""
    engine = place.engine().register(asking(Stage()))
    instance = run(engine, "asking")
    engine.run(instance).pause()
    caller = engine.acting(RequestContext(actor=OPERATOR, idempotency_key="k-1"))
    for _ in range(2):
        caller.run(instance).resume("again")
    assert len(engine.run(instance).resume_requests()) == 1


# -- who may


@pytest.mark.row("G-13")
@pytest.mark.row("R-098", "R-099")
def test_pausing_and_resuming_need_capabilities(place: Place) -> None:
    """Whoever lacks them is told which; the history names who did it and why."""
    engine = place.engine().register(asking(Stage()))
    instance = run(engine, "asking")
    nobody, somebody = (engine.acting(each).run(instance) for each in (Actor(id="eve"), OPERATOR))
    with pytest.raises(ForbiddenError, match="execution:pause"):
        nobody.pause()
    somebody.pause("audit")
    with pytest.raises(ForbiddenError, match="execution:resume"):
        nobody.resume()
    somebody.resume("audited")
    found = history(engine, instance, "workflow_paused", "workflow_resumed")
    assert [(each.actor, each.comment, each.status) for each in found] == [
        ("olga", "audit", "paused"),
        ("olga", "audited", "running"),
    ]


@pytest.mark.row("R-063")
def test_an_open_question_can_be_overridden(place: Place) -> None:
    """Its task is closed as overridden, with name and reason, and the run goes on as if it were approved; that needs a capability of its own."""
    stage = Stage()
    engine = place.engine().register(asking(stage))
    instance = run(engine, "asking")
    with pytest.raises(ForbiddenError, match="execution:override"):
        engine.acting(OPERATOR).run(instance).resume("urgent", override=True)
    boss = Actor(id="boss", capabilities=frozenset({"execution:resume", "execution:override"}))
    engine.acting(boss).run(instance).resume("urgent", override=True)
    engine.drain()
    task = engine.run(instance).tasks()[0]
    assert (task.decision, task.decided_by, task.comment) == ("overridden", "boss", "urgent")
    assert (stage.calls, status(engine, instance)) == (["before", "after"], "completed")
    assert engine.run(instance).describe().context["ask"]["status"] == "confirmed"  # type: ignore[index]


@pytest.mark.row("R-063")
def test_what_an_override_brings_is_no_answer(place: Place) -> None:
    """Conditions find it under `resume`, as after any resume; the answer has no data, because no form has judged it."""
    engine = place.engine()
    saga = Saga("fee").human("ask").condition("high", "resume.fee > 3").step("charge", lambda: {"charge": "high"})
    instance = run(engine.register(saga.build()), "fee")
    engine.run(instance).resume("urgent", override=True, data={"fee": 5})
    engine.drain()
    context = engine.run(instance).describe().context
    assert (context["ask"]["data"], context["charge"]) == (None, "high")  # type: ignore[index]


@pytest.mark.row("R-063")
def test_what_undoes_a_question_is_none_to_be_overridden(place: Place) -> None:
    """While a rollback undoes a question that was decided nobody is asked: an override is refused, and the compensation is called."""
    stage = Stage()
    saga = Saga("asking").human("ask").on_failure("retract", stage.does("retract"), start_after=60)
    engine = place.engine().register(saga.step("after", stage.does("after", BROKEN), attempts=1).build())
    instance = run(engine, "asking")
    decide(engine, instance, "ask")
    engine.drain()
    assert stage.calls == ["after"]
    for task, code in ((None, "not_paused"), (1, "not_waiting"), (3, "not_waiting")):
        named = None if task is None else f"{instance}:{task}"
        assert refused(lambda named=named: engine.run(instance).resume("on", override=True, task=named)) == code  # type: ignore[misc]
    engine.advance(minutes=2)
    assert (stage.calls, status(engine, instance)) == (["after", "retract"], "failed")
    assert statuses(engine, instance)["ask"] == "rolled_back"


def test_of_several_open_questions_one_is_named(place: Place) -> None:
    """Nobody overrides what he has not named; a paused run goes on by the way."""
    saga = Saga("two").fork("split", lambda b: b.human("left"), lambda b: b.human("right")).join("met").build()
    engine = place.engine().register(saga)
    found = engine.run(run(engine, "two"))
    found.pause()
    with pytest.raises(RejectedError, match="several questions are open"):
        found.resume(override=True)
    assert found.describe().status == "paused"
    left = step(engine, found.id, "left")
    found.resume(override=True, task=left)
    assert statuses(engine, found.id) | {"left": "confirmed", "right": "waiting_decision"} == statuses(engine, found.id)
    assert refused(lambda: found.resume(override=True, task=left)) == "not_waiting"


# -- what is written down


@pytest.mark.row("R-016", "R-017", "R-024", "R-025", "R-026", "R-027", "R-136")
def test_every_request_is_written_down_with_its_outcome(place: Place) -> None:
    """One that is refused leaves its row with the error and nothing else; the run tells of the last attempt."""
    engine = place.engine().register(asking(Stage()))
    instance = run(engine, "asking")
    caller = engine.acting(OPERATOR).run(instance)
    version = engine.instances.list()[0].version
    assert refused(lambda: caller.resume("too early")) == "not_paused"
    assert engine.instances.list()[0].version == version
    shown = caller.describe()
    assert (shown.resume_attempted_at, "not paused" in shown.resume_error) == (place.clock.now(), True)
    caller.pause()
    engine.advance(minutes=1)
    caller.resume("now", data={"n": 1}, triggered_by="approval", triggered_by_id="a-7")
    early, executed = caller.resume_requests()
    assert (early.executed_at, "not_paused" in early.error_message, early.reason) == (None, True, "too early")
    assert (executed.triggered_by, executed.triggered_by_id, executed.trigger_data) == ("approval", "a-7", {"n": 1})
    assert (executed.executed_at, executed.error_message) == (place.clock.now(), "")
    assert (early.triggered_by, early.triggered_by_id, early.requested_by) == ("manual", "olga", "olga")
    shown = caller.describe()
    assert (shown.resume_attempted_at, shown.resume_error) == (place.clock.now(), "")
    assert (shown.paused_at, shown.paused_reason, shown.next_step) == (None, "", "")


def test_another_tenant_knows_nothing_of_it(place: Place) -> None:
    """It is not found: neither to pause nor to resume nor to look at, and nothing is written."""
    engine = place.engine().register(asking(Stage()))
    instance = run(engine, "asking")
    other = engine.acting(RequestContext(tenant="other", actor=OPERATOR)).run(instance)
    for call in (other.pause, other.resume, other.resume_requests, other.resume_options, other.request_resume):
        with pytest.raises(NotFoundError):
            call()
    assert engine.run(instance).resume_requests() == []


@pytest.mark.row("R-119", "R-128", "R-145")
def test_a_run_is_paused_as_often_as_anybody_likes(place: Place) -> None:
    """Each pause has its own beginning, and each question its own task."""
    stage = Stage()
    saga = Saga("twice").human("first").human("second").step("after", stage.does("after")).build()
    engine = place.engine().register(saga)
    found = engine.run(run(engine, "twice"))
    for name in ("first", "second"):
        found.pause()
        since = found.describe().paused_at
        assert since == place.clock.now()
        decide(engine, found.id, name)
        engine.advance(hours=1)
        found.resume()
        engine.drain()
    assert (stage.calls, found.describe().status, len(found.tasks())) == (["after"], "completed", 2)
    assert len(history(engine, found.id, "workflow_paused")) == 2


# -- finding them


@pytest.mark.row("R-011", "R-012", "R-094", "R-096", "R-130", "R-131")
def test_paused_runs_are_found(place: Place) -> None:
    """By reason and by time, those that were paused last first, page by page; lists tell them from those that wait because of a failure."""
    stage = Stage()
    failing = Saga("failing", dlq=True).step("one", stage.does("one", BROKEN), max_retries=1).build()
    engine = place.engine().register(asking(stage)).register(failing)
    plain, first, second = (run(engine, "asking") for _ in range(3))
    dead = run(engine, "failing")
    engine.advance(minutes=1)
    engine.run(first).pause()
    engine.advance(minutes=1)
    engine.run(second).pause()
    noon = place.clock.now()
    runs = engine.runs
    assert [each.id for each in runs.paused()] == [second, first, dead]
    assert [each.id for each in runs.paused(reason="requested")] == [second, first]
    assert [each.id for each in runs.paused(since=noon)] == [second]
    assert [each.id for each in runs.paused(before=noon, definition="asking")] == [first]
    assert [each.id for each in runs.paused(after=runs.paused(limit=1)[0], limit=1)] == [first]
    assert [each.id for each in runs.list(status="paused").items] == [second, first]
    assert [each.id for each in runs.list(status="dlq").items] == [dead]
    assert [each.id for each in runs.list(status="running").items] == [plain]
    assert {each.id for each in runs.list(status=["paused", "dlq"], limit=2).items} <= {second, first, dead}
    assert [each.id for each in runs.list(status="dlq", limit=1).items] == [dead]


# -- what can be done


def options(engine: ManualEngine, instance: InstanceId) -> list[tuple[str, str]]:
    """What would bring a run on, and at which step."""
    return [(each.action, each.step_name) for each in engine.run(instance).resume_options()]


def test_the_options_say_what_can_be_done_and_by_whom(place: Place) -> None:
    """For a question, a wait, a pause and a dead letter; nothing for what goes on by itself or has ended."""
    stage = Stage()
    waiting = Saga("waiting").human("ask", role="clerk").wait_for("paid", "payment").build()
    failing = Saga("failing", dlq=True).step("one", stage.does("one", BROKEN), max_retries=1).build()
    engine = place.engine().register(waiting).register(failing).register(resting(stage))
    instance = run(engine, "waiting")
    asked = engine.run(instance).resume_options()
    assert [(each.action, each.choices, each.role, each.capability) for each in asked] == [
        ("decide", ("confirmed", "rejected"), "clerk", ""),
        ("override", (), "", "execution:resume, execution:override"),
    ]
    decide(engine, instance, "ask", role="clerk")
    assert [(each.action, each.choices) for each in engine.run(instance).resume_options()] == [("signal", ("payment",))]
    engine.run(instance).pause()
    assert engine.run(instance).resume_options()[0] == ResumeOption(action="resume", capability="execution:resume")
    assert options(engine, run(engine, "failing")) == [("requeue", "one")]
    assert options(engine, run(engine, "resting")) == []
    engine.run(instance).abort()
    assert options(engine, instance) == []


def test_a_run_that_is_held_is_told_what_holds_it(place: Place) -> None:
    """What cannot be resumed because it is not paused itself names, among the options, the pause to end."""
    engine = place.engine().register(resting(Stage()))
    engine.pauses.pause("resting", reason="bank down")
    instance = run(engine, "resting")
    with pytest.raises(RejectedError, match=r"the run itself is not paused; .*`resume_options` tells") as refusal:
        engine.run(instance).resume()
    assert refusal.value.reason == "not_paused"
    (option,) = engine.run(instance).resume_options()
    assert (option.action, option.capability) == ("end_pause", "execution:resume")
    assert "'resting'" in option.choices[0]
    engine.pauses.resume("resting")
    assert options(engine, instance) == []


def test_cancelling_and_aborting_end_a_pause(place: Place) -> None:
    """A paused run can be cancelled, which undoes what it did, or aborted; no timer of the pause is left."""
    stage = Stage()
    saga = Saga("asked").step("one", stage.does("one")).on_failure("undo", stage.does("undo")).human("ask").build()
    engine = place.engine().register(saga)
    cancelled, aborted = (engine.run(run(engine, "asked")) for _ in range(2))
    for each in (cancelled, aborted):
        each.pause(until=place.clock.now() + timedelta(hours=1))
    engine.futures.run(cancelled.id).cancel()
    aborted.abort()
    engine.advance(hours=2)
    assert (cancelled.describe().status, aborted.describe().status) == ("cancelled", "aborted")
    assert stage.count("undo") == 1
    assert engine.dead_letters.count() == 0


def test_the_history_tells_what_was_held(place: Place) -> None:
    """Which timers, until when they would have run, by which clock."""
    engine = place.engine().register(resting(Stage()))
    instance = run(engine, "resting")
    engine.run(instance).pause(clock="stand_still")
    due = (place.clock.now() + timedelta(hours=1)).astimezone(UTC)
    paused = history(engine, instance, "workflow_paused")[0].data
    assert paused["clock"] == "stand_still"
    assert [datetime.fromisoformat(str(each)) for each in paused["held"].values()] == [due]  # type: ignore[attr-defined]
    assert ("timer_cancelled", "") in [(each[0].removeprefix("$"), each[1]) for each in told(engine, instance)]


def test_what_an_option_names_is_enough(place: Place) -> None:
    """Somebody whom nobody asks can do it with exactly the capabilities that the option names."""
    ladder = Escalation(timedelta(hours=1), to="user:dir")
    engine = place.engine().register(Saga("x").human("q", ask="user:ann", escalate=ladder).build())
    for action in ("escalate", "override"):
        found = engine.run(run(engine, "x"))
        [option] = [each for each in found.resume_options() if each.action == action]
        stranger = engine.acting(Actor(id="olga", capabilities=frozenset(option.capability.split(", "))))
        if action == "escalate":
            stranger.tasks.escalate(option.step_id, "x")
        else:
            stranger.run(found.id).resume("x", override=True)
