"""Nobody approves what is their own: what they wrote, for whomever, or asked for; and nobody is the engine because of a name."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from machine.documents import ANN, BOB, Case
from machine.hosting import OLGA
from standfast.graph.model import HumanOp
from standfast.graph.values.approver_rules import Agree, Ask
from standfast.kernel.actor import SYSTEM, Actor
from standfast.machine.model.commands import run_commands as c
from support.envelopes import APPROVE_SLOT, SUBMIT_SLOT, approval, chain, invoice, value

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
    assert case.ask("recall", MAX) == "not_allowed"
    assert case.ask("recall", MEG) == ""
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


@pytest.mark.row("E-684")
@pytest.mark.parametrize(
    ("who", "agree", "is_needed"), [((), None, True), (("carl",), "any", False), (("carl",), "all", False)]
)
def test_who_is_asked_and_writes_what_is_decided_on_is_waited_for_by_nobody(
    who: tuple[str, ...],
    agree: Agree | None,
    is_needed: bool,  # noqa: FBT001 - a parameter of the test
) -> None:
    """Their claim is gone, and if their answer is needed the run is paused until somebody else is asked in their place."""
    asked = approval("check", covers=["total"], self_approval=False)
    assert isinstance(asked.op, HumanOp)
    asks = (*asked.op.asks, *(Ask(by="user", of=each) for each in who))
    case = Case(invoice({SUBMIT_SLOT: chain(replace(asked, op=replace(asked.op, asks=asks, agree=agree)))}))
    step = case.step("check").number if case.ask("submit") == "" else 0
    assert case.code(case.tell(c.ClaimTask(step=step), ANN)) == ""
    assert (case.edit(ANN, total=7), case.at) == ("", ["check"])
    step = case.step("check").number
    assert case.decide("check", ANN) == "not_allowed"
    assert (case.host.state.status, case.host.state.reason) == (
        ("paused", "no_approver") if is_needed else ("running", "")
    )
    if is_needed:
        assert case.code(case.tell(c.ReassignTask(step=step, to="dora"), OLGA)) == ""
        assert case.host.state.status == "running"
    assert [case.decide("check", Actor(id=each)) for each in who or ("dora",)] == [""]
    assert case.document.status == "submitted"


@pytest.mark.row("E-684")
def test_who_is_asked_and_writes_what_the_question_does_not_cover_decides_it() -> None:
    """Only authors of covered fields are kept out: the claim of somebody who edits another field stays, and the run goes on."""
    case = Case(invoice({SUBMIT_SLOT: chain(approval("check", covers=["total"], self_approval=False))}))
    assert case.ask("submit") == ""
    step = case.step("check").number
    assert case.code(case.tell(c.ClaimTask(step=step), ANN)) == ""
    assert (case.edit(ANN, note="as agreed"), case.host.state.status) == ("", "running")
    assert (case.decide("check", ANN), case.document.status) == ("", "submitted")


@pytest.mark.row("E-684")
def test_an_author_of_a_covered_field_stays_one_whatever_they_write_later() -> None:
    """Fields add up over all edits, and an author of whom only the name is known counts as the author of all."""
    case = Case(
        invoice({APPROVE_SLOT: chain(approval("check", who="role:manager", covers=["total"], self_approval=False))})
    )
    assert [case.edit(MEG, total=7), case.edit(MEG, note="n"), case.edit(MAX, note="m")] == [""] * 3
    assert case.ask("submit", BOB) == ""
    assert case.document.wrote == {**case.document.wrote, "meg": ["note", "total"], "max": ["note"]}
    assert case.decide("check", MEG) == "self_approval"
    del case.document.wrote["max"]
    assert case.decide("check", MAX) == "self_approval"
    case.document.wrote["max"] = ["note"]
    assert case.decide("check", MAX) == ""


def test_an_edit_of_what_nobody_may_decide_has_it_asked_anew() -> None:
    """The question is another one then, and whoever may decide that one does: the run does not wait for an operator because of the one before."""
    rule = Ask(by="rule", of="entity.vendor", rule=value("entity.vendor"))
    asked = approval("check", covers=["total", "vendor"], self_approval=False)
    assert isinstance(asked.op, HumanOp)
    case = Case(invoice({SUBMIT_SLOT: chain(replace(asked, op=replace(asked.op, asks=(rule,))))}), vendor="bob")
    assert (case.ask("submit"), case.host.state.reason) == ("", "no_approver")
    assert (case.edit(vendor="ann"), case.host.state.status, case.at) == ("", "running", ["check"])
    assert (case.decide("check", ANN), case.document.status) == ("", "submitted")
