"""Aborting: the run ends at once, whatever it does, and nothing is undone."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, decide, history, life, run, status, statuses, step, until_told
from standfast import RejectedError, Saga, SagaDefinition, StepContext, WorkflowFailedError
from support.engines import Live, Place
from support.inside import beat, claim_one, worker_of
from support.waiting import LONG_SECONDS, eventually

WHY = "Stopped due to workflow cancellation/abort"


def forked(stage: Stage, *, dlq: bool = False) -> SagaDefinition:
    """A start that can be undone, and two branches with a join."""
    return (
        Saga("forked", dlq=dlq)
        .step("start", stage.does("start"))
        .on_failure("undo start", stage.does("undo start"))
        .fork(
            "fork",
            lambda branch: branch.step("left", stage.does("left"), attempts=1).on_failure(
                "undo left", stage.does("undo left")
            ),
            lambda branch: branch.step("right", stage.does("right")),
        )
        .join("join")
        .then("final", stage.does("final"))
        .build()
    )


@pytest.mark.row("F-178", "F-180", "EC-14")
def test_an_abort_undoes_nothing(live: Live) -> None:
    """Completed steps stay completed, both branches that run are skipped and told so, and no compensation is called."""
    stage = Stage()
    stage.does("left", until_told)
    stage.does("right", until_told)
    engine = live.engine().register(forked(stage)).start_worker()
    instance = engine.start("forked").id
    eventually(lambda: stage.count("left") and stage.count("right"))
    assert engine.acting("ann").run(instance).abort("critical", timeout=LONG_SECONDS) == "aborted"
    assert statuses(engine, instance) == {
        "start": "completed",
        "fork": "completed",
        "left": "skipped",
        "right": "skipped",
    }
    eventually(lambda: not worker_of(engine).is_busy)
    assert all(context.cancelled for name in ("left", "right") for context in stage.contexts(name))
    assert sorted(stage.calls) == ["left", "right", "start"]


@pytest.mark.row("F-179", "F-180")
def test_a_saga_that_has_not_begun_is_aborted(place: Place) -> None:
    """Right after the start: the first step is skipped, and nothing was called."""
    stage = Stage()
    engine = place.engine().register(forked(stage))
    instance = engine.start("forked").id
    reply = engine.acting("ann").futures.run(instance).abort("no")
    assert reply.result() == "aborted"
    engine.drain()
    assert stage.calls == []
    first = step(engine, instance, "start")
    assert (first.status, first.error) == ("skipped", WHY)
    assert engine.admin.backlog() == []


@pytest.mark.row("F-181")
def test_the_history_tells_of_an_abort(place: Place) -> None:
    """Who asked and why, each step that was stopped, and the end, in this order."""
    stage = Stage()
    engine = place.engine().register(forked(stage))
    instance = engine.start("forked").id
    engine.execute_next()
    engine.acting("security-monitor").run(instance).abort("Critical error detected")
    found = history(engine, instance, "abort_started", "step_failed", "workflow_aborted")
    assert [each.event_type for each in found] == ["abort_started", "step_failed", "step_failed", "workflow_aborted"]
    for each in (found[0], found[-1]):
        assert (each.data["requested_by"], each.data["reason"]) == ("security-monitor", "Critical error detected")
    assert {each.step_name for each in found[1:3]} == {"left", "right"}
    assert {each.data["reason"] for each in found[1:3]} == {"workflow_stopped"}


@pytest.mark.row("F-182")
@pytest.mark.parametrize("who", ["error-handler", "security-monitor", "quota", "watchdog"])
def test_whoever_notices_an_emergency_may_abort(place: Place, who: str) -> None:
    """Who asks is free text, kept with the end of the saga."""
    engine = place.engine().register(forked(Stage()))
    instance = engine.start("forked").id
    engine.acting(who).run(instance).abort("emergency")
    (end,) = history(engine, instance, "workflow_aborted")
    assert (end.data["requested_by"], end.actor) == (who, who)


@pytest.mark.row("F-183")
def test_an_open_question_is_skipped_by_an_abort(place: Place) -> None:
    """The step that waits for a person is skipped, and a later decision is an error."""
    stage = Stage()
    engine = place.engine().register(Saga("asks").human("ask").step("after", stage.does("after")).build())
    instance = run(engine, "asks")
    where = step(engine, instance, "ask").id
    engine.acting("ann").run(instance).abort("no")
    assert statuses(engine, instance) == {"ask": "skipped"}
    with pytest.raises(RejectedError):
        engine.acting("bob").tasks.decide(where, "confirmed")
    engine.drain()
    assert stage.calls == []


@pytest.mark.row("F-179", "F-240")
def test_a_saga_that_waits_for_an_operator_can_be_aborted(place: Place) -> None:
    """An abort is the same in both modes: nothing is undone, and the dead letters of the instance are closed."""
    stage = Stage()
    stage.does("left", BROKEN)
    engine = place.engine().register(forked(stage, dlq=True))
    instance = run(engine, "forked")
    assert status(engine, instance) == "dlq"
    assert engine.acting("ann").run(instance).abort("hopeless") == "aborted"
    engine.drain()
    assert engine.dead_letters.list() == []
    assert not [name for name in stage.calls if name.startswith("undo")]
    assert statuses(engine, instance)["start"] == "completed"


@pytest.mark.row("F-240")
def test_a_running_saga_in_dlq_mode_is_aborted_as_any_other(place: Place) -> None:
    """The mode makes no difference to an abort in the midst of the work."""
    stage = Stage()
    engine = place.engine().register(forked(stage, dlq=True))
    instance = engine.start("forked").id
    engine.execute_next()
    assert engine.acting("ann").run(instance).abort("no") == "aborted"
    engine.drain()
    assert stage.calls == ["start"]
    found = statuses(engine, instance)
    assert (found["start"], found["left"], found["right"]) == ("completed", "skipped", "skipped")


@pytest.mark.row("F-252")
def test_an_abort_drops_the_rest_of_a_rollback(place: Place) -> None:
    """While a compensation is under way the saga is aborted: the compensations behind it are not called any more."""
    stage, engine = Stage(), place.engine()

    def undo(ctx: StepContext) -> None:
        engine.acting("ann").run(ctx.instance).abort("stop it")

    saga = (
        Saga("back")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .step("b", stage.does("b"))
        .on_failure("undo b", stage.does("undo b", undo))
        .step("c", stage.does("c", BROKEN), attempts=1)
        .build()
    )
    engine.register(saga)
    instance = run(engine, "back")
    assert status(engine, instance) == "aborted"
    assert stage.calls == ["a", "b", "c", "undo b"]
    assert statuses(engine, instance)["a"] == "completed"
    assert engine.admin.backlog() == []


@pytest.mark.row("F-180")
def test_a_late_answer_after_an_abort_changes_nothing(live: Live) -> None:
    """The handler comes back after the end of the saga: that is told, its step stays skipped, and nothing follows."""
    stage, gate = Stage(), Gate({"too": "late"})
    stage.does("left", gate)
    stage.does("right", gate)
    engine = live.engine().register(forked(stage)).start_worker()
    instance = engine.start("forked").id
    eventually(lambda: stage.count("left") and stage.count("right"))
    engine.acting("ann").run(instance).abort("now", timeout=LONG_SECONDS)
    before = engine.run(instance).history()
    gate.open()
    eventually(lambda: not engine.admin.backlog())
    after = engine.run(instance).history()
    assert after[: len(before)] == before
    assert sorted((each.event_type, each.step_name) for each in after[len(before) :]) == [
        ("step_stopped", "left"),
        ("step_stopped", "right"),
    ]
    assert (status(engine, instance), stage.count("final")) == ("aborted", 0)
    assert {statuses(engine, instance)[name] for name in ("left", "right")} == {"skipped"}


@pytest.mark.row("F-063", "F-064")
@pytest.mark.parametrize("which", ["step", "compensation"])
def test_a_call_that_was_made_stays_counted(live: Live, which: str) -> None:
    """While its handler still runs, when it has come back, and in the history: an abort takes back no call."""
    stage, gate = Stage(), Gate()
    stage.does("a" if which == "step" else "undo", gate)
    stage.does("bad", BROKEN)
    saga = Saga("s").step("a", stage.does("a")).on_failure("undo", stage.does("undo"))
    engine = live.engine().register(saga.step("bad", stage.does("bad"), attempts=1).build()).start_worker()
    instance = engine.start("s").id
    gate.entered()
    engine.acting("ann").run(instance).abort("now", timeout=LONG_SECONDS)

    def calls() -> int:
        found = step(engine, instance, "a")
        return found.retry_count if which == "step" else found.compensation_retry_count

    assert calls() == 1
    gate.open()
    eventually(lambda: not engine.admin.backlog())
    assert calls() == 1
    last = [each for each in history(engine, instance) if each.step_name == "a"][-1]
    assert (last.event_type, last.retry_count, last.data["is_done"]) == ("step_stopped", 1, True)
    assert last.status == step(engine, instance, "a").status == ("skipped" if which == "step" else "compensation")
    assert engine.instances.verify(instance).is_sound


@pytest.mark.row("F-063")
def test_a_call_that_was_never_made_is_not_counted_after_an_abort(place: Place) -> None:
    """Nobody had begun it: it reads otherwise than one that was called, and the history says no more about it."""
    stage = Stage()
    engine = place.engine().register(forked(stage))
    instance = engine.start("forked").id
    engine.acting("ann").run(instance).abort("no")
    before = history(engine, instance)
    engine.drain()
    found = step(engine, instance, "start")
    assert (found.status, found.retry_count, found.started_at) == ("skipped", 0, None)
    assert history(engine, instance) == before
    assert [each.retry_count for each in before if each.event_type == "step_failed"] == [0]
    assert engine.admin.backlog() == []


@pytest.mark.row("F-063")
def test_a_rejection_takes_back_no_call_either(place: Place) -> None:
    """A person ends the saga while a handler of another branch runs: that handler was called."""
    stage, engine = Stage(), place.engine()

    def refuse(ctx: StepContext) -> None:
        decide(engine, ctx.instance, "ask", "rejected")
        assert ctx.cancelled
        assert step(engine, ctx.instance, "work").retry_count == 1

    saga = Saga("s").fork("f", lambda one: one.human("ask"), lambda two: two.step("work", stage.does("work", refuse)))
    instance = run(engine.register(saga.join("met").build()), "s")
    assert status(engine, instance) == "aborted"
    assert (stage.count("work"), step(engine, instance, "work").retry_count) == (1, 1)


def test_a_worker_that_dies_after_an_abort_leaves_its_call_counted(place: Place) -> None:
    """Another worker finds out that the call never came back; nobody calls the handler again."""
    stage, engine, heir = Stage(), place.engine(), place.engine()
    saga = Saga("s").step("work", "work").build()
    for each in (engine, heir):
        each.register(saga).handle("work", stage.does("work"))
    instance = engine.start("s").id
    beat(engine)
    assert claim_one(engine, "work")
    engine.acting("ann").run(instance).abort("now")
    place.clock.move(timedelta(minutes=1))
    heir.drain()
    beat(heir)
    heir.drain()
    assert (stage.calls, step(heir, instance, "work").retry_count) == ([], 1)
    assert (heir.admin.backlog(), heir.dead_letters.list()) == ([], [])


def test_an_aborted_saga_has_no_result(place: Place) -> None:
    """Asking for its result says how and why it ended."""
    engine = place.engine().register(forked(Stage()))
    instance = engine.start("forked").id
    engine.acting("ann").run(instance).abort("emergency")
    with pytest.raises(WorkflowFailedError) as caught:
        engine.run(instance).result()
    assert (caught.value.status, caught.value.reason) == ("aborted", "emergency")


def test_a_step_whose_compensation_was_under_way_does_not_read_as_done(live: Live) -> None:
    """An abort does not wait for it: whether the step is undone nobody knows, and that it is not simply completed everybody sees."""
    stage, gate = Stage(), Gate()
    stage.does("undo", gate)
    stage.does("bad", BROKEN)
    saga = Saga("s").step("a", stage.does("a")).on_failure("undo", stage.does("undo"))
    engine = live.engine().register(saga.step("bad", stage.does("bad"), attempts=1).build()).start_worker()
    instance = engine.start("s").id
    gate.entered()
    assert engine.acting("ann").run(instance).abort("now", timeout=LONG_SECONDS) == "aborted"
    gate.open()
    eventually(lambda: not engine.runtime.worker.is_busy)
    assert statuses(engine, instance)["a"] == "compensation"
    assert life(engine, instance, "a")[-1] == "compensation"
