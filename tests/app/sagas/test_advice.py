"""What `why` and `resume_options` say is accepted, also where a letter is gone, a time is over, or a wider scope decides."""

from __future__ import annotations

from datetime import timedelta

import pytest

from app.sagas.acting import BROKEN, Stage, run
from standfast import Actor, Fail, Saga
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

HOUR = timedelta(hours=1)


def options(engine: ManualEngine, instance: InstanceId) -> list[tuple[str, str]]:
    """What would bring a run on."""
    return [(each.action, each.step_name) for each in engine.run(instance).resume_options()]


def halted(place: Place) -> tuple[ManualEngine, InstanceId]:
    """A run whose rollback has halted."""
    stage = Stage()
    saga = (
        Saga("order")
        .step("charge", stage.does("charge"))
        .on_failure("refund", stage.does("refund", BROKEN), attempts=1)
    )
    engine = place.engine().register(saga.step("ship", stage.does("ship", BROKEN), attempts=1).build())
    return engine, run(engine, "order")


def test_a_compensation_whose_letter_is_gone_is_not_tried_again(place: Place) -> None:
    """Once somebody has discarded the letter, to go on without the step is all that is left, and both say so."""
    engine, instance = halted(place)
    assert options(engine, instance) == [("retry_compensation", "charge"), ("skip", "charge")]
    engine.dead_letters.discard(engine.dead_letters.list()[0])
    assert options(engine, instance) == [("skip", "charge")]
    [_, reason] = engine.run(instance).why().reasons
    assert (reason.kind, reason.step, [(each.call, each.step_number) for each in reason.remedies]) == (
        "compensation",
        "charge",
        [("run.skip", 1)],
    )
    engine.run(instance).skip(1, reason="by hand")
    engine.drain()
    assert options(engine, instance) == []
    assert [each.kind for each in engine.run(instance).why().reasons] == ["ended"]


def test_a_loser_whose_letter_is_gone_is_not_tried_again(place: Place) -> None:
    """The same of a branch that was not needed."""
    stage = Stage()
    saga = Saga("buy").fork(
        "ask",
        lambda one: (
            one.step("hold", stage.does("hold"))
            .on_failure("free", stage.does("free", BROKEN), attempts=1)
            .wait_for("late", "late")
        ),
        lambda two: two.wait_for("offer", "offer"),
    )
    engine = place.engine().register(saga.join("first", "any").build())
    instance = run(engine, "buy")
    engine.run(instance).signal("offer")
    engine.drain()
    [letter] = engine.dead_letters.list()
    assert options(engine, instance) == [("retry_compensation", "hold"), ("skip", "hold")]
    told = [each.remedy for each in engine.run(instance).why().reasons]
    assert any(f"if you undid it by hand, skip goes on without it (step {letter.number})" in each for each in told)
    engine.dead_letters.discard(letter)
    assert options(engine, instance) == [("skip", "hold")]


def test_no_event_is_asked_for_that_would_come_too_late(place: Place) -> None:
    """A run that is paused with running clocks takes no event after the time of its wait, so that nobody is asked to publish one."""
    saga = Saga("order").wait_for_event("paid", "payment", timeout=HOUR, on_timeout=lambda way: way.wait("rest", 60))
    engine = place.engine().register(saga.build())
    instance = run(engine, "order")
    engine.run(instance).pause()
    assert options(engine, instance) == [("resume", ""), ("publish", "paid")]
    engine.advance(2 * HOUR)
    assert options(engine, instance) == [("resume", "")]


@pytest.mark.parametrize("tenant", ["*", "default"])
def test_a_pause_of_all_tenants_is_ended_by_the_engine_alone(place: Place, tenant: str) -> None:
    """Somebody of a tenant is not asked to end what they may not."""
    engine = place.engine().register(Saga("order").step("ship", lambda: None).build())
    engine.pauses.pause(tenant=tenant)
    instance = run(engine, "order")
    olga = engine.acting(Actor(id="olga", capabilities=frozenset({"execution:*"})))
    found = olga.run(instance).resume_options()
    assert [each.action for each in found] == (["end_pause"] if tenant == "default" else [])
    assert options(engine, instance) == [("end_pause", "")]


@pytest.mark.parametrize("dlq", [True, False])
def test_what_gave_up_during_a_pause_is_told_before_it_is_resumed(place: Place, *, dlq: bool) -> None:
    """A resume would turn the run back, so `why` names the step, and how to go on behind it."""
    engine = place.engine()

    def charge() -> None:
        engine.runs.list()
        engine.run(engine.runs.list().items[0].id).pause("look")
        raise Fail("the bank is down")

    engine.register(Saga("order", dlq=dlq).step("charge", charge, attempts=1).step("ship", lambda: None).build())
    instance = run(engine, "order")
    [paused, failed] = engine.run(instance).why().reasons
    assert (paused.kind, failed.kind, failed.step) == ("paused", "dead_letter", "charge")
    assert "the bank is down" in failed.words
    assert [each.call for each in failed.remedies] == ["run.skip", "run.complete_step"]
    engine.run(instance).skip(failed.step_number or 0, reason="paid in cash")
    engine.run(instance).resume()
    engine.drain()
    assert engine.run(instance).describe().status == "completed"
