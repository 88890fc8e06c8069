"""Whoever amends a document must be allowed to, whether another document takes its place or it is the same one again."""

from __future__ import annotations

import pytest

from app.documents.bills import APPROVED, CONTRACT, approve, by, created, publish, submitted
from standfast import Actor, ForbiddenError
from standfast.testing import ManualEngine
from support.engines import Place

RULED = """
  - {name: bill.amend, permission: bill.amend}
  - {name: bill.note}
policies: [{name: small, actions: [bill.amend], roles: [boss], when: entity.total < 100}]
"""
EDITOR = Actor(id="bob", roles=frozenset({"boss"}), capabilities=frozenset({"bill.update"}))
CLERK = Actor(id="bob", capabilities=frozenset({"bill.update", "bill.amend"}))
BOSS = Actor(id="mia", roles=frozenset({"boss"}), capabilities=frozenset({"bill.update", "bill.amend"}))


def opened(place: Place, amendment: str, status: str) -> ManualEngine:
    """A bill that is submitted or active, of a contract that says who amends bills."""
    contract = CONTRACT.replace("  - {name: bill.update}\n", "  - {name: bill.update}" + RULED)
    engine = publish(place.engine(), APPROVED, f"{contract}amendment: {amendment}\n")
    submitted(engine)
    if status == "active":
        approve(engine)
    return engine


@pytest.mark.row("E-239", "E-576")
@pytest.mark.parametrize("amendment", ["new_row", "in_place"])
@pytest.mark.parametrize("status", ["submitted", "active"])
@pytest.mark.parametrize("actor", [EDITOR, CLERK])
def test_an_amendment_by_name_asks_for_the_right_to_amend(
    place: Place, amendment: str, status: str, actor: Actor
) -> None:
    """The permission of `amend` and its policies hold for both kinds of amendment."""
    engine = opened(place, amendment, status)
    with pytest.raises(ForbiddenError, match="amend"):
        by(engine, actor).documents.amend("bill", "B-1", {"total": 7})
    assert (engine.documents.get("bill", "B-1").status, engine.documents.get("bill", "B-1").version) == (status, 1)
    with pytest.raises(ForbiddenError, match="condition of 'small'"):
        by(engine, BOSS).documents.amend("bill", "B-1", {"total": 700})
    assert by(engine, BOSS).documents.amend("bill", "B-1", {"total": 7}).status == "amended"


@pytest.mark.row("E-225", "E-239")
@pytest.mark.parametrize("amendment", ["new_row", "in_place"])
@pytest.mark.parametrize("action", ["update", "note"])
def test_an_edit_that_becomes_an_amendment_asks_for_the_right_to_amend(
    place: Place, amendment: str, action: str
) -> None:
    """An edit, by whatever action, is an amendment for those alone who may amend; `check_edit` says the same."""
    engine = opened(place, amendment, "submitted")
    calls = by(engine, CLERK).documents
    with pytest.raises(ForbiddenError, match="amend"):
        calls.mutate("bill", "B-1", {"total": 7}, action=action)
    assert not calls.check_edit("bill", "B-1", {"total": 7}).is_allowed
    assert by(engine, BOSS).documents.mutate("bill", "B-1", {"total": 7}, action=action).status == "amended"


@pytest.mark.row("E-239")
def test_what_is_told_of_an_edit_is_an_amendment_for_those_who_may_amend(place: Place) -> None:
    """A change in another system, told by somebody who may not amend, is drift: nothing is amended, and the document is held."""
    engine = opened(place, "in_place", "submitted")
    by(engine, CLERK).documents.notify_mutation("bill", "B-1", {"total": 7})
    view = engine.documents.get("bill", "B-1")
    assert (view.status, view.version, view.run_status, view.run_reason) == ("submitted", 1, "paused", "drift")


@pytest.mark.row("EH-02")
def test_what_is_told_beyond_a_policy_is_drift(place: Place) -> None:
    """Whoever may edit up to a limit and has written more elsewhere tells of drift; whoever may not edit at all holds nobody's document up."""
    policy = "policies: [{name: small, actions: [bill.update], roles: [clerk], when: entity.total < 100}]\n"
    engine = publish(place.engine(), APPROVED, CONTRACT + policy)
    created(engine)
    with pytest.raises(ForbiddenError):
        by(engine, Actor(id="eve")).documents.notify_mutation("bill", "B-1", {"total": 500})
    assert engine.documents.get("bill", "B-1").run_status == "running"
    by(engine, Actor(id="cleo", roles=frozenset({"clerk"}))).documents.notify_mutation("bill", "B-1", {"total": 500})
    view = engine.documents.get("bill", "B-1")
    assert (view.data["total"], view.run_status, view.run_reason) == (5, "paused", "drift")
