"""Ways that part: tasks and branches that run at the same time, and what their split looks like meanwhile."""

from __future__ import annotations

import threading
from collections import defaultdict

import msgspec
import pytest

from app.sagas.acting import BROKEN, Stage, run, status, statuses
from standfast import Branch, DefinitionError, Saga, SagaDefinition, StepContext, task
from standfast.testing import ManualEngine
from support.engines import QUICK, Live, Place
from support.waiting import LONG_SECONDS

ONE_AT_A_TIME = msgspec.structs.replace(QUICK, concurrency=1)


def forked(stage: Stage, name: str = "forked") -> SagaDefinition:
    """A start, a fork into two branches, a join and an end."""
    return (
        Saga(name)
        .step("start", stage.does("start"))
        .fork(
            "fork",
            lambda branch: branch.step("left", stage.does("left")),
            lambda branch: branch.step("right", stage.does("right")),
        )
        .join("join")
        .then("final", stage.does("final"))
        .build()
    )


def paralleled(stage: Stage, name: str = "paralleled") -> SagaDefinition:
    """The same with `parallel` instead of fork and join."""
    return (
        Saga(name)
        .step("start", stage.does("start"))
        .parallel("fork", task("left", stage.does("left")), task("right", stage.does("right")))
        .then("final", stage.does("final"))
        .build()
    )


@pytest.mark.row("F-127", "F-128", "F-247")
@pytest.mark.parametrize("build", [forked, paralleled])
def test_branches_run_at_the_same_time_on_two_workers(live: Live, build: object) -> None:
    """Each branch waits for the other one, on engines that call one handler at a time: both pass, and only then the saga goes on."""
    stage, meeting = Stage(), threading.Barrier(2)
    engines = [live.engine(ONE_AT_A_TIME) for _ in range(2)]
    seen: dict[str, str] = {}

    def meet(ctx: StepContext) -> None:
        meeting.wait(LONG_SECONDS)

    def look(ctx: StepContext) -> None:
        seen.update(statuses(engines[0], ctx.instance))

    stage.does("left", meet)
    stage.does("right", meet)
    stage.does("final", look)
    saga = forked(stage) if build is forked else paralleled(stage)
    for engine in engines:
        engine.register(saga).start_worker()
    instance = engines[0].start(saga.name).id
    engines[0].run(instance).result(LONG_SECONDS)
    assert (seen["left"], seen["right"]) == ("completed", "completed")
    assert stage.count("final") == 1


@pytest.mark.row("F-127", "F-129", "F-262")
@pytest.mark.parametrize("build", [forked, paralleled])
def test_the_slower_branch_is_waited_for(place: Place, build: object) -> None:
    """What follows the branches does not begin before the last of them has ended."""
    stage = Stage()
    saga = forked(stage) if build is forked else paralleled(stage)
    engine = place.engine().register(saga)
    instance = engine.start(saga.name).id
    engine.execute_next()
    engine.execute_next()
    assert len(stage.calls) == 2
    assert "final" not in statuses(engine, instance)
    engine.drain()
    assert sorted(stage.calls[1:3]) == ["left", "right"]
    assert stage.calls[3:] == ["final"]
    assert status(engine, instance) == "completed"


@pytest.mark.row("F-261", "F-262")
@pytest.mark.parametrize("build", [forked, paralleled])
def test_a_split_is_completed_once_its_branches_are_under_way(place: Place, build: object) -> None:
    """The fork, or the parallel step, reads `completed` while its branches run."""
    stage = Stage()
    saga = forked(stage) if build is forked else paralleled(stage)
    engine = place.engine().register(saga)
    instance = engine.start(saga.name).id
    engine.execute_next()
    assert statuses(engine, instance) == {
        "start": "completed",
        "fork": "completed",
        "left": "pending",
        "right": "pending",
    }


@pytest.mark.row("F-131", "F-247")
def test_what_follows_a_join_happens_once_however_close_the_branches_end(live: Live) -> None:
    """Two workers bring the last two branches home at the same moment, a hundred times: the next handler is called once each time."""
    stage = Stage()
    meetings: defaultdict[object, threading.Barrier] = defaultdict(lambda: threading.Barrier(2))
    lock = threading.Lock()

    def meet(ctx: StepContext) -> None:
        with lock:
            meeting = meetings[ctx.instance]
        meeting.wait(LONG_SECONDS)

    stage.does("left", meet)
    stage.does("right", meet)
    saga = forked(stage)
    engines = [live.engine().register(saga).start_worker() for _ in range(2)]
    finals: list[object] = []
    for _ in range(10):
        batch = [engines[number % 2].start("forked").id for number in range(10)]
        for instance in batch:
            engines[0].run(instance).result(LONG_SECONDS)
        finals += batch
    called = [context.instance for context in stage.contexts("final")]
    assert len(called) == 100
    assert set(called) == set(finals)


def nested(stage: Stage) -> SagaDefinition:
    """A fork within a branch of a fork, each with its join."""

    def inner(branch: Branch) -> object:
        return (
            branch.step("outside", stage.does("outside"))
            .on_failure("undo outside", stage.does("undo outside"))
            .fork(
                "inner",
                lambda deep: deep.step("one", stage.does("one")).on_failure("undo one", stage.does("undo one")),
                lambda deep: deep.step("two", stage.does("two")).on_failure("undo two", stage.does("undo two")),
            )
            .join("inner join")
            .then("after inner", stage.does("after inner"))
        )

    return (
        Saga("nested")
        .fork(
            "outer",
            inner,
            lambda branch: branch.step("other", stage.does("other")).on_failure("undo other", stage.does("undo other")),
        )
        .join("outer join")
        .then("end", stage.does("end"), attempts=1)
        .build()
    )


@pytest.mark.row("F-133", "F-253")
def test_nested_forks_run(place: Place) -> None:
    """A fork within a fork runs, each join waits for its own branches, and a saga may begin with a fork."""
    stage = Stage()
    engine = place.engine().register(nested(stage))
    instance = run(engine, "nested")
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == ["after inner", "end", "one", "other", "outside", "two"]
    assert stage.calls.index("after inner") > max(stage.calls.index("one"), stage.calls.index("two"))
    assert stage.calls[-1] == "end"


@pytest.mark.row("F-133")
def test_nested_forks_roll_back(place: Place) -> None:
    """A failure behind nested forks undoes all their steps, in reverse order of their ends."""
    stage = Stage()
    stage.does("end", BROKEN)
    engine = place.engine().register(nested(stage))
    instance = run(engine, "nested")
    assert status(engine, instance) == "failed"
    done = [f"undo {name}" for name in stage.calls if name in {"outside", "one", "two", "other"}]
    assert [name for name in stage.calls if name.startswith("undo")] == done[::-1]
    assert len(done) == 4
    assert set(statuses(engine, instance).values()) == {"rolled_back"}


@pytest.mark.row("F-133", "F-168")
def test_nested_forks_are_cancelled(place: Place) -> None:
    """A cancellation in the midst of nested branches skips what is open and undoes what was done, on all levels."""
    stage = Stage()
    engine = place.engine().register(nested(stage))
    instance = engine.start("nested").id
    while stage.count("one") == 0:
        engine.execute_next()
    reply = engine.acting("ann").futures.run(instance).cancel("no more")
    engine.drain()
    assert reply.result() == "cancelled"
    found = statuses(engine, instance)
    assert "end" not in found
    assert found["two"] == "skipped"
    assert {found[name] for name in ("outer", "inner", "outside", "one")} == {"rolled_back"}
    undone = [name for name in stage.calls if name.startswith("undo")]
    assert undone == [f"undo {name}" for name in stage.calls if f"undo {name}" in undone][::-1]
    assert {"undo one", "undo outside"} <= set(undone)


def without_join(stage: Stage) -> SagaDefinition:
    """Branches that nothing waits for."""
    return (
        Saga("loose")
        .fork(
            "fork",
            lambda branch: branch.step("short", stage.does("short")),
            lambda branch: branch.step("long 1", stage.does("long 1")).step("long 2", stage.does("long 2")),
        )
        .build()
    )


@pytest.mark.row("F-134")
def test_branches_without_a_join_run_to_their_ends(place: Place) -> None:
    """The saga is completed when all of its branches are done."""
    stage = Stage()
    engine = place.engine().register(without_join(stage))
    instance = engine.start("loose").id
    engine.execute_next()
    engine.execute_next()
    assert status(engine, instance) == "running"
    engine.drain()
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == ["long 1", "long 2", "short"]


@pytest.mark.row("F-134")
def test_a_step_behind_a_fork_needs_a_join() -> None:
    """What would follow branches that never meet is refused when the saga is built."""
    stage = Stage()
    saga = Saga("loose").fork("fork", lambda branch: branch.step("a", stage.does("a"))).then("b", stage.does("b"))
    with pytest.raises(DefinitionError) as caught:
        saga.build()
    assert [each.code for each in caught.value.diagnostics] == ["fork_without_join"]


@pytest.mark.row("F-262")
def test_a_parallel_step_is_cancelled_like_a_fork(place: Place) -> None:
    """A cancellation in the middle sweeps the branches that were called, and what would follow does not run."""
    stage, engine = Stage(), place.engine()
    stage.does("left", lambda ctx: cancelled(engine, ctx))
    engine.register(paralleled(stage))
    instance = engine.start("paralleled").id
    engine.drain()
    assert status(engine, instance) == "cancelled"
    found = statuses(engine, instance)
    was_called = stage.count("right") == 1
    assert found == {
        "start": "rolled_back",
        "fork": "rolled_back",
        "left": "rolled_back",
        "right": "rolled_back" if was_called else "skipped",
    }
    assert stage.count("final") == 0


def cancelled(engine: ManualEngine, ctx: StepContext) -> None:
    """Cancel the saga from inside one of its handlers."""
    engine.acting("ann").futures.run(ctx.instance).cancel("from inside")


@pytest.mark.row("F-253")
@pytest.mark.parametrize("first", ["task", "fork", "condition", "human", "parallel", "wait"])
def test_any_kind_of_step_may_come_first(place: Place, first: str) -> None:
    """A saga, and a branch of one, may begin with a step of any kind."""
    stage = Stage()
    saga = Saga("begins")
    beginning(saga, first, stage)
    saga.fork("between", lambda branch: beginning(branch, first, stage, "inside")).join("met")
    engine = place.engine().register(saga.then("last", stage.does("last")).build())
    instance = run(engine, "begins", {"n": 1})
    for _ in range(2):
        for each in engine.tasks.list():
            engine.acting("ann").tasks.decide(each.step_id, "confirmed")
        engine.advance(hours=1)
    assert status(engine, instance) == "completed"
    assert stage.calls[-1] == "last"


def beginning(saga: Branch, kind: str, stage: Stage, name: str = "first") -> object:
    """Add a step of this kind and, where a branch has to end, a task behind it."""
    body = stage.does(f"{name} task")
    match kind:
        case "task":
            return saga.step(name, body)
        case "fork":
            return saga.fork(name, lambda branch: branch.step(f"{name} body", body)).join(f"{name} join")
        case "condition":
            return saga.condition(name, "{{ eq .n 1 }}").step(f"{name} body", body)
        case "human":
            return saga.human(name)
        case "parallel":
            return saga.parallel(name, task(f"{name} body", body))
        case _:
            return saga.wait(name, 60)
