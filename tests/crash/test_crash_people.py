"""Processes that die while people are asked, while events are waited for, and while a fork is paused: the end is always the same."""

from __future__ import annotations

from datetime import timedelta

import pytest

from standfast import Actor, Engine, Escalation, Saga, StepContext
from standfast.app.api.sync import Run
from standfast.testing import CrashScenario, ManualEngine, crash_everywhere
from support.crashing import NewStore, checked, tried

HOUR = timedelta(hours=1)
ANN, BEN, CEO = Actor(id="ann"), Actor(id="ben"), Actor(id="ceo", roles=frozenset({"head"}))

# -- Two of three have to agree; they are reminded, two rungs are gone up, and it is used once.


def answer(ctx: StepContext) -> dict[str, object]:
    """What the question came to."""
    asked = ctx.input["ok"]
    assert isinstance(asked, dict)
    return {"by": [each["decided_by"] for each in asked["decisions"]]}


APPROVAL = (
    Saga("approval")
    .human(
        "ok",
        subject="Pay {n}?",
        ask=["user:ann", "user:ben", "user:eve"],
        agree=2,
        notify="in_app",
        remind=[HOUR, 4 * HOUR],
        escalate=[Escalation(2 * HOUR, to="dee"), Escalation(3 * HOUR, to="role:head")],
    )
    .step("note", answer)
    .build()
)


def asked_for(engine: ManualEngine) -> Run[object]:
    """The one run, which a client who got no answer asks for again."""
    return engine.start("approval", {"n": 5}, key="the one", idempotency_key="start")


def approving(engine: ManualEngine) -> None:
    """One agrees at once; the others are silent, until the one it escalated to last decides."""
    run = asked_for(engine)
    engine.drain()
    (task,) = run.tasks()
    engine.acting(ANN).tasks.approve(task)
    engine.advance(5 * HOUR)
    engine.acting(CEO).tasks.approve(task)
    engine.drain()


TOLD = ("task_reminded", "task_escalated", "task_decided", "approved", "workflow_completed")


def approved(engine: ManualEngine) -> object:
    """What happened, what the rows say, and what people were told."""
    (found,) = engine.runs.list().items
    run = engine.run(found.id)
    details = engine.tasks.get(run.tasks()[0])
    return (
        [each.event_type for each in run.history() if each.event_type in TOLD],
        run.result(timeout=0)["by"],  # type: ignore[index]
        [(each.decided_by, each.decision, each.is_applied) for each in details.decisions],
        [(each.name, each.is_open) for each in details.people],
        {each.id: subjects(engine, each) for each in (ANN, BEN, CEO, Actor(id="dee"))},
    )


def subjects(engine: Engine, actor: Actor) -> list[str]:
    """What somebody was told, in any order: what is told at the same time may be told in any."""
    return sorted(each.subject for each in engine.acting(actor).notifications.mine())


APPROVED = (
    [
        "task_decided",
        *("task_reminded", "task_escalated", "task_escalated", "task_reminded"),
        *("task_decided", "approved", "workflow_completed"),
    ],
    ["ann", "ceo"],
    [("ann", "confirmed", True), ("ceo", "confirmed", True)],
    [(name, False) for name in ("ann", "ben", "eve", "dee", "head")],
    {
        "ann": ["Pay 5?"],
        "ben": ["Pay 5?", "Reminder: Pay 5?", "Reminder: Pay 5?"],
        "ceo": ["Escalated: Pay 5?", "Reminder: Pay 5?"],
        "dee": ["Escalated: Pay 5?", "Reminder: Pay 5?"],
    },
)

# -- Of two events that are waited for one came early; one that does not match is passed over.

PAYING = (
    Saga("paying")
    .wait_for_event("paid", "payment", key="order", match="event.amount > 10", timeout=HOUR)
    .wait_for_event("sent", "parcel", key="order", timeout=HOUR)
    .build()
)


def publishing(engine: ManualEngine) -> None:
    """The payment is there before anybody waits for it, behind one that is too small; the parcel comes later."""
    engine.publish("payment", "o-1", {"amount": 1}, event_id="small")
    engine.publish("payment", "o-1", {"amount": 50}, event_id="large")
    engine.drain()
    engine.start("paying", {"order": "o-1"}, key="the one", idempotency_key="start")
    engine.drain()
    engine.publish("parcel", "o-1", {"weight": 3}, event_id="parcel", ttl=0)
    engine.advance(days=8)


def paid(engine: ManualEngine) -> object:
    """What the run got, and how often."""
    (found,) = engine.runs.list().items
    run = engine.run(found.id)
    received = [each.data["id"] for each in run.history() if each.event_type == "event_received"]
    return run.result(timeout=0), received


PAID = (
    {"order": "o-1", "paid": {"amount": 50}, "sent": {"weight": 3}},
    ["large", "parcel"],
)

# -- A fork is paused when one of its branches is done.


def named(ctx: StepContext) -> str:
    """Which step this is."""
    return ctx.step


FORKED = (
    Saga("forked")
    .fork(
        "fork",
        lambda branch: branch.step("a1", named, priority=90).step("a2", named),
        lambda branch: branch.step("b1", named).wait("rest", HOUR).step("b2", named),
        lambda branch: branch.human("ask").step("c2", named),
    )
    .join("join")
    .step("last", named)
    .build()
)


def has(run: Run[object], event: str) -> bool:
    """Whether something has happened to a run already: a client who got no answer looks before he asks again."""
    return any(each.event_type == event for each in run.history())


def pausing_run(engine: ManualEngine) -> None:
    """The run is paused after its first step; what comes meanwhile is held, and goes on where it was."""
    run = engine.start("forked", key="the one", idempotency_key="start")
    if not has(run, "workflow_paused"):
        engine.execute_next()
        run.pause("month end", clock="stand_still")
    engine.drain()
    meanwhile(engine, run)
    if not has(run, "workflow_resumed"):
        run.resume()
    engine.drain()
    engine.advance(2 * HOUR)


def pausing_definition(engine: ManualEngine) -> None:
    """The same by a pause of its definition, which rows follow."""
    run = engine.start("forked", key="the one", idempotency_key="start")
    if not engine.pauses.list(with_ended=True):
        engine.execute_next()
        engine.pauses.pause("forked", reason="month end", clock="stand_still")
    engine.drain()
    meanwhile(engine, run)
    if engine.pauses.list():
        engine.pauses.resume("forked")
    engine.drain()
    engine.advance(2 * HOUR)


def meanwhile(engine: ManualEngine, run: Run[object]) -> None:
    """While it is paused time goes by, and somebody answers."""
    engine.advance(HOUR)
    for task in run.tasks():
        engine.tasks.approve(task)
    engine.drain()


def joined(engine: ManualEngine) -> object:
    """Each step once, whatever was called twice; how often it was paused."""
    (found,) = engine.runs.list().items
    run = engine.run(found.id)
    ended = sorted(each.step_name for each in run.history() if each.event_type == "step_completed")
    paused = [each.event_type for each in run.history() if each.event_type in {"workflow_paused", "workflow_resumed"}]
    wider = [each.ended_at is not None for each in engine.pauses.list(with_ended=True)]
    return found.status, ended, paused, wider, [each.status for each in run.tasks()]


STEPS = sorted(("a1", "a2", "b1", "rest", "b2", "ask", "c2", "fork", "join", "last"))

SCENARIOS = {
    "approval": (
        CrashScenario(prepare=lambda engine: engine.register(APPROVAL), play=approving, outcome=approved),
        APPROVED,
    ),
    "early event": (CrashScenario(prepare=lambda engine: engine.register(PAYING), play=publishing, outcome=paid), PAID),
    "paused run": (
        CrashScenario(prepare=lambda engine: engine.register(FORKED), play=pausing_run, outcome=joined),
        ("completed", STEPS, ["workflow_paused", "workflow_resumed"], [], ["decided"]),
    ),
    "paused definition": (
        CrashScenario(prepare=lambda engine: engine.register(FORKED), play=pausing_definition, outcome=joined),
        ("completed", STEPS, [], [True], ["decided"]),
    ),
}


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_crash_anywhere_changes_nothing(new_store: NewStore, name: str) -> None:
    """Whatever boundary the process dies at, the next one comes to the same end, with nothing left over."""
    scenario, whole = SCENARIOS[name]
    report = tried(scenario, new_store, on_server=5)
    assert report.outcome == (whole, [], 0)
    assert report.points >= 5


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_second_crash_during_the_recovery_changes_nothing(new_store: NewStore, name: str) -> None:
    """The process that takes over dies as well, and the third one finishes."""
    scenario, whole = SCENARIOS[name]
    assert tried(scenario, new_store, on_server=10, again_after=3).outcome == (whole, [], 0)


@pytest.mark.long
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("again_after", [None, 1, 2, 3, 5, 8])
@pytest.mark.parametrize("name", SCENARIOS)
def test_every_point_of_every_scenario(new_store: NewStore, name: str, again_after: int | None) -> None:
    """The campaign: all points on both stores, alone and with a second crash."""
    scenario, whole = SCENARIOS[name]
    report = crash_everywhere(checked(scenario), new_store=new_store, again_after=again_after)
    assert report.outcome == (whole, [], 0)
