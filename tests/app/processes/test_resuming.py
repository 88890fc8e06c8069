"""A resume ends a pause and nothing else; what a process waits for is left only by whoever says that they saw it wait."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

from app.processes.acting import asking, ends, process, published, system
from standfast import Actor, ForbiddenError, PayloadError, RejectedError, Saga
from standfast.app.api.sync import Calls
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

PAYMENT = {"id": "paid", "type": "wait", "event": "paid", "key": "workflow.order"}
REST = {"id": "paid", "type": "wait", "duration": "9d"}
OPERATOR = Actor(
    id="olga",
    capabilities=frozenset({"execution:pause", "execution:resume", "execution:read", "batch:manage", "batch:read"}),
)
BOSS = Actor(id="berta", capabilities=OPERATOR.capabilities | {"execution:override"})


def waiting(engine: ManualEngine, step: dict[str, str]) -> InstanceId:
    """A process that ships once a step is over."""
    published(
        engine,
        process(step, system("ship"), *ends("done"), ways="paid completed ship,ship completed done"),
    )
    instance = engine.processes.start("w", {"order": "o-1"}).id
    engine.drain()
    return instance


def has_shipped(engine: ManualEngine, instance: InstanceId) -> bool:
    """Whether the process is past its wait."""
    engine.advance(minutes=11)
    return engine.processes.get(instance).instance.status == "completed"


def _twice(calls: Calls, run: InstanceId) -> None:
    calls.run(run).pause("look")
    calls.run(run).resume("seen")
    with pytest.raises(RejectedError) as refused:
        calls.run(run).resume("seen")
    assert refused.value.reason == "not_paused"


def _never_paused(calls: Calls, run: InstanceId) -> None:
    for options in ({}, {"override": True}):
        with pytest.raises(RejectedError) as refused:
            calls.run(run).resume("open again", **options)  # type: ignore[arg-type]
        assert refused.value.reason == "not_paused"


def _by_batch(calls: Calls, run: InstanceId) -> None:
    calls.batches.begin("resume", definition="w", reason="open again")


def _by_batch_twice(calls: Calls, run: InstanceId) -> None:
    calls.run(run).pause("look")
    for _ in range(2):
        calls.batches.begin("resume", definition="w", reason="open again")


def _late(calls: Calls, run: InstanceId) -> None:
    calls.run(run).pause("look")
    calls.run(run).request_resume("tonight")
    calls.run(run).resume("now")


def _asked_for_before(calls: Calls, run: InstanceId) -> None:
    calls.run(run).request_resume("tonight")


@pytest.mark.row("R-037", "R-060", "R-065")
@pytest.mark.parametrize("step", [PAYMENT, REST])
@pytest.mark.parametrize("act", [_twice, _never_paused, _by_batch, _by_batch_twice, _late, _asked_for_before])
def test_a_resume_without_a_pause_passes_no_wait(
    place: Place, act: Callable[[Calls, InstanceId], None], step: dict[str, str]
) -> None:
    """Neither a second one, nor one of a batch, nor one that was left for later takes a process past what it waits for."""
    engine = place.engine()
    instance = waiting(engine, step)
    act(asking(engine, BOSS), instance)
    assert not has_shipped(engine, instance)


def test_a_batch_says_that_there_was_no_pause(place: Place) -> None:
    """A resume that found nothing to end is refused, with the reason."""
    engine = place.engine()
    waiting(engine, PAYMENT)
    batch = asking(engine, BOSS).batches.begin("resume", definition="w", reason="open again")
    engine.advance(seconds=5)
    [item] = engine.batches.items(batch.id)
    assert item.status == "refused"
    assert "not paused" in item.detail


def test_leaving_a_wait_takes_the_version_that_was_seen(place: Place) -> None:
    """The same call that ends a pause goes no further the second time."""
    engine = place.engine()
    instance = waiting(engine, REST)
    calls = asking(engine, OPERATOR)
    calls.run(instance).pause("look")
    seen = engine.processes.get(instance).instance.version
    calls.processes.resume(instance, "seen", expected_version=seen)
    with pytest.raises(RejectedError) as refused:
        calls.processes.resume(instance, "seen", expected_version=seen)
    assert refused.value.reason == "VERSION_CONFLICT"
    with pytest.raises(PayloadError, match="expected_version"):
        calls.processes.resume(instance, "seen")
    assert not has_shipped(engine, instance)
    seen = engine.processes.get(instance).instance.version
    calls.processes.resume(instance, "it is time", expected_version=seen)
    assert has_shipped(engine, instance)


def test_leaving_a_wait_for_an_event_takes_the_right_to_override(place: Place) -> None:
    """Somebody else was to say that it happened, as with a question."""
    engine = place.engine()
    instance = waiting(engine, PAYMENT)
    seen = engine.processes.get(instance).instance.version
    with pytest.raises(ForbiddenError, match="execution:override"):
        asking(engine, OPERATOR).processes.resume(instance, "now", expected_version=seen)
    assert not has_shipped(engine, instance)
    asking(engine, BOSS).processes.resume(instance, "paid in cash", expected_version=seen)
    assert has_shipped(engine, instance)


def test_a_late_request_ends_the_pause_that_it_is_about(place: Place) -> None:
    """One that was asked for before another pause began leaves that alone, and says so."""
    engine = place.engine()
    engine.register(Saga("ask").wait_for("wait", signal="go").build())
    run = engine.start("ask")
    engine.drain()
    run.pause("first")
    run.request_resume("tonight")
    run.resume("now")
    engine.advance(minutes=1)
    run.pause("second, for another reason")
    engine.advance(minutes=11)
    assert run.describe().status == "paused"
    assert any("what this was asked for is over" in each.error_message for each in run.resume_requests())


@pytest.mark.row("E-580")
def test_going_past_a_question_brings_no_data(place: Place) -> None:
    """No form has judged what an operator says with it, so that it stands with the resume and not in the state."""
    engine = place.engine()
    ask = {"id": "review", "type": "approval", "assignee": {"role": "fin"}}
    published(engine, process(ask, *ends("done", "no"), ways="review approved done,review rejected no"))
    instance = engine.processes.start("w", {"amount": 5}).id
    engine.drain()
    asking(engine, BOSS).run(instance).resume("now", override=True, data={"amount": 9, "_answers": {"review": {}}})
    found = engine.processes.get(instance).instance
    assert (found.status, found.state["amount"]) == ("completed", 5)
    assert "_answers" not in found.state or found.state["_answers"] != {"review": {}}


REVIEW = {"id": "review", "type": "approval", "assignee": {"role": "fin"}}
APPROVED = {"from": "review", "event": "approved", "to": "done"}
REJECTED = {"from": "review", "event": "rejected", "to": "no"}


def asked(engine: ManualEngine, approved: dict[str, str]) -> InstanceId:
    """A process at a question whose yes leads on by one way alone."""
    steps = [REVIEW, *ends("done", "no")]
    ways = [{**APPROVED, **approved}, REJECTED]
    published(engine, json.dumps({"domain": "d", "workflows": [{"id": "w", "steps": steps, "transitions": ways}]}))
    instance = engine.processes.start("w", {"amount": 5}).id
    engine.drain()
    return instance


@pytest.mark.row("E-580")
@pytest.mark.parametrize(
    "shut", [{"condition": "workflow.amount < 5"}, {"condition": "input.percent < 30"}, {"guard": "pay"}]
)
def test_an_override_that_leads_nowhere_is_refused(place: Place, shut: dict[str, str]) -> None:
    """Neither who lacks the guard of the way goes past a question, nor anybody while no way is open, and no option says otherwise."""
    engine = place.engine()
    instance = asked(engine, shut)
    run = asking(engine, BOSS).run(instance)
    with pytest.raises(RejectedError) as refused:
        run.resume("now", override=True)
    assert refused.value.reason == "no_transition"
    assert engine.processes.get(instance).instance.status == "active"
    told = {each.action: each.capability for each in engine.run(instance).resume_options()}
    assert told.get("override") == ("execution:resume, execution:override, pay" if "guard" in shut else None)
    if "guard" in shut:
        mighty = Actor(id="max", capabilities=BOSS.capabilities | {"pay"})
        asking(engine, mighty).run(instance).resume("now", override=True)
        assert engine.processes.get(instance).instance.status == "completed"


@pytest.mark.row("E-580")
@pytest.mark.parametrize("shut", [{"condition": "workflow.order == 'o-2'"}, {"guard": "pay"}])
def test_leaving_a_wait_that_leads_nowhere_is_refused(place: Place, shut: dict[str, str]) -> None:
    """A process does not fail because an operator led it past its wait."""
    engine = place.engine()
    ways = [{"from": "paid", "event": "completed", "to": "done", **shut}]
    text = json.dumps({"domain": "d", "workflows": [{"id": "w", "steps": [REST, *ends("done")], "transitions": ways}]})
    published(engine, text)
    instance = engine.processes.start("w", {"order": "o-1"}).id
    engine.drain()
    seen = engine.processes.get(instance).instance.version
    with pytest.raises(RejectedError) as refused:
        asking(engine, BOSS).processes.resume(instance, "now", expected_version=seen)
    assert refused.value.reason == "INVALID_TRANSITION"
    assert engine.processes.get(instance).instance.status == "suspended"
