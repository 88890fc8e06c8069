"""Calls that are made again with their key: the same answer, and nothing is done twice."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.documents.acting import BOB, EVE, GIVEN, active, asking, opened, submitted
from standfast import Actor, PayloadError
from standfast.errors import ReusedIdError
from standfast.graph.model import DocumentRule
from support.engines import Place
from support.envelopes import when


@pytest.mark.row("E-235", "E-068")
def test_an_amendment_with_a_key_is_made_once(place: Place) -> None:
    """By name or by an edit: the same key gives the same new document, another content under it is refused, and nothing is left behind."""
    engine = opened(place)
    mine = asking(engine, BOB).documents
    active(engine, "B")
    submitted(engine, "A")
    forced = [mine.mutate("invoice", "A", {"total": 900}, idempotency_key="k") for _ in range(3)]
    named = [mine.amend("invoice", "B", {"total": 900}, idempotency_key="k") for _ in range(3)]
    for made in (forced, named):
        assert {(each.id, each.version, each.is_amendment) for each in made} == {(made[0].id, 1, True)}
    assert len(engine.documents.list("invoice").items) == 4
    others: list[Callable[[], object]] = [
        lambda: mine.amend("invoice", "B", {"total": 1}, idempotency_key="k"),
        lambda: mine.amend("invoice", "B", {"total": 900}, new_id="C", idempotency_key="k"),
        lambda: mine.mutate("invoice", "A", {"total": 1}, idempotency_key="k"),
    ]
    for other in others:
        with pytest.raises(ReusedIdError):
            other()
    with pytest.raises(PayloadError):
        mine.amend("invoice", "B", {"total": 1}, idempotency_key="k" * 5000)
    mine.mutate("invoice", forced[0].id, {"total": 950})
    assert mine.mutate("invoice", "A", {"total": 900}, idempotency_key="k").version == 2
    assert len(engine.documents.list("invoice").items) == 4


def test_an_amendment_in_place_with_a_key_is_one_version(place: Place) -> None:
    """The second call finds what the first one did."""
    engine = opened(place, amendment="in_place")
    active(engine)
    mine = asking(engine, BOB).documents
    assert {mine.amend("invoice", "INV-1", {"total": 900}, idempotency_key="k").version for _ in range(2)} == {3}


@pytest.mark.row("ED-19")
def test_a_document_without_an_id_is_made_once_for_a_key(place: Place) -> None:
    """Its id follows from the key, and is another one for another type, tenant or key."""
    engine = opened(place)
    mine, theirs = asking(engine, BOB).documents, asking(engine, BOB, tenant="other").documents
    made = {mine.create("invoice", GIVEN, idempotency_key="k").id for _ in range(2)}
    made.add(theirs.create("invoice", GIVEN, idempotency_key="k").id)
    made.add(mine.create("invoice", GIVEN, idempotency_key="l").id)
    assert len(made) == 3


def test_a_repetition_is_told_by_what_the_caller_said(place: Place) -> None:
    """Rules and settings of the organisation that have changed since make no other call of it; who calls does, and is shown nothing."""
    engine = opened(place)
    mine = asking(engine, BOB).documents
    mine.create("invoice", GIVEN, id="A", idempotency_key="c")
    mine.mutate("invoice", "A", {"total": 700}, idempotency_key="m")
    cap = DocumentRule(name="cap", when=when("entity.total > 1"), reason="above what is possible")
    engine.govern(rules=lambda *_: [cap], organisation=lambda _tenant: {"limit": 1})
    mine.create("invoice", GIVEN, id="A", idempotency_key="c")
    assert mine.mutate("invoice", "A", {"total": 700}, idempotency_key="m").version == 2
    theirs = asking(engine, EVE).documents
    calls: list[Callable[[], object]] = [
        lambda: theirs.create("invoice", GIVEN, id="A", idempotency_key="c"),
        lambda: theirs.mutate("invoice", "A", {"total": 700}, idempotency_key="m"),
    ]
    for call in calls:
        with pytest.raises(ReusedIdError):
            call()


def test_an_action_with_a_key_calls_its_handler_once(place: Place) -> None:
    """Also where it would not be allowed any more when it is called again."""
    engine = opened(place)
    calls: list[str] = []

    @engine.handler("give_discount")
    def give_discount(document: dict[str, object], payload: dict[str, object]) -> dict[str, object]:
        calls.append(str(document["id"]))
        return {"total": payload["to"]}

    mine = asking(engine, Actor(id="dora", capabilities=frozenset({"invoice.*"}))).documents
    mine.create("invoice", GIVEN, id="A")
    given: dict[str, object] = {"to": 400}
    assert mine.mutate("invoice", "A", given, action="discount", idempotency_key="k").version == 2
    mine.transition("invoice", "A", "submit")
    assert mine.mutate("invoice", "A", given, action="discount", idempotency_key="k").version == 2
    assert calls == ["A"]
    with pytest.raises(ReusedIdError):
        mine.mutate("invoice", "A", {"to": 1}, action="discount", idempotency_key="k")
