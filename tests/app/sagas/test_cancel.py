"""Cancelling: what runs is stopped, what was done is undone, and the reply comes when all is settled."""

from __future__ import annotations

from contextlib import suppress
from datetime import timedelta
from functools import partial
from uuid import UUID

import msgspec
import pytest

from app.sagas.acting import BROKEN, Gate, Stage, decide, history, run, status, statuses, step, until_told
from standfast import ConflictError, Engine, NotFoundError, RejectedError, Saga, SagaDefinition, Settings, StepContext
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.inside import held_by, worker_of
from support.waiting import LONG_SECONDS, eventually, together

WHY = "Stopped due to workflow cancellation/abort"
NOBODY = InstanceId(UUID("00000000-0000-7000-8000-000000000000"))


def chain(stage: Stage) -> SagaDefinition:
    """Three steps in a row, two of them with what undoes them."""
    return (
        Saga("chain")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .step("b", stage.does("b"))
        .on_failure("undo b", stage.does("undo b"), attempts=1)
        .step("c", stage.does("c"))
        .step("d", stage.does("d"))
        .build()
    )


def forked(stage: Stage) -> SagaDefinition:
    """The example of the specification: a start, two parallel steps, a join and an end."""
    saga = (
        Saga("test_parallel")
        .step("start", stage.does("handler"))
        .on_failure("undo start", stage.does("undo start"))
        .fork(
            "fork",
            lambda branch: branch.step("parallel1", stage.does("slow-handler 1")),
            lambda branch: branch.step("parallel2", stage.does("slow-handler 2")),
        )
    )
    with pytest.warns(DeprecationWarning, match="use join"):
        saga.join_step("join", ["parallel1", "parallel2"])
    return saga.then("final", stage.does("final")).build()


def cancels(engine: ManualEngine, answer: object = None) -> object:
    """A handler that has its own saga cancelled and then does its work all the same."""

    def act(ctx: StepContext) -> object:
        engine.acting("ann").futures.run(ctx.instance).cancel("from inside")
        if isinstance(answer, BaseException):
            raise answer
        return answer

    return act


# -- one step after the other


@pytest.mark.row("F-152", "F-154", "F-156", "F-157", "F-164", "EC-14")
@pytest.mark.row("C-01")
def test_a_cancellation_stops_what_runs_and_undoes_what_was_done(place: Place) -> None:
    """Cancelled inside the third step: that one is skipped, those before it are undone in reverse order, the last never runs."""
    stage, engine = Stage(), place.engine()
    stage.does("c", cancels(engine))
    engine.register(chain(stage))
    instance = run(engine, "chain")
    assert status(engine, instance) == "cancelled"
    assert stage.calls == ["a", "b", "c", "undo b", "undo a"]
    assert statuses(engine, instance) == {"a": "rolled_back", "b": "rolled_back", "c": "skipped"}


@pytest.mark.row("F-152", "F-155", "F-157", "F-169")
@pytest.mark.row("C-13")
def test_the_reply_comes_when_all_is_settled(live: Live) -> None:
    """A handler that heeds the signal is stopped, and everything is undone by the time that `cancel` answers."""
    stage = Stage()
    stage.does("c", until_told)
    engine = live.engine().register(chain(stage)).start_worker()
    instance = engine.start("chain").id
    eventually(lambda: stage.count("c"))
    assert engine.acting("ann").run(instance).cancel("enough", timeout=LONG_SECONDS) == "cancelled"
    assert status(engine, instance) == "cancelled"
    assert stage.calls == ["a", "b", "c", "undo b", "undo a"]
    assert statuses(engine, instance) == {"a": "rolled_back", "b": "rolled_back", "c": "skipped"}


@pytest.mark.row("F-172")
@pytest.mark.parametrize("answer", [{"done": True}, BROKEN])
def test_a_handler_that_ignores_the_signal_changes_nothing(place: Place, answer: object) -> None:
    """Whether it returns or raises after the cancellation: its step stays skipped, and no successor is begun."""
    stage, engine = Stage(), place.engine()
    stage.does("c", cancels(engine, answer))
    engine.register(chain(stage))
    instance = run(engine, "chain")
    assert statuses(engine, instance)["c"] == "skipped"
    assert stage.count("c") == 1
    assert stage.count("d") == 0
    assert "done" not in engine.run(instance).describe().context
    assert engine.admin.backlog() == []


@pytest.mark.row("F-172")
def test_an_answer_after_the_grace_time_changes_nothing(place: Place) -> None:
    """A handler that never heeds the signal is not waited for beyond its grace; what it brings later is ignored."""
    stage, other = Stage(), place.engine()

    def outlast(ctx: StepContext) -> object:
        other.acting("ann").futures.run(ctx.instance).cancel("enough")
        other.advance(seconds=31)
        assert status(other, ctx.instance) == "cancelled"
        return {"too": "late"}

    stage.does("c", outlast)
    patient = place.engine(Settings(lease=timedelta(hours=1)))
    other.register(chain(stage))
    patient.register(chain(stage))
    instance = patient.start("chain").id
    patient.drain()
    assert stage.calls == ["a", "b", "c", "undo b", "undo a"]
    assert statuses(patient, instance)["c"] == "skipped"
    assert "too" not in patient.run(instance).describe().context


def test_a_step_that_was_stopped_but_did_its_work_is_undone(place: Place) -> None:
    """A handler that finished its work all the same, and has a compensation, is undone like a completed one."""
    stage, engine = Stage(), place.engine()
    stage.does("b", cancels(engine, {"paid": True}))
    engine.register(chain(stage))
    instance = run(engine, "chain")
    assert stage.calls == ["a", "b", "undo b", "undo a"]
    assert statuses(engine, instance) == {"a": "rolled_back", "b": "rolled_back"}
    assert stage.contexts("undo b")[0].output == {"paid": True}


@pytest.mark.row("F-156")
@pytest.mark.row("C-20")
def test_a_cancellation_goes_back_to_the_root(place: Place) -> None:
    """Save points bound a rollback after a failure, not a cancellation."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("saved")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .save_point("safe")
        .step("b", stage.does("b", cancels(engine)))
        .build()
    )
    engine.register(saga)
    instance = run(engine, "saved")
    assert status(engine, instance) == "cancelled"
    assert stage.calls == ["a", "b", "undo a"]
    assert statuses(engine, instance)["a"] == "rolled_back"


def test_a_cancellation_does_not_cross_a_point_of_no_return(place: Place) -> None:
    """What lies before a point of no return is never undone, not even by a cancellation; what lies behind it is."""
    stage, engine = Stage(), place.engine()
    saga = (
        Saga("committed")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .point_of_no_return("sent")
        .step("b", stage.does("b"))
        .on_failure("undo b", stage.does("undo b"))
        .step("c", stage.does("c", cancels(engine)))
        .build()
    )
    engine.register(saga)
    instance = run(engine, "committed")
    assert status(engine, instance) == "cancelled"
    assert stage.calls == ["a", "b", "c", "undo b"]
    assert statuses(engine, instance)["a"] == "completed"
    assert statuses(engine, instance)["sent"] == "completed"


@pytest.mark.row("F-158", "F-164")
def test_a_compensation_that_fails_fails_the_cancelled_saga(place: Place) -> None:
    """The saga ends as `failed` instead of `cancelled`, the step that could not be undone is `failed`, and a dead letter names it."""
    stage, engine = Stage(), place.engine()
    stage.does("c", cancels(engine))
    stage.does("undo b", BROKEN)
    engine.register(chain(stage))
    instance = run(engine, "chain")
    assert status(engine, instance) == "failed"
    assert statuses(engine, instance) == {"a": "completed", "b": "failed", "c": "skipped"}
    (letter,) = engine.dead_letters.list(instance=instance)
    assert (letter.name, letter.reason) == ("b", "compensation max retries exceeded")


@pytest.mark.row("F-159", "F-162", "F-163")
def test_a_saga_that_has_not_begun_is_cancelled_without_a_call(place: Place) -> None:
    """Right after the start: the first step is skipped with the reason, nothing was called, nothing is left in the queue."""
    stage = Stage()
    engine = place.engine().register(chain(stage))
    instance = engine.start("chain").id
    assert status(engine, instance) == "pending"
    reply = engine.acting("ann").futures.run(instance).cancel("no")
    engine.drain()
    assert reply.result() == "cancelled"
    assert stage.calls == []
    first = step(engine, instance, "a")
    assert (first.status, first.error) == ("skipped", WHY)
    assert engine.admin.backlog() == []


@pytest.mark.row("F-173", "F-163", "F-174")
def test_the_history_tells_of_a_cancellation(place: Place) -> None:
    """Who asked and why, each step that was stopped, and the end, in this order; `system` may ask as well as a person."""
    stage = Stage()
    engine = place.engine().register(chain(stage))
    instance = engine.start("chain").id
    while stage.count("b") == 0:
        engine.execute_next()
    engine.acting("system").futures.run(instance).cancel("timeout exceeded")
    engine.drain()
    found = history(engine, instance, "cancellation_started", "step_failed", "workflow_cancelled")
    assert [each.event_type for each in found] == ["cancellation_started", "step_failed", "workflow_cancelled"]
    started, stopped, ended = found
    assert (started.data["requested_by"], started.data["reason"]) == ("system", "timeout exceeded")
    assert (stopped.step_name, stopped.data["reason"], stopped.status) == ("c", "workflow_stopped", "skipped")
    assert stopped.error == WHY
    assert (ended.data["requested_by"], ended.data["reason"]) == ("system", "timeout exceeded")
    assert engine.run(instance).describe().error == "timeout exceeded"


# -- branches


@pytest.mark.row("F-167", "F-166", "F-168", "F-169", "F-155")
@pytest.mark.row("C-01")
def test_cancel_workflow_with_parallel_steps(live: Live) -> None:
    """TestCancelWorkflowWithParallelSteps: both branch steps read `rolled_back` right after the cancellation; nothing behind them ran."""
    stage = Stage()
    stage.does("slow-handler 1", until_told)
    stage.does("slow-handler 2", until_told)
    engine = live.engine().register(forked(stage)).start_worker()
    instance = engine.start("test_parallel-v1", {"input": 1}).id
    eventually(lambda: stage.count("slow-handler 1") and stage.count("slow-handler 2"))
    ended = engine.acting("test-user").run(instance).cancel("test cancellation", timeout=LONG_SECONDS)
    assert ended == "cancelled"
    found = statuses(engine, instance)
    assert (found["parallel1"], found["parallel2"]) == ("rolled_back", "rolled_back")
    assert (found["start"], found["fork"]) == ("rolled_back", "rolled_back")
    assert found.get("join", "skipped") == found.get("final", "skipped") == "skipped"
    assert stage.count("undo start") == 1
    assert stage.count("final") == 0
    stopped = [each.step_name for each in history(engine, instance, "step_failed") if each.status == "skipped"]
    assert sorted(stopped) == ["parallel1", "parallel2"]


@pytest.mark.row("F-155", "F-170")
def test_all_handlers_of_an_instance_are_told_together(live: Live) -> None:
    """Each call has a signal of its own; one cancellation reaches all of them, and none is left over afterwards."""
    stage = Stage()
    stage.does("slow-handler 1", until_told)
    stage.does("slow-handler 2", until_told)
    engine = live.engine().register(forked(stage)).start_worker()
    instance = engine.start("test_parallel").id
    eventually(lambda: stage.count("slow-handler 1") and stage.count("slow-handler 2"))
    assert len({(claim.instance, claim.number) for claim in held_by(engine)}) == 2
    engine.acting("ann").run(instance).cancel("enough", timeout=LONG_SECONDS)
    assert all(context.cancelled for number in (1, 2) for context in stage.contexts(f"slow-handler {number}"))
    eventually(lambda: not worker_of(engine).is_busy)


@pytest.mark.row("F-170")
def test_no_signal_is_left_behind_by_a_thousand_steps(live: Live) -> None:
    """What is kept for stopping a call goes when the call ends."""
    stage = Stage()
    saga = Saga("many").for_each("each", "items", lambda body: body.step("work", stage.does("work"))).build()
    engine = live.engine().register(saga).start_worker()
    started = [engine.start("many", {"items": list(range(50))}).id for _ in range(20)]
    for instance in started:
        engine.run(instance).result(LONG_SECONDS)
    assert stage.count("work") == 1000
    eventually(lambda: not worker_of(engine).is_busy)
    assert held_by(engine) == []


@pytest.mark.row("F-167")
def test_a_stopped_branch_is_undone_after_its_handler_came_back(live: Live) -> None:
    """The compensation of a branch step is called only when its handler has stopped; then the step is rolled back."""
    stage, gate = Stage(), Gate()
    saga = (
        Saga("careful")
        .fork(
            "fork",
            lambda branch: branch.step("slow", stage.does("slow", gate)).on_failure("undo", stage.does("undo")),
            lambda branch: branch.human("ask"),
        )
        .join("join")
        .build()
    )
    engine = live.engine().register(saga).start_worker()
    instance = engine.start("careful").id
    gate.entered()
    reply = engine.acting("ann").futures.run(instance).cancel("enough")
    (context,) = stage.contexts("slow")
    eventually(lambda: context.cancelled)
    assert stage.count("undo") == 0
    assert not reply.done()
    gate.open()
    assert reply.result(LONG_SECONDS) == "cancelled"
    assert stage.calls == ["slow", "undo"]
    assert statuses(engine, instance) == {"fork": "rolled_back", "slow": "rolled_back", "ask": "skipped"}


@pytest.mark.row("F-162", "F-166", "F-260")
def test_a_call_that_waits_for_its_turn_is_not_made(live: Live) -> None:
    """A step that was claimed but whose handler was not called yet is skipped without a call."""
    stage, gate = Stage(), Gate()
    stage.does("slow-handler 1", gate)
    stage.does("slow-handler 2", gate)
    engine = live.engine(msgspec.structs.replace(QUICK, threads=1)).register(forked(stage)).start_worker()
    instance = engine.start("test_parallel").id
    gate.entered()
    eventually(lambda: len(held_by(engine)) == 2)
    reply = engine.acting("ann").futures.run(instance).cancel("enough")
    eventually(lambda: any(context.cancelled for name in (1, 2) for context in stage.contexts(f"slow-handler {name}")))
    gate.open()
    assert reply.result(LONG_SECONDS) == "cancelled"
    assert stage.count("slow-handler 1") + stage.count("slow-handler 2") == 1
    found = statuses(engine, instance)
    assert sorted((found["parallel1"], found["parallel2"])) == ["rolled_back", "skipped"]


@pytest.mark.row("F-156", "F-162", "F-166")
def test_completed_branches_are_undone_and_pending_ones_are_skipped(place: Place) -> None:
    """Cancelled between the two branches: the one that is done is undone, the other one is skipped without a call."""
    stage = Stage()
    saga = (
        Saga("half")
        .fork(
            "fork",
            lambda branch: branch.step("one", stage.does("one"), priority=9).on_failure("undo 1", stage.does("undo 1")),
            lambda branch: branch.step("two", stage.does("two")).on_failure("undo 2", stage.does("undo 2")),
        )
        .join("join")
        .build()
    )
    engine = place.engine().register(saga)
    instance = engine.start("half").id
    engine.execute_next()
    engine.acting("ann").futures.run(instance).cancel("enough")
    engine.drain()
    assert status(engine, instance) == "cancelled"
    assert stage.calls == ["one", "undo 1"]
    assert statuses(engine, instance) == {"fork": "rolled_back", "one": "rolled_back", "two": "skipped"}


# -- from elsewhere, at the same time, too late


@pytest.mark.row("F-171", "F-251", "F-155")
def test_a_cancellation_from_another_process_reaches_the_handler(live: Live) -> None:
    """An engine that does no work itself cancels: the handler in the other one sees the signal."""
    stage = Stage()
    stage.does("c", until_told)
    working = live.engine().register(chain(stage)).start_worker()
    asking = live.engine().register(chain(stage))
    instance = asking.start("chain").id
    eventually(lambda: stage.count("c"))
    assert asking.acting("ann").run(instance).cancel("enough", timeout=LONG_SECONDS) == "cancelled"
    assert stage.contexts("c")[0].cancelled
    assert statuses(working, instance)["c"] == "skipped"
    assert stage.calls[-2:] == ["undo b", "undo a"]


@pytest.mark.row("F-177")
def test_of_many_cancellations_at_once_one_wins(live: Live) -> None:
    """The others are told that it is in progress or over, and everything is undone once."""
    stage = Stage()
    stage.does("c", until_told)
    engines = [live.engine().register(chain(stage)).start_worker() for _ in range(2)]
    instance = engines[0].start("chain").id
    eventually(lambda: stage.count("c"))
    won, lost = list[str](), list[str]()

    def cancel(number: int) -> None:
        reply = engines[number % 2].acting(f"actor {number}").futures.run(instance).cancel(f"reason {number}")
        error = reply.exception(LONG_SECONDS)
        if error is None:
            won.append(reply.result())
        else:
            assert isinstance(error, RejectedError)
            lost.append(error.reason)

    together(*(partial(cancel, number) for number in range(6)))
    assert won == ["cancelled"]
    assert len(lost) == 5
    assert set(lost) <= {"rollback_in_progress", "already_terminal"}
    assert (stage.count("undo a"), stage.count("undo b")) == (1, 1)


def ended(engine: ManualEngine, stage: Stage, how: str) -> InstanceId:
    """A saga that has ended in this way."""
    match how:
        case "completed":
            return run(engine, "chain")
        case "failed":
            stage.does("c")
            return run(engine, "breaks")
        case "cancelled":
            instance = engine.start("chain").id
            engine.acting("ann").futures.run(instance).cancel("no")
            engine.drain()
            return instance
        case _:
            instance = engine.start("chain").id
            engine.acting("ann").futures.run(instance).abort("no")
            engine.drain()
            return instance


@pytest.mark.row("F-153", "F-160", "F-175", "F-179")
@pytest.mark.parametrize("how", ["completed", "failed", "cancelled", "aborted"])
@pytest.mark.parametrize("word", ["cancel", "abort"])
@pytest.mark.row("C-11")
def test_a_saga_that_has_ended_cannot_be_stopped(place: Place, how: str, word: str) -> None:
    """Cancelling or aborting it is an error with a stable code, and nothing changes."""
    stage = Stage()
    breaks = Saga("breaks").step("bad", stage.does("bad", BROKEN), attempts=1).build()
    engine = place.engine().register(chain(stage)).register(breaks)
    instance = ended(engine, stage, how)
    assert status(engine, instance) == how
    before, calls = engine.run(instance).history(), stage.calls
    stopped = engine.acting("bob").run(instance)
    with pytest.raises(RejectedError, match="already in terminal state") as caught:
        stopped.cancel("again") if word == "cancel" else stopped.abort("again")
    assert (caught.value.code, caught.value.reason) == ("rejected", "already_terminal")
    engine.drain()
    assert (status(engine, instance), engine.run(instance).history(), stage.calls) == (how, before, calls)


@pytest.mark.row("F-176")
@pytest.mark.parametrize("word", ["cancel", "abort"])
def test_an_unknown_saga_cannot_be_stopped(place: Place, word: str) -> None:
    """That is another error than for one that has ended."""
    engine = place.engine().register(chain(Stage()))
    stopped = engine.acting("ann").run(NOBODY)
    with pytest.raises(NotFoundError):
        stopped.cancel("no") if word == "cancel" else stopped.abort("no")


# -- a saga that waits for an operator, or is on its way back already


@pytest.mark.row("F-161", "F-238")
@pytest.mark.row("C-21")
def test_a_saga_that_waits_for_an_operator_can_be_cancelled(place: Place) -> None:
    """Cancelling undoes what was done, also in DLQ mode, and closes the dead letters of the instance."""
    stage = Stage()
    saga = (
        Saga("dead", dlq=True)
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .step("b", stage.does("b", BROKEN), attempts=1)
        .on_failure("undo b", stage.does("undo b"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "dead")
    assert status(engine, instance) == "dlq"
    assert stage.count("undo a") == 0
    (letter,) = engine.dead_letters.list()
    reply = engine.acting("ann").futures.run(instance).cancel("hopeless")
    engine.drain()
    assert reply.result() == "cancelled"
    assert stage.calls == ["a", "b", "undo b", "undo a"]
    assert engine.dead_letters.list() == []
    with pytest.raises(NotFoundError):
        engine.dead_letters.requeue(letter.id)


@pytest.mark.row("F-252")
def test_a_saga_on_its_way_back_cannot_be_cancelled(place: Place) -> None:
    """During a rollback a cancellation is refused: it would come to the same."""
    stage, engine = Stage(), place.engine()
    refused: list[BaseException | None] = []

    def undo(ctx: StepContext) -> None:
        refused.append(engine.acting("ann").futures.run(ctx.instance).cancel("me too").exception())

    stage.does("undo b", undo)
    stage.does("c", BROKEN)
    engine.register(chain(stage))
    instance = run(engine, "chain")
    (error,) = refused
    assert isinstance(error, RejectedError)
    assert error.reason == "rollback_in_progress"
    assert status(engine, instance) == "failed"
    assert stage.calls[-2:] == ["undo b", "undo a"]


def test_a_cancelled_saga_has_no_result(place: Place) -> None:
    """Asking for its result says how and why it ended."""
    stage = Stage()
    engine = place.engine().register(chain(stage))
    instance = engine.start("chain").id
    waiting = engine.futures.run(instance).result()
    engine.acting("ann").futures.run(instance).cancel("no longer needed")
    engine.drain()
    error = waiting.exception()
    assert getattr(error, "status", "") == "cancelled"
    assert getattr(error, "reason", "") == "no longer needed"


def test_a_dead_letter_of_a_cancelled_saga_can_be_retried(place: Place) -> None:
    """A compensation that failed during a cancellation is tried again; then the saga is `cancelled` after all."""
    stage, engine = Stage(), place.engine()
    stage.does("c", cancels(engine))
    stage.does("undo b", BROKEN, None)
    engine.register(chain(stage))
    instance = run(engine, "chain")
    (letter,) = engine.dead_letters.list(instance=instance)
    with pytest.raises(ConflictError):
        engine.dead_letters.requeue(letter.id)
    engine.dead_letters.retry_compensation(letter.id)
    engine.drain()
    assert status(engine, instance) == "cancelled"
    assert stage.calls == ["a", "b", "c", "undo b", "undo b", "undo a"]
    assert engine.dead_letters.list() == []


def test_a_decision_and_a_cancellation_do_not_both_count(live: Live) -> None:
    """A person confirms while somebody cancels: the saga is cancelled with everything undone, or completed with nothing undone."""
    stage = Stage()
    saga = (
        Saga("torn")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .human("ask")
        .step("b", stage.does("b"))
        .build()
    )
    engine = live.engine().register(saga).start_worker()
    for _ in range(10):
        stage.forget()
        instance = engine.start("torn").id
        eventually(engine.tasks.list)
        refusals: list[BaseException | None] = []
        together(partial(_cancel, engine, instance, refusals), partial(_decide, engine, instance))
        eventually(partial(_has_ended, engine, instance))
        assert status(engine, instance) == ("completed" if refusals[0] else "cancelled")
        assert stage.count("undo a") == (0 if refusals[0] else 1)


def _cancel(engine: Engine, instance: InstanceId, refusals: list[BaseException | None]) -> None:
    refusals.append(engine.acting("bob").futures.run(instance).cancel("no").exception(LONG_SECONDS))


def _decide(engine: Engine, instance: InstanceId) -> None:
    """Confirm, if it is not too late."""
    with suppress(RejectedError):
        decide(engine, instance, "ask")


def _has_ended(engine: Engine, instance: InstanceId) -> bool:
    return engine.run(instance).describe().is_terminal
