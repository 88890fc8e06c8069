"""Roles and users that a definition names are looked up in a tenant that grants roles: where nobody can decide, that is seen."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from app.processes.acting import ends, process, registered
from standfast import (
    Actor,
    Directory,
    Engine,
    ForbiddenError,
    RejectedError,
    Run,
    Saga,
    SagaDefinition,
    ask,
)
from standfast.testing import ManualEngine
from support.engines import Place

FINANCE = Actor(id="fred", roles=frozenset({"finance"}))


def _paid() -> str:
    return "paid"


def office(place: Place) -> ManualEngine:
    """Ann is auditor; nobody does finance."""
    engine = place.engine()
    for name in ("ann", "bob", "cat"):
        engine.directory.put(name)
    engine.directory.grant("ann", "auditor")
    return engine


def asked(engine: Engine, saga: SagaDefinition, *, by: str = "rita") -> Run[object]:
    """A run whose question was put, and looked up."""
    engine.register(saga)
    run = engine.acting(by).start(saga)
    engine.drain()
    return engine.run(run.id)


def paying(**options: object) -> SagaDefinition:
    """A question, and what follows from it."""
    return Saga("pay").human("approve", **options).step("pay", _paid).build()  # type: ignore[arg-type]


def _by_task(engine: ManualEngine, run: Run[object], who: str | Actor) -> None:
    engine.acting(who).tasks.approve(run.tasks()[-1])


def _by_advance(engine: ManualEngine, run: Run[object], who: str | Actor) -> None:
    engine.acting(who).processes.advance(run, "approved")


@pytest.mark.parametrize("decide", [_by_task, _by_advance])
def test_a_look_again_takes_nobodys_place_away(place: Place, decide: Callable[..., None]) -> None:
    """After a resume that found nobody, the question stays asked: by the role that a caller brings along, and by the role that is granted."""
    engine = office(place)
    both = Saga("both").human("approve", ask=["role:finance", "user:bob"]).build()
    if decide is _by_task:
        runs = [asked(engine, paying(role="finance")), asked(engine, both)]
    else:
        step = {"id": "ok", "type": "approval", "assignee": {"role": "finance"}}
        registered(engine, process(step, *ends("granted"), ways="ok approved granted"))
        runs = [engine.run(engine.acting("rita").processes.start("w").id) for _ in range(2)]
        engine.drain()
    for run in runs:
        run.resume("look again")
        engine.drain()
        told = run.describe()
        assert (told.reason, "finance" in told.error) == ("no_approver", True)
        assert [each.name for each in engine.tasks.get(run.tasks()[-1]).people if each.is_open][:1] == ["finance"]
    decide(engine, runs[0], FINANCE)
    engine.directory.grant("cat", "finance")
    decide(engine, runs[1], "cat")
    if decide is _by_task:
        decide(engine, runs[1], "bob")
    engine.drain()
    assert [run.describe().status for run in runs] == ["completed", "completed"]


def test_a_look_again_finds_that_a_user_is_still_gone(place: Place) -> None:
    """Also in a tenant that grants no roles: the run waits for an operator again, and does not wait in silence."""
    engine = place.engine()
    engine.directory.put("ann")
    run = asked(engine, paying(ask="user:ann"))
    engine.directory.deactivate("ann")
    engine.advance(minutes=1)
    assert run.describe().reason == "no_approver"
    run.resume("look again")
    engine.advance(minutes=1)
    assert run.describe().reason == "no_approver"
    engine.directory.activate("ann")
    engine.advance(minutes=1)
    assert run.describe().status == "running"


@pytest.mark.row("E-682")
def test_a_role_that_nobody_has_holds_the_run_up_and_says_so(place: Place) -> None:
    """Nobody eligible fails closed: the run is paused, and tells which role nobody has; nothing is paid."""
    engine = office(place)
    run = asked(engine, paying(role="finance"))
    told = run.describe()
    assert (told.reason, "nobody has the role 'finance'" in told.error) == ("no_approver", True)
    assert [each.name for each in run.steps()] == ["approve"]
    assert engine.tasks.get(run.tasks()[0]).resolution != []
    with pytest.raises(ForbiddenError):
        engine.acting("bob").tasks.approve(run.tasks()[0])


def test_whoever_comes_to_have_the_role_decides_and_the_run_goes_on(place: Place) -> None:
    """The question stays asked: a grant, or a context that says the role, is enough."""
    engine = office(place)
    by_grant, by_context = asked(engine, paying(role="finance")), asked(engine, paying(role="finance"))
    engine.acting(FINANCE).tasks.approve(by_context.tasks()[0])
    engine.directory.grant("bob", "finance")
    assert [each.instance for each in engine.acting("bob").tasks.list(mine=True)] == [by_grant.id]
    engine.acting("bob").tasks.approve(by_grant.tasks()[0])
    engine.drain()
    assert [each.describe().status for each in (by_grant, by_context)] == ["completed", "completed"]


def test_an_operator_mends_it(place: Place) -> None:
    """`reassign` asks somebody else and the run goes on; `resume` looks again, and finds who has the role by then."""
    engine = office(place)
    reassigned, resumed = asked(engine, paying(role="finance")), asked(engine, paying(role="finance"))
    engine.tasks.reassign(reassigned.tasks()[0], "bob", reason="nobody else")
    assert reassigned.describe().status == "running"
    resumed.resume()
    engine.drain()
    assert resumed.describe().reason == "no_approver"
    engine.directory.grant("cat", "finance")
    resumed.resume()
    engine.drain()
    assert resumed.describe().status == "running"
    engine.acting("cat").tasks.approve(resumed.tasks()[0])
    engine.drain()
    assert resumed.describe().status == "completed"


@pytest.mark.parametrize(
    ("options", "is_held"),
    [
        ({"role": "auditor"}, False),
        ({"ask": "user:nobody-knows"}, False),
        ({"ask": "user:cat"}, True),
        ({"ask": ["role:finance", "role:auditor"], "agree": "any"}, False),
        ({"ask": ["role:finance", "role:auditor"]}, True),
        ({"ask": ["role:finance", "role:auditor"], "agree": "all"}, True),
        ({"ask": ["role:finance", "role:auditor", "user:bob"], "agree": 2}, False),
        ({"ask": ["role:finance", "role:auditor", "user:cat"], "agree": 2}, True),
        ({"ask": [ask("role:finance", weight=5), "role:auditor"], "agree_weight": 3}, True),
        ({"role": "finance", "self_approval": False}, True),
        ({"role": "auditor", "self_approval": False}, False),
    ],
)
def test_it_is_held_up_only_if_those_who_can_are_not_enough(
    place: Place,
    options: dict[str, object],
    is_held: bool,  # noqa: FBT001 - a case of a table
) -> None:
    """Nobody has `finance`, Cat is deactivated: the others decide if the agreement can be reached without them."""
    engine = office(place)
    engine.directory.deactivate("cat")
    run = asked(engine, paying(**options))
    assert (run.describe().reason == "no_approver") is is_held


def test_a_role_whose_only_holder_may_not_decide_is_one_that_nobody_has(place: Place) -> None:
    """Ann has approved already and is the only auditor: four eyes cannot be had, which is seen at once."""
    engine = office(place)
    saga = (
        Saga("two")
        .human("first", ask="user:ann")
        .human("second", role="auditor", distinct_from="first")
        .step("pay", _paid)
        .build()
    )
    run = asked(engine, saga)
    engine.acting("ann").tasks.approve(run.tasks()[0])
    engine.drain()
    told = run.describe()
    assert (told.reason, "'ann' may not decide this" in told.error) == ("no_approver", True)
    engine.directory.grant("bob", "auditor")
    run.resume()
    engine.drain()
    engine.acting("bob").tasks.approve(run.tasks()[1])
    engine.drain()
    assert run.describe().status == "completed"


def test_a_directory_that_grants_no_roles_is_not_asked_for_them(place: Place) -> None:
    """A host may have its roles elsewhere: nothing is looked up, and nothing is held up."""
    engine = place.engine()
    engine.directory.put("ann")
    run = asked(engine, paying(role="finance"))
    assert run.describe().status == "running"
    assert [each.event_type for each in run.history()] == ["workflow_started", "step_started"]
    engine.acting(FINANCE).tasks.approve(run.tasks()[0])


def test_a_child_is_looked_up_like_its_parent(place: Place) -> None:
    """Whoever starts it, a workflow in a tenant that grants roles is looked up."""
    engine = office(place)
    engine.register(paying(role="finance"))
    asked(engine, Saga("parent").call("child", "pay").build())
    (child,) = [each for each in engine.runs.list(limit=9).items if each.definition == "pay"]
    assert child.reason == "no_approver"


def test_another_process_learns_of_the_first_grant(place: Place) -> None:
    """That a tenant grants no roles is believed for a second."""
    engine, other = place.engine(), place.engine()
    engine.directory.put("ann")
    asked(engine, paying(role="finance"))
    other.directory.grant("ann", "auditor")
    place.clock.move(timedelta(seconds=2))
    assert asked(engine, paying(role="finance")).describe().reason == "no_approver"


def test_people_in_a_file_are_looked_up_too(place: Place, tmp_path: Path) -> None:
    """A file that grants roles says who has them; for one that grants none, roles are elsewhere."""
    for text, reason in (("{ann: {roles: [auditor]}}", "no_approver"), ("{ann: {}}", "")):
        file = tmp_path / "people.yaml"
        file.write_text(f"people: {text}")
        engine = place.engine(directory=Directory.from_file(file))
        assert asked(engine, paying(role="finance")).describe().reason == reason


@pytest.mark.row("E-682")
@pytest.mark.parametrize(
    ("to", "code"),
    [("bobb", "unknown_person"), ("user:bobb", "unknown_person"), ("role:auditr", "role_of_nobody")],
)
def test_a_question_is_handed_to_nobody_whom_the_directory_does_not_know(place: Place, to: str, code: str) -> None:
    """A slip of the pen is refused with a sentence, and whoever had the question has it still."""
    engine = office(place)
    run = asked(engine, paying(ask="user:ann"))
    question, before = run.tasks()[0], len(run.history())
    acts: list[Callable[[], None]] = [
        lambda: engine.tasks.reassign(question, to),
        lambda: engine.tasks.add_approver(question, to),
    ]
    if code == "unknown_person":
        acts.append(lambda: engine.acting("ann").tasks.delegate(question, to))
    for act in acts:
        with pytest.raises(RejectedError, match="could") as refused:
            act()
        assert refused.value.reason == code
    assert len(run.history()) == before
    engine.acting("ann").tasks.approve(question)


def test_a_role_whose_holders_are_all_deactivated_is_given_nothing(place: Place) -> None:
    """Nobody could decide for it."""
    engine = office(place)
    run = asked(engine, paying(ask="user:bob"))
    engine.tasks.add_approver(run.tasks()[0], "role:auditor")
    engine.directory.deactivate("ann")
    other = asked(engine, paying(ask="user:bob"))
    with pytest.raises(RejectedError) as refused:
        engine.tasks.add_approver(other.tasks()[0], "role:auditor")
    assert refused.value.reason == "role_of_nobody"


def test_who_keeps_no_directory_hands_questions_to_anybody(place: Place) -> None:
    """A tenant without people knows nobody, and one that grants no roles does not know who has one."""
    engine = place.engine()
    run = asked(engine, paying(ask="user:ann"))
    engine.tasks.reassign(run.tasks()[0], "bobb")
    engine.directory.put("ann")
    engine.tasks.reassign(run.tasks()[0], "role:auditr")
    assert [(each.kind, each.name) for each in engine.tasks.get(run.tasks()[0]).people if each.is_open] == [
        ("role", "auditr")
    ]
