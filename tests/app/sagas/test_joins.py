"""Where branches meet: how many are waited for, what becomes of the others, and what conditions inside of branches change about it."""

from __future__ import annotations

from typing import Any

import pytest

from app.sagas.acting import BROKEN, Gate, Stage, history, run, status, statuses, step
from standfast import Branch, ConflictError, Fail, Retry, Saga, SagaDefinition, task
from standfast.features.sagas.builder import Build, Strategy
from standfast.graph.model import JoinOp, Losers
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Live, Place
from support.inside import worker_of
from support.waiting import LONG_SECONDS, eventually

GO = {"count": 10}


def racing(stage: Stage, strategy: Strategy, *names: str, losers: Losers = "undo") -> SagaDefinition:
    """Branches of one step each, the first of them called first; a join, and an end."""

    def build(place: int, name: str) -> Build:
        return lambda branch: branch.step(name, stage.does(name), attempts=1, priority=90 - place).on_failure(
            f"undo {name}", stage.does(f"undo {name}")
        )

    return (
        Saga("race")
        .fork("fork", *(build(place, name) for place, name in enumerate(names)))
        .join("join", strategy, losers=losers)
        .then("after", stage.does("after"))
        .build()
    )


@pytest.mark.row("F-130")
def test_any_goes_on_while_the_slow_branch_still_runs(live: Live) -> None:
    """The first branch is enough: the saga goes on while the handler of the other one has not come back, and has been told to stop."""
    stage, gate = Stage(), Gate("too late")
    stage.does("slow", gate)
    saga = racing(stage, "any", "slow", "quick", losers="stop")
    engine = live.engine().register(saga).start_worker()
    instance = engine.start("race").id
    gate.entered()
    engine.run(instance).result(LONG_SECONDS)
    assert stage.count("after") == 1
    (context,) = stage.contexts("slow")
    eventually(lambda: context.cancelled)
    gate.open()
    eventually(lambda: not worker_of(engine).is_busy)
    assert statuses(engine, instance)["slow"] == "skipped"
    assert engine.run(instance).describe().context == {"quick": None}
    assert stage.count("undo slow") == 0
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


@pytest.mark.row("F-132", "EC-08")
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
    assert sorted(stage.calls) == ["after", "bad", "good", "undo bad"]
    assert statuses(engine, instance)["bad"] == "rolled_back"
    (met,) = history(engine, instance, "branches_met")
    assert (met.data["completed"], met.data["failed"]) == (["good"], ["bad"])


@pytest.mark.row("F-132")
def test_any_fails_when_all_branches_failed(place: Place) -> None:
    """When no branch is left that could succeed, the saga is rolled back."""
    stage = Stage()
    stage.does("bad", BROKEN)
    stage.does("worse", BROKEN)
    engine = place.engine().register(racing(stage, "any", "bad", "worse"))
    instance = run(engine, "race")
    assert status(engine, instance) == "failed"
    assert sorted(stage.calls) == ["bad", "undo bad", "undo worse", "worse"]
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


# -- branches that were not needed


def offers(stage: Stage, losers: Losers, *, attempts: int = 1, dlq: bool = False) -> SagaDefinition:
    """Two suppliers: goods are reserved with both of them, and the first to confirm gets the order."""

    def supplier(name: str) -> Build:
        return lambda branch: (
            branch.step(f"reserve {name}", stage.does(f"reserve {name}"))
            .on_failure(f"release {name}", stage.does(f"release {name}"), attempts=attempts)
            .wait_for(f"wait {name}", f"offer {name}")
            .step(f"confirm {name}", stage.does(f"confirm {name}"), attempts=1)
        )

    return (
        Saga("offers", dlq=dlq)
        .step("order", stage.does("order"))
        .on_failure("withdraw", stage.does("withdraw"))
        .fork("ask", supplier("A"), supplier("B"))
        .join("first", "any", losers=losers)
        .wait_for("paid", "paid")
        .step("ship", stage.does("ship"), attempts=1)
        .build()
    )


def chosen(place: Place, stage: Stage, losers: Losers, **options: Any) -> tuple[ManualEngine, InstanceId]:
    """An instance in which A was the first."""
    engine = place.engine().register(offers(stage, losers, **options))
    instance = run(engine, "offers")
    engine.run(instance).signal("offer A")
    engine.drain()
    return engine, instance


RESERVED = ["order", "reserve A", "reserve B", "confirm A"]


@pytest.mark.row("F-130")
@pytest.mark.row("G-35")
def test_what_a_loser_did_is_undone_while_the_saga_goes_on(place: Place) -> None:
    """By default: the loser is stopped, its reservation released, and the saga completes with the winner."""
    stage = Stage()
    engine, instance = chosen(place, stage, "undo")
    assert stage.calls == [*RESERVED, "release B"]
    assert statuses(engine, instance)["reserve B"] == "rolled_back"
    assert statuses(engine, instance)["wait B"] == "skipped"
    assert (status(engine, instance), statuses(engine, instance)["paid"]) == ("running", "running")
    engine.run(instance).signal("paid")
    engine.drain()
    assert status(engine, instance) == "completed"
    assert engine.run(instance).result() == {"confirm A": None}
    (context,) = stage.contexts("release B")
    assert (context.error, context.failed_step) == ("another branch was enough", "")
    (met,) = history(engine, instance, "branches_met")
    assert (met.data["completed"], met.data["failed"]) == (["confirm A"], [])


def test_the_default_is_to_undo() -> None:
    """A saga finishes or undoes what it began, unless it says otherwise."""
    join = offers(Stage(), "undo").graph.nodes["first"].op
    assert join == JoinOp(split="ask", strategy="any")


@pytest.mark.row("F-130")
def test_a_saga_does_not_complete_before_its_losers_are_undone(place: Place) -> None:
    """A release that has to be tried again holds up the end, and nothing else."""
    stage = Stage()
    stage.does("release B", Retry(after=60), None)
    engine, instance = chosen(place, stage, "undo", attempts=2)
    engine.run(instance).signal("paid")
    engine.drain()
    assert (stage.count("ship"), status(engine, instance)) == (1, "running")
    engine.advance(seconds=60)
    assert (stage.count("release B"), status(engine, instance)) == (2, "completed")


@pytest.mark.row("F-130")
def test_losers_may_finish(place: Place) -> None:
    """They go on to their ends, leave nothing, and the saga completes after them."""
    stage = Stage()
    engine, instance = chosen(place, stage, "finish")
    engine.run(instance).signal("paid")
    engine.drain()
    assert (stage.count("ship"), status(engine, instance)) == (1, "running")
    engine.run(instance).signal("offer B")
    engine.drain()
    assert status(engine, instance) == "completed"
    assert stage.calls == [*RESERVED, "ship", "confirm B"]
    assert engine.run(instance).result() == {"confirm A": None}
    assert statuses(engine, instance)["confirm B"] == "completed"


@pytest.mark.row("F-130")
def test_a_loser_that_fails_while_it_finishes_is_undone(place: Place) -> None:
    """It neither fails the saga nor leaves anything behind."""
    stage = Stage()
    stage.does("confirm B", BROKEN)
    engine, instance = chosen(place, stage, "finish")
    engine.run(instance).signal("offer B")
    engine.run(instance).signal("paid")
    engine.drain()
    assert status(engine, instance) == "completed"
    assert stage.count("release B") == 1
    assert stage.count("release A") == 0


@pytest.mark.row("F-130")
def test_losers_may_just_stop(place: Place) -> None:
    """What they did stays; only a rollback of the whole would undo it."""
    stage = Stage()
    engine, instance = chosen(place, stage, "stop")
    engine.run(instance).signal("paid")
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", [*RESERVED, "ship"])
    assert statuses(engine, instance)["reserve B"] == "completed"


@pytest.mark.row("F-063", "F-130")
def test_a_loser_that_was_just_stopped_was_called(live: Live) -> None:
    """The saga is over while the handler of the loser still runs: its call counts, then and when it has come back."""
    stage, gate = Stage(), Gate()
    saga = (
        Saga("asking")
        .fork(
            "f",
            lambda one: one.step("ask", stage.does("ask", gate)),
            lambda two: two.wait_for("answer", "go"),
        )
        .join("first", "any", losers="stop")
        .build()
    )
    engine = live.engine().register(saga).start_worker()
    instance = engine.start("asking").id
    gate.entered()
    engine.run(instance).signal("go")
    engine.run(instance).result(LONG_SECONDS)
    assert step(engine, instance, "ask").retry_count == 1
    gate.open()
    eventually(lambda: not engine.admin.backlog())
    assert (status(engine, instance), step(engine, instance, "ask").retry_count) == ("completed", 1)
    assert [each.retry_count for each in history(engine, instance, "step_stopped")] == [1]


@pytest.mark.row("F-130", "F-132")
def test_a_branch_that_failed_and_is_not_needed_is_undone(place: Place) -> None:
    """Its failure is borne, and what it did before is undone; the join tells who arrived and who failed."""
    stage = Stage()
    stage.does("confirm B", BROKEN)
    engine = place.engine().register(offers(stage, "undo"))
    instance = run(engine, "offers")
    engine.run(instance).signal("offer B")
    engine.drain()
    assert stage.calls == ["order", "reserve A", "reserve B", "confirm B", "release B"]
    assert stage.contexts("release B")[0].error == "the branch failed"
    engine.run(instance).signal("offer A")
    engine.run(instance).signal("paid")
    engine.drain()
    assert status(engine, instance) == "completed"
    (met,) = history(engine, instance, "branches_met")
    assert (met.data["completed"], met.data["failed"]) == (["confirm A"], ["confirm B"])


def test_a_rollback_takes_over_what_a_loser_did(place: Place) -> None:
    """A save point behind the join protects the winner's work and the steps before, not a reservation that nobody needs."""
    stage = Stage()
    stage.does("release", Retry(after=60), None)
    stage.does("bad", BROKEN)
    saga = (
        Saga("late")
        .fork(
            "ask",
            lambda branch: branch.step("a", stage.does("a")).on_failure("undo a", stage.does("undo a")).wait("w", 1),
            lambda branch: (
                branch.step("note", stage.does("note"))
                .on_failure("unnote", stage.does("unnote"))
                .step("reserve", stage.does("reserve"))
                .on_failure("release", stage.does("release"), attempts=2)
                .wait("long", 3600)
            ),
        )
        .join("first", "any")
        .save_point("saved")
        .step("bad", stage.does("bad"), attempts=1)
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "late")
    engine.advance(seconds=1)
    assert (status(engine, instance), stage.calls.count("release")) == ("running", 1)
    engine.advance(seconds=60)
    assert status(engine, instance) == "failed"
    assert (stage.count("release"), stage.count("unnote")) == (2, 1)
    assert stage.count("undo a") == 0
    assert statuses(engine, instance)["reserve"] == "rolled_back"


@pytest.mark.parametrize("way", ["retry", "skip", "cancel"])
def test_a_loser_that_cannot_be_undone_waits_for_an_operator(place: Place, way: str) -> None:
    """A dead letter names it, the rest of the saga goes on, and then it waits: for another try, a word to go on, or its end."""
    stage = Stage()
    stage.does("release B", BROKEN, None)
    engine, instance = chosen(place, stage, "undo")
    (letter,) = engine.dead_letters.list(instance=instance)
    assert (letter.source, letter.name, status(engine, instance)) == ("compensation", "reserve B", "running")
    engine.run(instance).signal("paid")
    engine.drain()
    found = engine.run(instance).describe()
    assert (found.status, found.reason, stage.count("ship")) == ("dlq", "compensation_failed", 1)
    if way == "retry":
        engine.dead_letters.retry_compensation(letter.id)
    elif way == "skip":
        engine.run(instance).skip(letter.number, reason="released by hand")
    else:
        engine.futures.run(instance).cancel("enough")
    engine.drain()
    assert status(engine, instance) == ("cancelled" if way == "cancel" else "completed")
    assert stage.count("release B") == (1 if way == "skip" else 2)
    assert statuses(engine, instance)["reserve B"] == ("failed" if way == "skip" else "rolled_back")
    assert engine.dead_letters.list(instance=instance) == []
    assert engine.instances.verify(instance).is_sound


def test_what_an_operator_lets_stand_stays_on_record(place: Place) -> None:
    """Who goes on without the undoing of a loser does not undo it: the step stays failed, with its calls and its error."""
    stage = Stage()
    stage.does("release B", BROKEN)
    engine, instance = chosen(place, stage, "undo")
    engine.run(instance).signal("paid")
    engine.drain()
    before = step(engine, instance, "reserve B")
    engine.run(instance).skip(before.number, reason="released by hand")
    engine.drain()
    found = step(engine, instance, "reserve B")
    assert (status(engine, instance), found) == ("completed", before)
    assert (found.status, found.compensation_retry_count, found.error) == ("failed", 1, "ValueError: broken")
    told = [each for each in history(engine, instance) if each.step_name == "reserve B"][-2:]
    assert [each.event_type for each in told] == ["compensation_max_retries_exceeded", "compensation_waived"]
    assert (told[-1].status, told[-1].retry_count) == ("failed", 1)
    assert engine.instances.verify(instance).is_sound


def test_a_record_of_a_loser_says_what_can_be_done(place: Place) -> None:
    """Its saga has not ended, so nobody says that it has; what gave up is tried again by another call."""
    stage = Stage()
    stage.does("release B", BROKEN)
    engine, instance = chosen(place, stage, "undo")
    (letter,) = engine.dead_letters.list(instance=instance)
    with pytest.raises(ConflictError) as caught:
        engine.dead_letters.requeue(letter)
    assert "retry_compensation" in str(caught.value)
    assert "ended" not in str(caught.value)


@pytest.mark.row("F-130")
def test_a_loser_is_undone_after_its_handler_has_come_back(live: Live) -> None:
    """The handler of the slow branch is told to stop and waited for; then what it had finished all the same is undone."""
    stage, gate = Stage(), Gate("too late")
    stage.does("slow", gate)
    engine = live.engine().register(racing(stage, "any", "slow", "quick")).start_worker()
    instance = engine.start("race").id
    gate.entered()
    eventually(lambda: stage.count("after") == 1)
    assert (stage.count("undo slow"), status(engine, instance)) == (0, "running")
    gate.open()
    engine.run(instance).result(LONG_SECONDS)
    assert stage.contexts("undo slow")[0].output == "too late"
    assert statuses(engine, instance)["slow"] == "rolled_back"
    assert engine.run(instance).describe().context == {"quick": None}


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
            .then("branch1_next", stage.does("branch1_next"), attempts=1)
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


@pytest.mark.row("F-140", "EC-08")
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
    (met,) = history(engine, instance, "branches_met")
    assert met.data["completed"] == ["big", "always"]


@pytest.mark.parametrize(("count", "left"), [(9, {"wrap": "paper"}), (1, {})])
def test_a_step_that_is_done_only_sometimes_leaves_no_trace_when_it_is_not(
    place: Place, count: int, left: dict[str, object]
) -> None:
    """A condition in a branch of its own leads past a step and comes back; nothing is found under the condition's name."""
    stage = Stage()
    stage.does("wrap", "paper")
    saga = (
        Saga("sometimes")
        .fork("maybe", lambda branch: branch.condition("gift?", "count > 5").step("wrap", stage.does("wrap")))
        .join("wrapped")
        .step("ship", stage.does("ship"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "sometimes", {"count": count})
    assert stage.contexts("ship")[0].input == {"count": count, **left}
    assert stage.contexts("ship")[0].previous == left
    assert engine.run(instance).result() == {"count": count, **left}


def test_what_answers_nothing_names_no_branch(place: Place) -> None:
    """Conditions, save points, points of no return and times that went by leave the answer under the name of the step that gave it."""
    stage = Stage()
    for name in "abd":
        stage.does(name, f"answer of {name}")
    saga = (
        Saga("marks")
        .fork(
            "fork",
            lambda branch: branch.step("a", stage.does("a")).save_point("saved"),
            lambda branch: branch.step("b", stage.does("b")).point_of_no_return("sealed").wait("rest", 1),
            lambda branch: branch.step("d", stage.does("d")).condition("more?", "x > 5").step("e", stage.does("e")),
            lambda branch: branch.wait("pause", 1),
        )
        .join("join")
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "marks", {"x": 1})
    engine.advance(seconds=1)
    assert engine.run(instance).result() == {"x": 1, **{name: f"answer of {name}" for name in "abd"}}
    (met,) = history(engine, instance, "branches_met")
    assert sorted(met.data["completed"]) == ["more?", "pause", "rest", "saved"]  # type: ignore[call-overload]


@pytest.mark.parametrize("fails", [False, True])
def test_a_branch_that_has_nothing_to_offer_must_say_so(place: Place, *, fails: bool) -> None:
    """To arrive is all that counts: a branch past its condition may win an `any`, and one that fails instead does not."""
    stage = Stage()
    stage.does("give up", Fail("closed"))
    way: Build | None = (lambda no: no.step("give up", stage.does("give up"))) if fails else None
    saga = (
        Saga("asking")
        .fork(
            "ask",
            lambda branch: branch.condition("open", "{{ .open }}", way).step("alpha", stage.does("alpha")),
            lambda branch: (
                branch.step("beta", stage.does("beta"))
                .on_failure("undo", stage.does("undo"))
                .wait_for("offer", "offer")
            ),
        )
        .join("first", "any")
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "asking", {"open": False})
    if not fails:
        assert (status(engine, instance), stage.count("alpha")) == ("completed", 0)
        return
    assert (status(engine, instance), history(engine, instance, "branches_met")) == ("running", [])
    engine.run(instance).signal("offer", 9)
    engine.drain()
    assert engine.run(instance).result() == {"open": False, "offer": 9}
    assert sorted(stage.calls) == ["beta", "give up"]


@pytest.mark.row("F-141")
@pytest.mark.parametrize(("kind", "prepared"), [("digital", "deliver"), ("physical", "prepare")])
@pytest.mark.row("C-12")
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
@pytest.mark.row("G-01")
def test_a_join_brings_the_answers_of_its_branches_together(place: Place) -> None:
    """What follows sees the data before the fork, and over it each branch's answer under the name of its last step."""
    stage = Stage()
    stage.does("left", {"x": 1})
    stage.does("right", 7)
    engine = place.engine().register(racing(stage, "all", "left", "right"))
    instance = engine.start("race", {"given": True}).id
    engine.drain()
    (context,) = stage.contexts("after")
    assert context.input == {"given": True, "left": {"x": 1}, "right": 7}
    assert engine.run(instance).result() == {"given": True, "left": {"x": 1}, "right": 7}


def test_the_answer_of_a_branch_is_known_by_the_name_that_its_author_gave(place: Place) -> None:
    """A branch that ends with a list, with tasks at once or with a child leaves their answers under their names, as they are."""
    stage = Stage()
    for name in ("left", "right", "row"):
        stage.does(name, name)
    stage.does("inner", {"x": 1})
    child = Saga("child").step("inner", stage.does("inner")).build()
    saga = (
        Saga("nesting")
        .fork(
            "fork",
            lambda branch: branch.for_each("rows", "list", lambda body: body.step("row", stage.does("row"))),
            lambda branch: branch.parallel(
                "pair", task("left", stage.does("left")), task("right", stage.does("right"))
            ),
            lambda branch: branch.call("deliver", "child"),
        )
        .join("join")
        .build()
    )
    engine = place.engine().register(child).register(saga)
    instance = run(engine, "nesting", {"list": [1, 2]})
    assert engine.run(instance).result() == {
        "list": [1, 2],
        "rows": ["row", "row"],
        "pair": {"left": "left", "right": "right"},
        "deliver": {"list": [1, 2], "x": 1},
    }
    (met,) = [each for each in history(engine, instance, "branches_met") if len(each.data["completed"]) == 3]  # type: ignore[arg-type]
    assert sorted(met.data["completed"]) == ["deliver", "pair", "rows"]  # type: ignore[call-overload]
