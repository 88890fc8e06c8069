"""Nobody approves what is their own: what they wrote, for whomever, or asked for; and nobody is the engine because of a name."""

from __future__ import annotations

import pytest

from holdfast.kernel.actor import SYSTEM, Actor
from machine.documents import BOB, Case
from support.envelopes import APPROVE_SLOT, SUBMIT_SLOT, approval, chain, invoice

MANAGERS = frozenset({"manager"})
MEG, MAX = (Actor(id=name, roles=MANAGERS) for name in ("meg", "max"))
ASKS = {APPROVE_SLOT: chain(approval("manager", who="role:manager", self_approval=False))}


@pytest.mark.row("E-684")
def test_nobody_approves_what_they_wrote_themselves() -> None:
    """Who edited somebody else's draft has written what is approved."""
    case = Case(invoice(ASKS))
    assert case.edit(MEG, total=999_999) == ""
    assert case.ask("submit", BOB) == ""
    assert case.decide("manager", MEG) == "self_approval"
    assert case.decide("manager", MAX) == ""
    assert (case.document.status, case.document.hands) == ("active", ["bob", "meg"])


@pytest.mark.row("E-684")
def test_nobody_approves_what_they_asked_for() -> None:
    """Who submits somebody else's draft wants it; another request is another one's matter."""
    case = Case(invoice(ASKS))
    assert case.ask("submit", MEG) == ""
    assert case.decide("manager", MEG) == "self_approval"
    assert case.ask("recall", MAX) == ""
    assert case.ask("submit", BOB) == ""
    assert case.decide("manager", MEG) == ""


@pytest.mark.row("E-684")
def test_nobody_approves_what_they_wrote_for_another() -> None:
    """Neither whoever acted nor whoever they acted for, in whose name ever they decide."""
    case = Case(invoice(ASKS))
    for_ann = Actor(id="meg", roles=MANAGERS, on_behalf_of="ann")
    assert case.edit(for_ann, total=999_999) == ""
    assert case.ask("submit", BOB) == ""
    assert case.decide("manager", MEG) == "self_approval"
    assert case.decide("manager", Actor(id="meg", roles=MANAGERS, on_behalf_of="max")) == "self_approval"
    assert case.decide("manager", Actor(id="ann", roles=MANAGERS)) == "self_approval"
    assert case.decide("manager", MAX) == ""


@pytest.mark.row("E-684")
def test_what_was_allowed_stays_allowed() -> None:
    """Where the contract lets whoever asks approve, those who wrote may, too."""
    case = Case(invoice({SUBMIT_SLOT: chain(approval("own", who="user:bob"))}))
    assert case.ask("submit", BOB) == ""
    assert case.decide("own", BOB) == ""


@pytest.mark.row("E-573")
@pytest.mark.parametrize(
    ("actor", "kind"), [(Actor(id="system"), "user"), (Actor(id="bot", kind="service"), "service"), (SYSTEM, "system")]
)
def test_a_name_makes_nobody_the_engine(actor: Actor, kind: str) -> None:
    """Steps act in the name of whoever asked with what they could do then; somebody who is called `system` is somebody."""
    case = Case(invoice(ASKS))
    assert case.ask("submit", actor) == ""
    assert case.document.intent is not None
    acts = case.document.intent.actor
    assert (acts.id, acts.kind, acts.capabilities) == (actor.id, kind, actor.capabilities)
