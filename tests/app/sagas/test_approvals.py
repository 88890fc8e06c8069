"""Questions to several people through the engine: inboxes, decisions, delegation, and what is kept of them, on both stores."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

import standfast
from app.sagas.acting import Stage, history, person, run, status, step
from standfast import (
    Calls,
    EffectContext,
    ForbiddenError,
    HumanTask,
    NotFoundError,
    PayloadError,
    RejectedError,
    RequestContext,
    Saga,
    SagaDefinition,
    ask,
)
from standfast.features.tasks import separation as kept_apart
from standfast.kernel.ids import InstanceId
from standfast.machine.model.commands.run_commands import PeopleFound
from standfast.machine.model.engine_tasks import FindPeople, Person
from standfast.testing import ManualEngine
from support.engines import Place

ANN, BOB, EVE = person("ann"), person("bob"), person("eve")
FAY, GUS = person("fay", "finance"), person("gus", "finance")
STAGE = Stage()
OPS = standfast.Actor(id="ops", capabilities=frozenset({"task:*"}))


def spending(stage: Stage | None = None, *, name: str = "spend", **options: Any) -> SagaDefinition:
    """Somebody wants to spend money, and others are asked."""
    stage = stage or STAGE
    options = {"ask": ["user:ann", "user:bob"], **options}
    return Saga(name).human("ok", subject="May {who} spend?", **options).step("pay", stage.does("pay")).build()


def started(engine: ManualEngine, saga: SagaDefinition, *, key: str = "", by: str = "rita") -> InstanceId:
    """A run of it that waits."""
    engine.register(saga)
    instance = engine.acting(by).start(saga, {"who": by}, key=key).id
    engine.drain()
    return instance


def names(tasks: list[HumanTask]) -> list[str]:
    """The keys of the runs whose questions these are."""
    return [each.key for each in tasks]


def as_(engine: Calls, actor: standfast.Actor) -> Any:
    """The tasks of somebody."""
    return engine.acting(actor).tasks


# -- inboxes


@pytest.mark.row("G-12", "E-890")
@pytest.mark.row("E-675")
def test_an_inbox_holds_what_asks_me_my_roles_and_what_was_delegated_to_me(place: Place) -> None:
    """Oldest first, each once however often I am asked; a question leaves it with my decision, or with that of a colleague."""
    engine = place.engine()
    for key, asked in (
        ("own", "user:fay"),
        ("role", "role:finance"),
        ("both", ["role:finance", "user:fay"]),
        ("bob", "user:bob"),
    ):
        started(engine, spending(name=f"s-{key}", ask=asked), key=key)
        engine.advance(seconds=1)
    assert names(as_(engine, FAY).list(mine=True)) == ["own", "role", "both"]
    assert names(as_(engine, GUS).list(mine=True)) == ["role", "both"]
    assert names(as_(engine, BOB).list(mine=True)) == ["bob"]
    assert names(engine.tasks.list(role="finance")) == ["role", "both"]
    (theirs,) = as_(engine, BOB).list(mine=True)
    as_(engine, BOB).delegate(theirs, "fay", reason="holidays")
    assert as_(engine, BOB).list(mine=True) == []
    *_, delegated = as_(engine, FAY).list(mine=True)
    assert (delegated.key, delegated.stands_for, delegated.definition, delegated.requester) == (
        "bob",
        "bob",
        "s-bob",
        "rita",
    )
    assert names(as_(engine, FAY).list(mine="roles")) == names(as_(engine, GUS).list(mine="roles")) == ["role", "both"]
    assert names(as_(engine, FAY).list(mine="delegated")) == ["bob"]
    assert as_(engine, GUS).list(mine="delegated") == as_(engine, BOB).list(mine="roles") == []
    as_(engine, GUS).approve(as_(engine, GUS).list(mine=True)[0])
    as_(engine, FAY).approve(delegated)
    assert names(as_(engine, FAY).list(mine=True)) == ["own", "both"]
    engine.drain()


def test_an_inbox_is_narrowed(place: Place) -> None:
    """By definition, business key, requester, and by what is overdue; filters add up."""
    engine = place.engine()
    started(engine, spending(name="one"), key="a", by="rita")
    started(engine, spending(name="two"), key="b", by="rolf")
    tasks = as_(engine, ANN)
    assert names(tasks.list(mine=True, definition="two")) == names(engine.tasks.list(definition="two")) == ["b"]
    assert names(engine.tasks.list(key="a")) == names(tasks.list(mine=True, key="a")) == ["a"]
    assert engine.tasks.list(key="a", definition="two") == []
    assert names(as_(engine, person("rolf")).list(requested_by_me=True)) == ["b"]
    assert engine.tasks.list(is_overdue=True) == tasks.list(requested_by_me=True) == []
    for mine in (True, "roles", "delegated"):
        with pytest.raises(PayloadError, match="leave out"):
            tasks.list(mine=mine, role="finance")
    for nonsense in ("role", 1, None):
        with pytest.raises(PayloadError, match="`mine` is True, 'roles' or 'delegated', not"):
            tasks.list(mine=nonsense)


def test_inboxes_are_counted(place: Place) -> None:
    """What asks me by name, and what asks each of my roles."""
    engine = place.engine()
    for number, asked in enumerate(("user:fay", "role:finance", "role:finance", "role:other")):
        started(engine, spending(name=f"s{number}", ask=asked))
    counts = as_(engine, FAY).counts()
    assert (counts.own, counts.by_role, counts.overdue) == (1, {"finance": 2}, 0)


FOUR_EYES: dict[str, dict[str, object]] = {
    "the requester": {"self_approval": False},
    "who decided another step": {"distinct_from": "first"},
    "who decided any other step": {"distinct_approvers": True},
}


@pytest.mark.row("E-678")
@pytest.mark.parametrize("case", sorted(FOUR_EYES))
def test_counts_are_those_of_the_list_under_four_eyes(place: Place, case: str) -> None:
    """A question that somebody may not decide is neither in their list nor in their counts, and it is in those of the others."""
    engine = place.engine()
    rita, sam = person("rita", "finance"), person("sam", "finance")
    saga = Saga("both").human("first", role="finance").human("second", role="finance", due=60, **FOUR_EYES[case])  # type: ignore[arg-type]
    engine.register(saga.build())
    for _ in range(3):
        engine.acting(rita).start("both")
    engine.drain()
    for task in as_(engine, rita).list(mine=True):
        as_(engine, rita).approve(task)
    engine.drain()
    engine.advance(minutes=2)
    for who, count in ((rita, 0), (sam, 3)):
        counts = as_(engine, who).counts()
        assert len(as_(engine, who).list(mine=True)) == count
        assert (sum(counts.by_role.values()), counts.overdue, counts.is_exact) == (count, count, True)


def test_counts_of_very_many_questions_are_not_exact(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond so many questions they are counted without a look at each, which the counts say."""
    engine = place.engine()
    for number in range(2):
        started(engine, spending(name=f"s{number}", ask="role:finance"))
    for most, is_exact in ((1, False), (2, True)):
        monkeypatch.setattr(kept_apart, "MOST_COUNTED", most)
        counts = as_(engine, FAY).counts()
        assert (counts.by_role, counts.is_exact) == ({"finance": 2}, is_exact)


def test_counts_are_those_of_the_list_for_whoever_stands_in(place: Place) -> None:
    """A delegation for one definition counts there; what those who are asked have to decide themselves is in no other list."""
    engine = place.engine()
    for name in ("fay", "sam"):
        engine.directory.put(name)
    engine.directory.delegate("fay", "sam", definition="one", ends_at=place.clock.now() + timedelta(days=1))
    for name in ("one", "two"):
        started(engine, spending(name=name, ask="user:fay"))
    assert names(as_(engine, person("sam")).list(mine=True)) == [""]
    assert as_(engine, person("sam")).counts().own == 1
    engine.directory.delegate("fay", "sam", ends_at=place.clock.now() + timedelta(days=1))
    assert as_(engine, person("sam")).counts().own == len(as_(engine, person("sam")).list(mine=True)) == 2
    started(engine, spending(name="own", ask="user:fay", delegable=False))
    assert as_(engine, person("sam")).counts().own == len(as_(engine, person("sam")).list(mine=True)) == 2
    assert as_(engine, person("fay")).counts().own == len(as_(engine, person("fay")).list(mine=True)) == 3


def test_what_i_decided_is_listed_newest_first(place: Place) -> None:
    """Page by page, with what I said; a decision that I withdrew is not there."""
    engine = place.engine()
    for key in "abcd":
        started(engine, spending(name=f"s-{key}"), key=key)
        engine.advance(seconds=1)
    tasks = as_(engine, ANN)
    for task in tasks.list(mine=True):
        tasks.decide(task, "rejected" if task.key == "b" else "confirmed", comment=task.key)
        engine.advance(seconds=1)
    tasks.withdraw_decision(next(each for each in engine.tasks.list() if each.key == "c"))
    first = tasks.decided(limit=2)
    rest = tasks.decided(limit=2, after=first[-1])
    told = [(each.task.key, each.decision.decision, each.decision.comment) for each in (*first, *rest)]
    assert told == [("d", "confirmed", "d"), ("b", "rejected", "b"), ("a", "confirmed", "a")]
    assert as_(engine, BOB).decided() == []


def test_nothing_of_another_tenant_is_seen_or_done(place: Place) -> None:
    """The same person in another tenant has an empty inbox, and finds no task by its id."""
    engine = place.engine()
    started(engine, spending())
    (task,) = as_(engine, ANN).list(mine=True)
    other = engine.acting(RequestContext(tenant="other", actor=ANN)).tasks
    assert engine.as_tenant("other").tasks.list() == []
    assert (other.list(requested_by_me=True), other.list(mine=True), other.decided(), other.counts().own) == (
        [],
        [],
        [],
        0,
    )
    for call in (
        other.get,
        other.claim,
        other.approve,
        other.withdraw,
        lambda each: other.comment(each, "hm"),
        lambda each: other.delegate(each, "eve"),
    ):
        with pytest.raises(NotFoundError):
            call(task)


# -- a question with all that belongs to it


@pytest.mark.row("E-671", "EC-36")
@pytest.mark.row("E-683")
def test_a_task_tells_who_was_asked_and_what_was_said(place: Place) -> None:
    """People with the reason why, decisions under both names, comments in their order, and what can be decided."""
    engine = place.engine()
    instance = started(engine, spending(ask=["user:ann", "rule:who", "user:bob"], agree=2, abstain=True))
    (task,) = as_(engine, ANN).list(mine=True)
    as_(engine, ANN).ask(task, "what for?")
    as_(engine, person("rita")).comment(task, "for lamps")
    as_(engine, ANN).delegate(task, "eve")
    as_(engine, EVE).decide(task, "confirmed", comment="fine", data={"most": 5})
    told = engine.tasks.get(task)
    assert (told.status, told.agreement, told.outcomes) == (
        "open",
        "at least 2 of them",
        ["confirmed", "rejected", "abstained"],
    )
    assert [(each.name, each.why, each.stands_for, each.is_open, each.decided) for each in told.people] == [
        ("ann", "named", "", False, ""),
        ("rita", "rule who", "", True, ""),
        ("bob", "named", "", True, ""),
        ("eve", "delegated by ann", "ann", False, "confirmed"),
    ]
    (decision,) = told.decisions
    assert (decision.decided_by, decision.on_behalf_of, decision.data) == ("eve", "ann", {"most": 5})
    assert [(each.actor, each.text, each.is_question) for each in told.comments] == [
        ("ann", "what for?", True),
        ("rita", "for lamps", False),
    ]
    assert told.resolution == [{"resolver": "rule", "of": "who", "result": ["rita"]}]
    as_(engine, BOB).approve(task)
    engine.drain()
    answer = step(engine, instance, "ok").output
    assert isinstance(answer, dict)
    assert [each["decided_by"] for each in answer["decisions"]] == ["eve", "bob"]
    assert engine.tasks.get(task).status == "decided"
    with pytest.raises(NotFoundError):
        engine.tasks.get(f"{instance}:77")


@pytest.mark.row("C-09")
@pytest.mark.row("R-074")
@pytest.mark.row("R-075")
@pytest.mark.row("R-076")
@pytest.mark.parametrize("decision", ["approve", "reject", "abstain"])
def test_a_run_goes_on_with_the_decision(place: Place, decision: str) -> None:
    """Approved, its next step runs; rejected, or with nothing but abstentions, it ends, and the task says which."""
    stage = Stage()
    engine = place.engine()
    instance = started(engine, spending(stage, ask="user:ann", abstain=True))
    getattr(as_(engine, ANN), decision)(engine.tasks.list()[0])
    engine.drain()
    assert status(engine, instance) == ("completed" if decision == "approve" else "aborted")
    assert stage.calls == (["pay"] if decision == "approve" else [])
    (task,) = engine.run(instance).tasks()
    assert task.decision == ("confirmed" if decision == "approve" else "rejected")


@pytest.mark.row("R-145")
def test_each_question_is_a_task_of_its_own(place: Place) -> None:
    """Two questions in a row are two tasks, one open at a time."""
    engine = place.engine()
    engine.register(Saga("two").human("a", ask="user:ann").human("b", ask="user:ann").build())
    instance = run(engine, "two")
    for name in ("a", "b"):
        (task,) = as_(engine, ANN).list(mine=True)
        assert task.name == name
        as_(engine, ANN).approve(task)
        engine.drain()
    assert [each.name for each in engine.run(instance).tasks()] == ["a", "b"]


@pytest.mark.row("R-080")
def test_a_role_and_a_time_limit(place: Place) -> None:
    """Only holders of the role decide, and after the time nobody does: the task is expired."""
    engine = place.engine()
    engine.register(Saga("ask").human("ok", role="finance", timeout=timedelta(hours=24)).build())
    instance = run(engine, "ask")
    (task,) = engine.tasks.list()
    with pytest.raises(ForbiddenError):
        as_(engine, ANN).approve(task)
    engine.advance(hours=24)
    with pytest.raises(RejectedError):
        as_(engine, FAY).approve(task)
    assert as_(engine, FAY).list(mine=True) == []
    assert status(engine, instance) == "failed"


# -- people who have to be found


def test_people_are_found_by_the_engine(place: Place) -> None:
    """A question to a manager is in nobody's inbox until the errand is done, and then in the manager's."""
    engine = place.engine()

    def find(_context: EffectContext, errand: FindPeople) -> PeopleFound:
        assert [each.by for each in errand.asks] == ["manager"]
        return PeopleFound(step=errand.step, people=[Person(name="bob", via=f"manager of {errand.requester}")])

    engine.errands.add(FindPeople, find)
    engine.register(spending(ask="manager"))
    instance = engine.acting("rita").start("spend", {"who": "rita"}).id
    assert as_(engine, BOB).list(mine=True) == []
    engine.drain()
    (task,) = as_(engine, BOB).list(mine=True)
    assert [each.why for each in engine.tasks.get(task).people] == ["manager of rita"]
    as_(engine, BOB).approve(task)
    engine.drain()
    assert status(engine, instance) == "completed"


@pytest.mark.row("E-682")
def test_a_resolver_that_fails_leaves_a_run_that_can_be_mended(place: Place) -> None:
    """When the errand has failed for good, the run waits with `no_approver` and a sentence; another approver brings it on."""
    engine = place.engine()

    def find(_context: EffectContext, _errand: FindPeople) -> PeopleFound:
        raise standfast.Fail("the directory is down")

    engine.errands.add(FindPeople, find)
    instance = started(engine, spending(ask="manager"))
    shown = engine.run(instance).describe()
    assert (shown.status, shown.reason) == ("dlq", "no_approver")
    assert "the directory is down" in shown.error
    assert "add an approver" in shown.error
    (task,) = engine.run(instance).tasks()
    as_(engine, OPS).add_approver(task, "ann")
    as_(engine, ANN).approve(task)
    engine.drain()
    assert status(engine, instance) == "completed"


# -- what is refused


REFUSED: dict[str, tuple[Any, type[Exception], str]] = {
    "an outcome that is none": (lambda tasks, task: tasks.decide(task, "maybe"), RejectedError, "unknown_outcome"),
    "an abstention where none is offered": (lambda tasks, task: tasks.abstain(task), RejectedError, "unknown_outcome"),
    "to delegate to oneself": (lambda tasks, task: tasks.delegate(task, "ann"), RejectedError, "delegation_to_self"),
    "to delegate to nobody": (lambda tasks, task: tasks.delegate(task, ""), PayloadError, "non-empty"),
    "to reassign without the right": (lambda tasks, task: tasks.reassign(task, "eve"), ForbiddenError, "task:reassign"),
    "to add without the right": (lambda tasks, task: tasks.add_approver(task, "eve"), ForbiddenError, "add_approver"),
    "to withdraw without the right": (lambda tasks, task: tasks.withdraw(task), ForbiddenError, "task:withdraw"),
    "to withdraw what was not decided": (
        lambda tasks, task: tasks.withdraw_decision(task),
        RejectedError,
        "nothing_decided",
    ),
    "to say nothing": (lambda tasks, task: tasks.comment(task, " "), PayloadError, "not empty"),
    "a weight that is none": (lambda tasks, task: tasks.add_approver(task, "eve", weight=0), PayloadError, "weight"),
    "a comment that is none": (lambda tasks, task: tasks.comment(task, 5), PayloadError, "must be text"),
    "a task that is none": (lambda tasks, task: tasks.claim("x"), PayloadError, "is not the id of a step"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_done_is_refused_and_changes_nothing(place: Place, case: str) -> None:
    """With a stable code and a sentence; the history stays as it was."""
    engine = place.engine()
    instance = started(engine, spending())
    (task,) = as_(engine, ANN).list(mine=True)
    before = history(engine, instance)
    call, error, expected = REFUSED[case]
    with pytest.raises(error) as caught:
        call(as_(engine, ANN), task)
    assert expected in f"{getattr(caught.value, 'reason', '')} {caught.value}"
    assert history(engine, instance) == before


@pytest.mark.row("G-12", "G-13")
def test_a_task_is_handed_on_by_those_who_may(place: Place) -> None:
    """Reassigned and widened with the capabilities, claimed and released; all of it is told in the history."""
    engine = place.engine()
    instance = started(engine, spending())
    (task,) = engine.tasks.list()
    as_(engine, OPS).reassign(task, "role:finance", who="bob", reason="left us")
    as_(engine, OPS).add_approver(task, "eve")
    as_(engine, FAY).claim(task)
    assert engine.tasks.get(task).claimed_by == "fay"
    with pytest.raises(RejectedError, match="'fay' has claimed"):
        as_(engine, EVE).approve(task)
    as_(engine, FAY).release(task)
    for actor in (ANN, FAY, EVE):
        as_(engine, actor).approve(task)
    engine.drain()
    assert status(engine, instance) == "completed"
    told = [each.event_type for each in history(engine, instance)]
    assert [each for each in told if each.startswith("task_")] == [
        "task_reassigned",
        "task_approver_added",
        "task_claimed",
        "task_released",
        *["task_decided"] * 3,
    ]


def test_weights_and_withdrawal_in_plain_words(place: Place) -> None:
    """A saga gives weights with `ask`, and a way for what is taken back."""
    stage = Stage()
    engine = place.engine()
    saga = (
        Saga("weighty")
        .human(
            "ok",
            ask=[ask("user:ann", weight=3), ask("user:bob"), "role:finance"],
            agree_weight=3,
            on_withdrawn=lambda way: way.step("forget", stage.does("forget")),
        )
        .build()
    )
    instance = started(engine, saga)
    as_(engine, BOB).approve(engine.tasks.list()[0])
    as_(engine, person("rita")).withdraw(engine.tasks.list()[0], "found one")
    engine.drain()
    assert (status(engine, instance), stage.calls) == ("completed", ["forget"])
    other = engine.acting("rita").start(saga, {}).id
    engine.drain()
    as_(engine, ANN).approve(engine.tasks.list()[0])
    engine.drain()
    assert status(engine, other) == "completed"
