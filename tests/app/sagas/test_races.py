"""Things that happen at the same moment, and processes that end at a bad one: nothing is lost and nothing counts twice."""

from __future__ import annotations

import threading
from collections import Counter
from functools import partial

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, history, run, status, statuses, until_told
from standfast import RejectedError, Saga, SagaDefinition, StepContext
from standfast.kernel.ids import InstanceId
from standfast.store.opening import open_store
from standfast.testing import CrashScenario, ManualEngine, crash_everywhere
from support.engines import Live, Place
from support.inside import store_of, worker_of
from support.waiting import LONG_SECONDS, eventually, together


@pytest.mark.row("F-258")
def test_retries_and_compensations_keep_the_priority_of_their_step(place: Place) -> None:
    """A call that is made again, and one that undoes the step, are as urgent as the first one."""
    stage, engine = Stage(), place.engine()
    stage.does("work", BROKEN)
    saga = (
        Saga("urgent")
        .step("work", stage.does("work"), attempts=2, priority=70)
        .on_failure("undo", stage.does("undo", BROKEN), attempts=2)
        .build()
    )
    engine.register(saga)
    instance = engine.start("urgent").id
    reader = store_of(engine).reader(engine.request.tenant)
    seen: list[int] = []
    while effects := reader.work(instance)[0]:
        seen += [each.priority for each in effects]
        engine.execute_next()
    assert stage.calls == ["work", "work", "undo", "undo"]
    assert seen == [70, 70, 70, 70]


def spreading(stage: Stage) -> SagaDefinition:
    """A step, a fork of three, a join, a step."""
    return (
        Saga("spreading")
        .step("first", stage.does("first"))
        .fork("fork", *(partial(_branch, stage, name) for name in ("a", "b", "c")))
        .join("join")
        .then("last", stage.does("last"))
        .build()
    )


def _branch(stage: Stage, name: str, branch: object) -> object:
    return branch.step(name, stage.does(name))  # type: ignore[attr-defined]


@pytest.mark.row("F-259")
def test_a_crash_between_a_step_and_its_successors_loses_and_doubles_nothing() -> None:
    """The end of a step and the beginning of those behind it are one commit: wherever the process dies, each begins once."""

    def prepare(engine: ManualEngine) -> None:
        engine.register(spreading(Stage()))

    def play(engine: ManualEngine) -> None:
        engine.start("spreading", key="s-1", idempotency_key="go")
        engine.drain()

    def outcome(engine: ManualEngine) -> object:
        (found,) = engine.runs.list().items
        begun = Counter(each.step_name for each in history(engine, found.id, "step_started"))
        ended = Counter(each.step_name for each in history(engine, found.id, "step_completed"))
        assert begun == dict.fromkeys(("first", "a", "b", "c", "last"), 1)
        assert ended == dict.fromkeys(("first", "a", "b", "c", "last", "fork", "join"), 1)
        return found.status

    report = crash_everywhere(
        CrashScenario(prepare=prepare, play=play, outcome=outcome), new_store=lambda: open_store("sqlite://")
    )
    assert report.outcome == "completed"
    assert report.points >= 15


@pytest.mark.row("F-177", "F-252")
def test_a_cancellation_and_an_abort_at_the_same_moment(live: Live) -> None:
    """Whichever comes first: the saga comes to one end, and everything is undone once or not at all."""
    stage = Stage()
    saga = (
        Saga("torn")
        .step("a", stage.does("a"))
        .on_failure("undo a", stage.does("undo a"))
        .step("b", stage.does("b", until_told))
        .build()
    )
    engines = [live.engine().register(saga).start_worker() for _ in range(2)]
    for _ in range(8):
        stage.forget()
        instance = engines[0].start("torn").id
        eventually(lambda: stage.count("b"))
        errors: dict[str, BaseException | None] = {}
        together(
            partial(_stop, errors, "cancel", partial(engines[0].acting("ann").futures.run(instance).cancel, "no")),
            partial(_stop, errors, "abort", partial(engines[1].acting("bob").futures.run(instance).abort, "no")),
        )
        how = status(engines[0], instance)
        assert how in {"cancelled", "aborted"}
        assert all(isinstance(each, RejectedError) for each in errors.values() if each is not None)
        if how == "aborted":
            assert errors["abort"] is None
            assert stage.count("undo a") <= 1
        else:
            assert errors["cancel"] is None
            assert stage.count("undo a") == 1
        eventually(lambda: not any(worker_of(engine).is_busy for engine in engines))


def _stop(errors: dict[str, BaseException | None], word: str, ask: object) -> None:
    errors[word] = ask().exception(LONG_SECONDS)  # type: ignore[operator]


@pytest.mark.row("F-089", "F-177")
def test_two_branches_that_fail_at_the_same_moment_roll_back_once(live: Live) -> None:
    """Both failures are on record; each executed step is undone once."""
    stage = Stage()
    lock, meetings = threading.Lock(), dict[InstanceId, threading.Barrier]()

    def meet_and_fail(ctx: StepContext) -> None:
        with lock:
            meeting = meetings.setdefault(ctx.instance, threading.Barrier(2))
        meeting.wait(LONG_SECONDS)
        raise BROKEN

    for name in ("left", "right"):
        stage.does(name, meet_and_fail)
    saga = (
        Saga("both fail")
        .step("start", stage.does("start"))
        .on_failure("undo start", stage.does("undo start"))
        .fork(
            "fork",
            lambda branch: branch.step("left", stage.does("left"), attempts=1).on_failure("ul", stage.does("ul")),
            lambda branch: branch.step("right", stage.does("right"), attempts=1).on_failure("ur", stage.does("ur")),
        )
        .join("join")
        .build()
    )
    engines = [live.engine().register(saga).start_worker() for _ in range(2)]
    started = [engines[number % 2].start("both fail").id for number in range(10)]
    for instance in started:
        engines[0].futures.run(instance).result().exception(LONG_SECONDS)
        assert status(engines[0], instance) == "failed"
        assert set(statuses(engines[0], instance).values()) == {"rolled_back"}
    assert {name: stage.count(name) for name in ("undo start", "ul", "ur")} == {"undo start": 10, "ul": 10, "ur": 10}


@pytest.mark.row("F-089")
def test_a_sibling_that_runs_when_another_branch_fails_is_undone_after_it_came_back(live: Live) -> None:
    """Nothing new begins, the running handler may finish, and only then its work is undone."""
    stage, gate = Stage(), Gate({"slow": "done"})

    def fail_beside(_ctx: StepContext) -> None:
        gate.entered()
        raise BROKEN

    stage.does("slow", gate)
    stage.does("bad", fail_beside)
    saga = (
        Saga("beside")
        .fork(
            "fork",
            lambda branch: (
                branch.step("slow", stage.does("slow"))
                .on_failure("undo slow", stage.does("undo slow"))
                .step("next", stage.does("next"))
            ),
            lambda branch: branch.step("bad", stage.does("bad"), attempts=1),
        )
        .join("join")
        .build()
    )
    engine = live.engine().register(saga).start_worker()
    instance = engine.start("beside").id
    eventually(lambda: history(engine, instance, "rollback_started"))
    assert stage.count("undo slow") == 0
    gate.open()
    engine.futures.run(instance).result().exception(LONG_SECONDS)
    assert status(engine, instance) == "failed"
    assert stage.calls[2:] == ["undo slow"]
    assert stage.contexts("undo slow")[0].output == {"slow": "done"}


def test_two_engines_that_drain_in_turn_do_each_thing_once(place: Place) -> None:
    """Processes without threads take turns on one database: each handler is called once."""
    stage = Stage()
    engines = [place.engine().register(spreading(stage)) for _ in range(3)]
    instance = engines[0].start("spreading").id
    while any([engine.execute_next() for engine in engines]):  # noqa: C419 - each of them has its turn
        pass
    assert status(engines[1], instance) == "completed"
    assert sorted(stage.calls) == ["a", "b", "c", "first", "last"]


@pytest.mark.row("F-172")
def test_a_late_worker_does_not_disturb_the_one_that_took_over(place: Place) -> None:
    """A handler outlasts its lease and another process repeats the step: the answer of the first one is ignored."""
    stage = Stage()
    other = place.engine()

    def outlast(_ctx: StepContext) -> object:
        other.advance(other.settings.lease * 3)
        return {"by": "the first"}

    stage.does("work", outlast, {"by": "the second"})
    saga = Saga("slow").step("work", stage.does("work")).step("after", stage.does("after")).build()
    other.register(saga)
    slow = place.engine().register(saga)
    instance = run(slow, "slow")
    assert slow.run(instance).result() == {"by": "the second"}
    assert stage.calls == ["work", "work", "after"]
