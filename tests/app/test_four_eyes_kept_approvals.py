"""To keep an approval for other data is to decide it again, so four eyes hold for whoever gives a run other data behind one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.processes.acting import ends, process, registered, system
from app.test_four_eyes_who_acted import FIN, OLGA, code, task_of, who
from standfast import Actor, Fail, RejectedError, Saga
from standfast.testing import ManualEngine
from support.engines import Place

BEA = who("bea")
MIGHTY_RITA = who("rita", "execution:*")
WHY = "a typo"
Change = Callable[[Any, int, int], object]
CHANGES: dict[str, Change] = {
    "a patch": lambda run, _step, _at: run.change_data({"amount": 9}, reason=WHY),
    "another input": lambda run, step, _: run.retry(step, reason=WHY, input={"amount": 9}),
    "an answer by hand": lambda run, step, _: run.complete_step(step, {"amount": 9}, reason=WHY),
    "a fork": lambda run, _step, at: run.fork(at, reason=WHY, data={"amount": 9}),
}


def approved(engine: ManualEngine, *questions: dict[str, Any]) -> Any:
    """A run of Rita whose first question Bea has approved and whose second one Olga has, and that has stopped at the payment."""

    def pay() -> None:
        raise Fail("down")

    saga = Saga("pay", dlq=True)
    for place, each in enumerate(questions):
        saga = saga.human(("check", "sign")[place], role="fin", **each)
    engine.register(saga.step("pay", pay, attempts=1).human("after", role="fin", distinct_from="check").build())
    run = engine.acting("rita").start("pay", {"amount": 5})
    engine.drain()
    for name, actor in (("check", BEA), ("sign", OLGA))[: len(questions)]:
        engine.acting(actor).tasks.approve(task_of(engine, run.id, name))
        engine.drain()
    return run


def changed(engine: ManualEngine, actor: Actor, run: Any, change: str) -> str:
    """Why this change is refused; empty if it is not."""
    at = [each.sequence for each in run.history() if each.event_type == "step_started"][-1]
    return code(CHANGES[change], engine.acting(actor).run(run.id), run.steps()[-1].number, at)


@pytest.mark.row("E-684", "E-687")
@pytest.mark.parametrize("change", CHANGES)
def test_nobody_keeps_an_approval_for_other_data_who_may_not_decide(place: Place, change: str) -> None:
    """Neither whose matter the run is, nor who decided the question that another one is to decide; the data stays as it was."""
    engine = place.engine()
    run = approved(engine, {"self_approval": False}, {"distinct_from": "check"})
    for_rita = who("assi", "execution:*", on_behalf_of="rita")
    for actor in (MIGHTY_RITA, for_rita):
        assert changed(engine, actor, run, change) == "self_approval"
    for actor in (who("bea", "execution:*"), OLGA):
        assert changed(engine, actor, run, change) == "not_distinct"
    assert run.describe().context["amount"] == 5
    assert changed(engine, who("oscar", "execution:*"), run, change) == ""


@pytest.mark.row("E-687")
@pytest.mark.parametrize("change", CHANGES)
def test_who_keeps_an_approval_for_other_data_has_decided_it(place: Place, change: str) -> None:
    """A question that is to be decided by another one than that approval is not for them."""
    engine = place.engine()
    run = approved(engine, {})
    assert changed(engine, OLGA, run, change) == ""
    engine.drain()
    if change == "a fork":
        run = next(each for each in engine.runs.list(definition="pay").items if each.id != run.id)
    if change != "an answer by hand":
        stuck = engine.run(run.id).steps()[-1].number
        engine.acting(who("oscar", "execution:*")).run(run.id).skip(stuck, reason="paid")
        engine.drain()
    task = task_of(engine, run.id, "after")
    assert code(engine.acting(OLGA).tasks.approve, task) == "not_distinct"
    engine.acting(who("bob")).tasks.approve(task)


@pytest.mark.row("E-684")
def test_a_question_that_is_asked_anew_keeps_nobody_from_changing_the_data(place: Place) -> None:
    """Its answers count no more, so that whoever wants the run changes the data under it, and a fork begins where it is open."""
    engine = place.engine()
    engine.register(Saga("pay").human("sign", role="fin", self_approval=False).build())
    run = engine.acting("rita").start("pay", {"amount": 5})
    engine.drain()
    at = run.history()[-1].sequence
    rita = engine.acting(MIGHTY_RITA).run(run.id)
    rita.change_data({"amount": 9}, reason=WHY)
    engine.drain()
    engine.acting(BEA).tasks.approve(task_of(engine, run.id))
    engine.drain()
    again = rita.fork(at, reason=WHY, data={"amount": 7})
    engine.drain()
    assert code(engine.acting(MIGHTY_RITA).tasks.approve, task_of(engine, again.id)) == "self_approval"


@pytest.mark.row("E-684")
def test_the_event_retry_brings_no_data_past_an_approval_of_ones_own(place: Place) -> None:
    """Of a process too: with data it is another decision, and without it the same again."""
    engine = place.engine()
    ask = {"id": "review", "type": "approval", "assignee": {"role": "fin"}, "self_approval": False}
    text = process(
        ask,
        {**system("pay"), "retry": {"attempts": 3, "delay": "9d"}},
        *ends("done", "no"),
        ways="review approved pay,review rejected no,pay completed done",
    )
    registered(
        engine,
        text.replace(
            '"to": "done"}', '"to": "done"}, {"from": "pay", "event": "retry", "to": "pay", "guard": "again"}'
        ),
    )

    def confirm() -> None:
        raise ValueError("down")

    engine.handle("orders.confirm", confirm)
    instance = engine.acting("rita").processes.start("w", {"amount": 5}).id
    engine.drain()
    engine.acting(BEA).tasks.approve(task_of(engine, instance, "review"))
    engine.drain()
    rita = engine.acting(Actor(id="rita", roles=FIN, capabilities=frozenset({"again", "execution:*"}))).processes
    with pytest.raises(RejectedError):
        rita.advance(instance, "retry", {"amount": 9})
    assert engine.processes.get(instance).instance.state["amount"] == 5
    rita.advance(instance, "retry")
