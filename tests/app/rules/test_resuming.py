"""Rules that pause and go on: by an approval, an event, a person or the time; what is written down of it, and what is refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from api.world import World
from app.rules.test_runs import MANAGER, answer, begun
from app.sagas.acting import Stage, history, life, person, status
from standfast import (
    Actor,
    ForbiddenError,
    NotFoundError,
    RejectedError,
    RequestContext,
    Saga,
    Settings,
    StandfastError,
    StepContext,
    load_rules,
)
from standfast.engine.loops.resume import Resuming
from standfast.features.runs.resume import RESUMPTION
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place
from support.inside import store_of

OPERATOR = Actor(id="olga", capabilities=frozenset({"execution:pause", "execution:resume"}))
BOSS = Actor(id="boss", capabilities=frozenset({"execution:resume", "execution:override"}))

CALL = {"id": "ship", "type": "action", "action": "execute", "execute": [{"type": "call", "handler": "ship"}]}
ALLOW = {"id": "ok", "type": "action", "action": "allow"}
PAID = {"id": "paid", "type": "wait", "event": "payment", "timeout": "2h"}
BLOCK = {"id": "ask", "type": "action", "action": "block", "requires": {"type": "approval", "role": "sales_manager"}}


def rules(*steps: dict[str, Any]) -> dict[str, Any]:
    """A file with these steps."""
    return {"workflow_id": "w", "steps": list(steps)}


def refused(call: Any) -> str:
    """The code that a call is refused with."""
    with pytest.raises(RejectedError) as raised:
        call()
    return raised.value.reason


def approve(engine: ManualEngine, run: InstanceId) -> None:
    """The sales manager says yes."""
    answer(engine, run, "approved", comment="fine")


def publish(engine: ManualEngine, _run: InstanceId) -> None:
    """The event comes."""
    engine.publish("payment", payload={"amount": 7})
    engine.drain()


def resume(engine: ManualEngine, run: InstanceId) -> None:
    """Somebody does not want to wait."""
    engine.acting(BOSS).run(run).resume("urgent", data={"ticket": 5})
    engine.drain()


def wait(engine: ManualEngine, _run: InstanceId) -> None:
    """Nothing comes."""
    engine.advance(hours=2)


def timers(engine: ManualEngine, run: InstanceId) -> list[str]:
    """The keys of the timers that are still to fire."""
    return [each.key for each in store_of(engine).reader("default").work(run)[1]]


# -- by what a run goes on


@pytest.mark.row("R-049", "R-036")
def test_a_step_that_fails_after_the_resume_fails_the_run(place: Place) -> None:
    """The approval stays what it was and its resume counts as carried out; the run has failed, and says by which step."""
    stage = Stage()
    stage.does("ship", ValueError("no truck"))
    once = {**CALL, "execute": [{"type": "call", "handler": "ship", "attempts": 1}]}
    engine, run = begun(place, rules(BLOCK, once, ALLOW), stage=stage)
    approve(engine, run)
    shown = engine.run(run).describe()
    assert (shown.status, "ship" in shown.error, "no truck" in shown.error) == ("failed", True, True)
    (request,) = engine.run(run).resume_requests()
    assert (request.triggered_by, request.executed_at is not None, request.error_message) == ("approval", True, "")
    assert [each.decision for each in engine.run(run).tasks()] == ["approved"]


@pytest.mark.row("R-039", "R-046", "R-059")
@pytest.mark.row("R-015", "R-016", "R-024", "R-025", "R-026", "R-027", "R-035", "R-036", "R-061", "R-062", "R-093")
@pytest.mark.row("R-063", "R-034", "R-114", "R-135")
@pytest.mark.parametrize(
    ("step", "act", "told"),
    [
        (BLOCK, approve, ("approval", "mia", {"status": "approved", "decided_by": "mia", "comment": "fine"})),
        (PAID, publish, ("event", "system", {"name": "payment", "payload": {"amount": 7}})),
        (BLOCK, resume, ("manual", "boss", {"ticket": 5})),
        (PAID, resume, ("manual", "boss", {"ticket": 5})),
        ({**PAID, "on_timeout": "ship"}, wait, ("timeout", "system", {})),
        ({"id": "rest", "type": "wait", "duration": "2h"}, wait, ("timeout", "system", {})),
    ],
)
def test_what_lets_a_run_go_on_is_written_down(
    place: Place, step: dict[str, Any], act: Any, told: tuple[str, str, dict[str, object]]
) -> None:
    """One request, carried out, with what triggered it, who did and what that brought; the history says `resuming`, and the next step runs once."""
    trigger, by, brought = told
    stage = Stage()
    engine, run = begun(place, rules(step, CALL, ALLOW), stage=stage)
    paused = engine.run(run).describe()
    assert (paused.status, paused.paused_step, paused.next_step, paused.resume_attempted_at) == (
        "paused",
        step["id"],
        "ship",
        None,
    )
    act(engine, run)
    (request,) = engine.run(run).resume_requests()
    assert (request.triggered_by, request.requested_by, request.error_message) == (trigger, by, "")
    shown = engine.run(run).describe()
    assert request.executed_at == shown.resume_attempted_at == place.clock.now()
    assert brought.items() <= shown.resume_data.items()
    assert shown.resume_data == (request.trigger_data or {})
    assert (shown.status, stage.calls) == ("completed", ["ship"])
    assert [each.status for each in history(engine, run, "workflow_resumed")] == ["resuming"]
    assert life(engine, run, step["id"])[1] == "paused"
    assert engine.run(run).verify().is_sound


@pytest.mark.row("R-026", "R-065", "R-079", "C-39")
def test_an_approval_that_let_a_run_go_on_does_so_once(place: Place) -> None:
    """Its id is the trigger: told again, by the same decision or by a resume in its name, nothing happens; another decision is a conflict."""
    stage = Stage()
    engine, run = begun(place, rules(BLOCK, CALL, BLOCK | {"id": "again"}, ALLOW), stage=stage)
    (task,) = engine.run(run).tasks()
    approve(engine, run)
    (request,) = engine.run(run).resume_requests()
    assert request.triggered_by_id == task.step_id
    engine.acting(MANAGER).tasks.decide(task.step_id, "approved", comment="fine")
    engine.acting(BOSS).run(run).resume(triggered_by="approval", triggered_by_id=task.step_id)
    engine.drain()
    for who, decision in ((MANAGER, "rejected"), (person("max", "sales_manager"), "approved")):
        with pytest.raises(RejectedError, match="approved by 'mia' at 2030-01-01") as conflict:
            engine.acting(who).tasks.decide(task.step_id, decision)
        assert conflict.value.reason == "already_decided"
    assert (status(engine, run), stage.calls, len(engine.run(run).resume_requests())) == ("paused", ["ship"], 1)


@pytest.mark.row("R-029", "R-030", "R-035", "R-034")
def test_a_run_has_the_status_that_its_handlers_see(place: Place) -> None:
    """Pending before anybody works, running inside of a step, paused while it waits, resuming inside of the first step after that, and then running again."""
    seen: list[str] = []
    engine = place.engine().register(load_rules(rules(CALL, BLOCK, CALL | {"id": "b"}, CALL | {"id": "c"}, ALLOW)))
    engine.handle("ship", lambda ctx: seen.append(status(engine, ctx.instance)))
    run = engine.start("w", {}).id
    seen.append(status(engine, run))
    engine.drain()
    seen.append(status(engine, run))
    approve(engine, run)
    seen.append(status(engine, run))
    assert seen == ["pending", "running", "paused", "resuming", "running", "completed"]


@pytest.mark.row("R-044", "R-061", "R-115")
def test_later_conditions_find_decisions_events_and_data(place: Place) -> None:
    """Under `approval`, `event` and `resume`; the data that the run had stays as it was."""
    asked = "approval.decided_by == 'mia' && event.payload.amount > 5 && resume.ticket == 5"
    check = {"id": "check", "type": "condition", "condition": asked, "on_true": "ok", "on_false": "no"}
    block = {"id": "no", "type": "action", "action": "block"}
    engine, run = begun(place, rules(BLOCK, PAID, PAID | {"id": "last", "event": "other"}, check, ALLOW, block))
    before = msgspec.json.encode(engine.run(run).describe().context)
    approve(engine, run)
    publish(engine, run)
    resume(engine, run)
    shown = engine.run(run).describe()
    assert (shown.status, shown.outcome) == ("completed", "allowed")
    assert msgspec.json.encode({"order": shown.context["order"]}) == before


@pytest.mark.row("R-011", "R-052", "R-119", "R-145")
def test_each_pause_has_its_own_beginning(place: Place) -> None:
    """Two approvals in a row: the second pause begins with the first approval, although nothing ran in between."""
    engine, run = begun(place, rules(BLOCK, BLOCK | {"id": "again"}, ALLOW))
    first = engine.run(run).describe().paused_at
    engine.advance(hours=3)
    approve(engine, run)
    shown = engine.run(run).describe()
    assert (first, shown.paused_at) == (place.clock.now() - timedelta(hours=3), place.clock.now())
    assert (shown.paused_step, shown.next_step) == ("again", "ok")
    assert [task.decision for task in engine.run(run).tasks()] == ["approved", ""]
    engine.advance(hours=1)
    assert engine.run(run).describe().paused_at == shown.paused_at


@pytest.mark.row("R-014", "R-020", "R-041", "R-045", "R-053", "C-30")
@pytest.mark.parametrize(("on_true", "next_step"), [(None, "ship"), ("ok", "ok")])
def test_the_next_step_is_told_by_its_id_in_the_file(place: Place, on_true: str | None, next_step: str) -> None:
    """Where `on_true` leads, or else the step that follows in the list, also if it begins with an action; runs are found by it."""
    asks = BLOCK if on_true is None else BLOCK | {"on_true": on_true}
    stage = Stage()
    engine, run = begun(place, rules(asks, CALL, ALLOW) if on_true is None else OVER, stage=stage)
    assert engine.run(run).describe().next_step == next_step
    assert [(each.id, each.next_step) for each in engine.runs.paused(next_step=next_step)] == [(run, next_step)]
    assert engine.runs.paused(next_step="ask") == []
    approve(engine, run)
    assert engine.runs.paused(next_step=next_step) == []
    assert stage.calls == (["ship"] if on_true is None else [])


OVER = rules(
    {
        "id": "check",
        "type": "condition",
        "condition": {"field": "order.total", "operator": "gte", "value": 1},
        "on_true": "ask",
        "on_false": "ship",
    },
    BLOCK | {"on_true": "ok"},
    CALL,
    ALLOW | {"execute": [{"type": "notify", "recipients": ["x"], "message": "m"}]},
)


# -- resuming by hand


@pytest.mark.row("R-063", "R-068", "R-099", "R-136")
def test_going_past_an_approval_takes_more_than_to_resume(place: Place) -> None:
    """With `execution:override` besides; the approval is closed as overridden, with name and reason, and the request tells the same."""
    engine, run = begun(place)
    before = history(engine, run)
    with pytest.raises(ForbiddenError, match="execution:override"):
        engine.acting(OPERATOR).run(run).resume("urgent")
    assert history(engine, run) == before
    resume(engine, run)
    (task,) = engine.run(run).tasks()
    assert (task.status, task.decided_by, task.comment) == ("overridden", "boss", "urgent")
    refusal, request = engine.run(run).resume_requests()
    assert (refusal.executed_at, "execution:override" in refusal.error_message) == (None, True)
    assert (request.triggered_by, request.requested_by, request.reason) == ("manual", "boss", "urgent")
    assert engine.run(run).describe().outcome == "allowed"


@pytest.mark.row("R-034", "R-063", "R-070")
def test_a_wait_can_be_resumed_by_hand(place: Place) -> None:
    """With `execution:resume` alone, as nobody is passed over; its event comes too late then, its time does not run on, and the options say so beforehand."""
    stage = Stage()
    engine, run = begun(place, rules(PAID, CALL, ALLOW), stage=stage)
    paid, by_hand = engine.run(run).resume_options()
    assert (paid.action, paid.choices, paid.step_name) == ("publish", ("payment",), "paid")
    assert (by_hand.action, by_hand.capability) == ("resume", "execution:resume")
    with pytest.raises(ForbiddenError, match="execution:resume"):
        engine.acting(person("eve")).run(run).resume()
    assert len(timers(engine, run)) == 1
    engine.acting(OPERATOR).run(run).resume("paid in cash")
    assert timers(engine, run) == []
    publish(engine, run)
    assert (status(engine, run), stage.calls) == ("completed", ["ship"])
    assert history(engine, run, "event_received") == []
    assert engine.run(run).resume_options() == []


@pytest.mark.row("R-070", "G-39")
def test_an_approval_can_be_approved_rejected_or_escalated(place: Place) -> None:
    """The options say so, and to whom; escalated by one who may, those are asked besides and all have the whole time again, once."""
    asked = {"type": "approval", "role": "sales_manager", "timeout": "24h", "escalate_to": "director"}
    engine, run = begun(place, rules(BLOCK | {"requires": asked}, CALL, ALLOW))
    (task,) = engine.run(run).tasks()
    decide, override, escalate = engine.run(run).resume_options()
    assert (decide.action, decide.choices, decide.role) == ("decide", ("approved", "rejected"), "sales_manager")
    assert (override.action, override.capability) == ("override", "execution:resume, execution:override")
    assert (escalate.action, escalate.choices) == ("escalate", ("role:director",))
    assert {each.step_id for each in (decide, override, escalate)} == {task.step_id}
    director = engine.acting(person("dora", "director"))
    with pytest.raises(ForbiddenError):
        director.tasks.decide(task.step_id, "approved")
    with pytest.raises(ForbiddenError):
        director.tasks.escalate(task.step_id)
    engine.advance(hours=23)
    engine.acting(MANAGER).tasks.escalate(task.step_id, "I am away")
    (told,) = history(engine, run, "task_escalated")
    assert (told.actor, told.data["reason"]) == ("mia", "I am away")
    assert [each.action for each in engine.run(run).resume_options()] == ["decide", "override"]
    before = engine.run(run).history()
    assert refused(lambda: engine.acting(MANAGER).tasks.escalate(task.step_id)) == "nobody_named"
    assert engine.run(run).history() == before
    engine.advance(hours=23)
    director.tasks.decide(task.step_id, "approved")
    engine.drain()
    assert status(engine, run) == "completed"


@pytest.mark.row("R-037", "R-060", "R-072", "C-48")
@pytest.mark.parametrize("case", ["pending", "running", "completed", "failed", "blocked"])
def test_only_what_is_paused_goes_on(place: Place, case: str) -> None:
    """Any other status refuses a resume; nothing changes, and the request is kept with its error."""
    stage = Stage()
    seen: list[str] = []

    def inside(ctx: StepContext) -> None:
        if case == "running":
            seen.append(refused(lambda: engine.run(ctx.instance).resume("now")))
        if case == "failed":
            raise ValueError("broken")

    stage.does("ship", inside)
    call = CALL | {"execute": [{"type": "call", "handler": "ship", "attempts": 1}]}
    last = ALLOW if case != "blocked" else {"id": "no", "type": "action", "action": "block"}
    engine = place.engine().register(load_rules(rules(call, last))).handle("ship", stage.does("ship"))
    run = engine.start("w", {}).id
    if case != "pending":
        engine.drain()
    if case != "running":
        assert status(engine, run) == case
        version = engine.run(run).history()
        seen.append(refused(lambda: engine.run(run).resume("now")))
        assert engine.run(run).history() == version
    assert seen == ["not_paused" if case in {"pending", "running"} else "already_terminal"]
    (request,) = engine.run(run).resume_requests()
    assert (request.executed_at, seen[0] in request.error_message) == (None, True)
    with pytest.raises(NotFoundError):
        engine.acting(RequestContext(tenant="other", actor=OPERATOR)).run(run).resume()
    engine.drain()


# -- pausing by hand


@pytest.mark.row(
    "R-056", "R-067", "R-098", "R-140", "R-005", "R-006", "R-040", "R-042", "R-043", "R-092", "R-071", "R-069"
)
def test_a_run_is_paused_between_its_steps(place: Place) -> None:
    """What was done stays done; status, reason and instant change together, and it goes on with the next step."""
    stage = Stage()
    charge = CALL | {"id": "charge", "execute": [{"type": "call", "handler": "charge"}]}
    engine = place.engine().register(load_rules(rules(charge, CALL, ALLOW)))
    stage.does("charge", lambda ctx: engine.acting(OPERATOR).run(ctx.instance).pause("audit"))
    for name in ("charge", "ship"):
        engine.handle(name, stage.does(name))
    run = engine.start("w", {}).id
    engine.drain()
    shown = engine.run(run).describe()
    assert (shown.status, shown.paused_reason, shown.paused_by, shown.paused_at) == (
        "paused",
        "requested",
        "olga",
        place.clock.now(),
    )
    assert (shown.next_step, shown.ended_at, stage.calls) == ("ship", None, ["charge"])
    assert [each.id for each in engine.runs.list(status="paused").items] == [run]
    assert [(each.name, each.status) for each in engine.run(run).steps()] == [("charge/execute/1", "completed")]
    with pytest.raises(ForbiddenError, match="execution:resume"):
        engine.acting(person("eve")).run(run).resume()
    engine.acting(OPERATOR).run(run).resume("audited", data={"by": "tax"})
    engine.drain()
    assert (status(engine, run), stage.calls) == ("completed", ["charge", "ship"])
    assert engine.run(run).describe().resume_data == {"by": "tax"}
    assert [each.name for each in engine.run(run).steps()] == ["charge/execute/1", "ship/execute/1", "ok"]


@pytest.mark.row("R-142")
@pytest.mark.parametrize("step", [BLOCK, PAID])
def test_a_run_that_waits_is_paused_already(place: Place, step: dict[str, Any]) -> None:
    """To pause it again is refused and changes nothing."""
    engine, run = begun(place, rules(step, CALL, ALLOW))
    before = engine.run(run).history()
    assert refused(lambda: engine.run(run).pause()) == "already_paused"
    assert engine.run(run).history() == before


def test_a_pause_of_a_wider_scope_holds_a_run_that_waits(place: Place) -> None:
    """What it waits for is taken, and what follows from that waits for the end of the wider pause."""
    stage = Stage()
    engine, run = begun(place, rules(BLOCK, CALL, ALLOW), stage=stage)
    pause = engine.pauses.pause("w", reason="stocktaking")
    approve(engine, run)
    assert (stage.calls, [each.pause for each in engine.run(run).describe().held_by]) == ([], [pause.id])
    engine.pauses.resume("w")
    engine.drain()
    assert (status(engine, run), stage.calls) == ("completed", ["ship"])


# -- time


@pytest.mark.row("R-009", "R-118", "R-141", "R-032", "R-089")
def test_an_approval_expires(place: Place) -> None:
    """Past its time the task is expired, the run has failed and says so, and a decision is refused and changes nothing."""
    engine, run = begun(place)
    (task,) = engine.run(run).tasks()
    engine.advance(hours=24)
    (expired,) = engine.run(run).tasks()
    shown = engine.run(run).describe()
    assert (expired.status, shown.status, "waited too long" in shown.error) == ("expired", "failed", True)
    before = engine.run(run).history()
    assert refused(lambda: engine.acting(MANAGER).tasks.decide(task.step_id, "approved")) == "expired"
    assert (engine.run(run).history(), engine.run(run).tasks()) == (before, [expired])


@pytest.mark.row("R-101", "R-109", "C-38")
@pytest.mark.parametrize(("limit", "own", "hours"), [(None, None, 24), (5, None, 5), (5, "9h", 9)])
def test_a_pause_lasts_as_long_as_the_settings_say(
    place: Place, limit: int | None, own: str | None, hours: int
) -> None:
    """A day unless they say otherwise; a step that says so itself waits as long as that."""
    settings = Settings() if limit is None else Settings(resume_timeout=timedelta(hours=limit))
    asked = {"type": "approval", "role": "sales_manager", "timeout": own}
    wait = {"id": "paid", "type": "wait", "event": "payment", "timeout": own}
    engine = place.engine(settings).register(load_rules(rules(BLOCK | {"requires": asked}, ALLOW)))
    engine.register(load_rules({**rules(wait, ALLOW), "workflow_id": "waits"}))
    runs = [engine.start(name, {}).id for name in ("w", "waits")]
    engine.drain()
    engine.advance(hours=hours - 1)
    assert [status(engine, each) for each in runs] == ["paused", "paused"]
    engine.advance(hours=1)
    assert [status(engine, each) for each in runs] == ["failed", "failed"]


# -- what is kept, and what is found


@pytest.mark.row("R-045", "R-048")
def test_a_resume_point_cannot_vanish(place: Place) -> None:
    """A file cannot be changed under its version, and a new version leaves the paused run with its own: it goes on where it would have."""
    stage = Stage()
    engine, run = begun(place, rules(BLOCK, CALL, ALLOW), stage=stage)
    with pytest.raises(StandfastError, match="w"):
        place.engine().register(load_rules(rules(BLOCK, ALLOW)))
    engine.register(load_rules({**rules(BLOCK, ALLOW), "version": "2"}))
    assert engine.run(run).describe().next_step == "ship"
    approve(engine, run)
    assert (status(engine, run), stage.calls) == ("completed", ["ship"])


@pytest.mark.row("R-094", "R-130", "R-131", "R-033", "C-08", "C-31", "EC-12")
def test_runs_of_all_kinds_are_listed_by_their_own_words(place: Place) -> None:
    """Paused and blocked rules are found by these words, and not among the dead letters of sagas; what is paused has an instant, what is not has none."""
    engine, paused = begun(place)
    allowed, blocked = (engine.start("order_approval", {"order": {"total": 15000}}).id for _ in range(2))
    engine.drain()
    answer(engine, allowed, "approved")
    answer(engine, blocked, "rejected")

    def found(**asked: Any) -> set[InstanceId]:
        return {each.id for each in engine.runs.list(**asked).items}

    assert found(status="paused") == {each.id for each in engine.runs.paused()} == {paused}
    assert (found(status="blocked"), found(status="completed"), found(status="dlq")) == ({blocked}, {allowed}, set())
    assert found(status=["blocked", "completed"]) == found(is_active=False) == {allowed, blocked}
    assert found(is_active=True) == {paused}
    assert {each.id: each.paused_at is None for each in engine.runs.list().items} == {
        paused: False,
        allowed: True,
        blocked: True,
    }


@pytest.mark.row("R-095")
def test_late_pauses_are_about_to_go_on(place: Place) -> None:
    """A run that was paused for too long is among those that a worker will see to, and those that were not are not."""
    engine = place.engine(Settings(resume_worker_interval=None)).register(load_rules(rules(CALL, ALLOW)))
    engine.handle("ship", lambda ctx: None)
    late = engine.start("w", {}).id
    engine.run(late).pause()
    place.clock.move(timedelta(hours=23))
    early = engine.start("w", {}).id
    engine.run(early).pause()
    assert engine.runs.resumable() == []
    place.clock.move(timedelta(hours=2))
    assert [each.id for each in engine.runs.resumable()] == [late]
    engine.run(early).request_resume()
    assert [each.id for each in engine.runs.resumable()] == [early, late]


@pytest.mark.row("R-008", "R-074", "R-060")
def test_an_approval_names_its_run(place: Place) -> None:
    """In the list of all open ones and in that of the run; a stranger finds neither."""
    engine, run = begun(place)
    (task,) = engine.tasks.list(role="sales_manager")
    assert (task.instance, [each.step_id for each in engine.run(run).tasks()]) == (run, [task.step_id])
    other = engine.acting(RequestContext(tenant="other", actor=MANAGER))
    with pytest.raises(NotFoundError):
        other.tasks.decide(task.step_id, "approved")
    with pytest.raises(NotFoundError):
        other.run(run).describe()


@pytest.mark.row("R-132", "R-078", "R-103", "C-47")
def test_all_of_it_can_be_switched_off(place: Place) -> None:
    """Approvals are decided and stay so, the resume endpoints answer 404, and the run stays paused; the application itself can let it go on."""
    stage = Stage()
    settings = Settings(auto_resume_after_approval=False, resume_worker_interval=None)
    engine = place.engine(settings).register(load_rules(rules(BLOCK, CALL, ALLOW))).handle("ship", stage.does("ship"))
    run = engine.start("w", {}).id
    engine.drain()
    approve(engine, run)
    engine.advance(days=30)
    (task,) = engine.run(run).tasks()
    assert (task.status, status(engine, run), stage.calls) == ("decided", "paused", [])
    assert engine.run(run).resume_requests() == []
    world = World(engine)
    try:
        olga = world.client(tenant="default", actor="olga", capabilities=["execution:*"])
        where = f"/api/v1/executions/{run}"
        codes = [
            olga.get(f"{where}/resume-options").status_code,
            olga.get(f"{where}/resume-requests").status_code,
            olga.post(f"{where}/resume-requests", {"reason": "x"}).status_code,
            olga.post(f"{where}/resume", {"reason": "x", "override": True}).status_code,
            olga.get(where).status_code,
        ]
        assert codes == [404, 404, 404, 404, 200]
        engine.register(Saga("plain").wait_for("x", signal="x").build())
        other = engine.start("plain")
        engine.drain()
        other.pause("hold")
        assert olga.post(f"/api/v1/executions/{other.id}/resume", {"reason": "x"}).status_code == 204
    finally:
        world.close()
    assert status(engine, run) == "paused"
    engine.acting(OPERATOR).run(run).resume()
    engine.drain()
    assert (status(engine, run), stage.calls) == ("completed", ["ship"])


def test_rules_demand_a_reason_and_keep_the_requester_out(place: Place) -> None:
    """`requires_reason` has a rejection explained, and `self_approval: false` has somebody else lift the block than who wanted the run."""
    engine = place.engine()
    asked = {"type": "approval", "role": "sales_manager", "requires_reason": True, "self_approval": False}
    engine.register(load_rules(rules({**BLOCK, "requires": asked}, ALLOW)))
    manager = engine.acting(MANAGER)
    own, others = manager.start("w", {}), engine.acting(person("ann")).start("w", {})
    engine.drain()
    assert refused(lambda: manager.tasks.approve(own.tasks()[0])) == "self_approval"
    task = engine.run(others.id).tasks()[0]
    assert refused(lambda: manager.tasks.reject(task)) == "reason_required"
    manager.tasks.reject(task, comment="too dear")
    engine.drain()
    assert engine.run(others.id).describe().outcome == "blocked"


@pytest.mark.row("R-026", "R-027", "C-48")
def test_what_the_worker_carries_out_names_the_approval(place: Place) -> None:
    """The request of the worker has the id and the content of the decision that it follows from, and the same one again is no news."""
    settings = Settings(auto_resume_after_approval=False)
    engine = place.engine(settings).register(load_rules(rules(BLOCK, PAID, ALLOW)))
    run = engine.start("w", {}).id
    engine.drain()
    (task,) = engine.run(run).tasks()
    approve(engine, run)
    engine.advance(minutes=6)
    (request,) = engine.run(run).resume_requests()
    assert (request.triggered_by, request.triggered_by_id) == ("approval", task.step_id)
    assert isinstance(request.trigger_data, dict)
    assert (request.trigger_data["status"], request.trigger_data["comment"]) == ("approved", "fine")
    engine.run(run).resume(triggered_by="approval", triggered_by_id=task.step_id)
    assert len(engine.run(run).resume_requests()) == 1


def test_nobody_leaves_an_approval_to_the_worker(place: Place) -> None:
    """A request to go past an open approval is refused when it is made, and not by the worker an hour later."""
    engine, run = begun(place)
    for actor, told in ((OPERATOR, "execution:override"), (BOSS, "never goes past an open question")):
        with pytest.raises(ForbiddenError, match=told):
            engine.acting(actor).run(run).request_resume("tonight")
    assert engine.run(run).resume_requests() == []


@pytest.mark.row("R-077", "R-088", "R-017")
def test_a_resume_that_fails_leaves_the_approval_decided(place: Place) -> None:
    """It stays approved and the run paused, with the error of the attempt; the next look of the worker brings it on."""
    stage = Stage()
    settings = Settings(auto_resume_after_approval=False)
    engine = place.engine(settings).register(load_rules(rules(BLOCK, CALL, ALLOW))).handle("ship", stage.does("ship"))
    engine.drain()
    run = engine.start("w", {}).id
    engine.drain()
    approve(engine, run)
    large: dict[str, object] = {"text": "x" * 2_000_000}
    with pytest.raises(StandfastError):
        engine.acting(OPERATOR).run(run).resume(data=large)
    with pytest.raises(ForbiddenError):
        engine.acting(person("eve")).run(run).resume()
    (task,) = engine.run(run).tasks()
    shown = engine.run(run).describe()
    assert (task.status, task.decision, shown.status) == ("decided", "approved", "paused")
    assert "execution:resume" in shown.resume_error
    engine.advance(minutes=5)
    shown = engine.run(run).describe()
    assert (shown.status, shown.resume_error, stage.calls) == ("completed", "", ["ship"])


@pytest.mark.row("R-082")
def test_one_that_cannot_take_an_event_keeps_it_from_nobody(place: Place) -> None:
    """Where the data has no room for what the event brings the run fails, and all others go on with it."""
    engine = place.engine(Settings(max_payload_bytes=1000)).register(load_rules(rules(PAID, ALLOW)))
    runs = [engine.start("w", {"rest": "x" * size}) for size in (1, 600, 1)]
    engine.drain()
    engine.publish("payment", payload={"note": "y" * 600})
    engine.drain()
    assert [each.describe().status for each in runs] == ["completed", "failed", "completed"]
    assert [each.describe().context["paid"] for each in (runs[0], runs[2])] == [{"note": "y" * 600}] * 2


@pytest.mark.row("R-047")
@pytest.mark.parametrize(("options", "calls"), [({}, 3), ({"attempts": 1}, 1), ({"attempts": 5, "timeout": "30s"}, 5)])
def test_a_call_is_tried_as_often_as_the_file_says(place: Place, options: dict[str, object], calls: int) -> None:
    """Three times unless it does; then the run has failed."""
    stage = Stage()
    stage.does("ship", ValueError("broken"))
    call = CALL | {"execute": [{"type": "call", "handler": "ship", **options}]}
    engine, run = begun(place, rules(call, ALLOW), stage=stage)
    engine.advance(hours=1)
    assert (status(engine, run), len(stage.calls)) == ("failed", calls)


@pytest.mark.row("R-085", "R-138")
def test_whoever_looks_for_late_runs_needs_the_database_and_somebody_to_tell_them(place: Place) -> None:
    """Made from these two alone it finds what was asked for, and submits the commands."""
    engine = place.engine(Settings(resume_worker_interval=timedelta(minutes=5)))
    engine.register(load_rules(rules(CALL, ALLOW))).handle("ship", lambda ctx: None)
    run = engine.start("w", {})
    run.pause()
    run.request_resume()
    alone = Resuming(place.store, engine.service.shared, RESUMPTION)
    assert alone.look() == 1
    engine.drain()
    assert run.describe().status == "completed"


@pytest.mark.row("C-40", "R-023", "R-041")
def test_a_resume_goes_on_with_the_next_step_and_a_requeue_repeats_the_same(place: Place) -> None:
    """Rules go on behind the step that waited; a saga whose step gave up does that step again, and none before it."""
    stage = Stage()
    engine, run = begun(place, rules(CALL, BLOCK, CALL | {"id": "again"}, ALLOW), stage=stage)
    approve(engine, run)
    assert stage.calls == ["ship", "ship"]
    stage.does("broken", ValueError("no"), None)
    saga = Saga("s", dlq=True).step("first", stage.does("charge")).step("second", stage.does("broken"), max_retries=1)
    engine.register(saga.build())
    dead = engine.start("s").id
    engine.drain()
    engine.dead_letters.requeue(engine.dead_letters.list()[0])
    engine.drain()
    assert (status(engine, dead), stage.calls[2:]) == ("completed", ["charge", "broken", "broken"])


@pytest.mark.row("R-144")
def test_an_approval_is_decided_although_its_run_is_not_paused_any_more(place: Place) -> None:
    """Somebody has paused the run and let it go on before the decision: it is taken, and the run goes on."""
    engine = place.engine().register(Saga("s").human("ask").build())
    run = engine.start("s")
    run.pause()
    run.resume()
    (task,) = run.tasks()
    engine.acting(person("ann")).tasks.approve(task.step_id)
    engine.drain()
    assert (run.tasks()[0].status, run.describe().status) == ("decided", "completed")


def test_why_names_nobody_who_only_decided(place: Place) -> None:
    """A run that is left to whoever lets it go on was not paused by the approver, and waits since it was decided."""
    settings = Settings(auto_resume_after_approval=False, resume_worker_interval=None)
    engine = place.engine(settings).register(load_rules(rules(BLOCK, ALLOW)))
    run = engine.start("w").id
    engine.drain()
    engine.advance(hours=3)
    approve(engine, run)
    (reason,) = engine.run(run).why().reasons
    assert (reason.kind, reason.since) == ("paused", engine.clock.now())
    assert "'ask' is decided" in reason.words
    assert MANAGER.id not in reason.words
    assert MANAGER.id not in engine.run(run).describe().error
