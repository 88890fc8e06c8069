"""What a process keeps of the ways that it went, and what lists of questions tell of its times."""

from __future__ import annotations

import json
from datetime import timedelta

import pytest

from app.processes.acting import BOB, CAT, INPUT, asking, ends, person, process, published
from support.engines import Place


@pytest.mark.row("E-075", "E-448", "E-951")
@pytest.mark.parametrize(("total", "taken"), [(50, 0), (500, 1)])
def test_the_way_that_was_chosen_is_kept(place: Place, total: int, taken: int) -> None:
    """Of two ways by one event to one step, the history names the one that was taken, and a drawing shows it alone."""
    engine = place.engine()
    published(engine)
    run = asking(engine, CAT).processes.start("orders.approval", {**INPUT, "total": total})
    asking(engine, CAT).processes.advance(run.id, "approved")
    (end,) = [
        each
        for each in engine.run(run.id).history()
        if each.event_type == "step_completed" and each.step_name == "review"
    ]
    edges = json.loads(engine.run(run.id).diagram(format="json"))["edges"]
    rivals = [each for each in edges if (each["source"], each["on"]) == ("review", "approved")]
    assert [each["is_taken"] for each in rivals] == [place_ == taken for place_ in range(2)]
    assert end.data["edge"] == rivals[taken]["id"]


@pytest.mark.row("E-075")
def test_where_there_was_no_choice_nothing_is_kept(place: Place) -> None:
    """A step with one way costs no word about it."""
    engine = place.engine()
    published(engine)
    run = asking(engine, CAT).processes.start("orders.approval", INPUT)
    asking(engine, BOB).processes.advance(run.id, "approved")
    ends_ = [each for each in engine.run(run.id).history() if each.event_type == "step_completed"]
    assert [each.step_name for each in ends_ if each.data.get("edge")] == ["review"]


def test_a_question_is_due_when_its_step_times_out(place: Place) -> None:
    """Lists and counts know by when it is to be answered; one of a step without a timeout is due at no time."""
    engine = place.engine()
    text = process(person("a", timeout="2h", on_timeout="late"), person("b"), *ends("z", "late"), ways="a go b,b go z")
    published(engine, text)
    run = asking(engine, CAT).processes.start("w")
    (task,) = engine.tasks.list()
    assert task.due_at == place.clock.now() + timedelta(hours=2)
    asking(engine, CAT).processes.advance(run.id, "go")
    (task,) = engine.tasks.list()
    assert task.due_at is None


@pytest.mark.row("P-040")
def test_an_event_that_has_come_is_no_option(place: Place) -> None:
    """What brings on a wait for several events is the events that have not come yet: the options and `why` name the same."""
    engine = place.engine()
    waits = {"id": "both", "type": "wait", "events": [{"event": "a"}, {"event": "b"}]}
    published(engine, process(waits, *ends("done"), ways="both completed done"))
    run = engine.run(engine.processes.start("w", {}).id)
    assert [(each.action, each.choices) for each in run.resume_options()] == [("publish", ("a", "b"))]
    engine.publish("a")
    engine.drain()
    assert [(each.action, each.choices) for each in run.resume_options()] == [("publish", ("b",))]
    (reason,) = run.why().reasons
    assert reason.waits_for == "b"
    engine.publish("b")
    engine.drain()
    assert run.describe().status == "completed"
