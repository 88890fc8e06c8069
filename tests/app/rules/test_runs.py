"""Rules as they run: what allows, what blocks, what pauses, and what an approval leads to."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from app.sagas.acting import Stage, person, status
from authoring.rules.test_reading import ORDER, changed
from standfast import DefinitionError, ForbiddenError, RejectedError, Settings, load_rules
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

MANAGER = person("mia", "sales_manager")
QUIET = changed(steps__1__execute=[])
"""The example without its notification."""


def begun(
    place: Place, rules: dict[str, Any] = QUIET, total: object = 15000, stage: Stage | None = None
) -> tuple[ManualEngine, InstanceId]:
    """An engine, and a run of rules on an order of this total."""
    engine = place.engine().register(load_rules(rules))
    for name in ("charge", "ship"):
        engine.handle(name, (stage or Stage()).does(name))
    run = engine.start(rules["workflow_id"], {"order": {"total": total}})
    engine.drain()
    return engine, run.id


def answer(engine: ManualEngine, run: InstanceId, outcome: str, **given: Any) -> None:
    """The sales manager decides."""
    (task,) = [each for each in engine.run(run).tasks() if not each.decision]
    engine.acting(MANAGER).tasks.decide(task.step_id, outcome, **given)
    engine.drain()


@pytest.mark.row("R-038")
@pytest.mark.row("R-112", "R-031", "R-110")
def test_a_small_order_is_allowed(place: Place) -> None:
    """Below the limit nothing pauses and nobody is asked: the run is completed, and what it came to is `allowed`."""
    engine, run = begun(place, total=9999.99)
    told = engine.run(run).describe()
    assert (told.status, told.outcome) == ("completed", "allowed")
    assert engine.run(run).tasks() == []


@pytest.mark.row("R-107")
@pytest.mark.row("R-108")
@pytest.mark.parametrize(("total", "is_asked"), [(9999.99, False), (10000, True), (15000, True)])
def test_the_limit_is_part_of_what_needs_an_approval(place: Place, total: object, is_asked: bool) -> None:  # noqa: FBT001 - a case of a table
    """`gte` compares with the value, and the value itself counts."""
    engine, run = begun(place, total=total)
    assert bool(engine.run(run).tasks()) is is_asked


@pytest.mark.row("R-109", "EC-13")
@pytest.mark.row("R-050", "R-051", "R-052", "R-054", "R-058", "R-001")
def test_a_large_order_pauses_for_an_approval(place: Place) -> None:
    """The run is paused and says since when and why; one approval waits, for the role and with the time that the file names."""
    engine, run = begun(place)
    told = engine.run(run).describe()
    assert (told.status, told.reason, told.outcome) == ("paused", "approval_required", "")
    (task,) = engine.run(run).tasks()
    assert (task.subject, task.role, task.decision) == ("Order requires approval", "sales_manager", "")
    assert (told.paused_step, told.next_step, told.paused_at) == ("require_approval", "allow_order", place.clock.now())


@pytest.mark.row("C-03")
def test_a_cancelled_run_of_rules_undoes_nothing(place: Place) -> None:
    """What was called stays as it is, and nothing is called any more."""
    call = {"id": "ship", "type": "action", "action": "execute", "execute": [{"type": "call", "handler": "ship"}]}
    block = {"id": "ask", "type": "action", "action": "block", "requires": {"type": "approval", "role": "boss"}}
    stage = Stage()
    engine, run = begun(place, {"workflow_id": "w", "steps": [call, block, {**call, "id": "again"}]}, stage=stage)
    assert engine.run(run).cancel("not wanted") == "cancelled"
    engine.advance(days=2)
    assert (stage.calls, status(engine, run)) == (["ship"], "cancelled")
    assert {each.name: each.status for each in engine.run(run).steps()}["ship/execute/1"] == "completed"


@pytest.mark.row("R-075", "R-003", "R-117", "R-059")
def test_an_approval_lets_the_run_go_on(place: Place) -> None:
    """After the approval the run goes on behind its pause and is completed, allowed."""
    engine, run = begun(place)
    answer(engine, run, "approved", comment="a good customer")
    told = engine.run(run).describe()
    assert (told.status, told.outcome) == ("completed", "allowed")


@pytest.mark.row("R-074")
@pytest.mark.parametrize(("call", "outcome"), [("approve", "approved"), ("reject", "rejected")])
def test_yes_and_no_are_said_in_the_words_of_the_rules(place: Place, call: str, outcome: str) -> None:
    """`approve` and `reject` answer by what the definition has for yes and no; the same again does nothing, the other is refused."""
    engine, run = begun(place)
    (task,) = engine.run(run).tasks()
    tasks = engine.acting(MANAGER).tasks
    getattr(tasks, call)(task, comment="so be it")
    engine.drain()
    assert [each.decision for each in engine.run(run).tasks()] == [outcome]
    before = len(engine.run(run).history())
    getattr(tasks, call)(task, comment="so be it")
    with pytest.raises(RejectedError) as refused:
        (tasks.reject if call == "approve" else tasks.approve)(task)
    assert refused.value.reason == "already_decided"
    assert len(engine.run(run).history()) == before


def test_nobody_abstains_where_the_rules_have_no_word_for_it(place: Place) -> None:
    """A vote that the step has no outcome for is refused with those that it has, and nothing changes."""
    engine, run = begun(place)
    (task,) = engine.run(run).tasks()
    before = len(engine.run(run).history())
    with pytest.raises(RejectedError, match="an abstention; there are 'approved', 'rejected'") as refused:
        engine.acting(MANAGER).tasks.abstain(task)
    assert refused.value.reason == "unknown_outcome"
    assert len(engine.run(run).history()) == before


def test_two_of_a_role_have_to_approve(place: Place) -> None:
    """With `pick` each of those who have the role is asked, and one approval is not two."""
    engine = place.engine().register(
        load_rules(changed(steps__1__requires={"type": "approval", "role": "finance", "pick": "all", "agree": 2}))
    )
    for name in ("ann", "bob", "eve"):
        engine.directory.put(name)
        engine.directory.grant(name, "finance")
    run = engine.start("order_approval", {"order": {"total": 15000}})
    engine.drain()
    (task,) = run.tasks()
    engine.acting("ann").tasks.approve(task)
    engine.drain()
    assert run.describe().status == "paused"
    engine.acting("eve").tasks.approve(task)
    engine.drain()
    assert run.describe().outcome == "allowed"


def test_users_are_asked_besides_the_role(place: Place) -> None:
    """Those whom the file names decide like whoever has the role, each has it in the inbox, and nobody else decides."""
    requires = {"type": "approval", "role": "sales_manager", "users": ["ann", "bob"], "agree": 2, "timeout": "24h"}
    engine, run = begun(place, changed(steps__1__execute=[], steps__1__requires=requires))
    ann = engine.acting("ann").tasks
    (task,) = ann.list(mine=True)
    assert task.agreement == "at least 2 of them"
    with pytest.raises(ForbiddenError):
        engine.acting("eve").tasks.approve(task)
    ann.approve(task)
    engine.drain()
    assert engine.run(run).describe().status == "paused"
    engine.acting(MANAGER).tasks.approve(task)
    engine.drain()
    assert engine.run(run).describe().outcome == "allowed"
    assert engine.acting("bob").tasks.list(mine=True) == []


@pytest.mark.row("C-09", "R-059")
@pytest.mark.row("R-064", "R-076", "R-033")
def test_a_rejection_without_a_way_leaves_the_block(place: Place) -> None:
    """Without `on_false` the block stands: the run is blocked, which is an end."""
    engine, run = begun(place)
    answer(engine, run, "rejected", comment="no")
    told = engine.run(run).describe()
    assert (told.status, told.outcome, told.reason) == ("blocked", "blocked", "approval_rejected")
    assert told.ended_at is not None


@pytest.mark.row("C-09", "R-023", "R-059")
@pytest.mark.row("R-064")
def test_a_rejection_takes_its_way(place: Place) -> None:
    """With `on_false` the run goes on there."""
    rules = changed(steps__1__execute=[], steps__1__on_false="allow_order")
    engine, run = begun(place, rules)
    answer(engine, run, "rejected", comment="no")
    assert engine.run(run).describe().outcome == "allowed"


@pytest.mark.row("R-033")
def test_a_block_that_requires_nothing_is_an_end(place: Place) -> None:
    """The run is blocked at once; nobody can lift that."""
    rules = changed(steps__1={"id": "require_approval", "type": "action", "action": "block", "reason": "never"})
    engine, run = begun(place, rules)
    assert status(engine, run) == "blocked"
    with pytest.raises(RejectedError):
        engine.run(run).resume()


@pytest.mark.row("R-080")
def test_only_holders_of_the_role_decide(place: Place) -> None:
    """Whoever lacks the role is refused, and nothing changes."""
    engine, run = begun(place)
    (task,) = engine.run(run).tasks()
    before = engine.run(run).history()
    with pytest.raises(ForbiddenError):
        engine.acting(person("eve", "intern")).tasks.decide(task.step_id, "approved")
    assert engine.run(run).history() == before


@pytest.mark.row("R-118", "R-089", "R-141")
def test_an_approval_that_nobody_gives_in_time_fails_the_run(place: Place) -> None:
    """After the time of `requires` the run is failed, and a decision that comes too late is refused."""
    engine, run = begun(place)
    (task,) = engine.run(run).tasks()
    engine.advance(hours=24)
    told = engine.run(run).describe()
    assert told.status == "failed"
    assert told.error
    before = engine.run(run).history()
    with pytest.raises(RejectedError):
        engine.acting(MANAGER).tasks.decide(task.step_id, "approved")
    assert engine.run(run).history() == before


@pytest.mark.row("R-032", "R-049")
def test_a_failing_step_fails_the_run(place: Place) -> None:
    """A handler that gives up makes the run failed, with its error."""
    stage = Stage()
    stage.does("charge", ValueError("no money"))
    rules = {
        "workflow_id": "w",
        "steps": [
            {
                "id": "run",
                "type": "action",
                "action": "execute",
                "execute": [{"type": "call", "handler": "charge", "attempts": 1}],
            }
        ],
    }
    engine, run = begun(place, rules, stage=stage)
    told = engine.run(run).describe()
    assert (told.status, told.error) == ("failed", "'run/execute/1' failed: ValueError: no money")


TWICE: dict[str, Any] = {
    "workflow_id": "twice",
    "steps": [
        {"id": "first", "type": "action", "action": "block", "requires": {"type": "approval", "role": "sales_manager"}},
        {"id": "charge", "type": "action", "action": "execute", "execute": [{"type": "call", "handler": "charge"}]},
        {
            "id": "second",
            "type": "action",
            "action": "block",
            "requires": {"type": "approval", "role": "sales_manager"},
        },
        {"id": "ship", "type": "action", "action": "execute", "execute": [{"type": "call", "handler": "ship"}]},
        {"id": "done", "type": "action", "action": "allow"},
    ],
}


@pytest.mark.row("R-119", "R-128", "R-145", "R-042", "R-043", "R-005", "R-004")
def test_a_run_pauses_as_often_as_its_rules_say(place: Place) -> None:
    """Pause, approve, pause, approve: each pause has one approval of its own, and no handler is called twice."""
    stage = Stage()
    engine, run = begun(place, TWICE, stage=stage)
    assert (status(engine, run), stage.calls) == ("paused", [])
    answer(engine, run, "approved")
    assert (status(engine, run), stage.calls) == ("paused", ["charge"])
    assert [task.decision for task in engine.run(run).tasks()] == ["approved", ""]
    answer(engine, run, "approved")
    assert (status(engine, run), stage.calls) == ("completed", ["charge", "ship"])


@pytest.mark.row("R-055")
def test_a_wait_pauses_until_its_event_comes(place: Place) -> None:
    """A wait step pauses the run, with its reason, and the event lets it go on; another event does not."""
    rules = {
        "workflow_id": "w",
        "steps": [
            {"id": "wait", "type": "wait", "event": "paid", "timeout": "1h", "on_timeout": "late"},
            {"id": "ok", "type": "action", "action": "allow"},
            {"id": "late", "type": "action", "action": "block"},
        ],
    }
    engine, run = begun(place, rules)
    told = engine.run(run).describe()
    assert (told.status, told.reason) == ("paused", "waiting_for_event")
    engine.publish("sent")
    engine.drain()
    assert status(engine, run) == "paused"
    engine.publish("paid")
    engine.drain()
    assert engine.run(run).describe().outcome == "allowed"
    engine.advance(days=8)  # Until the event is forgotten.
    late = engine.start("w", {}).id
    engine.drain()
    engine.advance(hours=1)
    assert status(engine, late) == "blocked"


def test_a_wait_for_time_goes_on_by_itself(place: Place) -> None:
    """`duration` lets time go by."""
    rules = {
        "workflow_id": "w",
        "steps": [
            {"id": "rest", "type": "wait", "duration": "1h30m"},
            {"id": "ok", "type": "action", "action": "allow"},
        ],
    }
    engine, run = begun(place, rules)
    engine.advance(timedelta(minutes=89))
    assert (status(engine, run), engine.run(run).describe().reason) == ("paused", "waiting_for_time")
    engine.advance(timedelta(minutes=1))
    assert status(engine, run) == "completed"


@pytest.mark.row("R-113")
def test_nothing_runs_behind_the_end(place: Place) -> None:
    """After `allow` nothing else runs, although another step follows in the list."""
    stage = Stage()
    condition = {"field": "order.total", "operator": "lt", "value": 100}
    rules = {
        "workflow_id": "w",
        "steps": [
            {"id": "check", "type": "condition", "condition": condition, "on_true": "ship", "on_false": "ok"},
            {"id": "ok", "type": "action", "action": "allow", "execute": [{"type": "call", "handler": "charge"}]},
            {"id": "ship", "type": "action", "action": "execute", "execute": [{"type": "call", "handler": "ship"}]},
        ],
    }
    engine, run = begun(place, rules, stage=stage)
    assert (status(engine, run), stage.calls) == ("completed", ["charge"])
    assert [step.name for step in engine.run(run).steps()] == ["check", "ok/execute/1", "ok"]


def test_a_step_that_nothing_leads_to_is_a_mistake() -> None:
    """What stands behind an end and is named by no step could never run; the file is refused."""
    rules = {
        "workflow_id": "w",
        "steps": [{"id": "ok", "type": "action", "action": "allow"}, {"id": "no", "type": "action", "action": "block"}],
    }
    with pytest.raises(DefinitionError, match="no way leads to 'no'"):
        load_rules(rules)


@pytest.mark.row("R-007", "EC-23")
def test_what_is_stored_of_a_paused_run_verifies(place: Place) -> None:
    """The data of a paused run is what it was started with, and everything about it can be made again from its history."""
    engine, run = begun(place)
    told = engine.run(run).describe()
    assert told.context == told.input == {"order": {"total": 15000}}
    assert engine.run(run).verify().is_sound


def test_the_example_of_the_specification_is_what_is_tested() -> None:
    """The rules of these tests are the worked example, but for the notification."""
    assert {**ORDER["steps"][1], "execute": []} == QUIET["steps"][1]


@pytest.mark.row("R-010", "R-109", "G-42")
@pytest.mark.row("R-111", "R-084", "R-051", "R-053", "R-057", "R-061", "R-013", "R-014", "R-114")
def test_the_worked_example_runs_as_it_is_told(place: Place) -> None:
    """An event starts it; it asks, pauses with the fields that are listed, is approved, goes on where it should, and allows the order."""
    engine = place.engine().register(load_rules({**ORDER, "trigger": {"event": "order.created"}}))
    engine.publish("order.created", "o-1", {"order": {"total": 15000}})
    engine.drain()
    (found,) = engine.runs.paused()
    told = engine.run(found.id).describe()
    assert (told.status, told.reason, told.context) == ("paused", "approval_required", {"order": {"total": 15000}})
    assert told.paused_at == place.clock.now()
    assert (told.paused_step, told.next_step) == ("require_approval", "allow_order")
    manager = engine.acting(MANAGER)
    assert [each.subject for each in manager.notifications.mine()] == ["..."]
    answer(engine, found.id, "approved", comment="fine")
    told = engine.run(found.id).describe()
    assert (told.status, told.outcome, told.paused_at) == ("completed", "allowed", None)
    assert told.context["require_approval"]["comment"] == "fine"  # type: ignore[index]
    assert len(manager.notifications.mine()) == 1
    assert engine.run(found.id).verify().is_sound


@pytest.mark.row("G-39")
@pytest.mark.row("R-102")
@pytest.mark.parametrize("escalates", [False, True])
def test_a_question_escalates_once_if_the_settings_say_so(place: Place, escalates: bool) -> None:  # noqa: FBT001 - a case of a table
    """Nobody decides in time: those of `escalate_to` are asked too and have the same time again, then the run fails; without the setting it fails at once."""
    rules = changed(steps__1__execute=[], steps__1__requires__escalate_to="director")
    engine = place.engine(Settings(resume_auto_escalate=escalates)).register(load_rules(rules))
    run = engine.start("order_approval", {"order": {"total": 15000}})
    engine.drain()
    engine.advance(hours=24)
    assert run.describe().status == ("paused" if escalates else "failed")
    if escalates:
        (task,) = run.tasks()
        other = engine.start("order_approval", {"order": {"total": 15000}})
        engine.drain()
        engine.acting(person("dora", "director")).tasks.decide(task.step_id, "approved")
        engine.drain()
        assert run.describe().status == "completed"
        engine.advance(hours=47)
        assert other.describe().status == "paused"
        engine.advance(hours=1)
        assert other.describe().status == "failed"


def test_a_match_reads_names_as_every_other_condition_does(place: Place) -> None:
    """A bare name is one of the data, and what the event brings is under `event`."""
    wait = {
        "id": "wait",
        "type": "wait",
        "event": "paid",
        "key": "order.id",
        "match": "event.amount >= order.total",
    }
    rules = {"workflow_id": "w", "steps": [wait, {"id": "ok", "type": "action", "action": "allow"}]}
    engine = place.engine().register(load_rules(rules))
    run = engine.start("w", {"order": {"id": "o-1", "total": 10}})
    engine.drain()
    engine.publish("paid", "o-1", {"amount": 9})
    engine.drain()
    assert run.describe().status == "paused"
    engine.publish("paid", "o-1", {"amount": 10})
    engine.drain()
    assert run.describe().status == "completed"


@pytest.mark.row("R-081", "R-062")
def test_an_event_lets_all_go_on_that_wait_for_it(place: Place) -> None:
    """Three wait for one event and one for another: the three go on, each with what the event brought."""
    wait = {
        "id": "wait",
        "type": "wait",
        "event": "paid",
        "key": "order",
        "match": {"field": "event.amount", "operator": "gt", "value": 5},
    }
    rules = {"workflow_id": "w", "steps": [wait, {"id": "ok", "type": "action", "action": "allow"}]}
    engine = place.engine().register(load_rules(rules))
    runs = [engine.start("w", {"order": key}) for key in ("o-1", "o-1", "o-1", "o-2")]
    engine.drain()
    engine.publish("paid", "o-1", {"amount": 3})
    engine.drain()
    assert [run.describe().status for run in runs] == ["paused"] * 4
    engine.publish("paid", "o-1", {"amount": 7})
    engine.drain()
    assert [run.describe().status for run in runs] == [*["completed"] * 3, "paused"]
    assert runs[0].describe().context["wait"] == {"amount": 7}
