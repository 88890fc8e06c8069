"""Four eyes count who acted, for whom, and who changed the data: none of them decides alone what they have brought about."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.processes.acting import ends, process, registered
from standfast import Actor, Escalation, Fail, RejectedError, Saga
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place
from support.reporting import asked

FIN = frozenset({"fin"})


def who(name: str, *capabilities: str, on_behalf_of: str = "") -> Actor:
    """Somebody of finance."""
    return Actor(id=name, roles=FIN, capabilities=frozenset(capabilities), on_behalf_of=on_behalf_of)


RITA, BOB = who("rita"), who("bob")
OLGA = who("olga", "execution:*", "schedule:*", "task:*", "batch:*")
ASSI = who("assi", on_behalf_of="rita")


def code(call: Any, *given: Any, **named: Any) -> str:
    """Why a call is refused; empty if it is not."""
    try:
        call(*given, **named)
    except RejectedError as error:
        return str(error.reason)
    return ""


def paid(engine: ManualEngine, **options: Any) -> Any:
    """A definition that asks finance, and nobody about their own matter."""
    saga = Saga("pay").human("sign", role="fin", self_approval=False, **options).build()
    engine.register(saga)
    return saga


def task_of(engine: ManualEngine, run: InstanceId, name: str = "sign") -> str:
    """The open question of a run."""
    return next(each.step_id for each in engine.tasks.list() if each.instance == run and each.name == name)


def kept_out(engine: ManualEngine, run: InstanceId, *actors: Actor, name: str = "sign") -> None:
    """None of these decides, claims, goes past or is given a question, and it is in no list of theirs; somebody else decides it."""
    task = task_of(engine, run, name)
    for actor in actors:
        calls = engine.acting(actor)
        assert [code(calls.tasks.approve, task), code(calls.tasks.claim, task)] == ["self_approval"] * 2, actor
        if not actor.on_behalf_of:
            assert code(engine.acting(OLGA).tasks.reassign, task, actor.id) == "self_approval"
        strong = Actor(id=actor.id, roles=FIN, capabilities=frozenset({"*"}), on_behalf_of=actor.on_behalf_of)
        assert code(engine.acting(strong).run(run).resume, "mine", override=True) == "self_approval"
        step = max(each.number for each in engine.run(run).steps() if each.name == name)
        assert code(engine.acting(strong).run(run).skip, step, reason="mine", outcome="confirmed") == "self_approval"
        assert run not in {each.instance for each in calls.tasks.list(mine=True)}, actor
        assert sum(calls.tasks.counts().by_role.values()) == len(calls.tasks.list(mine=True)), actor
    bob = engine.acting(BOB).tasks
    assert run in {each.instance for each in bob.list(mine=True)}
    bob.approve(task)
    engine.drain()
    assert engine.run(run).describe().status == "completed"


@pytest.mark.row("E-684")
@pytest.mark.parametrize("data", [None, {"amount": 1_000_000}], ids=["as it was", "other data"])
def test_whoever_forks_a_run_does_not_decide_it(place: Place, data: dict[str, object] | None) -> None:
    """A fork is the matter of whoever wants the run and of whoever forked it, and its view names both."""
    engine = place.engine()
    run = engine.acting("rita").start(paid(engine), {"amount": 5})
    engine.drain()
    fork = engine.acting(OLGA).run(run.id).fork(run.history()[-1].sequence, reason="again", data=data)
    engine.drain()
    shown = engine.acting(who("olga")).run(fork.id).describe()  # Who began it looks at it without more rights.
    assert (shown.started_by, shown.involved) == ("rita", ["olga"])
    again = engine.acting(who("oscar", "execution:*")).run(fork.id)
    second = again.fork(engine.run(fork.id).history()[-1].sequence, reason="once more")
    engine.drain()
    assert engine.run(second.id).describe().involved == ["olga", "oscar"]
    kept_out(engine, fork.id, RITA, OLGA, ASSI)
    kept_out(engine, second.id, RITA, OLGA, who("oscar"), who("sue", on_behalf_of="oscar"))


@pytest.mark.row("E-684")
def test_whoever_starts_a_run_for_another_does_not_decide_it(place: Place) -> None:
    """Neither of the two decides; the run is the matter of the one for whom it was started."""
    engine = place.engine()
    saga = paid(engine)
    run = engine.acting(ASSI).start(saga)
    engine.drain()
    shown = engine.run(run.id).describe()
    assert (shown.started_by, shown.involved) == ("rita", ["assi"])
    for actor in (RITA, ASSI, who("assi")):
        assert engine.acting(actor).run(run.id).describe().id == run.id
    assert code(engine.acting(BOB).run(run.id).describe) == "not_allowed"
    entry = engine.audit.of(run.id)[0]
    assert (entry.actor, entry.on_behalf_of, entry.action) == ("assi", "rita", "start")
    kept_out(engine, run.id, RITA, who("assi"), ASSI)


@pytest.mark.row("E-684")
@pytest.mark.parametrize("how", ["trigger", "backfill"])
def test_whoever_has_a_schedule_fire_does_not_decide_what_it_starts(place: Place, how: str) -> None:
    """Neither whoever put the schedule decides, nor whoever triggered it; the run and its audit name both."""
    engine = place.engine()
    paid(engine)
    boss = who("ann", "*")
    engine.acting(boss).schedules.put("yearly", "pay", {}, cron="0 0 1 1 *")
    engine.drain()
    calls = engine.acting(OLGA).schedules
    if how == "trigger":
        calls.trigger("yearly")
    else:
        now = engine.clock.now()
        calls.backfill("yearly", now.replace(month=1, day=1, hour=0, minute=0), now)
    engine.drain()
    (found,) = engine.runs.list(definition="pay").items
    assert found.started_by == "ann"
    assert engine.run(found.id).describe().involved == ["olga"]
    assert "'olga'" in engine.audit.of(found.id)[0].reason
    kept_out(engine, found.id, who("ann"), OLGA)


@pytest.mark.row("E-684")
def test_whoever_begins_a_batch_for_another_does_not_decide_what_it_starts(place: Place) -> None:
    """The runs of a batch are the matter of whoever began it, and of the one for whom it was begun."""
    engine = place.engine()
    paid(engine)
    engine.acting(who("assi", "*", on_behalf_of="rita")).batches.begin("start", definition="pay", inputs=[{}])
    engine.drain()
    (found,) = engine.runs.list(definition="pay").items
    assert found.started_by == "rita"
    kept_out(engine, found.id, RITA, who("assi"))


def broken() -> object:
    """What no handler gets past."""
    raise Fail("down")


CHANGES: dict[str, Callable[[Any, int], None]] = {
    "a patch": lambda run, _: run.change_data({"amount": 9}, reason="a typo"),
    "an answer by hand": lambda run, step: run.complete_step(step, {"amount": 9}, reason="by phone"),
    "another input": lambda run, step: run.retry(step, reason="a typo", input={"amount": 9}),
}


@pytest.mark.row("E-684")
@pytest.mark.parametrize("change", sorted(CHANGES))
@pytest.mark.parametrize("principal", ["", "max"], ids=["herself", "for another"])
def test_whoever_changes_the_data_does_not_decide_on_it(place: Place, change: str, principal: str) -> None:
    """A patch, another input and an answer by hand make the run a matter of whoever gave them, and for whom."""
    engine = place.engine()
    calls = list[int]()

    def prepare() -> None:
        calls.append(1)
        if len(calls) == 1:
            broken()

    saga = Saga("pay", dlq=True).step("prepare", prepare, attempts=1).human("sign", role="fin", self_approval=False)
    engine.register(saga.build())
    run = engine.acting("rita").start("pay", {"amount": 5})
    engine.drain()
    olga = engine.acting(who("olga", "execution:*", on_behalf_of=principal)).run(run.id)
    CHANGES[change](olga, run.steps()[0].number)
    if change == "a patch":
        olga.retry(run.steps()[0].number, reason="again")
    engine.drain()
    others = [who(principal)] if principal else []
    assert run.describe().involved == ["olga", *(each.id for each in others)]
    kept_out(engine, run.id, RITA, OLGA, *others)


@pytest.mark.row("E-684")
def test_a_patch_under_an_open_question_keeps_its_author_out(place: Place) -> None:
    """Who changes the data while people are asked is not one of them any more, in their list either."""
    engine = place.engine()
    run = engine.acting("rita").start(paid(engine), {"amount": 5})
    engine.drain()
    assert run.id in {each.instance for each in engine.acting(OLGA).tasks.list(mine=True)}
    engine.acting(OLGA).run(run.id).change_data({"amount": 9}, reason="a typo")
    engine.drain()
    kept_out(engine, run.id, RITA, OLGA)


@pytest.mark.row("E-682", "E-684")
def test_a_run_waits_for_an_operator_if_a_patch_leaves_nobody(place: Place) -> None:
    """If whoever is asked by name has changed the data, nobody can decide, and the run says so."""
    engine = place.engine()
    engine.register(Saga("pay").human("sign", ask="user:olga", self_approval=False).build())
    run = engine.acting("rita").start("pay", {"amount": 5})
    engine.drain()
    engine.acting(OLGA).run(run.id).change_data({"amount": 9}, reason="a typo")
    engine.drain()
    assert (run.describe().status, run.describe().reason) == ("dlq", "no_approver")
    engine.acting(OLGA).tasks.add_approver(task_of(engine, run.id), "bob")
    engine.acting(BOB).tasks.approve(task_of(engine, run.id))
    engine.drain()
    assert run.describe().status == "completed"


@pytest.mark.row("E-684")
def test_a_part_of_a_run_is_the_matter_of_the_same_people(place: Place) -> None:
    """Whoever is kept out of a run is kept out of those that it calls."""
    engine = place.engine()
    paid(engine)
    engine.register(Saga("buy").step("note", lambda: None).wait_for("go", signal="go").call("part", "pay").build())
    run = engine.acting(ASSI).start("buy", {"amount": 5})
    engine.drain()
    engine.acting(OLGA).run(run.id).change_data({"amount": 9}, reason="a typo")
    run.signal("go")
    engine.drain()
    part = next(each for each in engine.runs.list(definition="pay").items)
    assert part.started_by == "rita"
    kept_out(engine, part.id, RITA, who("assi"), OLGA)


@pytest.mark.row("E-684")
def test_whoever_changes_a_run_does_not_decide_in_its_part_that_is_under_way(place: Place) -> None:
    """The part asks about what the whole does, so that a patch of the whole counts in it too; and the other way round."""
    engine = place.engine()
    paid(engine)
    engine.register(Saga("buy").call("part", "pay").human("release", role="fin", self_approval=False).build())
    run = engine.acting("rita").start("buy", {"amount": 5})
    engine.drain()
    part = next(each for each in engine.runs.list(definition="pay").items)
    engine.acting(OLGA).run(run.id).change_data({"amount": 9}, reason="a typo")
    engine.acting(who("oscar", "execution:*")).run(part.id).change_data({"amount": 9}, reason="a typo")
    engine.drain()
    kept_out(engine, part.id, RITA, OLGA, who("oscar"))
    kept_out(engine, run.id, RITA, OLGA, who("oscar"), name="release")


@pytest.mark.row("E-687")
@pytest.mark.parametrize("how", ["skip", "override", "escalate"])
def test_whoever_goes_past_a_question_has_decided_it(place: Place, how: str) -> None:
    """Skipped, overridden or ended before its time by hand: the one who did it decides none that is to be another's."""
    engine = place.engine()
    ladder: dict[str, Any] = {"escalate": Escalation(3600, outcome="confirmed")} if how == "escalate" else {}
    saga = Saga("pay").human("check", role="fin", **ladder).human("release", role="fin", distinct_from="check")
    engine.register(saga.build())
    run = engine.acting("rita").start("pay")
    engine.drain()
    calls = engine.acting(OLGA)
    if how == "skip":
        calls.run(run.id).skip(run.steps()[0].number, reason="urgent", outcome="confirmed")
    elif how == "override":
        calls.run(run.id).resume("urgent", override=True)
    else:
        calls.tasks.escalate(task_of(engine, run.id, "check"), reason="urgent")
    engine.drain()
    release = task_of(engine, run.id, "release")
    assert code(calls.tasks.approve, release) == "not_distinct"
    assert calls.tasks.list(mine=True) == []
    check = next(each for each in run.tasks() if each.name == "check")
    assert (check.decided_by, check.comment) == ("olga", "urgent")
    engine.acting(BOB).tasks.approve(release)
    engine.drain()
    assert run.describe().status == "completed"


@pytest.mark.row("E-687")
def test_lists_of_a_fork_leave_out_what_four_eyes_forbid(place: Place) -> None:
    """Who decided before the fork is kept out behind it, and neither list nor count offers it to them."""
    engine = place.engine()
    saga = Saga("pay").human("check", role="fin").human("release", role="fin", distinct_from="check").build()
    engine.register(saga)
    run = engine.acting("rita").start(saga)
    engine.drain()
    ann = engine.acting(who("ann"))
    ann.tasks.approve(task_of(engine, run.id, "check"))
    engine.drain()
    at = run.history()[-1].sequence
    run.cancel("a fork takes its place")
    fork = engine.acting(OLGA).run(run.id).fork(at, reason="again")
    engine.drain()
    release = task_of(engine, fork.id, "release")
    assert code(ann.tasks.approve, release) == "not_distinct"
    assert ann.tasks.list(mine=True) == []
    assert sum(ann.tasks.counts().by_role.values()) == 0
    assert [each.step_id for each in engine.acting(BOB).tasks.list(mine=True)] == [release]


@pytest.mark.row("E-684", "E-687")
def test_lists_of_a_stand_in_leave_out_what_they_would_be_refused(place: Place) -> None:
    """Whoever is asked only in the place of somebody who is kept out is kept out too, and their list and count say so."""
    engine = place.engine()
    for name in ("rita", "bob", "dora"):
        engine.directory.put(name)
        if name != "dora":
            engine.directory.grant(name, "fin")
    two = Saga("two").human("check", role="fin").human("release", role="fin", distinct_from="check").build()
    engine.register(two)
    own = engine.acting("rita").start(paid(engine))
    apart = engine.acting("eve").start(two)
    engine.drain()
    engine.acting("rita").tasks.approve(task_of(engine, apart.id, "check"))
    engine.drain()
    engine.directory.delegate("rita", "dora")
    dora = engine.acting("dora").tasks
    assert code(dora.approve, task_of(engine, own.id)) == "self_approval"
    assert code(dora.approve, task_of(engine, apart.id, "release")) == "not_distinct"
    assert (dora.list(mine=True), dora.counts().by_role) == ([], {})
    engine.directory.delegate("bob", "dora")
    assert {each.instance for each in dora.list(mine=True)} == {own.id, apart.id}
    assert dora.counts().by_role == {"fin": 2}
    dora.approve(task_of(engine, own.id), on_behalf_of="bob")


@pytest.mark.row("P-139", "P-143")
@pytest.mark.parametrize("how", ["fork", "for another", "part"])
def test_whoever_wants_a_process_is_the_same_everywhere(place: Place, how: str) -> None:
    """A process that was forked, started for another, or is part of another one is told and listed by whoever wants it."""
    engine = place.engine()
    review = {"id": "review", "type": "approval", "assignee": {"role": "fin"}, "self_approval": False}
    registered(engine, process(review, *ends("done"), ways="review approved done"))
    engine.register(Saga("buy").call("part", "w").build())
    if how == "part":
        engine.acting("rita").start("buy")
        engine.drain()
        instance = engine.runs.list(definition="w").items[0].id
    elif how == "fork":
        origin = engine.acting("rita").processes.start("w", {}).id
        engine.drain()
        instance = engine.acting(OLGA).run(origin).fork(engine.run(origin).history()[-1].sequence, reason="again").id
        engine.run(origin).cancel("forked")
    else:
        instance = engine.acting(ASSI).processes.start("w", {}).id
    engine.drain()
    assert engine.processes.get(instance).instance.subject_id == "rita"
    found = engine.acting(RITA).processes.list(subject_id="rita", status="active").items
    assert [(each.id, each.subject_id) for each in found] == [(instance, "rita")]
    assert engine.run(instance).describe().started_by == "rita"
    assert next(each.started_by for each in engine.runs.list().items if each.id == instance) == "rita"
    assert [each.requester for each in engine.tasks.list() if each.instance == instance] == ["rita"]
    rows = asked(place.store, "select subject_id from {}workflow_instances where status = 'active'")
    assert [each["subject_id"] for each in rows] == ["rita"]
    assert engine.run(instance).verify().is_sound
    others = {"fork": [OLGA], "for another": [who("assi")], "part": []}
    kept_out(engine, instance, RITA, *others[how], name="review")


@pytest.mark.row("E-684")
def test_nobody_hands_on_what_they_may_not_decide(place: Place) -> None:
    """Who is kept out of a question does not choose who decides it in their place."""
    engine = place.engine()
    run = engine.acting("rita").start(paid(engine), {"amount": 5})
    engine.drain()
    task = task_of(engine, run.id)
    assert code(engine.acting(RITA).tasks.delegate, task, "cat") == "self_approval"
    assert run.describe().status == "running"
    engine.acting(BOB).tasks.approve(task)
    assert run.describe().status == "completed"


@pytest.mark.row("E-687")
def test_nobody_decides_for_one_who_has_decided_the_other_question(place: Place) -> None:
    """A question that was handed on before counts as decided by whoever handed it on."""
    engine = place.engine()
    check = Saga("both").fork(
        "ask",
        lambda branch: branch.human("first", role="fin"),
        lambda branch: branch.human("second", role="fin", distinct_from="first"),
    )
    engine.register(check.join("join").build())
    run = engine.acting("rita").start("both", {})
    engine.drain()
    engine.acting(BOB).tasks.delegate(task_of(engine, run.id, "second"), "cat")
    engine.acting(BOB).tasks.approve(task_of(engine, run.id, "first"))
    assert code(engine.acting("cat").tasks.approve, task_of(engine, run.id, "second")) == "not_distinct"


@pytest.mark.row("E-684")
def test_a_branch_with_a_question_is_not_cancelled_by_whom_it_keeps_out(place: Place) -> None:
    """To end a question is to decide it, so that it takes another person."""
    engine = place.engine()
    check = Saga("both").fork(
        "ask",
        lambda branch: branch.human("boss", role="fin"),
        lambda branch: branch.human("cfo", role="fin", self_approval=False),
    )
    engine.register(check.join("join").build())
    rita = who("rita", "execution:*")
    run = engine.acting(rita).start("both", {})
    engine.drain()
    step = next(each for each in run.steps() if each.name == "cfo")
    assert code(engine.acting(rita).run(run.id).cancel_branch, step.token, reason="quick") == "self_approval"
    engine.acting(OLGA).run(run.id).cancel_branch(step.token, reason="not needed")
