"""Every command of an operator that goes past an open question is refused to whom four eyes keep out of it, and makes any other operator its decider."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from app.test_four_eyes_who_acted import BOB, code, task_of, who
from standfast import Actor, Escalation, Saga
from standfast.testing import ManualEngine
from support.engines import Place

MAY = ("execution:*", "task:*", "batch:*")
WHY = "urgent"


class Rule(NamedTuple):
    """What keeps the actor out of the question, and why they are refused."""

    options: dict[str, Any]
    actor: Actor
    refusal: str


RULES = {
    "whoever wants the run": Rule({"self_approval": False}, who("rita", *MAY), "self_approval"),
    "who acts for them": Rule({"self_approval": False}, who("assi", *MAY, on_behalf_of="rita"), "self_approval"),
    "who changed the data": Rule({"self_approval": False}, who("dana", *MAY), "self_approval"),
    "who decided the other one": Rule({"distinct_from": "check"}, who("bea", *MAY), "not_distinct"),
    "who decided any other one": Rule({"distinct_approvers": True}, who("bea", *MAY), "not_distinct"),
    "who acts for such a one": Rule({"distinct_approvers": True}, who("sub", *MAY, on_behalf_of="bea"), "not_distinct"),
}


class Case(NamedTuple):
    """A question that is open: in a run of its own or of another one."""

    engine: ManualEngine
    run: Any
    step: Any


Past = Callable[[Any, Case], object]
PAST: dict[str, Past] = {
    "skip": lambda calls, on: calls.run(on.run.id).skip(on.step.number, reason=WHY, outcome="confirmed"),
    "override": lambda calls, on: calls.run(on.run.id).resume(WHY, override=True, task=on.step.id),
    "override with data": lambda calls, on: calls.run(on.run.id).resume(
        WHY, override=True, task=on.step.id, data={"amount": 9}
    ),
    "escalate": lambda calls, on: calls.tasks.escalate(on.step.id, WHY),
    "cancel_branch": lambda calls, on: calls.run(on.run.id).cancel_branch(on.step.token, reason=WHY),
}
ENDS: dict[str, Past] = {
    "cancel": lambda calls, on: calls.run(on.run.id).cancel(WHY),
    "abort": lambda calls, on: calls.run(on.run.id).abort(WHY),
    "fail": lambda calls, on: calls.run(on.run.id).fail(WHY),
}


def asked(engine: ManualEngine, rule: Rule) -> Case:
    """Two branches: on the one a question that Bea has decided and one that is open, on the other a question that nobody heeds."""
    ladder = Escalation(3600, outcome="confirmed")
    saga = Saga("pay").fork(
        "both",
        lambda branch: branch.human("check", role="fin").human("sign", role="fin", escalate=ladder, **rule.options),
        lambda branch: branch.human("other", role="fin"),
    )
    engine.register(saga.join("met").human("last", role="fin", distinct_from="sign").build())
    return opened(engine, engine.acting("rita").start("pay", {"amount": 5}))


def opened(engine: ManualEngine, run: Any) -> Case:
    """The same, once Dana has changed the data, and Bea has decided."""
    engine.drain()
    engine.acting(who("dana", *MAY)).run(run.id).change_data({"amount": 7}, reason="a typo")
    engine.drain()
    engine.acting(who("bea")).tasks.approve(task_of(engine, run.id, "check"))
    engine.drain()
    step = next(each for each in engine.run(run.id).steps() if each.name == "sign")
    return Case(engine, run, step)


@pytest.mark.row("E-684", "E-687")
@pytest.mark.parametrize("how", PAST)
@pytest.mark.parametrize("rule", RULES)
def test_nobody_goes_past_a_question_that_four_eyes_keep_them_out_of(place: Place, rule: str, how: str) -> None:
    """Whatever their rights are; another operator does, and counts as its decider."""
    engine = place.engine()
    on = asked(engine, RULES[rule])
    assert code(PAST[how], engine.acting(RULES[rule].actor), on) == RULES[rule].refusal
    assert on.step.number in {each.number for each in on.run.steps() if each.status == "waiting_decision"}
    otto = engine.acting(who("otto", *MAY))
    assert code(PAST[how], otto, on) == ""
    engine.drain()
    engine.acting(BOB).tasks.approve(task_of(engine, on.run.id, "other"))
    engine.drain()
    last = task_of(engine, on.run.id, "last")
    assert code(otto.tasks.approve, last) == "not_distinct"
    engine.acting(BOB).tasks.approve(last)
    engine.drain()
    assert on.run.describe().status == "completed"
    assert on.run.verify().is_sound


@pytest.mark.row("E-684", "E-687")
@pytest.mark.parametrize("how", ENDS)
@pytest.mark.parametrize("rule", ["whoever wants the run", "who acts for them", "who changed the data"])
def test_nobody_ends_a_part_whose_question_four_eyes_keep_them_out_of(place: Place, rule: str, how: str) -> None:
    """The run that waits for it would go on without the answer; the topmost run is theirs to stop, because nothing goes on then."""
    engine = place.engine()
    engine.register(Saga("part").human("sign", role="fin", self_approval=False).build())
    engine.register(Saga("whole").call("part", "part").build())
    whole = engine.acting("rita").start("whole", {"amount": 5})
    engine.drain()
    (part,) = engine.runs.list(parent=whole.id).items
    engine.acting(who("dana", *MAY)).run(part.id).change_data({"amount": 7}, reason="a typo")
    engine.drain()
    actor = RULES[rule].actor
    on = Case(engine, engine.run(part.id), None)
    assert code(ENDS[how], engine.acting(actor), on) == "self_approval"
    if how != "fail":
        batch = engine.acting(actor).batches.begin("abort" if how == "abort" else "cancel", [part.id], reason=WHY)
        engine.advance(seconds=5)
        assert [each.status for each in engine.batches.items(batch.id)] == ["refused"]
    assert engine.run(part.id).describe().status == "running"
    assert code(ENDS["abort"], engine.acting(actor), Case(engine, whole, None)) == ""


@pytest.mark.row("E-684")
@pytest.mark.parametrize("how", ["a patch", "a move back", "a fork"])
def test_what_asks_again_goes_past_no_question(place: Place, how: str) -> None:
    """These are open to whom four eyes keep out, because the question is put anew, and they do not decide it then either."""
    engine = place.engine()
    engine.register(Saga("pay").save_point("here").human("sign", role="fin", self_approval=False).build())
    run = engine.acting("rita").start("pay", {"amount": 5})
    engine.drain()
    rita = engine.acting(who("rita", *MAY))
    if how == "a patch":
        rita.run(run.id).change_data({"amount": 9}, reason=WHY)
    elif how == "a move back":
        rita.run(run.id).move_back("here", reason=WHY)
    else:
        run = rita.run(run.id).fork(run.history()[-1].sequence, reason=WHY, data={"amount": 9})
    engine.drain()
    assert code(rita.tasks.approve, task_of(engine, run.id)) == "self_approval"
