"""What those who are asked come to, and who may decide at all: the rules of approvals, on both stores."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from app.sagas.acting import BROKEN, Stage, history, person, status, step
from standfast import (
    Actor,
    DefinitionError,
    Escalation,
    ForbiddenError,
    HumanTask,
    PayloadError,
    PeopleRequest,
    RejectedError,
    Saga,
    TaskDetails,
    ask,
)
from standfast.engine.common.telemetry import Happening, InstancePaused
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

ANN, BOB, CAT, EVE, RITA = (person(name) for name in ("ann", "bob", "cat", "eve", "rita"))
FAY, GUS = person("fay", "finance"), person("gus", "finance")
OPS = Actor(id="ops", capabilities=frozenset({"task:*"}))
EVERYTHING = Actor(id="root", capabilities=frozenset({"*"}))
STAGE = Stage()
THREE = ["user:ann", "user:bob", "user:cat"]


def asked(
    engine: ManualEngine, stage: Stage | None = None, *, name: str = "spend", given: object = None, **options: Any
) -> InstanceId:
    """A run of Rita's that waits for an answer; what follows a confirmation is the step `pay`."""
    stage = stage or STAGE
    saga = Saga(name).human("ok", **options).step("pay", stage.does("pay")).build()
    engine.register(saga)
    instance = engine.acting(RITA).start(saga, given or {}).id
    engine.drain()
    return instance


def tasks(engine: ManualEngine, actor: Actor) -> Any:
    """The tasks of somebody."""
    return engine.acting(actor).tasks


def question(engine: ManualEngine, instance: InstanceId, number: int = 1) -> TaskDetails:
    """All that is known of one."""
    return engine.tasks.get(f"{instance}:{number}")


def decide(engine: ManualEngine, instance: InstanceId, actor: Actor, word: str = "confirmed", **given: Any) -> None:
    """Somebody decides, and what follows happens."""
    tasks(engine, actor).decide(f"{instance}:1", word, **given)
    engine.drain()


def inbox(engine: ManualEngine, actor: Actor) -> list[str]:
    """The steps that wait for somebody."""
    mine: list[HumanTask] = tasks(engine, actor).list(mine=True)
    return [each.name for each in mine]


def decisions(engine: ManualEngine, instance: InstanceId) -> list[tuple[str, str]]:
    """Who decided what."""
    return [(each.decided_by, each.decision) for each in question(engine, instance).decisions]


def refused(engine: ManualEngine, instance: InstanceId, call: Callable[[], object]) -> str:
    """The code by which a call is refused, which changes nothing: neither the history nor what is shown of the question."""
    before = (history(engine, instance), question(engine, instance))
    with pytest.raises((RejectedError, ForbiddenError)) as caught:
        call()
    assert (history(engine, instance), question(engine, instance)) == before
    assert len(str(caught.value)) > 20
    return caught.value.reason


# -- who is asked


@pytest.mark.row("E-661", "E-663")
def test_only_the_user_who_is_named_decides(place: Place) -> None:
    """Whatever roles others have; the run goes on with that decision alone."""
    stage = Stage()
    engine = place.engine()
    instance = asked(engine, stage, ask="user:ann")
    for stranger in (BOB, FAY, RITA, OPS):
        assert refused(engine, instance, partial(decide, engine, instance, stranger)) == "not_allowed"
    decide(engine, instance, ANN)
    assert (status(engine, instance), stage.calls, decisions(engine, instance)) == (
        "completed",
        ["pay"],
        [("ann", "confirmed")],
    )


@pytest.mark.row("E-661")
@pytest.mark.parametrize("others", [{"ask": "user:ann"}, {"role": "finance"}, {"ask": THREE, "role": "finance"}])
def test_a_question_has_approvers_of_its_own_or_a_chain(others: dict[str, Any]) -> None:
    """Both is told when the saga is built."""
    with pytest.raises(DefinitionError, match="give one of them") as caught:
        Saga("spend").human("ok", chain="large", **others).build()
    assert [each.code for each in caught.value.diagnostics] == ["asks"]


@pytest.mark.row("E-664")
def test_holders_of_a_role_share_a_queue_with_claims(place: Place) -> None:
    """Each of them has the question until one claims or decides it, and the first decision counts."""
    engine = place.engine()
    instance = asked(engine, ask="role:finance")
    assert (inbox(engine, FAY), inbox(engine, GUS), inbox(engine, ANN)) == (["ok"], ["ok"], [])
    tasks(engine, FAY).claim(f"{instance}:1")
    assert refused(engine, instance, lambda: decide(engine, instance, GUS)) == "claimed"
    tasks(engine, FAY).release(f"{instance}:1")
    decide(engine, instance, GUS)
    assert (inbox(engine, FAY), decisions(engine, instance)) == ([], [("gus", "confirmed")])
    assert refused(engine, instance, lambda: decide(engine, instance, FAY, "rejected")) == "already_decided"


def test_what_four_eyes_keep_somebody_from_is_not_in_their_inbox(place: Place) -> None:
    """Whoever wanted the run, or has decided what another one is to decide, has the role and not the question; pages stay full."""
    engine = place.engine()
    rita = person("rita", "finance")
    for name in ("one", "two", "three"):
        asked(engine, name=name, ask="role:finance", self_approval=name == "two")
    assert [len(tasks(engine, each).list(mine=True)) for each in (rita, FAY)] == [1, 3]
    (page,) = tasks(engine, rita).list(mine=True, limit=1)
    assert (page.definition, tasks(engine, rita).list(mine=True, limit=1, after=page)) == ("two", [])
    second = Saga("four").human("first", ask="role:finance").human("ok", ask="role:finance", distinct_from="first")
    third = Saga("five").human("first", ask="role:finance").human("ok", ask="role:finance", distinct_approvers=True)
    for saga in (second.build(), third.build()):
        instance = engine.register(saga).acting(RITA).start(saga).id
        decide(engine, instance, FAY)
        mine = [[each.name for each in tasks(engine, who).list(mine=True, definition=saga)] for who in (FAY, GUS)]
        assert mine == [[], ["ok"]]


def test_a_decision_keeps_somebody_out_of_the_next_question_once_it_is_used(place: Place) -> None:
    """One that was withdrawn, or that others have yet to agree to, does not; among several of one question it does at once."""
    engine = place.engine()
    both = {"ask": ["role:finance", "user:ann"], "agree": "all"}
    saga = Saga("s").human("first", **both).human("ok", ask="role:finance", distinct_from="first").build()  # type: ignore[arg-type]
    instance = engine.register(saga).acting(RITA).start(saga).id
    decide(engine, instance, FAY)
    tasks(engine, FAY).withdraw_decision(f"{instance}:1")
    decide(engine, instance, GUS)
    decide(engine, instance, ANN)
    assert (inbox(engine, FAY), inbox(engine, GUS)) == (["ok"], [])
    lawyer = person("fay", "finance", "legal")
    asked(engine, name="two", ask=["role:finance", "role:legal"], agree="all", distinct_approvers=True)
    (two,) = tasks(engine, lawyer).list(mine=True, definition="two")
    tasks(engine, lawyer).approve(two)
    assert tasks(engine, lawyer).list(mine=True, definition="two") == []
    tasks(engine, lawyer).withdraw_decision(two)
    assert len(tasks(engine, lawyer).list(mine=True, definition="two")) == 1


def test_whoever_may_hand_questions_on_finds_them(place: Place) -> None:
    """Without the right to look at runs; whoever may neither is told what it takes."""
    engine = place.engine()
    instance = asked(engine, ask="user:ann")
    for capability in ("task:reassign", "task:add_approver", "task:withdraw", "task:escalate", "execution:read"):
        clerk = tasks(engine, Actor(id="clerk", capabilities=frozenset({capability})))
        assert [each.instance for each in clerk.list()] == [instance]
        assert clerk.get(f"{instance}:1").people[0].name == "ann"
    for call in (tasks(engine, EVE).list, lambda: tasks(engine, EVE).get(f"{instance}:1")):
        with pytest.raises(ForbiddenError, match="execution:read"):
            call()


@pytest.mark.row("E-664")
def test_a_role_is_asked_in_turn(place: Place) -> None:
    """Three requests go to three users, each of whom decides alone."""
    engine = place.engine()
    for name in ("ann", "bob", "cat"):
        engine.directory.put(name)
        engine.directory.grant(name, "finance")
    runs = [asked(engine, ask=ask("role:finance", pick="in_turn")) for _ in range(3)]
    names = [[each.name for each in question(engine, instance).people] for instance in runs]
    assert sorted(names) == [["ann"], ["bob"], ["cat"]]
    first, second = (person(name) for (name,) in names[:2])
    assert refused(engine, runs[0], lambda: decide(engine, runs[0], second)) == "not_allowed"
    decide(engine, runs[0], first)
    assert status(engine, runs[0]) == "completed"


@pytest.mark.row("E-666")
@pytest.mark.parametrize(
    ("owner", "expected"),
    [
        ("ann", [("user", "ann")]),
        ("role:finance", [("role", "finance")]),
        (["ann", "role:finance"], [("user", "ann"), ("role", "finance")]),
    ],
)
def test_an_expression_yields_who_is_asked(place: Place, owner: object, expected: list[tuple[str, str]]) -> None:
    """The owner of the cost centre: a user, a role or several; nobody else can decide, and what it came to is kept."""
    engine = place.engine()
    entity = {"entity": {"cost_center": {"owner_id": owner}}}
    instance = asked(engine, given=entity, ask="rule:entity.cost_center.owner_id", agree="all")
    told = question(engine, instance)
    assert [(each.kind, each.name) for each in told.people] == expected
    result = [name if kind == "user" else f"role:{name}" for kind, name in expected]
    assert told.resolution == [{"resolver": "rule", "of": "entity.cost_center.owner_id", "result": result}]
    assert refused(engine, instance, lambda: decide(engine, instance, BOB)) == "not_allowed"
    for actor in (ANN, FAY)[: len(expected)] if expected[0][0] == "user" else (FAY,):
        decide(engine, instance, actor)
    assert status(engine, instance) == "completed"


@pytest.mark.row("E-667")
def test_a_resolver_of_the_application_is_asked_by_its_name(place: Place) -> None:
    """It gets the data and the requester, and says who is asked."""
    engine = place.engine()
    seen: list[PeopleRequest] = []

    @engine.resolver("owner")
    def owner_of(request: PeopleRequest) -> str:
        seen.append(request)
        return f"{request.data['owner']}"

    instance = asked(engine, given={"owner": "bob"}, ask="owner:budget")
    assert [(each.of, each.requester, each.node, each.definition) for each in seen] == [
        ("budget", "rita", "ok", "spend")
    ]
    assert [(each.name, each.why) for each in question(engine, instance).people] == [("bob", "resolver owner")]
    assert refused(engine, instance, lambda: decide(engine, instance, ANN)) == "not_allowed"
    decide(engine, instance, BOB)
    assert status(engine, instance) == "completed"


# -- what they come to


STORIES: dict[str, tuple[dict[str, Any], list[str], str, str]] = {
    "any: one approval is enough": ({"agree": "any"}, ["confirmed"], "confirmed", ""),
    "any: a rejection is not the end": ({"agree": "any"}, ["rejected"], "", ""),
    "any: somebody approves after others have rejected": (
        {"agree": "any"},
        ["rejected", "rejected", "confirmed"],
        "confirmed",
        "",
    ),
    "any: rejected when nobody can approve any more": (
        {"agree": "any"},
        ["rejected", "abstained", "rejected"],
        "rejected",
        "",
    ),
    "all by default: two of three are not enough": ({}, ["confirmed", "confirmed"], "", ""),
    "all by default: all three are": ({}, ["confirmed", "confirmed", "confirmed"], "confirmed", ""),
    "all: the first rejection ends it": ({"agree": "all"}, ["confirmed", "rejected"], "rejected", ""),
    "all: an abstention is an answer and not against it": (
        {"agree": "all"},
        ["confirmed", "abstained", "confirmed"],
        "confirmed",
        "",
    ),
    "all: nothing but abstentions": ({"agree": "all"}, ["abstained"] * 3, "rejected", "all_abstained"),
    "2 of 3: one is not enough": ({"agree": 2}, ["confirmed", "abstained"], "", ""),
    "2 of 3: the second one is": ({"agree": 2}, ["confirmed", "rejected", "confirmed"], "confirmed", ""),
    "2 of 3: out of reach": ({"agree": 2}, ["confirmed", "abstained", "abstained"], "rejected", "out_of_reach"),
    "by weight: the heavy one is enough": ({"agree_weight": 3}, ["confirmed"], "confirmed", ""),
    "by weight: the light ones cannot reach it": ({"agree_weight": 3}, ["rejected"], "rejected", ""),
}


@pytest.mark.row("E-670", "E-676", "E-677", "E-678", "EO-06")
@pytest.mark.parametrize("story", STORIES)
def test_three_people_agree_or_do_not(place: Place, story: str) -> None:
    """The question is open until its rule is met or cannot be met any more; then it is what the rule says, and the run goes on by it."""
    rule, words, expected, reason = STORIES[story]
    stage = Stage()
    engine = place.engine()
    weighty = [ask("user:ann", weight=3), "user:bob", "user:cat"] if "agree_weight" in rule else THREE
    instance = asked(engine, stage, ask=weighty, abstain=True, **rule)
    for actor, word in zip((ANN, BOB, CAT), words, strict=False):
        assert question(engine, instance).decision == ""
        decide(engine, instance, actor, word)
    told = question(engine, instance)
    assert (told.decision, [each.decision for each in told.decisions]) == (expected, words)
    assert {each.is_applied for each in told.decisions} == {bool(expected)}
    assert status(engine, instance) == {"": "running", "confirmed": "completed", "rejected": "aborted"}[expected]
    assert stage.calls == (["pay"] if expected == "confirmed" else [])
    (*answered,) = history(engine, instance, "approved", "rejected")
    assert [each.data.get("reason", "") for each in answered] == ([reason] if expected else [])
    assert engine.run(instance).verify().is_sound


@pytest.mark.row("E-677")
def test_the_others_are_not_asked_any_more(place: Place) -> None:
    """2 of 3: with the second approval the third request is withdrawn; it leaves the inbox, and a late decision is refused."""
    engine = place.engine()
    instance = asked(engine, ask=THREE, agree=2)
    decide(engine, instance, ANN)
    assert (inbox(engine, ANN), inbox(engine, BOB), inbox(engine, CAT)) == ([], ["ok"], ["ok"])
    decide(engine, instance, BOB)
    assert inbox(engine, CAT) == []
    assert [(each.name, each.is_open, each.decided) for each in question(engine, instance).people] == [
        ("ann", False, "confirmed"),
        ("bob", False, "confirmed"),
        ("cat", False, ""),
    ]
    assert refused(engine, instance, lambda: decide(engine, instance, CAT)) == "already_decided"


@pytest.mark.row("E-670")
def test_no_other_word_is_a_decision(place: Place) -> None:
    """The words that there are stand in the sentence; an abstention is one where it is offered."""
    engine = place.engine()
    instance = asked(engine, ask=THREE)
    for word in ("abstained", "maybe", "Confirmed"):
        with pytest.raises(
            RejectedError, match=f"'ok' cannot be answered by '{word}'; there are 'confirmed', 'rejected'"
        ):
            decide(engine, instance, ANN, word)
        assert refused(engine, instance, partial(decide, engine, instance, ANN, word)) == "unknown_outcome"
    none: tuple[Any, ...] = ("", 5, None)
    for word in none:
        with pytest.raises(PayloadError, match="decision"):
            decide(engine, instance, ANN, word)
    assert decisions(engine, instance) == []


@pytest.mark.row("E-676")
@pytest.mark.parametrize("asks", [{"ask": "user:fay"}, {"role": "finance"}])
def test_an_abstention_of_the_only_one_is_kept_as_such(place: Place, asks: dict[str, Any]) -> None:
    """The question is rejected because all have abstained; nobody is said to have rejected it, and a second click does nothing."""
    engine = place.engine()
    instance = asked(engine, abstain=True, **asks)
    for _ in range(2):
        decide(engine, instance, FAY, "abstained")
    assert (question(engine, instance).decision, decisions(engine, instance)) == ("rejected", [("fay", "abstained")])
    assert refused(engine, instance, lambda: decide(engine, instance, FAY, "rejected")) == "already_decided"
    answer = step(engine, instance, "ok").output
    assert isinstance(answer, dict)
    assert answer["reason"] == "all_abstained"


# -- who may decide, and how often


@pytest.mark.row("E-681", "R-079")
@pytest.mark.parametrize("is_over", [False, True], ids=["open", "closed"])
def test_a_person_decides_once(place: Place, *, is_over: bool) -> None:
    """The same again does nothing; anything else is a conflict that says who decided what and when. All of it is in the audit."""
    engine = place.engine()
    instance = asked(engine, ask=["user:ann", "user:bob"], agree="any" if is_over else "all")
    at = place.clock.now()
    decide(engine, instance, ANN, comment="fine", data={"most": 5})
    engine.advance(seconds=9)
    before = history(engine, instance)
    decide(engine, instance, ANN, data={"most": 5})
    assert history(engine, instance) == before
    for word, given in (("rejected", {"data": {"most": 5}}), ("confirmed", {"data": {"most": 6}})):
        with pytest.raises(RejectedError, match=re.escape(f"confirmed by 'ann' at {at.isoformat()}")):
            decide(engine, instance, ANN, word, **given)
        again = partial(decide, engine, instance, ANN, word, **given)
        assert refused(engine, instance, again) == "already_decided"
    assert refused(engine, instance, lambda: decide(engine, instance, EVE)) == "not_allowed"  # Strangers learn nothing.
    (event,) = history(engine, instance, "approved" if is_over else "task_decided")
    assert (event.actor, event.data["comment"], event.timestamp) == ("ann", "fine", at)
    assert "guards" not in event.data  # The ways have none.


@pytest.mark.row("E-679")
@pytest.mark.parametrize("comment", ["", " \n"])
def test_a_rejection_needs_a_reason(place: Place, comment: str) -> None:
    """An empty one is refused; with one it is taken and kept. An approval needs none."""
    engine = place.engine()
    instance = asked(engine, ask=["user:ann", "user:bob"], requires_reason=True, agree="any")
    reject = partial(decide, engine, instance, ANN, "rejected", comment=comment)
    assert refused(engine, instance, reject) == "reason_required"
    decide(engine, instance, ANN, "rejected", comment="too dear")
    assert [each.comment for each in question(engine, instance).decisions] == ["too dear"]
    decide(engine, instance, BOB)
    assert status(engine, instance) == "completed"


@pytest.mark.row("E-684", "EO-07")
def test_whoever_wants_it_does_not_approve_it(place: Place) -> None:
    """Neither as one who is asked, nor by role, nor with every right, nor in the name of another; unless it is allowed."""
    engine = place.engine()
    instance = asked(engine, ask="role:finance", self_approval=False)
    for actor in (
        person("rita", "finance"),
        Actor(id="rita", capabilities=frozenset({"*"})),
        Actor(id="rita", roles=frozenset({"finance"}), on_behalf_of="fay"),
        Actor(id="fay", roles=frozenset({"finance"}), on_behalf_of="rita"),
    ):
        assert refused(engine, instance, partial(decide, engine, instance, actor)) == "self_approval"
    assert refused(engine, instance, lambda: tasks(engine, FAY).delegate(f"{instance}:1", "rita")) == "self_approval"
    decide(engine, instance, FAY)
    assert status(engine, instance) == "completed"
    allowed = asked(engine, name="own", ask="user:rita")
    decide(engine, allowed, RITA)
    assert status(engine, allowed) == "completed"


@pytest.mark.row("E-687", "EO-07")
@pytest.mark.parametrize("option", [{"distinct_from": "first"}, {"distinct_approvers": True}, {}], ids=str)
def test_four_eyes_see_more_than_two(place: Place, option: dict[str, Any]) -> None:
    """Who has decided one step may decide another unless that is forbidden; then nobody does so in their name either."""
    engine = place.engine()
    saga = Saga("twice").human("first", role="finance").human("second", ask="role:finance", **option).build()
    engine.register(saga)
    instance = engine.acting(RITA).start(saga).id
    engine.drain()
    tasks(engine, FAY).approve(f"{instance}:1")
    engine.drain()
    if option:
        before = history(engine, instance)
        for actor in (FAY, Actor(id="sue", roles=frozenset({"finance"}), on_behalf_of="fay")):
            with pytest.raises(RejectedError, match="has decided 'first' and may not decide 'second' too") as caught:
                tasks(engine, actor).approve(f"{instance}:2")
            assert caught.value.reason == "not_distinct"
        assert history(engine, instance) == before
    tasks(engine, GUS if option else FAY).approve(f"{instance}:2")
    engine.drain()
    assert status(engine, instance) == "completed"


@pytest.mark.row("E-682")
@pytest.mark.parametrize("mended", ["granted", "added", "reassigned"])
def test_a_role_without_holders_fails_closed(place: Place, mended: str) -> None:
    """The run stands still with a reason and a remedy, operators are alerted, and nobody decides; once there is somebody it goes on."""
    stage = Stage()
    heard: list[Happening] = []
    engine = place.engine().listen(heard.append)
    engine.directory.put("ann")
    instance = asked(engine, stage, ask=ask("role:finance", pick="all"))
    shown = engine.run(instance).describe()
    assert (shown.status, shown.reason) == ("dlq", "no_approver")
    assert "nobody can decide 'ok'" in shown.error
    assert [each.id for each in engine.runs.paused(reason="no_approver")] == [instance]
    alert = InstancePaused(definition="spend", tenant="default", instance=instance, kind="saga", reason="no_approver")
    assert [each for each in heard if isinstance(each, InstancePaused)] == [alert]
    assert refused(engine, instance, lambda: decide(engine, instance, ANN)) == "not_allowed"
    match mended:
        case "granted":
            engine.directory.grant("ann", "finance")
            engine.run(instance).resume("granted")
        case "added":
            tasks(engine, OPS).add_approver(f"{instance}:1", "ann")
        case _:
            tasks(engine, OPS).reassign(f"{instance}:1", "ann")
    engine.drain()
    assert stage.calls == []
    decide(engine, instance, ANN)
    assert (status(engine, instance), stage.calls) == ("completed", ["pay"])


# -- what a decision is about


@pytest.mark.row("E-671")
def test_a_decision_is_kept_with_the_version_that_it_is_about(place: Place) -> None:
    """In its row, in the history and for the steps behind; the same decision on another version is another decision."""
    engine = place.engine()
    instance = asked(engine, ask=["user:ann", "user:bob"])
    decide(engine, instance, ANN, document_version="7")
    decide(engine, instance, ANN, document_version="7")
    other = partial(decide, engine, instance, ANN, document_version="8")
    assert refused(engine, instance, other) == "already_decided"
    decide(engine, instance, BOB)
    assert refused(engine, instance, other) == "already_decided"
    told = [(each.decided_by, each.document_version) for each in question(engine, instance).decisions]
    assert told == [("ann", "7"), ("bob", "")]
    assert tasks(engine, ANN).decided()[0].decision.document_version == "7"
    answer = step(engine, instance, "ok").output
    assert isinstance(answer, dict)
    assert [each.get("document_version") for each in answer["decisions"]] == ["7", None]
    assert [(each["on_behalf_of"], each["comment"], each["data"]) for each in answer["decisions"]] == [
        ("", "", None)
    ] * 2
    alone = asked(engine, name="alone", ask="user:ann")
    decide(engine, alone, ANN, document_version="9")
    assert [each.document_version for each in question(engine, alone).decisions] == ["9"]
    assert engine.run(alone).verify().is_sound


@pytest.mark.row("E-669")
def test_what_is_shown_is_what_is_decided(place: Place) -> None:
    """An operator who changes the data afterwards has people asked anew. The first question keeps what it showed."""
    engine = place.engine()
    given = {"price": 5, "lines": [{"of": "lamps"}]}
    instance = asked(engine, given=given, ask="user:ann", subject="Pay {price}?", shows=["price", "lines"])
    (before,) = tasks(engine, ANN).list(mine=True)
    engine.run(instance).change_data({"price": 500, "lines": []}, reason="a slip")
    engine.drain()
    assert engine.run(instance).describe().context == {"price": 500, "lines": []}
    (after,) = tasks(engine, ANN).list(mine=True)
    assert (before.data, before.subject) == (given, "Pay 5?")
    assert (after.data, after.subject) == ({"price": 500, "lines": []}, "Pay 500?")
    first, second = engine.run(instance).tasks()
    assert (first.data, second.data) == (given, {"price": 500, "lines": []})
    assert (first.status, second.status) == ("cancelled", "open")
    assert engine.run(instance).verify().is_sound


@pytest.mark.row("E-672", "EO-03")
def test_a_decision_is_used_once(place: Place) -> None:
    """It is applied when the question is answered by it, cannot be taken back then, and decides no other question."""
    engine = place.engine()
    saga = Saga("twice").human("first", ask=["user:ann", "user:bob"]).human("second", ask="user:ann").build()
    engine.register(saga)
    instance = engine.acting(RITA).start(saga).id
    engine.drain()
    decide(engine, instance, ANN)
    assert [each.is_applied for each in question(engine, instance).decisions] == [False]
    decide(engine, instance, BOB)
    assert [each.is_applied for each in question(engine, instance).decisions] == [True, True]
    taken_back = partial(tasks(engine, ANN).withdraw_decision, f"{instance}:1")
    assert refused(engine, instance, taken_back) == "not_waiting"
    assert (question(engine, instance, 2).decisions, inbox(engine, ANN)) == ([], ["second"])


@pytest.mark.row("EO-03")
def test_a_decision_is_changed_until_it_is_used(place: Place) -> None:
    """By the one who gave it; the first one stays in the history and does not count."""
    engine = place.engine()
    instance = asked(engine, ask=["user:ann", "user:bob"])
    decide(engine, instance, ANN)
    taken = partial(tasks(engine, BOB).withdraw_decision, f"{instance}:1")
    assert refused(engine, instance, taken) == "nothing_decided"
    tasks(engine, ANN).withdraw_decision(f"{instance}:1", "I misread it")
    assert inbox(engine, ANN) == ["ok"]
    decide(engine, instance, BOB)
    assert status(engine, instance) == "running"
    decide(engine, instance, ANN, "rejected")
    assert [
        (each.decided_by, each.decision, each.is_withdrawn, each.is_applied)
        for each in question(engine, instance).decisions
    ] == [("ann", "confirmed", True, False), ("bob", "confirmed", False, True), ("ann", "rejected", False, True)]
    (withdrawn,) = history(engine, instance, "task_decision_withdrawn")
    assert (withdrawn.actor, withdrawn.data["reason"]) == ("ann", "I misread it")
    assert status(engine, instance) == "aborted"


# -- what else is done to a question


@pytest.mark.row("P-121")
@pytest.mark.parametrize("rejection", ["abort", "fail"])
def test_who_may_not_cancel_ends_no_run_by_pulling_a_question_back(place: Place, rejection: Any) -> None:
    """Where no way leads on from that, it takes the right to cancel, of the requester too; where one does, it does not."""
    engine = place.engine()
    engine.register(
        Saga("s", capability="go", cancel_capability="stop")
        .human("h", role="boss", on_rejected=None if rejection == "abort" else "fail")
        .build()
    )
    engine.register(
        Saga("free", capability="go", cancel_capability="stop")
        .human("h", role="boss", on_withdrawn=lambda way: way.save_point("rest"))
        .build()
    )
    ann = engine.acting(Actor(id="ann", capabilities=frozenset({"go"})))
    boss = engine.acting(Actor(id="berta", capabilities=frozenset({"task:withdraw", "stop"})))
    instance, free = ann.start("s").id, ann.start("free").id
    engine.drain()
    with pytest.raises(ForbiddenError, match="the capability 'stop'; have the question decided"):
        ann.tasks.withdraw(f"{instance}:1", "no longer")
    assert status(engine, instance) == "running"
    ann.tasks.withdraw(f"{free}:1", "no longer")
    boss.tasks.withdraw(f"{instance}:1", "no longer")
    engine.drain()
    assert [status(engine, each) for each in (instance, free)] == [
        "aborted" if rejection == "abort" else "failed",
        "completed",
    ]


@pytest.mark.row("EO-02", "E-686")
def test_the_requester_pulls_it_back(place: Place) -> None:
    """While nothing is decided for good: the requests are withdrawn, decisions that were given do not count, and its way is taken."""
    stage = Stage()
    engine = place.engine()
    handler = stage.does("rework")
    ways: dict[str, Any] = {"on_withdrawn": lambda way: way.step("rework", handler)}
    instance = asked(engine, stage, ask=["user:ann", "user:bob"], **ways)
    task = f"{instance}:1"
    decide(engine, instance, ANN)
    assert refused(engine, instance, lambda: tasks(engine, BOB).withdraw(task)) == "not_allowed"
    tasks(engine, RITA).withdraw(task, "a typing error")
    engine.drain()
    told = question(engine, instance)
    assert (told.status, told.decision, told.decided_by, told.comment) == (
        "withdrawn",
        "withdrawn",
        "rita",
        "a typing error",
    )
    assert ([each.is_open for each in told.people], inbox(engine, BOB)) == ([False, False], [])
    assert [each.is_applied for each in told.decisions] == [False]
    assert stage.calls[0] == "rework"
    assert refused(engine, instance, lambda: decide(engine, instance, BOB)) == "already_decided"


@pytest.mark.row("EO-02")
def test_what_is_decided_is_not_pulled_back(place: Place) -> None:
    """Once the decision was used the requester comes too late."""
    engine = place.engine()
    saga = Saga("twice").human("first", ask="user:ann").human("second", ask="user:bob").build()
    engine.register(saga)
    instance = engine.acting(RITA).start(saga).id
    decide(engine, instance, ANN)
    too_late = partial(tasks(engine, RITA).withdraw, f"{instance}:1")
    with pytest.raises(RejectedError, match="it was confirmed by 'ann' at"):
        too_late()
    assert refused(engine, instance, too_late) == "not_waiting"


@pytest.mark.row("E-686")
@pytest.mark.parametrize("ending", ["cancel", "abort", "branch", "failure"])
def test_open_requests_end_with_what_they_are_for(place: Place, ending: str) -> None:
    """The run is stopped, its other branch was enough, or it fails: nobody is asked any more, and a decision changes nothing."""
    engine = place.engine()
    stage = Stage()
    stage.does("break", BROKEN)
    saga = (
        Saga("forked")
        .fork(
            "fork",
            lambda way: way.human("one", ask=["user:ann", "user:bob"]),
            lambda way: way.human("two", ask="user:eve").step("then", stage.does("break"), attempts=1),
            lambda way: way.human("three", ask="user:eve"),
        )
        .join("met", "all" if ending == "failure" else "any")
        .build()
    )
    engine.register(saga)
    instance = engine.acting(RITA).start(saga).id
    engine.drain()
    tickets = {each.name: each.step_id for each in engine.run(instance).tasks()}
    tasks(engine, ANN).approve(tickets["one"])
    match ending:
        case "cancel":
            engine.run(instance).cancel("not needed")
        case "abort":
            engine.run(instance).abort("not needed")
        case "branch":
            tasks(engine, EVE).approve(tickets["three"])
        case _:
            tasks(engine, EVE).approve(tickets["two"])
    engine.drain()
    told = engine.tasks.get(tickets["one"])
    assert (told.status, [each.is_open for each in told.people], inbox(engine, BOB)) == (
        "cancelled",
        [False, False],
        [],
    )
    assert [each.is_applied for each in told.decisions] == [False]
    before = history(engine, instance)
    with pytest.raises(RejectedError) as caught:
        tasks(engine, BOB).approve(tickets["one"])
    assert caught.value.reason in {"already_terminal", "not_waiting"}
    assert history(engine, instance) == before


@pytest.mark.row("EO-04")
def test_an_administrator_reassigns_and_a_person_delegates(place: Place) -> None:
    """Each with a reason and both names in the audit; who has handed it on is out."""
    engine = place.engine()
    instance = asked(engine, ask=["user:ann", "user:bob"])
    task = f"{instance}:1"
    assert refused(engine, instance, lambda: tasks(engine, ANN).reassign(task, "eve")) == "not_allowed"
    tasks(engine, ANN).delegate(task, "eve", reason="holidays")
    tasks(engine, OPS).reassign(task, "role:finance", who="bob", reason="left us")
    for actor in (ANN, BOB):
        assert (inbox(engine, actor), refused(engine, instance, partial(decide, engine, instance, actor))) == (
            [],
            "not_allowed",
        )
    (delegated,) = history(engine, instance, "task_delegated")
    assert (delegated.actor, delegated.data["by"], delegated.data["reason"]) == ("ann", "ann", "holidays")
    (reassigned,) = history(engine, instance, "task_reassigned")
    assert (reassigned.actor, reassigned.data["reason"]) == ("ops", "left us")
    decide(engine, instance, EVE)
    decide(engine, instance, FAY)
    assert [(each.decided_by, each.on_behalf_of) for each in question(engine, instance).decisions] == [
        ("eve", "ann"),
        ("fay", ""),
    ]


@pytest.mark.row("EO-08")
def test_people_talk_before_they_decide(place: Place) -> None:
    """A thread that both sides write; who asks back makes it `info_requested`, which is not final: it can be decided, answered or not."""
    engine = place.engine()
    instance = asked(engine, ask=["user:ann", "user:bob"])
    task = f"{instance}:1"
    assert refused(engine, instance, lambda: tasks(engine, EVE).comment(task, "me too")) == "not_allowed"
    tasks(engine, ANN).ask(task, "What is it for?")
    assert (question(engine, instance).status, inbox(engine, BOB)) == ("info_requested", ["ok"])
    tasks(engine, ANN).comment(task, "Do say")
    assert question(engine, instance).status == "info_requested"
    tasks(engine, RITA).comment(task, "Lamps for the hall, see orders/7.pdf")
    assert question(engine, instance).status == "open"
    tasks(engine, BOB).ask(task, "How many?")
    for actor in (ANN, BOB):
        decide(engine, instance, actor)
    told = question(engine, instance)
    assert [(each.actor, each.text, each.is_question) for each in told.comments] == [
        ("ann", "What is it for?", True),
        ("ann", "Do say", False),
        ("rita", "Lamps for the hall, see orders/7.pdf", False),
        ("bob", "How many?", True),
    ]
    assert (told.status, status(engine, instance)) == ("decided", "completed")


@pytest.mark.row("EO-09")
def test_an_approver_is_added_while_it_is_asked(place: Place) -> None:
    """With the capability for it, audited with the reason; the new one has to agree where all have to, and has it in the inbox."""
    engine = place.engine()
    instance = asked(engine, ask=["user:ann", "user:bob"])
    task = f"{instance}:1"
    assert refused(engine, instance, lambda: tasks(engine, ANN).add_approver(task, "eve")) == "not_allowed"
    tasks(engine, OPS).add_approver(task, "eve", reason="a second look")
    assert refused(engine, instance, lambda: tasks(engine, OPS).add_approver(task, "eve")) == "already_asked"
    (added,) = history(engine, instance, "task_approver_added")
    assert (added.actor, added.data["reason"]) == ("ops", "a second look")
    assert [(each.name, each.why) for each in question(engine, instance).people][-1] == ("eve", "added by ops")
    for actor in (ANN, BOB):
        decide(engine, instance, actor)
    assert (status(engine, instance), inbox(engine, EVE)) == ("running", ["ok"])
    decide(engine, instance, EVE)
    assert status(engine, instance) == "completed"


# -- bad input


@pytest.mark.row("EO-04")
def test_a_delegation_that_leads_nowhere_is_refused(place: Place) -> None:
    """To oneself, back, in a circle, to one who is asked, to a role, to nobody: each has its code, and changes nothing."""
    engine = place.engine()
    instance = asked(engine, ask=["user:ann", "user:bob"])
    task = f"{instance}:1"
    tasks(engine, BOB).delegate(task, "cat")
    tasks(engine, CAT).delegate(task, "eve")
    for actor, to, code in (
        (ANN, "ann", "delegation_to_self"),
        (ANN, "user:ann", "delegation_to_self"),
        (EVE, "cat", "delegation_circle"),
        (EVE, "bob", "delegation_circle"),
        (ANN, "eve", "already_asked"),
        (ANN, "role:finance", "nobody_named"),
        (ANN, " ", "nobody_named"),
        (BOB, "zoe", "not_allowed"),
    ):
        assert refused(engine, instance, partial(tasks(engine, actor).delegate, task, to)) == code


@pytest.mark.row("E-686")
@pytest.mark.parametrize("way", ["failed", "another way"])
def test_nothing_is_done_to_a_question_whose_time_is_over(place: Place, way: str) -> None:
    """Decided, claimed, handed on, commented, withdrawn: refused with a sentence, and nothing changes."""
    engine = place.engine()
    ways: dict[str, Any] = {} if way == "failed" else {"on_timeout": lambda late: late.human("late", ask="user:eve")}
    instance = asked(engine, ask=["user:ann", "user:bob"], timeout=60, **ways)
    decide(engine, instance, ANN)
    engine.advance(seconds=60)
    told = question(engine, instance)
    assert (told.status, [each.is_open for each in told.people]) == ("expired", [False, False])
    task = f"{instance}:1"
    bob, ops = tasks(engine, BOB), tasks(engine, OPS)
    calls: list[Callable[[], object]] = [
        partial(bob.approve, task),
        partial(bob.reject, task),
        partial(bob.claim, task),
        partial(bob.delegate, task, "eve"),
        partial(bob.comment, task, "hm"),
        partial(tasks(engine, ANN).withdraw_decision, task),
        partial(tasks(engine, RITA).withdraw, task),
        partial(ops.reassign, task, "eve"),
        partial(ops.add_approver, task, "eve"),
    ]
    for call in calls:
        assert refused(engine, instance, call) == "expired"


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"ask": THREE, "agree": 4}, "agree"),
        ({"ask": THREE, "agree": 0}, "agree"),
        ({"ask": THREE, "agree": "most"}, "agree"),
        ({"ask": [ask("user:ann", weight=2), "user:bob"], "agree_weight": 4}, "agree"),
        ({"ask": THREE, "agree": 2, "agree_weight": 2}, "same_option"),
        ({"ask": ["user:ann", "user:ann"]}, "asks"),
        ({"ask": "user:"}, "asks"),
        ({"ask": 5}, "asks"),
        ({"ask": "chain:large"}, "asks"),
        ({"ask": "rule:1 +"}, "bad_expression"),
        ({"ask": THREE, "distinct_from": "nothing"}, "distinct_from"),
        ({"ask": THREE, "distinct_from": "ok"}, "distinct_from"),
        ({"ask": THREE, "escalate": Escalation(60)}, "escalate"),
        ({"ask": THREE, "escalate": Escalation(60, to="role:")}, "escalate"),
        ({"ask": THREE, "escalate": Escalation(60, to="user:")}, "escalate"),
        ({"ask": THREE, "escalate": Escalation(60, to="manager")}, "escalate"),
        ({"ask": THREE, "escalate": Escalation(60, to="rule:owner")}, "escalate"),
        ({"ask": THREE, "escalate": Escalation(60, outcome="maybe")}, "escalate"),
        ({"ask": THREE, "veto": True}, "unknown_option"),
    ],
    ids=str,
)
def test_a_question_that_could_never_be_answered_is_refused(options: dict[str, Any], code: str) -> None:
    """When the saga is built, with a code and a sentence that names the step."""
    with pytest.raises(DefinitionError) as caught:
        Saga("spend").human("ok", **options).build()
    assert code in {each.code for each in caught.value.diagnostics}
    assert all("'ok'" in each.message for each in caught.value.diagnostics)
