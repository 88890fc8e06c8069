"""Save points: how far back a failure goes."""

from __future__ import annotations

import pytest

from app.sagas.acting import BROKEN, Stage, run, status, statuses
from standfast import Branch, Saga
from support.engines import Place


def does(branch: Branch, stage: Stage, name: str, *acts: object, priority: int = 0) -> Branch:
    """A step with a compensation."""
    return branch.step(name, stage.does(name, *acts), attempts=1, priority=priority).on_failure(
        f"undo {name}", stage.does(f"undo {name}")
    )


@pytest.mark.row("F-080")
def test_a_save_point_is_a_step_that_calls_nobody(place: Place) -> None:
    """It is passed at once and reads `completed`."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s").step("a", stage.does("a")).save_point("here").step("b", stage.does("b"))
    instance = run(engine.register(saga.build()), "s")
    assert statuses(engine, instance) == {"a": "completed", "here": "completed", "b": "completed"}
    assert stage.calls == ["a", "b"]
    assert engine.definitions.get("s").nodes["here"].execution == "pure"


@pytest.mark.row("F-081", "EC-07")
@pytest.mark.row("C-20")
def test_a_failure_goes_back_to_the_save_point(place: Place) -> None:
    """What lies before it stays done and is not undone; the instance has failed all the same."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s")
    does(saga, stage, "reserve")
    saga.save_point("here")
    does(saga, stage, "pack")
    does(saga, stage, "ship", BROKEN)
    instance = run(engine.register(saga.build()), "s")
    assert stage.calls == ["reserve", "pack", "ship", "undo ship", "undo pack"]
    assert statuses(engine, instance) == {
        "reserve": "completed",
        "here": "completed",
        "pack": "rolled_back",
        "ship": "rolled_back",
    }
    assert status(engine, instance) == "failed"


@pytest.mark.row("F-081")
def test_a_save_point_that_was_not_reached_protects_nothing(place: Place) -> None:
    """A failure before it undoes everything."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s")
    does(saga, stage, "a")
    does(saga, stage, "b", BROKEN)
    saga.save_point("here").step("c", stage.does("c"))
    instance = run(engine.register(saga.build()), "s")
    assert stage.calls == ["a", "b", "undo b", "undo a"]
    assert statuses(engine, instance) == {"a": "rolled_back", "b": "rolled_back"}


@pytest.mark.row("F-082")
def test_the_nearest_save_point_counts(place: Place) -> None:
    """Of two save points the one next to the failure bounds the rollback."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s")
    does(saga, stage, "a")
    saga.save_point("first")
    does(saga, stage, "b")
    saga.save_point("second")
    does(saga, stage, "c")
    does(saga, stage, "d", BROKEN)
    instance = run(engine.register(saga.build()), "s")
    assert stage.calls == ["a", "b", "c", "d", "undo d", "undo c"]
    assert statuses(engine, instance) == {
        "a": "completed",
        "first": "completed",
        "b": "completed",
        "second": "completed",
        "c": "rolled_back",
        "d": "rolled_back",
    }


def branched(stage: Stage, *, failing: str) -> Saga:
    """Two branches, the first with a save point in the middle; one step fails."""
    acts = {failing: (BROKEN,)}
    saga = Saga("s")
    does(saga, stage, "root")

    def first(branch: Branch) -> None:
        does(branch, stage, "a1", *acts.get("a1", ()), priority=90)
        branch.save_point("here")
        does(branch, stage, "a2", *acts.get("a2", ()), priority=80)

    def second(branch: Branch) -> None:
        does(branch, stage, "b1", *acts.get("b1", ()), priority=85)
        does(branch, stage, "b2", *acts.get("b2", ()), priority=10)

    saga.fork("fork", first, second).join("met")
    does(saga, stage, "end", *acts.get("end", ()))
    return saga


@pytest.mark.row("F-083")
@pytest.mark.parametrize(
    ("failing", "undone"),
    [
        # The save point's own branch fails: it bounds this branch and what lies before the fork; the other branch is undone.
        ("a2", ["undo a2", "undo b1"]),
        # The other branch fails: the save point keeps what its own branch did before it, and nothing else.
        ("b2", ["undo b2", "undo a2", "undo b1", "undo root"]),
        # The failure comes after the join: for the branch with the save point it counts, for the rest it does not.
        ("end", ["undo end", "undo b2", "undo a2", "undo b1", "undo root"]),
    ],
)
def test_a_save_point_bounds_its_own_branch(place: Place, failing: str, undone: list[str]) -> None:
    """Inside of a branch a save point keeps what lies before it on its way, wherever the failure is."""
    stage, engine = Stage(), place.engine()
    instance = run(engine.register(branched(stage, failing=failing).build()), "s")
    assert [each for each in stage.calls if each.startswith("undo")] == undone
    found = statuses(engine, instance)
    assert (found["a1"], found["here"], status(engine, instance)) == ("completed", "completed", "failed")


@pytest.mark.row("F-083")
def test_a_save_point_before_a_fork_bounds_all_branches(place: Place) -> None:
    """On the way back from any branch it is the nearest one."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s")
    does(saga, stage, "root")
    saga.save_point("here")
    saga.fork(
        "fork",
        lambda one: does(one, stage, "a", priority=9),
        lambda two: does(two, stage, "b", BROKEN),
    ).join("met")
    instance = run(engine.register(saga.build()), "s")
    assert stage.calls == ["root", "a", "b", "undo b", "undo a"]
    assert statuses(engine, instance)["root"] == "completed"


@pytest.mark.row("F-081")
def test_a_save_point_on_the_way_of_a_condition_counts_if_it_was_passed(place: Place) -> None:
    """What counts is what was executed: a save point on the way that was not taken protects nothing."""
    stage, engine = Stage(), place.engine()
    saga = Saga("s")
    does(saga, stage, "a")

    def no(branch: Branch) -> None:
        branch.save_point("here")
        does(branch, stage, "n", BROKEN)

    saga.condition("c", "{{ .yes }}", no)
    does(saga, stage, "y", BROKEN)
    engine.register(saga.build())
    run(engine, "s", {"yes": True})
    assert stage.calls == ["a", "y", "undo y", "undo a"]
    stage.forget()
    run(engine, "s", {"yes": False})
    assert stage.calls == ["a", "n", "undo n"]
