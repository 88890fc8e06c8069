"""Ways that are chosen: where a condition leads, what the way not taken means, and what happens when the question cannot be answered."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Stage, history, run, status, statuses, step
from standfast import Branch, Saga, SagaDefinition
from support.engines import Place


def choosing(stage: Stage, *, has_else: bool = True, dlq: bool = False) -> SagaDefinition:
    """A step, a condition with or without another way, and a step behind it."""

    def other(branch: Branch) -> object:
        return branch.step("small", stage.does("small"))

    return (
        Saga("choosing", dlq=dlq)
        .step("first", stage.does("first"))
        .on_failure("undo first", stage.does("undo first"))
        .condition("is big", "{{ gt .count 5 }}", other if has_else else None)
        .then("big", stage.does("big"))
        .then("bigger", stage.does("bigger"))
        .build()
    )


@pytest.mark.row("F-184", "F-192")
@pytest.mark.parametrize(("count", "taken", "outcome"), [(6, ["big", "bigger"], "true"), (5, ["small"], "false")])
def test_a_condition_chooses_the_way_by_the_data_of_the_run(
    place: Place, count: int, taken: list[str], outcome: str
) -> None:
    """True leads to the next steps and false to the other way: by what a step has answered, not by what the saga began with."""
    stage = Stage()
    stage.does("first", {"count": count})
    engine = place.engine().register(choosing(stage))
    instance = run(engine, "choosing", {"count": 11 - count})
    assert stage.calls == ["first", *taken]
    assert step(engine, instance, "is big").outcome == outcome
    (told,) = [each for each in history(engine, instance, "step_completed") if each.step_name == "is big"]
    assert told.data["outcome"] == outcome
    assert {"big", "bigger", "small"} & statuses(engine, instance).keys() == set(taken)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ('{{ eq .step_name "ask" }}', True),
        ('{{ eq .step_name "first" }}', False),
        ("step_name == 'ask'", True),
        ("instance_id == given", True),
        ("instance_id == 'another'", False),
        ("{{ eq .instance_id .given }}", True),
    ],
)
def test_a_condition_knows_its_step_and_its_instance(place: Place, question: str, *, expected: bool) -> None:
    """Both are values like the data, in every spelling."""
    stage = Stage()
    stage.does("first", lambda ctx: {"given": str(ctx.instance)})
    saga = (
        Saga("self")
        .step("first", stage.does("first"))
        .condition("ask", question)
        .step("yes", stage.does("yes"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "self")
    assert step(engine, instance, "ask").outcome == ("true" if expected else "false")


@pytest.mark.row("F-193")
def test_the_way_ends_at_a_condition_that_does_not_hold(place: Place) -> None:
    """Without another way nothing behind it runs, and at the top level the saga is completed."""
    stage = Stage()
    engine = place.engine().register(choosing(stage, has_else=False))
    instance = run(engine, "choosing", {"count": 1})
    assert status(engine, instance) == "completed"
    assert stage.calls == ["first"]
    assert statuses(engine, instance) == {"first": "completed", "is big": "completed"}


@pytest.mark.row("F-184", "F-192", "F-194")
@pytest.mark.parametrize(("count", "taken"), [(9, ["big", "bigger"]), (1, ["small"])])
def test_the_other_way_does_not_come_back(place: Place, count: int, taken: list[str]) -> None:
    """What follows the condition belongs to the way on which it holds; the other one ends by itself."""
    stage = Stage()
    engine = place.engine().register(choosing(stage))
    instance = run(engine, "choosing", {"count": count})
    assert stage.calls == ["first", *taken]
    assert status(engine, instance) == "completed"


@pytest.mark.row("F-191")
@pytest.mark.parametrize(("count", "taken"), [(9, "big"), (1, "small")])
def test_a_condition_asks_the_data_of_its_place_and_passes_it_on(place: Place, count: int, taken: str) -> None:
    """What the step before answered decides, not what the saga was started with; the next step gets just that data."""
    stage = Stage()
    stage.does("first", {"count": count, "found": [1, {"deep": None}]})
    engine = place.engine().register(choosing(stage))
    run(engine, "choosing", {"count": 5, "kept": True})
    (context,) = stage.contexts(taken)
    assert context.input == {"count": count, "found": [1, {"deep": None}], "kept": True}


@pytest.mark.row("F-197")
def test_a_condition_knows_its_instance_and_its_own_name(place: Place) -> None:
    """`.instance_id` and `.step_name` are those of the engine, also where the input has fields of that name."""
    stage = Stage()
    saga = (
        Saga("knowing")
        .step("keep", lambda ctx: {"own": str(ctx.instance)})
        .condition("mine", "{{ eq .instance_id .own }}")
        .condition("named", '{{ eq .step_name "named" }}')
        .then("last", stage.does("last"))
    )
    run(place.engine().register(saga.build()), "knowing", {"instance_id": "forged", "step_name": "forged"})
    assert stage.calls == ["last"]


@pytest.mark.row("E-616")
def test_now_is_the_moment_of_the_advance(place: Place) -> None:
    """All conditions of one advance see the same moment, that of its events; the next advance has its own."""
    stage, engine = Stage(), place.engine()
    begun, later = place.clock.now(), place.clock.now() + timedelta(days=3)
    saga = (
        Saga("timed")
        .condition("first", f"now == '{begun.isoformat()}'")
        .condition("second", f"now == '{begun.isoformat()}' && now < '{later.isoformat()}'")
        .wait("rest", timedelta(days=3))
        .condition("third", f"now == '{later.isoformat()}' && !(now == '{begun.isoformat()}')")
        .then("last", stage.does("last"))
    )
    instance = run(engine.register(saga.build()), "timed")
    assert {each.timestamp for each in history(engine, instance)} == {begun}
    engine.advance(days=3)
    assert stage.calls == ["last"]


@pytest.mark.row("E-190", "E-617")
@pytest.mark.parametrize(
    "condition",
    [
        "count > 5 && kind == 'a'",
        '{{ and (gt .count 5) (eq .kind "a") }}',
        {"all": [{"field": "count", "operator": "gt", "value": 5}, {"field": "kind", "op": "eq", "value": "a"}]},
        {"all": [{"expression": "count > 5"}, {"not": {"field": "kind", "operator": "neq", "value": "a"}}]},
    ],
    ids=["native", "go", "structured", "mixed"],
)
def test_a_branch_is_the_same_however_its_condition_is_written(
    place: Place, condition: str | dict[str, object]
) -> None:
    """Four spellings of one condition lead the same data the same way."""
    stage = Stage()
    saga = Saga("written").condition("ask", condition, lambda branch: branch.step("no", stage.does("no")))
    engine = place.engine().register(saga.then("yes", stage.does("yes")).build())
    for data in ({"count": 6, "kind": "a"}, {"count": 5, "kind": "a"}, {"count": 6, "kind": "b"}):
        run(engine, "written", data)
    assert stage.calls == ["yes", "no", "no"]


@pytest.mark.row("F-201")
def test_a_question_that_cannot_be_answered_fails_its_step(place: Place) -> None:
    """Text is not compared with a number: the condition fails, and what was done before is undone."""
    stage = Stage()
    engine = place.engine().register(choosing(stage))
    instance = run(engine, "choosing", {"count": "abc"})
    assert status(engine, instance) == "failed"
    assert stage.calls == ["first", "undo first"]
    (failed,) = history(engine, instance, "step_failed")
    assert failed.step_name == "is big"
    assert failed.error
    assert statuses(engine, instance) == {"first": "rolled_back", "is big": "rolled_back"}


@pytest.mark.row("F-201")
def test_a_question_that_cannot_be_answered_waits_for_an_operator_in_dlq_mode(place: Place) -> None:
    """The condition is in the dead letters; requeued with data that it can work on, it goes on."""
    stage = Stage()
    engine = place.engine().register(choosing(stage, dlq=True))
    instance = run(engine, "choosing", {"count": "abc"})
    assert status(engine, instance) == "dlq"
    assert step(engine, instance, "is big").status == "paused"
    (letter,) = engine.dead_letters.list(instance=instance)
    assert (letter.name, letter.type) == ("is big", "condition")
    engine.dead_letters.requeue(letter.id, {"count": 9})
    engine.drain()
    assert status(engine, instance) == "completed"
    assert stage.calls == ["first", "big", "bigger"]


@pytest.mark.row("F-254")
def test_a_condition_may_lead_into_a_fork(place: Place) -> None:
    """The way on which a condition holds is whatever is chained next, of any kind."""
    stage = Stage()
    saga = (
        Saga("wide")
        .condition("is big", "{{ gt .count 5 }}")
        .fork(
            "fork",
            lambda branch: branch.step("left", stage.does("left")),
            lambda branch: branch.step("right", stage.does("right")),
        )
        .join("join")
        .then("final", stage.does("final"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "wide", {"count": 9})
    assert status(engine, instance) == "completed"
    assert sorted(stage.calls) == ["final", "left", "right"]
    stage.forget()
    assert status(engine, run(engine, "wide", {"count": 1})) == "completed"
    assert stage.calls == []


def undoing(stage: Stage) -> SagaDefinition:
    """Compensations inside another way and inside branches, and a failure behind each of them."""

    def other(branch: Branch) -> object:
        return (
            branch.step("restock", stage.does("restock"))
            .on_failure("return stock", stage.does("return stock"))
            .step("announce", stage.does("announce"), attempts=1)
        )

    return (
        Saga("undoing")
        .condition("in stock", "{{ gt .stock 0 }}", other)
        .fork(
            "fork",
            lambda branch: branch.step("pack", stage.does("pack"), priority=9).on_failure(
                "unpack", stage.does("unpack")
            ),
            lambda branch: branch.step("label", stage.does("label"), attempts=1),
        )
        .join("join")
        .build()
    )


@pytest.mark.row("F-255")
@pytest.mark.parametrize(
    ("stock", "fails", "calls"),
    [
        (0, "announce", ["restock", "announce", "return stock"]),
        (1, "label", ["pack", "label", "unpack"]),
    ],
)
def test_steps_of_side_ways_can_be_undone(place: Place, stock: int, fails: str, calls: list[str]) -> None:
    """A compensation inside another way, or inside a branch, is called in the rollback; that of the way not taken is not."""
    stage = Stage()
    stage.does(fails, BROKEN)
    engine = place.engine().register(undoing(stage))
    instance = run(engine, "undoing", {"stock": stock})
    assert status(engine, instance) == "failed"
    assert stage.calls == calls
    assert set(statuses(engine, instance).values()) == {"rolled_back"}


@pytest.mark.row("F-195")
@pytest.mark.parametrize(
    "condition",
    [
        'input["extract-source1"].rows > 4 and input["extract-source2"] starts_with "done"',
        '{{ and (gt (index .input "extract-source1" "rows") 4) (hasPrefix (index . "extract-source2") "done") }}',
        {
            "all": [
                {"field": "input['extract-source1'].rows", "operator": "gt", "value": 4},
                {"field": "input['extract-source2']", "operator": "starts_with", "value": "done"},
            ]
        },
    ],
)
@pytest.mark.parametrize(("rows", "taken"), [(5, "load"), (4, "skip")])
def test_the_answer_of_any_branch_can_be_asked_for(
    place: Place, condition: str | dict[str, object], rows: int, taken: str
) -> None:
    """After a join a condition reads what the branches answered, whatever their steps are called."""
    saga = (
        Saga("extracting")
        .fork(
            "extract",
            lambda one: one.step("extract-source1", lambda: {"rows": rows}),
            lambda two: two.step("extract-source2", lambda: "done at noon"),
        )
        .join("met")
        .condition("enough?", condition, lambda no: no.step("skip", lambda: "skip"))
        .step("load", lambda: "load")
        .build()
    )
    engine = place.engine().register(saga)
    result = engine.run(run(engine, "extracting")).result()
    assert isinstance(result, dict)
    assert result[taken] == taken
