"""Real contracts, templates and their compiler, run to the end on both stores: the lanes of an invoice, its rejection, and its amendment."""

from __future__ import annotations

import pytest

from app.documents.acting import asking
from standfast import Actor, RejectedError, StepContext
from standfast.features.documents.body.templates import instantiate
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.graph.definition import Definition
from standfast.graph.values.approver_rules import Ask
from standfast.graph.values.approver_rules import Stage as ChainStage
from standfast.testing import ManualEngine
from support.engines import Place

CLERK = Actor(id="bob", capabilities=frozenset({"invoice.*"}))
FINANCE = Actor(id="fay", roles=frozenset({"finance_manager"}))
OWNER = Actor(id="otto")
GIVEN: dict[str, object] = {"number": "R-1", "vendor_id": "V-1", "grand_total": 40_000, "budget_owner_id": "otto"}


def opened(place: Place, *, is_bare: bool = False) -> ManualEngine:
    """An engine with invoices as the library has them, filled in by the template of invoice approval."""
    engine = place.engine()
    envelope = generate_envelope(ready_contract("invoice"))
    body = None if is_bare else instantiate("invoice_approval")
    effective = compile_effective(envelope, body)
    engine.register(Definition(graph=graph_of(effective)))
    engine.govern(organisation=lambda _tenant: {"trusted_vendors": ["V-1"]})

    @engine.handler("invoice.post")
    def post(context: StepContext, document: dict[str, object]) -> dict[str, object]:
        assert context.connection is not None
        return {"posting_ref": f"GL-{document['id']}"}

    return engine


def sent(engine: ManualEngine, total: int, *, vendor: str = "V-1") -> None:
    """An invoice that bob has submitted."""
    mine = asking(engine, CLERK).documents
    mine.create("invoice", {**GIVEN, "grand_total": total, "vendor_id": vendor}, id="I-1")
    mine.transition("invoice", "I-1", "submit")
    engine.drain()


def decide(engine: ManualEngine, actor: Actor, name: str, decision: str = "approved") -> None:
    """Decide the question of a node."""
    (task,) = [each for each in engine.tasks.list() if each.name.endswith(f":{name}")]
    asking(engine, actor).tasks.decide(task, decision, document_version=task.document_version, comment="because")
    engine.drain()


def templated(place: Place, name: str, kind: str = "invoice", **params: str | int) -> ManualEngine:
    """An engine with a ready contract that a template fills in."""
    engine = place.engine()
    effective = compile_effective(generate_envelope(ready_contract(kind)), instantiate(name, params))
    engine.register(Definition(graph=graph_of(effective)))
    return engine


def stood(engine: ManualEngine) -> tuple[str, object]:
    """Status and ledger entry."""
    seen = engine.documents.get("invoice", "I-1")
    return seen.status, seen.data.get("posting_ref")


@pytest.mark.row("E-742", "E-701", "E-705", "E-741")
def test_a_small_invoice_of_a_trusted_vendor_needs_nobody(place: Place) -> None:
    """The fast lane: no question is asked, and the invoice is posted and active."""
    engine = opened(place)
    sent(engine, 40_000)
    assert engine.tasks.list() == []
    assert stood(engine) == ("active", "GL-I-1")


@pytest.mark.row("E-743", "E-016", "E-407", "E-409", "E-410", "E-741", "E-922")
def test_a_large_invoice_needs_two_people_at_once(place: Place) -> None:
    """The high lane: active only after finance and the budget owner, in any order."""
    engine = opened(place)
    sent(engine, 2_000_000)
    decide(engine, OWNER, "owner")
    assert stood(engine) == ("submitted", None)
    decide(engine, FINANCE, "finance")
    assert stood(engine) == ("active", "GL-I-1")


@pytest.mark.row("E-744", "E-662", "E-922", "EH-09")
def test_other_invoices_go_through_a_chain(place: Place) -> None:
    """The middle lane: the second stage is asked only after the first has approved, both about the same version."""
    engine = opened(place)
    engine.chains.publish(
        "invoice_standard",
        [ChainStage(asks=[Ask(by="user", of="fay")]), ChainStage(asks=[Ask(by="user", of="otto")])],
    )
    sent(engine, 400_000, vendor="V-9")
    decide(engine, FINANCE, "standard")
    assert stood(engine) == ("submitted", None)
    decide(engine, OWNER, "standard")
    assert stood(engine) == ("active", "GL-I-1")


@pytest.mark.row("E-745", "E-105", "EC-02", "EC-32")
def test_a_rejected_invoice_is_submitted_again_unchanged(place: Place) -> None:
    """One of two rejects: the other's question is withdrawn, the invoice is a draft with the reason, and a second round asks both again."""
    engine = opened(place)
    sent(engine, 2_000_000)
    decide(engine, OWNER, "owner", "rejected")
    assert (stood(engine), engine.tasks.list()) == (("draft", None), [])
    audit = engine.documents.audit("invoice", "I-1")
    assert ("rejected draft", "because") in [(each.what, each.why) for each in audit]
    asking(engine, CLERK).documents.transition("invoice", "I-1", "submit")
    engine.drain()
    decide(engine, FINANCE, "finance")
    decide(engine, OWNER, "owner")
    assert stood(engine) == ("active", "GL-I-1")


@pytest.mark.row("E-746", "E-750", "E-704")
def test_an_edit_during_approval_is_approved_anew(place: Place) -> None:
    """The edit makes an amendment; what was decided about the old one counts for nothing, and the new one is approved as it is."""
    engine = opened(place)
    sent(engine, 2_000_000)
    decide(engine, FINANCE, "finance")
    mine = asking(engine, CLERK).documents
    new = mine.mutate("invoice", "I-1", {"grand_total": 3_000_000})
    assert (new.status, new.is_amendment, stood(engine)[0]) == ("amended", True, "cancelled")
    mine.transition("invoice", new.id, "submit")
    engine.drain()
    decide(engine, FINANCE, "finance")
    decide(engine, OWNER, "owner")
    assert engine.documents.get("invoice", new.id).status == "active"


@pytest.mark.row("E-705")
@pytest.mark.parametrize(("total", "asked"), [(50_000, 0), (50_001, 1)])
def test_the_fast_track_asks_one_person_above_its_threshold(place: Place, total: int, asked: int) -> None:
    """Up to the threshold nobody is asked; above it one person decides, and no other."""
    engine = templated(place, "fast_track", threshold=50_000, approver_role="boss")
    sent(engine, total)
    assert (len(engine.tasks.list()), stood(engine)[0]) == (asked, "submitted" if asked else "active")
    if asked:
        with pytest.raises(RejectedError):
            decide(engine, FINANCE, "approve")
        assert stood(engine)[0] == "submitted"
        decide(engine, Actor(id="boris", roles=frozenset({"boss"})), "approve")
        assert (engine.tasks.list(), stood(engine)[0]) == ([], "active")


@pytest.mark.row("E-702")
@pytest.mark.parametrize("order", [("owner", "finance"), ("finance", "owner")])
def test_a_purchase_order_needs_the_budget_owner_and_finance(place: Place, order: tuple[str, str]) -> None:
    """Either alone is not enough, in either order; the owner of the cost centre is asked by name, and nobody decides for another."""
    engine = templated(place, "purchase_order_approval", "purchase_order")
    mine = asking(engine, Actor(id="bob", capabilities=frozenset({"purchase_order.*"}))).documents
    given = {"number": "P-1", "vendor_id": "V-1", "grand_total": 900, "cost_center": "K", "budget_owner_id": "otto"}
    mine.create("purchase_order", given, id="P-1")
    mine.transition("purchase_order", "P-1", "submit")
    engine.drain()
    people = {"owner": OWNER, "finance": FINANCE}
    for name in order:
        assert engine.documents.get("purchase_order", "P-1").status == "submitted"
        with pytest.raises(RejectedError):
            decide(engine, Actor(id="eve"), name)
        decide(engine, people[name], name)
    assert engine.documents.get("purchase_order", "P-1").status == "ordered"


@pytest.mark.row("E-704")
def test_the_amendment_loop_asks_a_reviewer_and_then_the_approver_again(place: Place) -> None:
    """An edit during the approval makes an amendment: a reviewer looks at it, and the approver decides on it as it is; what was approved before counts for nothing."""
    engine = templated(place, "amendment_loop")
    reviewer, approver = (Actor(id=name, roles=frozenset({name})) for name in ("reviewer", "approver"))
    sent(engine, 500)
    (old,) = engine.tasks.list()
    mine = asking(engine, CLERK).documents
    new = mine.mutate("invoice", "I-1", {"grand_total": 900})
    assert (new.status, new.amended_from, stood(engine)[0]) == ("amended", "I-1", "cancelled")
    with pytest.raises(RejectedError):
        asking(engine, approver).tasks.decide(old, "approved", document_version=old.document_version)
    mine.transition("invoice", new.id, "submit")
    engine.drain()
    assert (mine.get("invoice", new.id).status, len(engine.tasks.list())) == ("amended", 1)
    decide(engine, reviewer, "review")
    assert mine.get("invoice", new.id).status == "submitted"
    (task,) = engine.tasks.list()
    assert (task.key, task.document_version) == (new.id, "1")
    decide(engine, approver, "approve")
    assert (mine.get("invoice", new.id).status, stood(engine)[0]) == ("active", "cancelled")


@pytest.mark.row("E-110", "E-013")
def test_a_contract_alone_is_a_workflow(place: Place) -> None:
    """Without anything from the organisation a document rests in each state until somebody asks for the next."""
    engine = opened(place, is_bare=True)
    mine = asking(engine, CLERK).documents
    mine.create("invoice", GIVEN, id="I-1")
    assert mine.transition("invoice", "I-1", "submit").status == "submitted"
    assert mine.transition("invoice", "I-1", "approve").status == "active"
    assert mine.transition("invoice", "I-1", "cancel").status == "cancelled"
