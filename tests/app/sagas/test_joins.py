"""Where branches meet: how many are waited for, what becomes of the others, and what conditions inside of branches change about it."""

from __future__ import annotations

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, history, run, status, statuses, step
from holdfast import Branch, Saga, SagaDefinition
from holdfast.authoring.saga.builder import Build, Strategy
from support.engines import Live, Place
from support.inside import worker_of
from support.waiting import LONG_SECONDS, eventually

GO = {"count": 10}


def racing(stage: Stage, strategy: Strategy, *names: str) -> SagaDefinition:
    """Branches of one step each, the first of them called first; a join, and an end."""

    def build(place: int, name: str) -> Build:
        return lambda branch: branch.step(name, stage.does(name), retries=1, priority=90 - place).on_failure(
            f"undo {name}", stage.does(f"undo {name}")
        )

    return (
        Saga("race")
        .fork("fork", *(build(place, name) for place, name in enumerate(names)))
        .join("join", strategy)
        .then("after", stage.does("after"))
        .build()
    )


@pytest.mark.row("F-130")
def test_any_goes_on_while_the_slow_branch_still_runs(live: Live) -> None:
    """The first branch is enough: the saga ends while the handler of the other one has not come back."""
    stage, gate = Stage(), Gate("too late")
    stage.does("slow", gate)
    engine = live.engine().register(racing(stage, "any", "slow", "quick")).start_worker()
    instance = engine.start("race").result()
    gate.entered()
    engine.result(instance).result(LONG_SECONDS)
    assert stage.count("after") == 1
    gate.open()
    eventually(lambda: not worker_of(engine).is_busy)
    assert statuses(engine, instance)["slow"] == "skipped"
    assert engine.get(instance).result().context == {"quick": None}
    assert stage.count("undo slow") == 0


@pytest.mark.row("F-130")
def test_the_slow_branch_is_told_to_stop(live: Live) -> None:
    """The handler of a branch that is no longer needed learns of it while it runs."""
    stage, gate = Stage(), Gate()
    stage.does("slow", gate)
    engine = live.engine().register(racing(stage, "any", "slow", "quick")).start_worker()
    instance = engine.start("race").result()
    gate.entered()
    engine.result(instance).result(LONG_SECONDS)
    (context,) = stage.contexts("slow")
    eventually(lambda: context.cancelled)
    gate.open()
    assert [each.data["reason"] for each in history(engine, instance, "step_failed")] == ["branch_not_needed"]


@pytest.mark.row("F-130")
def test_a_branch_that_nobody_has_begun_is_not_called_any_more(place: Place) -> None:
    """After the first of three branches the two others are skipped without a call."""
    stage = Stage()
    engine = place.engine().register(racing(stage, "any", "a", "b", "c"))
    instance = run(engine, "race")
    assert status(engine, instance) == "completed"
    assert stage.calls == ["a", "after"]
    found = statuses(engine, instance)
    assert [found[name] for name in "abc"] == ["completed", "skipped", "skipped"]


@pytest.mark.row("F-132")
def test_all_does_not_go_on_after_a_failure(place: Place) -> None:
    """One failed branch fails the join: nothing behind it runs, and what the other branch did is undone."""
    stage = Stage()
    stage.does("bad", BROKEN)
    engine = place.engine().register(racing(stage, "all", "good", "bad"))
    instance = run(engine, "race")
    assert status(engine, instance) == "failed"
    assert stage.count("after") == 0
    assert "join" not in statuses(engine, instance)
    assert statuses(engine, instance)["bad"] == "rolled_back"
    assert stage.calls == ["good", "bad", "undo bad", "undo good"]


@pytest.mark.row("F-132")
def test_any_survives_the_failure_of_a_branch(place: Place) -> None:
    """Under `any` a failed branch alone does not fail the join while another one can still succeed."""
    stage = Stage()
    stage.does("bad", BROKEN)
    engine = place.engine().register(racing(stage, "any", "bad", "good"))
    instance = run(engine, "race")
    assert status(engine, instance) == "completed"
    assert stage.calls == ["bad", "good", "after"]
    assert statuses(engine, instance)["bad"] == "failed"


@pytest.mark.row("F-132")
def test_any_fails_when_all_branches_failed(place: Place) -> None:
    """When no branch is left that could succeed, the saga is rolled back."""
    stage = Stage()
    stage.does("bad", BROKEN)
    stage.does("worse", BROKEN)
    engine = place.engine().register(racing(stage, "any", "bad", "worse"))
    instance = run(engine, "race")
    assert status(engine, instance) == "failed"
    assert stage.calls[:2] == ["bad", "worse"]
    assert stage.count("after") == 0


@pytest.mark.parametrize(("failing", "ending"), [(1, "completed"), (2, "failed")])
def test_a_number_of_branches_is_enough(place: Place, failing: int, ending: str) -> None:
    """Two of three are wanted: one failure is borne, two are not."""
    stage = Stage()
    for name in ("a", "b")[:failing]:
        stage.does(name, BROKEN)
    engine = place.engine().register(racing(stage, 2, "a", "b", "c"))
    instance = run(engine, "race")
    assert status(engine, instance) == ending
    assert stage.count("after") == (ending == "completed")


# -- conditions inside of branches


def conditional(stage: Stage) -> SagaDefinition:
    """The example of the specification: two branches, each with a condition and another way."""

    def one(branch: Branch) -> object:
        return (
            branch.step("branch1_step1", stage.does("branch1_step1"))
            .condition(
                "branch1_condition",
                "{{ gt .count 5 }}",
                lambda other: other.step("branch1_else", stage.does("branch1_else")),
            )
            .then("branch1_next", stage.does("branch1_next"), retries=1)
        )

    def two(branch: Branch) -> object:
        return (
            branch.step("branch2_step1", stage.does("branch2_step1"))
            .condition(
                "branch2_condition",
                "{{ lt .count 3 }}",
                lambda other: other.step("branch2_else", stage.does("branch2_else")),
            )
            .then("branch2_next", stage.does("branch2_next"))
        )

    return Saga("conditional").fork("parallel_branch", one, two).join("join").then("final", stage.does("final")).build()


@pytest.mark.row("F-135")
def test_a_join_waits_for_the_conditions_of_its_branches() -> None:
    """In the definition the join waits for a virtual entry for each condition; a branch without one is known by its last step."""
    stage = Stage()
    assert conditional(stage).steps["join"].wait_for == ("cond#branch1_condition", "cond#branch2_condition")
    assert racing(stage, "all", "a", "b").steps["join"].wait_for == ("a", "b")


@pytest.mark.row("F-136")
def test_only_the_first_condition_of_a_branch_is_waited_for() -> None:
    """Two conditions in a row in one branch make one virtual entry."""
    stage = Stage()
    saga = (
        Saga("twice")
        .fork(
            "fork",
            lambda branch: (
                branch.condition("first", "{{ gt .count 5 }}")
                .condition("second", "{{ gt .count 7 }}")
                .step("a", stage.does("a"))
            ),
            lambda branch: branch.step("b", stage.does("b")),
        )
        .join("join")
        .build()
    )
    assert saga.steps["join"].wait_for == ("cond#first", "b")


@pytest.mark.row("F-137", "F-138")
@pytest.mark.parametrize(
    ("count", "ends"),
    [
        (10, ["branch1_next", "branch2_else"]),
        (1, ["branch1_else", "branch2_next"]),
        (4, ["branch1_else", "branch2_else"]),
    ],
)
def test_a_join_is_reached_whichever_way_the_branches_took(place: Place, count: int, ends: list[str]) -> None:
    """The join meets by the steps that really ended the branches, and knows them by their names."""
    stage = Stage()
    for name in ends:
        stage.does(name, f"answer of {name}")
    engine = place.engine().register(conditional(stage))
    instance = run(engine, "conditional", {"count": count})
    assert status(engine, instance) == "completed"
    assert step(engine, instance, "join").output == {name: f"answer of {name}" for name in ends}
    assert {name for name in stage.calls if name.endswith(("_next", "_else"))} == set(ends)
    assert stage.count("final") == 1


@pytest.mark.row("F-137")
def test_each_branch_arrives_at_the_join_by_itself(place: Place) -> None:
    """The history tells of each branch when it has arrived, and that they met after the last one."""
    stage = Stage()
    engine = place.engine().register(conditional(stage))
    instance = run(engine, "conditional", GO)
    told = [each.event_type for each in history(engine, instance, "join_arrived", "branches_met")]
    assert told == ["join_arrived", "join_arrived", "branches_met"]
    ways = {each.data["token"] for each in history(engine, instance, "join_arrived")}
    ends = {step(engine, instance, name).token for name in ("branch1_next", "branch2_else")}
    assert ways == ends


@pytest.mark.row("F-139")
def test_a_failure_behind_a_condition_fails_the_join(place: Place) -> None:
    """The step that really ran and failed counts: the join does not pass, and the saga fails."""
    stage = Stage()
    stage.does("branch1_next", BROKEN)
    engine = place.engine().register(conditional(stage))
    instance = run(engine, "conditional", GO)
    assert status(engine, instance) == "failed"
    assert "join" not in statuses(engine, instance)
    assert stage.count("final") == 0
    assert [each.step_name for each in history(engine, instance, "step_failed")] == ["branch1_next"]


@pytest.mark.row("F-140")
def test_a_branch_that_ends_at_its_condition_releases_the_join(place: Place) -> None:
    """A condition that does not hold and has no other way is the end of its branch, and the join does not wait for ever."""
    stage = Stage()
    saga = (
        Saga("ends")
        .fork(
            "fork",
            lambda branch: branch.condition("big", "{{ gt .count 5 }}").step("only big", stage.does("only big")),
            lambda branch: branch.step("always", stage.does("always")),
        )
        .join("join")
        .then("final", stage.does("final"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "ends", {"count": 1})
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == ["always", "final"]


@pytest.mark.row("F-141")
@pytest.mark.parametrize(("kind", "prepared"), [("digital", "deliver"), ("physical", "prepare")])
def test_an_explicit_join_does_not_wait_for_a_way_not_taken(place: Place, kind: str, prepared: str) -> None:
    """The deprecated form that names what it waits for meets as well when a condition led past the step that it names."""
    stage = Stage()
    saga = Saga("explicit").fork(
        "fork",
        lambda branch: branch.step("ship", stage.does("ship")),
        lambda branch: branch.condition(
            "is digital",
            '{{ eq .kind "digital" }}',
            lambda other: other.step("prepare", stage.does("prepare")),
        ).then("deliver", stage.does("deliver")),
    )
    with pytest.warns(DeprecationWarning, match="use join"):
        saga.join_step("join", ["ship", "deliver"])
    engine = place.engine().register(saga.then("final", stage.does("final")).build())
    instance = run(engine, "explicit", {"kind": kind})
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == sorted(["ship", prepared, "final"])


# -- what comes together


@pytest.mark.row("F-245")
def test_a_join_brings_the_answers_of_its_branches_together(place: Place) -> None:
    """What follows sees the data before the fork, and over it each branch's answer under the name of its last step."""
    stage = Stage()
    stage.does("left", {"x": 1})
    stage.does("right", 7)
    engine = place.engine().register(racing(stage, "all", "left", "right"))
    instance = engine.start("race", {"given": True}).result()
    engine.drain()
    (context,) = stage.contexts("after")
    assert context.input == {"given": True, "left": {"x": 1}, "right": 7}
    assert engine.result(instance).result() == {"given": True, "left": {"x": 1}, "right": 7}
