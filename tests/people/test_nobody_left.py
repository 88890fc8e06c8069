"""Questions that nobody can complete any more although answers were given or they were handed on: each is an incident with a way out."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from itertools import pairwise
from typing import NamedTuple

import pytest

from people.test_reviewing import HOUR, STUCK, office, question, stands
from standfast import Run, Saga, SagaDefinition, ask
from standfast.testing import ManualEngine
from support.engines import Place

Act = Callable[[ManualEngine, str], object]


class Case(NamedTuple):
    """What is asked, what happens to the question, how it loses whoever could complete it, and what is done about it."""

    saga: SagaDefinition
    before: Act
    lost: Act
    mended: Act
    by: str = "eve"
    """Who completes it then."""


def approve(*names: str) -> Act:
    """These approve."""

    def act(engine: ManualEngine, task: str) -> None:
        for name in names:
            engine.acting(name).tasks.approve(task)

    return act


def hand_on(*names: str, claims: bool = False) -> Act:
    """Each of these hands it on to the next one."""

    def act(engine: ManualEngine, task: str) -> None:
        for giver, to in pairwise(names):
            engine.acting(giver).tasks.delegate(task, to)
        if claims:
            engine.acting(names[-1]).tasks.claim(task)

    return act


def gone(name: str) -> Act:
    """Somebody leaves."""
    return lambda engine, _: engine.directory.deactivate(name)


def revoked(name: str, role: str) -> Act:
    """Somebody loses a role."""
    return lambda engine, _: engine.directory.revoke(name, role)


def reassigned(who: str = "") -> Act:
    """An operator has eve decide instead."""
    return lambda engine, task: engine.tasks.reassign(task, "eve", who=who)


def several(*acts: Act) -> Act:
    """One after the other."""

    def act(engine: ManualEngine, task: str) -> None:
        for each in acts:
            each(engine, task)

    return act


def granted(name: str, role: str) -> Act:
    """Somebody is given a role."""
    return lambda engine, _: engine.directory.grant(name, role)


def nothing(_engine: ManualEngine, _task: str) -> None:
    """Nothing happens."""


def lent(engine: ManualEngine, _task: str) -> None:
    """Dora lends to cat what she is asked as the boss, and leaves: cat decides nothing that dora is asked by name."""
    engine.directory.delegate("dora", "cat", role="boss")
    engine.directory.deactivate("dora")


CLERKS = ask("role:clerk", pick="all")
BOTH = question(ask=["role:boss", "role:clerk"], agree="all")

PARTIAL = {
    "all by name, one leaves": Case(
        question(ask=["user:dora", "user:ann"], agree="all"), approve("dora"), gone("ann"), reassigned()
    ),
    "all by name, an approver is added": Case(
        question(ask=["user:dora", "user:ann"], agree="all"),
        approve("dora"),
        gone("ann"),
        lambda e, task: e.tasks.add_approver(task, "eve"),
    ),
    "all of a role, one loses it": Case(
        question(ask=CLERKS, agree="all"), approve("ann"), revoked("bob", "clerk"), reassigned()
    ),
    "all of a role, one leaves": Case(question(ask=CLERKS, agree="all"), approve("ann"), gone("bob"), reassigned()),
    "all of a role and a name": Case(
        question(ask=[CLERKS, "user:dora"], agree="all"),
        approve("ann", "dora"),
        revoked("bob", "clerk"),
        lambda e, task: e.tasks.add_approver(task, "eve"),
    ),
    "a role whose only holder has voted": Case(
        BOTH,
        several(granted("ann", "boss"), revoked("bob", "clerk")),
        several(revoked("dora", "boss"), approve("ann")),
        reassigned(),
    ),
    "a role whose other holders have left since": Case(
        BOTH,
        several(granted("ann", "boss"), approve("ann")),
        several(gone("bob"), gone("dora")),
        reassigned(),
    ),
    "a quorum with an abstention": Case(
        question(ask=["user:dora", "user:ann", "user:bob"], agree=2, abstain=True),
        several(approve("dora"), lambda e, task: e.acting("ann").tasks.abstain(task)),
        gone("bob"),
        lambda e, task: e.tasks.add_approver(task, "eve"),
    ),
    "in turn": Case(question(ask=ask("role:boss", pick="in_turn")), nothing, revoked("dora", "boss"), reassigned()),
    "lent as a role, asked by name": Case(
        question(ask=["user:dora", "user:ann"], agree="all"), approve("ann"), lent, reassigned()
    ),
}

BOSS, CLERK = question(role="boss"), question(ask=["user:dora", "role:clerk"], agree="all")

HANDED = {
    "the receiver leaves": Case(BOSS, hand_on("dora", "cat"), gone("cat"), reassigned()),
    "the giver leaves": Case(BOSS, hand_on("dora", "cat"), gone("dora"), reassigned()),
    "the giver loses the role": Case(BOSS, hand_on("dora", "cat"), revoked("dora", "boss"), reassigned()),
    "the giver of two loses the role": Case(BOSS, hand_on("dora", "cat", "ann"), revoked("dora", "boss"), reassigned()),
    "one in between leaves": Case(BOSS, hand_on("dora", "cat", "ann"), gone("cat"), reassigned()),
    "one far in between leaves": Case(BOSS, hand_on("dora", "cat", "ann", "bob"), gone("cat"), reassigned()),
    "it was claimed, and the giver leaves": Case(BOSS, hand_on("dora", "cat", claims=True), gone("dora"), reassigned()),
    "it was claimed, and the receiver leaves": Case(
        BOSS, hand_on("dora", "cat", claims=True), gone("cat"), reassigned()
    ),
    "one of two, and the giver loses the role": Case(
        CLERK,
        several(hand_on("ann", "cat"), approve("dora")),
        revoked("ann", "clerk"),
        reassigned(),
    ),
    "picked, handed on, and the giver loses the role": Case(
        question(ask=ask("role:boss", pick="all")), hand_on("dora", "cat"), revoked("dora", "boss"), reassigned()
    ),
}
CASES = PARTIAL | HANDED


def begun(engine: ManualEngine, saga: SagaDefinition) -> tuple[Run[object], str]:
    """A run of rita's with its question."""
    engine.directory.put("eve")
    engine.register(saga)
    run = engine.acting("rita").start(saga)
    engine.drain()
    found = engine.run(run.id)
    assert found.describe().reason == ""
    return found, found.tasks()[0].step_id


@pytest.mark.row("E-682")
@pytest.mark.parametrize("name", CASES)
def test_a_question_that_nobody_can_complete_is_an_incident(place: Place, name: str) -> None:
    """Within a minute the run says so, in `why`, the incidents, health and metrics; the operator's remedy is all that it takes."""
    saga, before, lost, mended, by = CASES[name]
    engine = office(place)
    run, task = begun(engine, saga)
    before(engine, task)
    engine.advance(minutes=1)
    assert stands(run) == ("running", "")
    lost(engine, task)
    engine.advance(minutes=1)
    assert stands(run) == STUCK
    assert "nobody can decide 'ask'" in run.why().words
    (incident,) = engine.admin.incidents()
    assert (incident.kind, incident.instance) == ("no_approver", run.id)
    engine.advance(minutes=1)
    assert (len(engine.health().incidents), engine.incident_counts()["no_approver"]) == (1, 1)
    mended(engine, task)
    engine.advance(minutes=2)
    assert stands(run) == ("running", "")
    engine.acting(by).tasks.approve(task)
    engine.drain()
    assert run.describe().status == "completed"
    assert engine.admin.incidents() == []


def test_a_giver_whose_grant_ends_by_time_is_noticed(place: Place) -> None:
    """No call tells that the giver's period is over; the review finds it, and the run goes on once the giver has the role again."""
    engine = office(place)
    engine.directory.revoke("dora", "boss")
    engine.directory.grant("dora", "boss", ends_at=place.clock.now() + HOUR)
    run, task = begun(engine, BOSS)
    hand_on("dora", "cat")(engine, task)
    engine.advance(minutes=50)
    assert stands(run) == ("running", "")
    engine.advance(minutes=12)
    assert stands(run) == STUCK
    engine.directory.grant("dora", "boss")
    engine.advance(minutes=1)
    assert stands(run) == ("running", "")
    engine.acting("cat").tasks.approve(task)
    engine.drain()
    assert run.describe().status == "completed"


def test_a_stand_in_whose_time_is_over_is_noticed(place: Place) -> None:
    """Who was asked in the place of somebody who is away decides no more when the delegation ends; whoever can is asked then."""
    engine = office(place)
    now = place.clock.now()
    engine.directory.absent("dora", ends_at=now + 5 * HOUR)
    engine.directory.delegate("dora", "cat", ends_at=now + HOUR)
    run, task = begun(engine, question(ask=ask("role:boss", pick="all")))
    assert [each.name for each in engine.tasks.get(task).people if each.is_open] == ["cat"]
    engine.advance(minutes=62)
    engine.advance(minutes=1)
    assert [each.name for each in engine.tasks.get(task).people if each.is_open] == ["dora"]
    engine.acting("dora").tasks.approve(task)
    engine.drain()
    assert run.describe().status == "completed"


def test_another_process_notices_that_a_giver_left(place: Place) -> None:
    """What one process changes is found by the others, also of people who are not asked themselves."""
    engine, other = office(place), place.engine().register(BOSS)
    run, task = begun(engine, BOSS)
    hand_on("dora", "cat")(engine, task)
    other.drain()
    place.clock.move(timedelta(minutes=1))
    other.drain()
    engine.directory.revoke("dora", "boss")
    place.clock.move(timedelta(minutes=1))
    other.drain()
    assert stands(run) == STUCK


# -- four eyes


def two_branches(**second: object) -> SagaDefinition:
    """Two questions at once, of which the second has to be decided by somebody else."""
    return (
        Saga("q")
        .fork(
            "both",
            lambda one: one.human("first", ask=["user:dora", "user:cat"], agree="any"),
            lambda two: two.human("ask", distinct_from=["first"], **second),  # type: ignore[arg-type]
        )
        .join("met")
        .build()
    )


@pytest.mark.parametrize("has_directory", [True, False], ids=["directory", "nobody known"])
def test_four_eyes_that_leave_nobody_are_an_incident_at_once(place: Place, *, has_directory: bool) -> None:
    """Whoever decides one of two questions that want different people may be the last one for the other: the run says so in the same commit."""
    engine = office(place) if has_directory else place.engine()
    engine.register(two_branches(ask=["user:dora", "user:ann"], agree="all"))
    run = engine.run(engine.acting("rita").start("q").id)
    engine.drain()
    first, second = sorted(run.tasks(), key=lambda each: each.name != "first")
    engine.acting("ann").tasks.approve(second)
    engine.acting("dora").tasks.approve(first)
    engine.drain()
    assert stands(run) == STUCK
    assert "nobody can decide 'ask'" in run.why().words
    engine.tasks.reassign(second, "bob")
    engine.drain()
    engine.acting("bob").tasks.approve(second)
    engine.drain()
    assert run.describe().status == "completed"


def test_a_claim_of_somebody_whom_four_eyes_bar_keeps_nobody_out(place: Place) -> None:
    """Who has claimed one question and decided the other cannot decide the first one any more, so others can."""
    engine = office(place)
    engine.register(two_branches(ask=["user:dora", "user:ann"], agree="any"))
    run = engine.run(engine.acting("rita").start("q").id)
    engine.drain()
    first, second = sorted(run.tasks(), key=lambda each: each.name != "first")
    engine.acting("dora").tasks.claim(second)
    engine.acting("dora").tasks.approve(first)
    engine.acting("ann").tasks.approve(second)
    engine.drain()
    assert run.describe().status == "completed"
