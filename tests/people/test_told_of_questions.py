"""Only people who may decide a question are told of it and reminded of it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from app.test_four_eyes_who_acted import task_of, who
from standfast import Actor, Escalation, NotFoundError, Notice, Saga, ask
from standfast.testing import ManualEngine
from support.engines import Place

HOUR = timedelta(hours=1)
RITA, OLGA = who("rita"), who("olga")
"""Both have the role `fin`."""
FOR_RITA = who("assi", on_behalf_of="rita")
OWN = {"role": "fin", "self_approval": False}
"""A question that the requester may not decide."""


def told(engine: ManualEngine, *readers: Actor) -> list[list[str]]:
    """What each of them finds in their lists, oldest first."""
    return [[each.subject for each in reversed(engine.acting(actor).notifications.mine())] for actor in readers]


def waiting(engine: ManualEngine, *questions: Mapping[str, Any], requester: str = "rita") -> Any:
    """A run of Rita, or of somebody else, that waits at the first of these questions."""
    saga = Saga("pay")
    for place, each in enumerate(questions):
        saga = saga.human(("check", "sign")[place], subject="S", **each)
    run = engine.register(saga.build()).acting(requester).start("pay")
    engine.drain()
    return run


ADDED: dict[str, tuple[dict[str, Any], list[str]]] = {
    "opened": ({"notify": "in_app"}, ["S"]),
    "reminded": ({"remind": HOUR}, ["Reminder: S"]),
    "escalated": ({"role": "boss", "escalate": Escalation(HOUR, to="role:fin")}, ["Escalated: S"]),
    "escalated by name": ({"role": "boss", "escalate": Escalation(HOUR, to="user:rita")}, []),
}


@pytest.mark.row("E-684")
@pytest.mark.parametrize("occasion", ADDED)
def test_the_requester_is_not_told_of_what_they_may_not_decide(place: Place, occasion: str) -> None:
    """Neither by a role, nor by name, nor whoever acts for them; others with the role are told, and the requester too where they may decide."""
    options, subjects = ADDED[occasion]
    engine = place.engine()
    waiting(engine, {**OWN, **options})
    engine.advance(hours=2)
    assert told(engine, RITA, FOR_RITA, OLGA) == [[], [], subjects]
    assert [engine.acting(each).notifications.count_unread() for each in (RITA, FOR_RITA, OLGA)] == [
        0,
        0,
        len(subjects),
    ]


@pytest.mark.parametrize("occasion", ADDED)
def test_the_requester_is_told_of_what_they_may_decide(place: Place, occasion: str) -> None:
    """Without `self_approval=False` the requester is told as everybody with the role is."""
    options, subjects = ADDED[occasion]
    engine = place.engine()
    waiting(engine, {**OWN, **options, "self_approval": True})
    engine.advance(hours=2)
    assert told(engine, RITA, OLGA) == [subjects or ["Escalated: S"], subjects]


def test_whoever_decided_before_is_not_told_of_what_another_is_to_decide(place: Place) -> None:
    """`distinct_from` keeps the decider of the first question out of the notices of the second one."""
    engine = place.engine()
    run = waiting(
        engine, {"role": "fin"}, {"role": "fin", "distinct_from": "check", "notify": "in_app", "remind": HOUR}
    )
    engine.acting(RITA).tasks.approve(task_of(engine, run.id, "check"))
    engine.advance(hours=2)
    assert told(engine, RITA, OLGA) == [[], ["S", "Reminder: S"]]


def test_whoever_has_decided_is_not_reminded_of_the_same_question(place: Place) -> None:
    """Where several of a role have to agree, one who has decided counts once, and only the others are reminded."""
    engine = place.engine()
    run = waiting(engine, {"ask": ["role:fin", "role:fin2"], "agree": "all", "remind": HOUR})
    both = Actor(id="rita", roles=frozenset({"fin", "fin2"}))
    engine.acting(both).tasks.approve(task_of(engine, run.id, "check"))
    engine.advance(hours=2)
    assert told(engine, both, Actor(id="olga", roles=frozenset({"fin2"}))) == [[], ["Reminder: S"]]


def test_a_role_that_a_question_is_handed_to_is_told_without_the_requester(place: Place) -> None:
    """Reassigning to a role that the requester has tells the others of that role."""
    engine = place.engine()
    run = waiting(engine, {**OWN, "role": "boss", "notify": "in_app"})
    boss = Actor(id="bo", roles=frozenset({"boss"}), capabilities=frozenset({"task:reassign"}))
    engine.acting(boss).tasks.reassign(task_of(engine, run.id, "check"), "role:fin", reason="theirs")
    engine.drain()
    assert told(engine, RITA, OLGA) == [[], ["S"]]


def test_what_a_reader_is_not_told_cannot_be_marked_as_read(place: Place) -> None:
    """For those kept out the notice of the role is not there: they can neither name it nor read everything past it."""
    engine = place.engine()
    waiting(engine, {**OWN, "notify": "in_app"})
    (notice,) = engine.acting(OLGA).notifications.mine(unread=True)
    for actor in (RITA, FOR_RITA):
        with pytest.raises(NotFoundError):
            engine.acting(actor).notifications.mark_read(notice)
        assert engine.acting(actor).notifications.mine(unread=True) == []
        assert engine.acting(actor).notifications.mark_all_read() == 0
    engine.acting(OLGA).notifications.mark_read(notice)
    assert engine.acting(OLGA).notifications.mine(unread=True) == []


def test_addresses_of_a_role_leave_out_who_may_not_decide(place: Place) -> None:
    """Other channels get the addresses of those who may decide, and the names of those who may not."""
    engine, sent = place.engine(), list[Notice]()
    for name in ("rita", "olga"):
        engine.directory.put(name, email=f"{name}@example.com")
        engine.directory.grant(name, "fin")
    engine.channel("post", sent.append)
    waiting(engine, {**OWN, "notify": "post", "remind": HOUR})
    engine.advance(hours=2)
    assert [(each.subject, each.addresses, each.kept_out) for each in sent] == [
        ("S", ("olga@example.com",), ("rita",)),
        ("Reminder: S", ("olga@example.com",), ("rita",)),
    ]


def test_a_role_that_nobody_else_has_is_not_written_to(place: Place) -> None:
    """If the requester is the only one whose address is known, nothing is sent."""
    engine, sent = place.engine(), list[Notice]()
    engine.directory.put("rita", email="rita@example.com")
    engine.directory.grant("rita", "fin")
    engine.channel("post", sent.append)
    waiting(
        engine,
        {"ask": ["role:fin", "user:olga"], "agree": "any", "self_approval": False, "remind": HOUR, "notify": "post"},
    )
    engine.advance(hours=2)
    assert {each.to for each in sent} == {"olga"}


def _lost_by(engine: ManualEngine, how: str) -> None:
    """Ann cannot decide any more what she was asked as a picked holder, or what she handed on to Dora."""
    if how == "the role of the giver":
        engine.acting("ann").tasks.delegate(engine.tasks.list()[0], "dora")
        engine.drain()
    engine.directory.revoke("ann", "fin")


@pytest.mark.row("E-684")
@pytest.mark.parametrize(("how", "lost"), [("their role", "ann"), ("the role of the giver", "dora")])
def test_whoever_lost_the_right_is_not_reminded(place: Place, how: str, lost: str) -> None:
    """Neither a holder who was picked and lost the role, nor somebody to whom such a holder has handed the question on."""
    engine, sent = place.engine(), list[str]()
    engine.channel("sms", lambda notice: sent.append(notice.to))
    for name in ("ann", "bob", "dora"):
        engine.directory.put(name)
    for name in ("ann", "bob"):
        engine.directory.grant(name, "fin")
    waiting(engine, {"ask": ask("role:fin", pick="all"), "agree": 1, "remind_every": HOUR, "notify": "sms"})
    _lost_by(engine, how)
    sent.clear()
    engine.advance(hours=3, minutes=1)
    assert sorted(set(sent)) == ["bob"]
    engine.directory.grant("ann", "fin")
    sent.clear()
    engine.advance(hours=1)
    assert sorted(set(sent)) == sorted({"bob", lost})


@pytest.mark.row("E-684")
def test_a_notice_that_was_held_up_is_not_sent_when_it_is_vain(place: Place) -> None:
    """The channel was down: who lost the role meanwhile is not told, and once the question is decided nobody is."""
    engine, sent, is_down = place.engine(), list[tuple[str, str]](), [True]

    def send(notice: Notice) -> None:
        if is_down[0]:
            raise ConnectionError
        sent.append((notice.to, notice.subject))

    engine.channel("sms", send)
    for name in ("ann", "bob"):
        engine.directory.put(name)
        engine.directory.grant(name, "fin")
    saga = Saga("pay").human("q", subject="{n}", ask=ask("role:fin", pick="all"), agree=1, notify="sms").build()
    engine.register(saga)
    runs = [engine.run(engine.start(saga, {"n": n}).id) for n in (1, 2)]
    engine.drain()
    engine.directory.revoke("ann", "fin")
    engine.acting("bob").tasks.approve(runs[0].tasks()[0])
    is_down[0] = False
    engine.advance(minutes=20)
    assert sent == [("bob", "2")]
