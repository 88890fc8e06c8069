"""What a definition tells of the steps at which its runs rest: what for, how they go on, and that runs do rest there and nowhere else."""

from __future__ import annotations

from typing import get_args

import msgspec
import pytest

from app.processes.acting import published
from app.rules.test_resuming import ALLOW, BLOCK, CALL, PAID, approve, publish, rules, wait
from app.rules.test_runs import begun
from app.sagas.acting import BROKEN, Stage, run, status
from standfast import NotFoundError, PausePoint, PayloadError, Saga
from standfast.features.runs.pauses.pause_points import PauseTrigger, ResumptionBehavior
from standfast.testing import ManualEngine
from support.engines import Place

REST = {"id": "rest", "type": "wait", "duration": "2h"}


def told(engine: ManualEngine, name: str) -> dict[str, tuple[str, str]]:
    """The pause points of a workflow by their steps; each step is there once."""
    found = engine.definitions.pause_points(name)
    assert len({each.step_id for each in found}) == len(found)
    return {each.step_id: (each.pause_trigger, each.resumption_behavior) for each in found}


@pytest.mark.row("R-021", "R-022")
def test_a_run_rests_where_its_definition_says(place: Place) -> None:
    """Rules are paused at each of their pause points, and at no other step, and go on with one of the steps that the point leads to."""
    stage = Stage()
    engine, instance = begun(place, rules(BLOCK, CALL, PAID, REST, ALLOW), stage=stage)
    points = {each.step_id: each for each in engine.definitions.pause_points("w")}
    assert told(engine, "w") == {
        "ask": ("approval", "branch_on_decision"),
        "paid": ("wait", "continue"),
        "rest": ("wait", "continue"),
    }
    assert points["ask"].leads_to == {"approved": ["ship"], "rejected": ["ask/blocked"]}
    seen = []
    for act in (approve, publish, wait):
        shown = engine.run(instance).describe()
        assert shown.status == "paused"
        seen.append(shown.paused_step)
        assert [shown.next_step] in points[shown.paused_step].leads_to.values()
        act(engine, instance)
    assert (seen, status(engine, instance)) == (list(points), "completed")


@pytest.mark.row("R-021", "R-022")
def test_every_kind_of_workflow_has_its_pause_points(place: Place) -> None:
    """A step that gives up rests for an operator where nothing is undone and nothing else follows, and is done again; otherwise it is no pause point."""
    stage = Stage()
    stage.does("charge", BROKEN)
    engine = place.engine()
    undone = Saga("undone").step("charge", stage.does("charge")).wait("rest", 60).human("ask").build()
    held = Saga("held", dlq=True).step("charge", stage.does("charge"), max_retries=1).wait("rest", 60).build()
    engine.register(undone).register(held)
    assert told(engine, "undone") == {"rest": ("wait", "continue"), "ask": ("approval", "branch_on_decision")}
    assert told(engine, "held") == {"charge": ("manual", "repeat"), "rest": ("wait", "continue")}
    instance = run(engine, "held")
    assert engine.run(instance).describe().paused_step == "charge"
    published(engine)
    assert told(engine, "orders.approval") == {
        "review": ("approval", "branch_on_decision"),
        "process": ("manual", "repeat"),
    }
    (review,) = engine.definitions.pause_points("orders.approval", 1, trigger="approval")
    assert review.leads_to["rejected"] == ["rejected"]


@pytest.mark.row("R-022")
def test_there_are_three_words_for_what_a_run_rests_for(place: Place) -> None:
    """`approval`, `wait` and `manual`: a list by another one is refused, and a point that says another one is none."""
    assert get_args(PauseTrigger) == ("approval", "wait", "manual")
    assert get_args(ResumptionBehavior) == ("continue", "branch_on_decision", "repeat")
    engine, _ = begun(place, rules(BLOCK, PAID, ALLOW))
    assert [each.step_id for each in engine.definitions.pause_points("w", trigger="wait")] == ["paid"]
    assert engine.definitions.pause_points("w", trigger="manual") == []
    for wrong in ("timer", "Approval", 7, None):
        with pytest.raises(PayloadError, match="one of approval, wait, manual"):
            engine.definitions.pause_points("w", trigger=wrong)  # type: ignore[arg-type]
    point = msgspec.to_builtins(engine.definitions.pause_points("w")[0])
    assert msgspec.convert(point, PausePoint).step_id == "ask"
    for field in ("pause_trigger", "resumption_behavior"):
        with pytest.raises(msgspec.ValidationError):
            msgspec.convert({**point, field: "timer"}, PausePoint)
    for name, version in (("nobody", ""), ("w", 9)):
        with pytest.raises(NotFoundError):
            engine.definitions.pause_points(name, version)
