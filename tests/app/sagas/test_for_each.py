"""A branch for each item of a list: how many run at once, what comes together, and what an empty list means."""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

import pytest

from app.sagas.acting import BROKEN, Stage, history, run, status, statuses
from standfast import DefinitionError, Saga, SagaDefinition, StepContext
from standfast.kernel.row_kinds.steps import STEPS
from support.engines import Live, Place
from support.samples import Gauge
from support.waiting import LONG_SECONDS, arrives, eventually


def double(ctx: StepContext) -> object:
    """Twice the item."""
    return int(str(ctx.input["item"])) * 2


def doubling(stage: Stage, *, limit: int | None = None, dlq: bool = False) -> SagaDefinition:
    """Each item is doubled, and something follows."""
    return (
        Saga("doubling", dlq=dlq)
        .for_each(
            "doubled",
            "numbers",
            lambda body: body.step("double", stage.does("double"), attempts=1).on_failure("halve", stage.does("halve")),
            limit=limit,
        )
        .then("after", stage.does("after"))
        .build()
    )


@pytest.mark.parametrize("limit", [None, 1, 2, 10])
@pytest.mark.row("G-20")
def test_the_answers_are_a_list_in_the_order_of_the_items(place: Place, limit: int | None) -> None:
    """However many run at once: one answer for each item, under the name of the step, and what follows sees them."""
    stage = Stage()
    stage.does("double", double)
    engine = place.engine().register(doubling(stage, limit=limit))
    instance = run(engine, "doubling", {"numbers": [1, 2, 3, 4, 5]})
    assert engine.run(instance).result() == {"numbers": [1, 2, 3, 4, 5], "doubled": [2, 4, 6, 8, 10]}
    assert stage.contexts("after")[0].input["doubled"] == [2, 4, 6, 8, 10]
    assert (stage.count("double"), stage.count("after")) == (5, 1)


@pytest.mark.row("E-682")
@pytest.mark.parametrize(
    ("said", "came"), [({}, "failed"), ({"on_empty": "fail"}, "failed"), ({"on_empty": "skip"}, "completed")]
)
def test_an_empty_list_of_questions_approves_nothing(place: Place, said: dict[str, Any], came: str) -> None:
    """Where each item is a question, nobody would be asked: the step fails unless its author wants it skipped. Also in the middle of a branch."""
    stage = Stage()
    saga = (
        Saga("asking")
        .for_each("asked", "people", lambda body: body.step("look", stage.does("look")).human("ask", role="r"), **said)
        .then("after", stage.does("after"))
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "asking", {"people": []})
    found = engine.run(instance).describe()
    assert (found.status, stage.calls) == (came, ["after"] if came == "completed" else [])
    assert ("has no items" in found.error) is (came == "failed")


def test_a_list_may_be_needed_without_questions(place: Place) -> None:
    """`on_empty` counts for every branch; a word that is none is found."""
    stage = Stage()
    saga = Saga("needed").for_each("each", "rows", lambda body: body.step("work", stage.does("work")), on_empty="fail")
    engine = place.engine().register(saga.build())
    assert engine.run(run(engine, "needed", {"rows": []})).describe().status == "failed"
    wrong: Any = "stop"
    with pytest.raises(DefinitionError, match="on_empty"):
        Saga("wrong").for_each("each", "rows", lambda body: body.step("work", "work"), on_empty=wrong).build()


@pytest.mark.parametrize("limit", [None, 2])
def test_an_empty_list_is_done_at_once(place: Place, limit: int | None) -> None:
    """No branch begins, the answers are an empty list, and the saga goes on."""
    stage = Stage()
    engine = place.engine().register(doubling(stage, limit=limit))
    instance = run(engine, "doubling", {"numbers": []})
    assert engine.run(instance).result() == {"numbers": [], "doubled": []}
    assert stage.calls == ["after"]


def test_no_more_branches_run_than_the_limit_says(live: Live) -> None:
    """The limit is reached and never passed; without one all run at the same time."""
    stage, gauge, gate = Stage(), Gauge(), threading.Event()

    def work(ctx: StepContext) -> object:
        with gauge.inside():
            arrives(gate)
            ctx.wait_cancelled(0.001)
        return double(ctx)

    stage.does("double", work)
    engine = live.engine().register(doubling(stage, limit=3)).start_worker()
    instance = engine.start("doubling", {"numbers": list(range(12))}).id
    eventually(lambda: gauge.now == 3)
    assert len([each for each in engine.run(instance).steps() if each.name == "double"]) == 3
    gate.set()
    engine.run(instance).result(LONG_SECONDS)
    assert gauge.most == 3
    assert stage.count("double") == 12


def test_without_a_limit_all_branches_begin_at_once(place: Place) -> None:
    """Each item has its step before the first one is called."""
    engine = place.engine().register(doubling(Stage()))
    instance = engine.start("doubling", {"numbers": [1, 2, 3]}).id
    steps = [each for each in engine.run(instance).steps() if each.name == "double"]
    assert [each.status for each in steps] == ["pending"] * 3
    assert len({each.token for each in steps}) == 3


def test_an_item_may_have_another_name(place: Place) -> None:
    """The branch finds its item under the name that the saga gives, beside the rest of the data and instead of the list."""
    stage = Stage()
    saga = Saga("named").for_each("sent", "mails", lambda body: body.step("send", stage.does("send")), item="mail")
    engine = place.engine().register(saga.build())
    run(engine, "named", {"mails": [{"to": "ann"}], "from": "bob"})
    (context,) = stage.contexts("send")
    assert context.input == {"from": "bob", "mail": {"to": "ann"}}


def test_a_failed_item_undoes_the_others(place: Place) -> None:
    """The items that are done are undone, those that nobody has begun are skipped, and nothing follows."""
    stage = Stage()

    def third_fails(ctx: StepContext) -> object:
        if ctx.input["item"] == 3:
            raise BROKEN
        return double(ctx)

    stage.does("double", third_fails)
    engine = place.engine().register(doubling(stage, limit=1))
    instance = run(engine, "doubling", {"numbers": [1, 2, 3, 4]})
    assert status(engine, instance) == "failed"
    assert stage.calls == ["double", "double", "double", "halve", "halve", "halve"]
    assert [each.output for each in stage.contexts("halve")] == [None, 4, 2]
    assert stage.count("after") == 0
    assert set(statuses(engine, instance).values()) == {"rolled_back"}


def test_a_dead_item_is_requeued_alone(place: Place) -> None:
    """In DLQ mode the failed item waits for an operator; afterwards all answers come together in order."""
    stage = Stage()
    failures = Counter[object]()

    def second_fails_once(ctx: StepContext) -> object:
        failures[ctx.input["item"]] += 1
        if ctx.input["item"] == 2 and failures[2] == 1:
            raise BROKEN
        return double(ctx)

    stage.does("double", second_fails_once)
    engine = place.engine().register(doubling(stage, dlq=True))
    instance = run(engine, "doubling", {"numbers": [1, 2, 3]})
    assert status(engine, instance) == "dlq"
    (letter,) = engine.dead_letters.list()
    engine.dead_letters.requeue(letter.id)
    engine.drain()
    assert engine.run(instance).result() == {"numbers": [1, 2, 3], "doubled": [2, 4, 6]}
    assert failures == {1: 1, 2: 2, 3: 1}


@pytest.mark.parametrize("numbers", [7, "abc", {"a": 1}, None])
def test_what_is_no_list_fails_the_step(place: Place, numbers: object) -> None:
    """There is nothing to go through: the step has failed, with a reason."""
    stage = Stage()
    engine = place.engine().register(doubling(stage))
    instance = run(engine, "doubling", {"numbers": numbers})
    assert status(engine, instance) == "failed"
    (failed,) = history(engine, instance, "step_failed")
    assert failed.step_name == "doubled"
    assert failed.error
    assert stage.calls == []


def test_branches_of_several_steps(place: Place) -> None:
    """A branch may be a whole chain with conditions; the last answer of each counts."""
    stage = Stage()
    stage.does("first", lambda ctx: {"n": int(str(ctx.input["item"])) + 1})
    stage.does("second", lambda ctx: int(str(ctx.input["n"])) * 10)
    saga = Saga("chains").for_each(
        "all",
        "items",
        lambda body: (
            body.step("first", stage.does("first"))
            .condition("is big", "{{ gt .n 2 }}", lambda other: other.step("small", stage.does("small", "small")))
            .step("second", stage.does("second"))
        ),
    )
    engine = place.engine().register(saga.build())
    instance = run(engine, "chains", {"items": [1, 2, 3]})
    result = engine.run(instance).result()
    assert isinstance(result, dict)
    assert result["all"] == ["small", 30, 40]


def test_a_list_may_be_joined_by_the_first_answer(place: Place) -> None:
    """A join of its own behind the list says how many are enough; the others are skipped."""
    stage = Stage()
    stage.does("ask", double)
    saga = (
        Saga("first")
        .for_each("asked", "numbers", lambda body: body.step("ask", stage.does("ask")))
        .join("enough", "any")
        .build()
    )
    engine = place.engine().register(saga)
    instance = run(engine, "first", {"numbers": [1, 2, 3]})
    assert status(engine, instance) == "completed"
    assert stage.count("ask") == 1
    found = [each.status for each in engine.run(instance).steps() if each.name == "ask"]
    assert sorted(found) == ["completed", "skipped", "skipped"]


def test_a_list_can_be_cancelled_in_the_middle(place: Place) -> None:
    """What is done is undone, what has not begun never begins."""
    stage = Stage()
    stage.does("double", double)
    engine = place.engine().register(doubling(stage, limit=2))
    instance = engine.start("doubling", {"numbers": [1, 2, 3, 4, 5]}).id
    engine.execute_next()
    engine.execute_next()
    engine.acting("ann").futures.run(instance).cancel("enough")
    engine.drain()
    assert status(engine, instance) == "cancelled"
    assert (stage.count("double"), stage.count("halve")) == (2, 2)
    assert stage.count("after") == 0


def test_a_list_inside_of_an_object_is_left_out_alone(place: Place) -> None:
    """The branch keeps the rest of the object, and behind the join the list is there again."""
    stage = Stage()
    saga = Saga("nested").for_each("sent", "order.lines", lambda body: body.step("send", stage.does("send"))).build()
    engine = place.engine().register(saga)
    given = {"order": {"lines": [1, 2], "customer": "ann"}}
    instance = run(engine, "nested", given)
    assert [each.input for each in stage.contexts("send")] == [
        {"order": {"customer": "ann"}, "item": n} for n in (1, 2)
    ]
    assert engine.run(instance).result() == {**given, "sent": [None, None]}


def test_a_list_takes_no_more_room_than_its_length(place: Place) -> None:
    """Four times as many items take about four times the bytes: events, rows of steps, and the snapshot of the state."""

    def size(count: int) -> int:
        stage = Stage()
        stage.does("after", BROKEN)
        engine = place.engine().register(doubling(stage))
        instance = run(engine, "doubling", {"numbers": [10_000 + n for n in range(count)]})
        assert status(engine, instance) == "failed"
        assert stage.count("halve") == count
        reader = place.store.reader("default")
        events = sum(len(each.data) for each in reader.events(instance))
        rows = sum(len(each.input or b"") + len(each.output or b"") for each in reader.rows(STEPS, instance))
        tracked = engine.registry.get("default", "doubling", "1")
        state = tracked.replay(tracked.initial(), reader.events(instance))
        return events + rows + len(tracked.snapshot(state) or b"")

    assert size(200) < 5 * size(50)
