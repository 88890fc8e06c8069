"""A delegation in the directory reaches what it says, and nothing else: for which role, from which place, and who has handed a place on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from app.documents.walls import ANN, FIN, acting, answer, open_tasks, opened, patch, stands, submit
from people.test_host_directory import Personnel, Quick
from standfast import Actor, ForbiddenError, HumanTask, RejectedError, Run, Saga, ask, load_processes
from standfast.testing import ManualEngine
from support.engines import Place

PEOPLE = ("ann", "bob", "cat", "dora", "eve", "rita")
BY_NAME_AND_ROLE = ["user:ann", "role:finance"]


def office(place: Place, *, role: str = "finance") -> ManualEngine:
    """Ann and Bob hold the role finance, and Cat stands in for Ann."""
    engine = place.engine()
    for name in PEOPLE:
        engine.directory.put(name)
    for name in ("ann", "bob"):
        engine.directory.grant(name, "finance")
    engine.directory.delegate("ann", "cat", role=role)
    return engine


def asked(engine: ManualEngine, **options: Any) -> Run[object]:
    """A run of Rita's that asks."""
    engine.register(Saga("pay").human("q", **options).step("pay", lambda: "paid").build())
    run = engine.acting("rita").start("pay")
    engine.drain()
    return engine.run(run.id)


def places(engine: ManualEngine, task: HumanTask) -> dict[str, str]:
    """What was decided from each place that is asked, or was."""
    return {each.name: each.decided for each in engine.tasks.get(task).people}


@pytest.mark.row("E-675", "E-681", "E-685")
@pytest.mark.parametrize("named", [BY_NAME_AND_ROLE, BY_NAME_AND_ROLE[::-1]], ids=["name_first", "role_first"])
def test_who_stands_in_for_a_role_decides_from_the_place_of_the_role(place: Place, named: list[str]) -> None:
    """A question asks Ann by name and a role of hers. Who stands in for the role alone has no part in her own place: she decides from it herself."""
    engine = office(place)
    run = asked(engine, ask=named)
    (task,) = run.tasks()
    cat = engine.acting("cat").tasks
    cat.approve(task)
    assert places(engine, task) == {"ann": "", "finance": "confirmed"}
    with pytest.raises(RejectedError) as raised:
        cat.approve(task, on_behalf_of="bob")
    assert raised.value.reason == "not_standing_in"
    assert [(each.actor, each.on_behalf_of, each.action) for each in run.audit()][1:] == [
        ("cat", "ann", "decide confirmed")
    ]
    assert cat.list(mine=True) == []


@pytest.mark.row("E-675", "E-681")
def test_a_personal_place_is_neither_claimed_nor_handed_on_for_a_role(place: Place) -> None:
    """Once another holder has decided for the role, who stands in for the role has no part in the question any more, and it is not in their inbox."""
    engine = office(place)
    run = asked(engine, ask=BY_NAME_AND_ROLE)
    (task,) = run.tasks()
    cat = engine.acting("cat").tasks
    assert [each.stands_for for each in cat.list(mine=True)] == ["ann"]
    engine.acting("bob").tasks.approve(task)
    tried: list[Callable[[], object]] = [
        lambda: cat.approve(task),
        lambda: cat.approve(task, on_behalf_of="ann"),
        lambda: cat.claim(task),
        lambda: cat.claim(task, on_behalf_of="ann"),
        lambda: cat.delegate(task, "eve"),
        lambda: cat.delegate(task, "eve", on_behalf_of="ann"),
    ]
    for attempt in tried:
        with pytest.raises(ForbiddenError):
            attempt()
    assert (cat.list(mine=True), cat.counts().own) == ([], 0)
    assert places(engine, task) == {"ann": "", "finance": "confirmed"}


@pytest.mark.row("E-685")
def test_what_is_handed_on_for_a_role_is_the_place_of_the_role(place: Place) -> None:
    """The personal place of the giver stays theirs."""
    engine = office(place)
    run = asked(engine, ask=BY_NAME_AND_ROLE)
    (task,) = run.tasks()
    engine.acting("cat").tasks.delegate(task, "eve", reason="a matter of finance")
    assert [(each.name, each.is_open) for each in engine.tasks.get(task).people] == [
        ("ann", True),
        ("finance", False),
        ("eve", True),
    ]


@pytest.mark.row("E-681")
def test_the_vote_of_a_person_is_not_withdrawn_by_who_stands_in_for_a_role(place: Place) -> None:
    """Ann has decided from her own place and Bob from that of the role: who stands in for Ann's role has no part in what Ann decided."""
    engine = office(place)
    run = asked(engine, ask=[*BY_NAME_AND_ROLE, "user:dora"])
    (task,) = run.tasks()
    engine.acting("ann").tasks.approve(task)
    engine.acting("bob").tasks.approve(task)
    with pytest.raises(ForbiddenError):
        engine.acting("cat").tasks.withdraw_decision(task, on_behalf_of="ann")
    assert places(engine, task) == {"ann": "confirmed", "finance": "confirmed", "dora": ""}


@pytest.mark.row("E-681")
def test_who_stands_in_for_somebody_brings_none_of_their_own_places(place: Place) -> None:
    """Cat has a place of her own by a role, and decides for Ann: from Ann's place, so that the record names a role that Ann has."""
    engine = office(place, role="")
    engine.directory.grant("cat", "board")
    run = asked(engine, ask=["role:board", "role:finance"])
    (task,) = run.tasks()
    engine.acting("cat").tasks.approve(task, on_behalf_of="ann")
    assert places(engine, task) == {"board": "", "finance": "confirmed"}


@pytest.mark.row("E-664", "E-675", "E-685")
@pytest.mark.parametrize("pick", ["all", "in_turn"])
@pytest.mark.parametrize("how", ["here", "away", "deactivated"])
def test_who_stands_in_for_a_role_decides_for_a_picked_holder(place: Place, pick: str, how: str) -> None:
    """A holder who was picked is asked as holder of the role, so a delegation for the role is about that, whenever it was made."""
    engine = office(place, role="")
    engine.directory.revoke("bob", "finance")
    for each in engine.directory.delegations("ann"):
        engine.directory.end_delegation(each)
    run = asked(engine, ask=ask("role:finance", pick=pick))  # type: ignore[arg-type]
    (task,) = run.tasks()
    cat = engine.acting("cat").tasks
    assert cat.list(mine=True) == []
    engine.directory.delegate("ann", "cat", role="finance")
    if how == "away":
        engine.directory.absent("ann")
    elif how == "deactivated":
        engine.directory.deactivate("ann")
    engine.advance(minutes=2)
    assert run.describe().status == "running"
    assert [(each.step_id, each.stands_for) for each in cat.list(mine=True)] == [(task.step_id, "ann")]
    assert cat.counts().own == 1
    cat.approve(task)
    engine.drain()
    assert run.describe().status == "completed"


@pytest.mark.row("E-675")
def test_a_delegation_for_another_role_shows_no_question(place: Place) -> None:
    """What Ann is asked by name, or as holder of another role, is in no inbox of who stands in for her as a holder of one role."""
    engine = office(place)
    engine.directory.grant("ann", "legal")
    for name, people in (("named", "user:ann"), ("legal", ask("role:legal", pick="all"))):
        engine.register(Saga(name).human("q", ask=people).build())
        engine.acting("rita").start(name)
    engine.drain()
    cat = engine.acting("cat").tasks
    assert (cat.list(mine=True), cat.counts().own) == ([], 0)
    for task in engine.tasks.list():
        with pytest.raises(ForbiddenError):
            cat.approve(task)


@pytest.mark.row("E-675", "E-681")
@pytest.mark.parametrize("kind", [Personnel, Quick], ids=["may_hang", "quick"])
def test_a_directory_of_the_host_says_for_which_role_too(place: Place, kind: type[Personnel]) -> None:
    """The same with a directory of the host: the place of the role is decided from, and the personal one is not."""
    people = kind()
    people.deputies, people.for_role = {"ann": "cat"}, "finance"
    engine = place.engine(directory=people)
    run = asked(engine, ask=BY_NAME_AND_ROLE)
    (task,) = run.tasks()
    engine.acting("cat").tasks.approve(task)
    assert places(engine, task) == {"ann": "", "finance": "confirmed"}


@pytest.mark.row("E-675", "E-681")
def test_a_process_is_advanced_from_the_place_of_the_role(place: Place) -> None:
    """`processes.advance` decides by the same law."""
    engine = office(place)
    for definition in load_processes("""
domain: d
workflows:
  - id: p
    steps:
      - {id: review, type: approval, assignees: [{user: ann}, {role: finance}]}
      - {id: done, type: terminal}
    transitions:
      - {from: review, event: approved, to: done}
"""):
        engine.register(definition)
    started = engine.acting("rita").processes.start("p")
    engine.acting("cat").processes.advance(started.id, "approved")
    (task,) = engine.run(started.id).tasks()
    assert places(engine, task) == {"ann": "", "finance": "approved"}


@pytest.mark.row("E-675", "E-681", "E-685")
def test_an_approval_of_a_document_is_taken_back_by_who_stands_in_for_all_of_it(place: Place) -> None:
    """Fin has approved in person and Zed for the board: who stands in for Fin on the board alone does not void what Fin has approved."""
    engine = opened(
        place.engine(),
        patch("asking", "{id: a, type: approval, approvers: [{user: fin}, {role: board}]}"),
        patch("behind", '{id: b, type: wait_event, event: ext, key: "go"}'),
        before="",
    )
    people = engine.as_tenant("acme").directory
    for name in ("ann", "fin", "cat", "zed"):
        people.put(name)
    for name in ("fin", "zed"):
        people.grant(name, "board")
    people.delegate("fin", "cat", role="board")
    submit(engine)
    task, cat = open_tasks(engine)["a"], Actor(id="cat")
    answer(engine, task, cat)
    assert {each.name: each.decided for each in acting(engine, FIN).tasks.get(task).people} == {
        "fin": "",
        "board": "approved",
    }
    assert stands(engine)[0] == "submitted"
    with pytest.raises(RejectedError):
        acting(engine, ANN).tasks.withdraw_decision(task)
    acting(engine, cat).tasks.withdraw_decision(task)
    answer(engine, task, Actor(id="zed"))
    with pytest.raises(RejectedError):
        acting(engine, cat).tasks.withdraw_decision(task, on_behalf_of="fin")


@pytest.mark.row("E-687", "E-685")
@pytest.mark.parametrize("how", ["as_oneself", "as_stand_in"])
def test_whoever_has_handed_a_place_on_is_kept_apart_with_it(place: Place, how: str) -> None:
    """Who hands a place on, for themselves or as a stand-in, and then decides the other step, has chosen who decides this one: that one may not."""
    engine = office(place, role="")
    engine.register(
        Saga("both")
        .fork(
            "ways",
            lambda way: way.human("check", ask=["user:ann", "user:cat"], agree="any"),
            lambda way: way.human("release", ask="user:ann", distinct_from="check"),
        )
        .join("met")
        .build()
    )
    run = engine.run(engine.acting("rita").start("both").id)
    engine.drain()
    tasks = {each.name: each for each in run.tasks()}
    who = engine.acting("ann" if how == "as_oneself" else "cat").tasks
    who.delegate(tasks["release"], "eve", on_behalf_of="" if how == "as_oneself" else "ann")
    who.approve(tasks["check"])
    engine.drain()
    eve = engine.acting("eve").tasks
    assert eve.list(mine=True) == []
    with pytest.raises(RejectedError) as raised:
        eve.approve(tasks["release"])
    assert raised.value.reason == "not_distinct"
    assert run.describe().reason == "no_approver"
