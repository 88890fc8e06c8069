"""Questions with a form: what is taken, what is refused, and what the steps behind find."""

from __future__ import annotations

import msgspec
import pytest

from app.sagas.acting import Stage, history, person, run, status
from standfast import ForbiddenError, RejectedError, Saga, SagaDefinition
from support.engines import Place

ANN, BOB = person("ann", "clerk"), person("bob", "clerk")
FORM: dict[str, object] = {
    "type": "object",
    "properties": {"centre": {"type": "string"}, "currency": {"type": "string", "default": "EUR"}},
    "required": ["centre"],
}


def expense(stage: Stage, **options: object) -> SagaDefinition:
    """A question with a form."""
    asked = Saga("expense").human("ask", role="clerk", form=FORM, **options)  # type: ignore[arg-type]
    return asked.step("pay", stage.does("pay")).build()


@pytest.mark.row("G-44")
def test_an_answer_that_does_not_fit_is_refused_and_changes_nothing(place: Place) -> None:
    """The refusal lists the faults, the question stays open, and the history does not know of it."""
    engine = place.engine().register(expense(Stage()))
    instance = run(engine, "expense")
    before = history(engine, instance)
    with pytest.raises(RejectedError) as refused:
        engine.acting(ANN).tasks.approve(f"{instance}:1", data={"centre": 5, "currency": 7})
    assert refused.value.reason == "invalid_form"
    assert "data.centre: 5 is not of type 'string'; data.currency: 7 is not of type 'string'" in str(refused.value)
    with pytest.raises(RejectedError, match="'centre' is a required property"):
        engine.acting(ANN).tasks.approve(f"{instance}:1")
    with pytest.raises(ForbiddenError):
        engine.acting("eve").tasks.approve(f"{instance}:1", data={})
    assert history(engine, instance) == before
    assert len(engine.tasks.list()) == 1


def test_steps_behind_find_what_was_filled_in(place: Place) -> None:
    """The answer that the next step gets has the defaults of the form."""
    stage = Stage()
    engine = place.engine().register(expense(stage))
    instance = run(engine, "expense")
    engine.acting(ANN).tasks.approve(f"{instance}:1", data={"centre": "c-1"})
    engine.drain()
    answer = msgspec.convert(stage.contexts("pay")[0].input["ask"], dict[str, object])
    assert answer["data"] == {"centre": "c-1", "currency": "EUR"}
    assert status(engine, instance) == "completed"


def test_the_same_answer_again_is_no_news_although_something_was_filled_in(place: Place) -> None:
    """What counts is what the person gave, not what the form made of it."""
    form: dict[str, object] = {"type": "object", "properties": {"n": {"default": 1}}}
    engine = place.engine().register(Saga("s").human("ask", form=form).build())
    bare, full = run(engine, "s"), run(engine, "s")
    for instance, data in ((bare, None), (full, {"x": 2})):
        engine.acting(ANN).tasks.approve(f"{instance}:1", data=data)
        before = history(engine, instance)
        engine.acting(ANN).tasks.approve(f"{instance}:1", data=data)
        assert history(engine, instance) == before
        for other in ({"n": 2}, {"n": 1}):
            with pytest.raises(RejectedError) as refused:
                engine.acting(ANN).tasks.approve(f"{instance}:1", data=other)
            assert refused.value.reason == "already_decided"


def test_a_rejection_needs_no_form_unless_it_is_said(place: Place) -> None:
    """Whoever says no need not fill in what a yes needs; `form_for` names the outcomes that need it."""
    engine = place.engine()
    engine.register(expense(Stage()))
    engine.register(
        Saga("strict").human("ask", form=FORM, form_for="rejected", on_rejected=lambda no: no.save_point("no")).build()
    )
    lenient, strict = run(engine, "expense"), run(engine, "strict")
    engine.acting(BOB).tasks.reject(f"{lenient}:1", data={"anything": 1})
    with pytest.raises(RejectedError, match="invalid_form"):
        engine.acting(BOB).tasks.reject(f"{strict}:1")
    engine.acting(BOB).tasks.approve(f"{strict}:1")
    assert (status(engine, lenient), status(engine, strict)) == ("aborted", "completed")


def test_each_of_several_fills_in_the_form(place: Place) -> None:
    """What does not fit is refused to each of them, defaults are filled in for each, and a second click of any of them is no news."""
    stage = Stage()
    saga = Saga("s").human("ask", ask=["user:ada", "user:ben"], form=FORM).step("pay", stage.does("pay")).build()
    engine = place.engine().register(saga)
    instance = run(engine, "s")
    task = f"{instance}:1"
    with pytest.raises(RejectedError, match="'centre' is a required property"):
        engine.acting("ada").tasks.approve(task)
    for name in ("ada", "ada", "ben", "ada", "ben"):
        engine.acting(name).tasks.approve(task, data={"centre": name})
    engine.drain()
    answer = msgspec.convert(stage.contexts("pay")[0].input["ask"], dict[str, object])
    decisions = msgspec.convert(answer["decisions"], list[dict[str, object]])
    assert [each["data"] for each in decisions] == [{"centre": each, "currency": "EUR"} for each in ("ada", "ben")]
