"""Whose right it takes to undo: what undoes a step is asked for when the step acts, and never again."""

from __future__ import annotations

import pytest

from app.documents.walls import ANN, CONTRACT, FIN, GIVEN, OPERATOR, PUBLISHER, acting, decide, patch
from standfast import Actor
from standfast.testing import ManualEngine
from support.engines import Place

NOTE = """
entity_type: note
version: 1
fields: {text: {type: string}}
lifecycle:
  version: 1
  initial: open
  terminal: [closed]
  states: {open: {window: editable}, closed: {window: locked}}
  transitions: [{name: close, from: [open], to: closed}]
slots: []
actions:
  - {name: note.create, creates: true}
  - {name: note.update}
  - {name: note.free, handler: note.free}
policies:
  - {name: stock, actions: [note.update], roles: [stock]}
  - {name: freeing, actions: [note.free], roles: [%s]}
"""
OWN = """policies:
  - {name: reserving, actions: [invoice.reserve], roles: [stock]}
  - {name: releasing, actions: [invoice.release], roles: [%s]}
"""
ELSEWHERE = patch(
    "before",
    "{id: set, type: action, action: note.update, target: '\"N-1\"', payload: {text: '\"taken\"'}, undo: note.free}",
)
ASKED = patch("asking", "{id: a, type: approval, approvers: [{user: fin}]}")
HERE = patch("before", "{id: set, type: action, action: invoice.reserve, undo: invoice.release}")


def opened(place: Place, early: str, *, freeing: str) -> ManualEngine:
    """Invoices that take something before they are submitted, and give it back when they are rejected; ann works in the stock."""
    engine = place.engine()
    own = acting(engine, PUBLISHER)
    own.contracts.publish(NOTE % freeing)
    own.contracts.publish(CONTRACT % {"before": ", on_reject: compensate"} + OWN % freeing)
    own.bodies.publish(
        own.bodies.save("base: {entity_type: invoice, envelope_version: 1}\nslots:\n" + early + ASKED).id
    )
    own.directory.put("ann")
    own.directory.grant("ann", "stock")

    @engine.handler("note.free")
    def free() -> dict[str, object]:
        return {"text": "free"}

    @engine.handler("invoice.reserve")
    def reserve() -> dict[str, object]:
        return {"memo": "taken"}

    @engine.handler("invoice.release")
    def release() -> dict[str, object]:
        return {"memo": "free"}

    acting(engine, PUBLISHER).documents.create("note", {"text": "new"}, id="N-1")
    acting(engine, ANN).documents.create("invoice", GIVEN, id="I-1")
    acting(engine, ANN).documents.transition("invoice", "I-1", "submit")
    engine.drain()
    return engine


def text(engine: ManualEngine, early: str) -> object:
    """What was taken, or given back."""
    calls = acting(engine, PUBLISHER).documents
    return calls.get("invoice", "I-1").data.get("memo") if early == HERE else calls.get("note", "N-1").data["text"]


@pytest.mark.row("E-555", "E-572")
@pytest.mark.parametrize("early", [HERE, ELSEWHERE])
@pytest.mark.parametrize("left", ["revoked", "deactivated"])
def test_what_was_done_is_undone_for_those_too_who_lost_the_right(place: Place, early: str, left: str) -> None:
    """Nobody's right is asked for when a step is undone, also where it was done to another document; the audit names for whom."""
    engine = opened(place, early, freeing="stock")
    assert text(engine, early) == "taken"
    directory = acting(engine, PUBLISHER).directory
    if left == "revoked":
        directory.revoke("ann", "stock")
    else:
        directory.deactivate("ann")
    decide(engine, "a", FIN, "rejected")
    assert text(engine, early) == "free"
    assert acting(engine, OPERATOR).dead_letters.list() == []
    if early == ELSEWHERE:
        line = acting(engine, PUBLISHER).documents.audit("note", "N-1")[-1]
        assert (line.who, line.whom, line.what) == ("system", "ann", "free")


@pytest.mark.row("E-403", "E-555")
@pytest.mark.parametrize("early", [HERE, ELSEWHERE])
def test_nobody_reaches_an_action_by_naming_it_as_an_undo(place: Place, early: str) -> None:
    """A step whose undo its actor may not do is not done: else a rejection would do what nobody who is there may do."""
    engine = opened(place, early, freeing="boss")
    view = acting(engine, OPERATOR).documents.get("invoice", "I-1")
    assert (view.status, view.run_status, view.run_reason) == ("draft", "paused", "step_failed")
    assert text(engine, early) in {None, "new"}
    assert "role boss" in acting(engine, OPERATOR).run(view.instance).why().words
    boss = Actor(id="mia", roles=frozenset({"boss", "stock"}))
    acting(engine, PUBLISHER).directory.put("mia")
    for role in ("boss", "stock"):
        acting(engine, PUBLISHER).directory.grant("mia", role)
    if early == HERE:
        acting(engine, boss).documents.transition("invoice", "I-1", "submit")
    else:
        acting(engine, PUBLISHER).directory.grant("ann", "boss")
        acting(engine, OPERATOR).run(view.instance).retry(
            acting(engine, OPERATOR).run(view.instance).steps()[-1], reason="she may now"
        )
    engine.drain()
    assert (acting(engine, OPERATOR).documents.get("invoice", "I-1").status, text(engine, early)) == (
        "submitted",
        "taken",
    )


@pytest.mark.row("E-576")
def test_roles_of_the_directory_count_for_handlers_on_other_documents(place: Place) -> None:
    """An action with a handler is judged before its handler is called, by the roles that its actor has now, on another document too."""
    step = "{id: set, type: action, action: note.free, target: '\"N-1\"'}"
    engine = opened(place, patch("before", step), freeing="stock")
    assert acting(engine, PUBLISHER).documents.get("note", "N-1").data == {"text": "free"}


@pytest.mark.row("E-555")
def test_an_undo_that_there_is_not_is_told_when_the_step_acts(place: Place) -> None:
    """Nothing is done that could never be taken back as its body says."""
    engine = opened(place, ELSEWHERE.replace("undo: note.free", "undo: note.frees"), freeing="stock")
    view = acting(engine, OPERATOR).documents.get("invoice", "I-1")
    assert (view.status, view.run_reason, text(engine, ELSEWHERE)) == ("draft", "step_failed", "new")
    assert "'frees' cannot be done" in acting(engine, OPERATOR).run(view.instance).why().words
