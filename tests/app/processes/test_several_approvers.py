"""Steps that several people answer: each answer is kept, and each is judged when it is given."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import permutations
from typing import Any

import pytest

from app.processes.acting import ends, registered
from standfast import Actor, ForbiddenError, RejectedError, StandfastError
from standfast.features.processes.views import ProcessEvent
from standfast.kernel.ids import InstanceId
from standfast.testing import ManualEngine
from support.engines import Place

CENTS = {"type": "object", "properties": {"cents": {"type": "integer"}, "note": {"type": "string"}}}


def file(*ways: dict[str, str], people: tuple[str, ...] = ("bob", "cat"), **step: Any) -> str:
    """A process whose only question several people are asked."""
    asked: dict[str, Any] = {
        "id": "review",
        "type": "approval",
        "assignees": [{"user": each} for each in people],
        "form": CENTS,
        **step,
    }
    targets = [each["to"] for each in ways if each["to"] != "review"]
    return json.dumps(
        {
            "domain": "d",
            "workflows": [
                {
                    "id": "p",
                    "steps": [asked, *ends(*dict.fromkeys(targets))],
                    "transitions": [{"from": "review", **each} for each in ways],
                }
            ],
        }
    )


YES = {"event": "approved", "to": "granted"}
NO = {"event": "rejected", "to": "refused"}
NEITHER = {"event": "abstained", "to": "refused"}


def begun(place: Place, text: str) -> tuple[ManualEngine, InstanceId]:
    """An instance that ann has started."""
    engine = place.engine()
    registered(engine, text)
    return engine, engine.acting("ann").processes.start("p").id


def told(engine: ManualEngine, instance: InstanceId) -> list[tuple[str, str]]:
    """What happened to the question, and who did it."""
    return [(each.event, each.actor_id) for each in engine.processes.events(instance)][1:]


def entry(engine: ManualEngine, instance: InstanceId, actor: str) -> ProcessEvent:
    """What the trail tells of somebody's answer."""
    names = {"step_entered", "step_completed"}
    return next(
        each for each in engine.processes.events(instance) if each.actor_id == actor and each.event not in names
    )


@pytest.mark.row("P-007", "P-044", "P-073")
def test_every_answer_is_in_the_trail(place: Place) -> None:
    """An answer that others were asked beside is an entry with who gave it, the event, the comment and the form data."""
    engine, run = begun(place, file(YES, NO, agree="any"))
    engine.acting("bob").processes.advance(run, "rejected", {"cents": 5000}, comment="too dear")
    assert told(engine, run) == [("rejected", "bob")]
    engine.acting("cat").processes.advance(run, "approved", {"cents": 1})
    assert told(engine, run) == [("rejected", "bob"), ("step_completed", "cat"), ("approved", "cat")]
    first, last = entry(engine, run, "bob"), entry(engine, run, "cat")
    assert (first.step_id, first.comment, first.data) == ("review", "too dear", {"cents": 5000})
    assert (last.step_id, last.comment, last.data) == ("review", "", {"cents": 1})


@pytest.mark.row("P-044", "P-072")
@pytest.mark.parametrize("first", ["approved", "rejected"])
def test_the_form_data_of_all_answers_is_in_the_state(place: Place, first: str) -> None:
    """It is kept under each approver's name, from the moment of the answer, and that of the last answer that won is laid over the state."""
    engine, run = begun(place, file(YES, NO, agree="all" if first == "approved" else "any"))
    after = engine.acting("bob").processes.advance(run, first, {"cents": 5000, "note": "b"})
    assert after.state == {"_answers": {"review": {"bob": {"cents": 5000, "note": "b"}}}}
    done = engine.acting("cat").processes.advance(run, "approved", {"cents": 1})
    kept = {"review": {"bob": {"cents": 5000, "note": "b"}, "cat": {"cents": 1}}}
    assert done.state == {"approved_by": "cat", "cents": 1, "_answers": kept}
    assert engine.processes.get(run).instance.state == done.state


def test_what_came_last_is_not_what_won(place: Place) -> None:
    """Where the last answer is no vote for what they come to, the state has the last one that is, and the trail does not put the result into a person's mouth."""
    engine, run = begun(place, file(YES, NO, NEITHER, agree="all"))
    engine.acting("bob").processes.advance(run, "approved", {"cents": 7})
    done = engine.acting("cat").processes.advance(run, "abstained")
    assert (done.current_step, done.state["approved_by"], done.state["cents"]) == ("granted", "bob", 7)
    assert told(engine, run) == [
        ("approved", "bob"),
        ("abstained", "cat"),
        ("step_completed", "cat"),
        ("approved", "system"),
    ]


def test_nobody_signs_what_nobody_said(place: Place) -> None:
    """A question that is lost because all abstained was rejected by nobody in particular."""
    engine, run = begun(place, file(YES, NO, NEITHER, agree="all"))
    engine.acting("bob").processes.advance(run, "abstained")
    done = engine.acting("cat").processes.advance(run, "abstained")
    assert (done.current_step, done.state) == ("refused", {})
    assert told(engine, run)[-2:] == [("step_completed", "cat"), ("rejected", "system")]


def test_an_answer_that_was_taken_back_is_gone_from_the_state(place: Place) -> None:
    """The trail tells of both; the state has what counts."""
    engine, run = begun(place, file(YES, NO, agree="all"))
    engine.acting("bob").processes.advance(run, "approved", {"cents": 7})
    engine.acting("bob").tasks.withdraw_decision(engine.tasks.list()[0], "a slip")
    assert engine.processes.get(run).instance.state == {}
    assert told(engine, run) == [("approved", "bob"), ("answer_withdrawn", "bob")]
    assert entry(engine, run, "bob").data == {"cents": 7}
    assert engine.processes.events(run)[-1].comment == "a slip"


def test_answers_of_several_steps_stand_beside_one_another(place: Place) -> None:
    """A second question leaves what was answered to the first one, and steps behind can read all of it."""
    people = [{"user": "bob"}, {"user": "cat"}]
    asked = {"type": "approval", "assignees": people, "agree": "all", "form": CENTS}
    text = {
        "domain": "d",
        "workflows": [
            {
                "id": "p",
                "steps": [
                    {"id": "first", **asked},
                    {"id": "second", **asked},
                    *ends("dear", "cheap"),
                ],
                "transitions": [
                    {"from": "first", "event": "approved", "to": "second"},
                    {
                        "from": "second",
                        "event": "approved",
                        "to": "dear",
                        "condition": "workflow._answers.first.bob.cents > 1000",
                    },
                    {"from": "second", "event": "approved", "to": "cheap"},
                ],
            }
        ],
    }
    engine, run = begun(place, json.dumps(text))
    for step, cents in (("first", 5000), ("second", 2)):
        assert engine.processes.get(run).instance.current_step == step
        engine.acting("bob").processes.advance(run, "approved", {"cents": cents})
        done = engine.acting("cat").processes.advance(run, "approved", {"cents": 1})
    assert done.current_step == "dear"
    assert done.state["_answers"] == {
        "first": {"bob": {"cents": 5000}, "cat": {"cents": 1}},
        "second": {"bob": {"cents": 2}, "cat": {"cents": 1}},
    }


def test_one_answer_that_is_enough_is_as_it_was(place: Place) -> None:
    """Where one person is asked, or a role, the state has the form data alone."""
    engine, run = begun(place, file(YES, NO, people=("bob",)))
    done = engine.acting("bob").processes.advance(run, "approved", {"cents": 7})
    assert done.state == {"approved_by": "bob", "cents": 7}


# -- guards

LARGE = {**YES, "guard": "p:large"}
BOB, CAT, DAN = (
    Actor(id="bob"),
    Actor(id="cat", capabilities=frozenset({"p:large"})),
    Actor(id="dan", capabilities=frozenset({"p:large"})),
)


@pytest.mark.row("P-067", "P-068", "P-070")
@pytest.mark.parametrize("order", [*permutations((BOB, CAT))], ids=lambda each: each[0].id)
def test_a_guard_is_asked_of_every_approver(place: Place, order: tuple[Actor, ...]) -> None:
    """An answer by somebody who lacks it is refused at once and does not count, whoever else has answered before."""
    engine, run = begun(place, file(LARGE, NO, agree="all"))
    for who in order:
        if who is BOB:
            before = engine.processes.get(run)
            with pytest.raises(StandfastError, match=r"INVALID_TRANSITION"):
                engine.acting(who).processes.advance(run, "approved", {"cents": 1})
            assert engine.processes.get(run) == before
        else:
            engine.acting(who).processes.advance(run, "approved")
    seen = engine.processes.get(run)
    assert (seen.instance.status, seen.waiting_for) == ("active", ["bob"])
    done = engine.acting(BOB).processes.advance(run, "rejected")
    assert done.current_step == "refused"


@pytest.mark.row("P-067", "P-069")
@pytest.mark.parametrize("order", [*permutations((BOB, CAT))], ids=lambda each: each[0].id)
def test_the_way_does_not_depend_on_who_is_last(place: Place, order: tuple[Actor, ...]) -> None:
    """A guarded way is open to what several have said if all of them have its guard."""
    fast = {**YES, "guard": "p:large", "to": "fast"}
    engine, run = begun(place, file(fast, YES, NO, agree="all"))
    for who in order:
        done = engine.acting(who).processes.advance(run, "approved")
    assert done.current_step == "granted"


def test_a_guarded_way_is_taken_by_those_who_all_have_it(place: Place) -> None:
    """What others have said that does not count for the outcome does not close it."""
    fast = {**YES, "guard": "p:large", "to": "fast"}
    text = file(fast, YES, NO, people=("bob", "cat", "dan"), agree="n", least=2)
    engine, run = begun(place, text)
    engine.acting(BOB).processes.advance(run, "rejected")
    engine.acting(CAT).processes.advance(run, "approved")
    assert engine.acting(DAN).processes.advance(run, "approved").current_step == "fast"


def test_an_answer_that_leads_nowhere_is_refused_at_once(place: Place) -> None:
    """The conditions of the ways are asked of every answer, with what it brings, and not of the last one alone."""
    engine, run = begun(place, file({**YES, "condition": "input.cents > 100"}, NO, agree="all"))
    with pytest.raises(StandfastError, match=r"INVALID_TRANSITION"):
        engine.acting(BOB).processes.advance(run, "approved", {"cents": 1})
    engine.acting(BOB).processes.advance(run, "approved", {"cents": 101})
    assert engine.acting(CAT).processes.advance(run, "approved", {"cents": 102}).current_step == "granted"


# -- stand-ins


@pytest.mark.row("P-007")
def test_the_trail_names_the_stand_in_and_who_was_asked(place: Place) -> None:
    """An answer in somebody's place is by whoever gave it, on behalf of whoever was asked, and form data is kept under the latter."""
    engine, run = begun(place, file(YES, NO, agree="all"))
    dan = engine.acting(Actor(id="dan", on_behalf_of="bob"))
    dan.processes.advance(run, "approved", {"cents": 7})
    done = engine.acting("cat").processes.advance(run, "approved")
    assert done.state["_answers"] == {"review": {"bob": {"cents": 7}}}
    assert [(each.event, each.actor_id, each.on_behalf_of) for each in engine.processes.events(run)] == [
        ("step_entered", "ann", ""),
        ("approved", "dan", "bob"),
        ("step_completed", "cat", ""),
        ("approved", "cat", ""),
    ]


def test_a_stand_in_who_alone_is_asked_is_named_with_whom_they_stand_in_for(place: Place) -> None:
    """The entries of a step that one answer ends name both, and so does a cancellation."""
    engine, run = begun(place, file(YES, NO, people=("bob",)))
    dan = engine.acting(Actor(id="dan", on_behalf_of="bob"))
    dan.processes.advance(run, "approved")
    assert [(each.event, each.actor_id, each.on_behalf_of) for each in engine.processes.events(run)][1:] == [
        ("step_completed", "dan", "bob"),
        ("approved", "dan", "bob"),
    ]
    other = dan.processes.start("p").id
    dan.processes.cancel(other, "a slip")
    assert [(each.event, each.actor_id, each.on_behalf_of) for each in engine.processes.events(other)] == [
        ("step_entered", "dan", "bob"),
        ("cancelled", "dan", "bob"),
    ]


def test_whoever_was_handed_a_question_is_named_with_its_owner(place: Place) -> None:
    """A step that was delegated by hand is answered by the receiver, on behalf of whoever was asked."""
    engine, run = begun(place, file(YES, NO, people=("bob",)))
    engine.acting("bob").tasks.delegate(engine.run(run).tasks()[0], "dan")
    engine.acting("dan").processes.advance(run, "approved")
    assert [(each.event, each.actor_id, each.on_behalf_of) for each in engine.processes.events(run)][-2:] == [
        ("step_completed", "dan", "bob"),
        ("approved", "dan", "bob"),
    ]


def test_another_answer_of_the_same_person_has_a_code_of_its_own(place: Place) -> None:
    """Whoever has answered and now says something else is told so, and not that somebody else was faster."""
    engine, run = begun(place, file(YES, NO, agree="all"))
    bob = engine.acting("bob").processes
    bob.advance(run, "approved")
    assert bob.advance(run, "approved").current_step == "review"
    with pytest.raises(RejectedError, match="withdraw that decision") as refused:
        bob.advance(run, "rejected")
    assert refused.value.reason == "ALREADY_DECIDED"


def test_who_may_not_decide_because_of_what_else_they_did_is_forbidden(place: Place) -> None:
    """The requester of a process that keeps requests and approvals apart is refused as one who lacks a right."""
    engine = place.engine()
    registered(engine, file(YES, NO, people=("ann", "bob"), self_approval=False))
    run = engine.acting("ann").processes.start("p").id
    with pytest.raises(ForbiddenError) as refused:
        engine.acting("ann").processes.advance(run, "approved")
    assert refused.value.reason == "FORBIDDEN"


OLGA = Actor(id="olga", capabilities=frozenset({"execution:*"}))
BOSS = Actor(id="boss", capabilities=frozenset({"*"}))


@pytest.mark.row("P-044")
def test_a_patch_takes_the_answers_that_it_voids_out_of_the_state(place: Place) -> None:
    """What was answered to other data is read by no later step; the trail and the decisions tell that it counts no more."""
    engine, run = begun(place, file(YES, NO, agree="all"))
    engine.acting("bob").processes.advance(run, "approved", {"cents": 1_000_000})
    engine.acting(OLGA).run(run).change_data({"sum": 5}, reason="a typo")
    engine.drain()
    assert engine.processes.get(run).instance.state == {"sum": 5}
    void = next(each for each in engine.processes.events(run) if each.event == "answer_withdrawn")
    assert (void.actor_id, void.comment) == ("system", "the data was changed")
    assert told(engine, run)[:3] == [("approved", "bob"), ("data_changed", "olga"), ("answer_withdrawn", "system")]
    [old, _] = engine.run(run).tasks()
    assert [each.is_withdrawn for each in engine.tasks.get(old).decisions] == [True]
    for name in ("bob", "cat"):
        engine.acting(name).processes.advance(run, "approved")
    assert engine.processes.get(run).instance.state.get("_answers", {}) == {}
    assert engine.run(run).verify().is_sound


@pytest.mark.row("P-044")
@pytest.mark.parametrize("back", ["a loop", "a fork"])
def test_a_question_that_is_asked_again_begins_without_answers(place: Place, back: str) -> None:
    """Those of the round before are read by no step behind this one."""
    again = {"event": "rejected", "to": "review"}
    engine, run = begun(place, file(YES, again, agree="all"))
    engine.acting("bob").processes.advance(run, "approved", {"cents": 1_000_000})
    at = engine.run(run).history()[-1].sequence
    if back == "a fork":
        run = engine.acting(OLGA).run(run).fork(at, reason="again").id
        engine.drain()
    else:
        engine.acting("cat").processes.advance(run, "rejected")
    assert engine.processes.get(run).instance.state.get("_answers", {}) == {}
    for name in ("bob", "cat"):
        engine.acting(name).processes.advance(run, "approved")
    found = engine.processes.get(run).instance
    assert (found.status, found.state.get("_answers", {})) == ("completed", {})


ENDINGS: dict[str, Callable[[ManualEngine, InstanceId], object]] = {
    "its time is over": lambda engine, _: engine.advance(hours=2),
    "an operator skips it": lambda engine, run: engine.acting(OLGA).run(run).skip(1, outcome="approved", reason="late"),
    "an operator overrides it": lambda engine, run: engine.acting(OLGA).run(run).resume("late", override=True),
    "an actor with every right answers": lambda engine, run: engine.acting(BOSS).processes.advance(run, "approved"),
    "the process is cancelled": lambda engine, run: engine.acting(OLGA).processes.cancel(run),
}
"""How a question ends before all have answered."""


@pytest.mark.row("P-044", "P-072")
@pytest.mark.parametrize("ending", ENDINGS)
def test_answers_stay_in_the_state_however_their_question_ends(place: Place, ending: str) -> None:
    """What one approver has answered is kept under their name, also if the others never answer."""
    late = {"event": "timeout", "to": "late"}
    engine, run = begun(place, file(YES, NO, late, agree="all", timeout="1h"))
    engine.acting("bob").processes.advance(run, "approved", {"cents": 5})
    ENDINGS[ending](engine, run)
    engine.drain()
    found = engine.processes.get(run).instance
    assert found.status == ("cancelled" if "cancelled" in ending else "completed")
    assert found.state["_answers"] == {"review": {"bob": {"cents": 5}}}
