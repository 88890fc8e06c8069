"""The process dies anywhere between a pause and the end of the run: nothing is lost, and no step is passed over."""

from __future__ import annotations

from typing import Any, cast

import pytest

from app.rules.test_resuming import ALLOW, BLOCK, CALL, PAID, rules
from app.rules.test_runs import MANAGER
from standfast import StepContext, load_rules
from standfast.testing import CrashScenario, ManualEngine
from support.crashing import NewStore, tried

GIVEN = {"order": {"total": 15000, "items": [1.5, "ü", None]}}
RULES = load_rules(rules(CALL, BLOCK, CALL | {"id": "second"}, PAID, CALL | {"id": "third"}, ALLOW))


def pausing(engine: ManualEngine) -> None:
    """Somebody pauses the run before its first step and lets it go on; then it is approved, and then its event comes."""
    run = engine.start("w", GIVEN, idempotency_key="once")
    if run.describe().status == "pending":  # Whoever gets no answer looks first.
        run.pause()
    if run.describe().paused_reason == "requested":
        run.resume()
    engine.drain()
    (task,) = run.tasks()
    engine.acting(MANAGER).tasks.decide(task.step_id, "approved", comment="fine")
    engine.drain()
    engine.publish("payment", payload={"amount": 7}, event_id="paid")
    engine.drain()


def shipping(ctx: StepContext) -> dict[str, object]:
    """What a step finds, so that the outcome shows it."""
    return {ctx.step: ctx.input["order"]}


def came_to(engine: ManualEngine) -> object:
    """How the run ended, with its data, the steps it took and what let it go on."""
    (found,) = engine.runs.list().items
    run = engine.run(found.id)
    assert run.verify().is_sound
    data = {name: value for name, value in run.describe().context.items() if name != "ask"}
    steps = [(each.name, each.status) for each in run.steps()]
    requests = sorted({each.triggered_by for each in run.resume_requests()})
    return found.status, data, steps, requests


SCENARIO = CrashScenario(
    prepare=lambda engine: engine.register(RULES).handle("ship", shipping), play=pausing, outcome=came_to
)


@pytest.mark.row("R-002", "R-066", "R-127")
def test_a_crash_between_pause_and_end_loses_nothing(new_store: NewStore) -> None:
    """Wherever it dies, the next process comes to the same end: same data, same steps, each wait left by what it waited for."""
    report = tried(SCENARIO, new_store, on_server=2)
    assert report.points >= 5, "a run without crashes proves nothing"
    (status, data, steps, requests), *_ = cast("tuple[Any, ...]", report.outcome)
    assert (status, data["order"], requests) == ("completed", GIVEN["order"], ["approval", "event", "manual"])
    assert [name for name, _ in steps] == [
        "ship/execute/1",
        "ask",
        "second/execute/1",
        "paid",
        "third/execute/1",
        "ok",
    ]
