"""A fork with other data behind an approval: the approval was given to the old data, so it is void, and asked again."""

from __future__ import annotations

import pytest

from app.sagas.acting import person, run
from standfast import Actor, Fail, ForbiddenError, RejectedError, Run, Saga
from standfast.testing import ManualEngine
from support.engines import Place

FIN = person("fay", "fin")
OPERATOR = Actor(id="olga", capabilities=frozenset({"execution:repair", "execution:read"}))
BOSS = Actor(id="berta", capabilities=frozenset({"execution:repair", "execution:override", "execution:read"}))


def _approved(place: Place) -> tuple[ManualEngine, Run[object], list[int]]:
    """A run that pays what was approved, and has not been told that the money went out."""
    paid: list[int] = []
    engine = place.engine()
    saga = Saga("pay").step("book", lambda: {"booked": True}).human("approve", role="fin")
    saga = saga.step("charge", "charge").wait_for("sent", signal="sent")

    def charge(amount: int) -> None:
        paid.append(amount)

    engine.register(saga.build()).handle("charge", charge)
    found = engine.run(run(engine, "pay", {"amount": 5}))
    engine.acting(FIN).tasks.approve(found.tasks()[0])
    engine.drain()
    assert paid == [5]
    return engine, found, paid


@pytest.mark.row("E-673")
def test_an_approval_does_not_cover_other_data(place: Place) -> None:
    """The fork waits at the approval with the new data, nothing is paid before it is given, and then the new amount is."""
    engine, found, paid = _approved(place)
    at = len(found.history())
    assert found.fork_preview(at).approvals == ["approve"]
    fork = engine.acting(OPERATOR).run(found.id).fork(at, reason="a typo", data={"amount": 500_000})
    engine.drain()
    again = engine.run(fork.id)
    assert (paid, [each.status for each in again.tasks()]) == ([5], ["open"])
    assert again.describe().context["amount"] == 500_000
    assert again.history()[0].data["at"] in range(1, at)
    engine.acting(FIN).tasks.approve(again.tasks()[0])
    engine.drain()
    assert paid == [5, 500_000]
    assert again.verify().is_sound


def test_without_other_data_the_approval_stands(place: Place) -> None:
    """What was approved is what the fork works on: it goes on where the run was."""
    engine, found, paid = _approved(place)
    fork = engine.acting(OPERATOR).run(found.id).fork(len(found.history()), reason="again")
    engine.drain()
    assert (paid, engine.run(fork.id).tasks()) == ([5], [])


def test_whoever_may_override_takes_the_approval_along(place: Place) -> None:
    """With `execution:override` the fork begins where it was asked for, with the new data."""
    engine, found, paid = _approved(place)
    fork = engine.acting(BOSS).run(found.id).fork(len(found.history()), reason="I know", data={"amount": 6})
    engine.drain()
    again = engine.run(fork.id)
    assert (paid, again.tasks(), again.describe().context["amount"]) == ([5], [], 6)


def test_the_run_itself_refuses_a_fork_behind_an_approval(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever point a caller takes: with other data nobody begins behind an approval without the capability."""
    engine, found, _paid = _approved(place)
    monkeypatch.setattr("standfast.features.runs.fork.approvals_passed", lambda _routes, _state: [])
    with pytest.raises(RejectedError) as refused:
        engine.acting(OPERATOR).run(found.id).fork(len(found.history()), reason="a typo", data={"amount": 7})
    assert refused.value.reason == "no_fork"


@pytest.mark.row("E-673")
def test_data_behind_an_approval_is_changed_by_those_who_may_override_it(place: Place) -> None:
    """Who decided has seen other data: an operator is refused, is told what it takes, and nothing is changed; `execution:override` changes it."""
    engine, found, _ = _approved(place)
    with pytest.raises(ForbiddenError, match=r"people have a say.*'approve'.*execution:override") as refused:
        engine.acting(OPERATOR).run(found.id).change_data({"amount": 500_000}, reason="a typo")
    assert refused.value.reason == "not_allowed"
    assert found.describe().context["amount"] == 5
    engine.acting(BOSS).run(found.id).change_data({"amount": 6}, reason="a typo")
    assert found.describe().context["amount"] == 6
    (act,) = [each for each in found.audit() if each.action == "change data"]
    assert (act.actor, act.before, act.after) == ("berta", {"data.0.amount": 5}, {"data.0.amount": 6})


def test_data_under_an_open_question_is_changed_by_those_who_may_override_it(place: Place) -> None:
    """It takes the right to override before the answer too; whoever decides sees the new data."""
    engine = place.engine()
    engine.register(Saga("ask").human("approve", role="fin").build())
    found = engine.run(run(engine, "ask", {"amount": 5}))
    with pytest.raises(ForbiddenError, match="people have a say"):
        engine.acting(OPERATOR).run(found.id).change_data({"amount": 6}, reason="a typo")
    engine.acting(BOSS).run(found.id).change_data({"amount": 6}, reason="a typo")
    assert found.describe().context["amount"] == 6


def test_a_step_behind_an_approval_gets_another_input_from_those_who_may_override_it(place: Place) -> None:
    """A step that gave up is put back with what was approved by any operator, and with something else by those who may override."""
    paid: list[int] = []

    def charge(amount: int) -> None:
        if amount < 7:
            raise Fail("no")
        paid.append(amount)

    engine = place.engine()
    engine.register(Saga("pay", dlq=True).human("approve", role="fin").step("charge", charge).build())
    found = engine.run(run(engine, "pay", {"amount": 5}))
    engine.acting(FIN).tasks.approve(found.tasks()[0])
    for operator, given in ((OPERATOR, None), (OPERATOR, {"amount": 7}), (BOSS, {"amount": 8})):
        engine.drain()
        (letter,) = engine.dead_letters.list()
        requeue = engine.acting(operator).dead_letters.requeue
        if operator is OPERATOR and given is not None:
            with pytest.raises(ForbiddenError, match="people have a say"):
                requeue(letter, given)
        else:
            requeue(letter, given, reason="again")
    engine.drain()
    assert paid == [8]
