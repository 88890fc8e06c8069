"""The policies of a contract: compiled into the graph, and asked wherever somebody does something to a document, or a step does."""

from __future__ import annotations

import msgspec
import pytest

from standfast.errors import DefinitionError
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.format import Contract, Policy
from standfast.features.documents.contract.library import ready_contract
from standfast.features.documents.contract.loading import read_contract
from standfast.features.simulation import Simulator
from standfast.graph.compiler import graph_data
from standfast.graph.document_spec import DocumentPolicy
from standfast.kernel.actor import SYSTEM, Actor
from standfast.kernel.decision import Rejection
from standfast.machine.model.commands.document_commands import CreateDocument, Mutate, RequestTransition

CLERK = Actor(id="bob", roles=frozenset({"clerk"}), capabilities=frozenset({"*"}))
BOSS = Actor(id="ann", roles=frozenset({"boss"}), capabilities=frozenset({"*"}))
SMALL = {"number": "1", "vendor_id": "V", "grand_total": 100}
LARGE = {**SMALL, "grand_total": 5_000_000}
POLICIES = [
    Policy(name="clerks handle small ones", actions=["invoice.*"], roles=["clerk"], when="entity.grand_total <= 1000"),
    Policy(name="bosses handle all", actions=["invoice.*"], roles=["boss"]),
]
BODY = """
base: {entity_type: invoice, envelope_version: 1}
slots:
  "slot:approved_to_active":
    nodes: [{id: post, type: action, action: invoice.post, run_as: RUN_AS}]
"""


def contract(policies: list[Policy]) -> Contract:
    """Invoices with policies."""
    return msgspec.structs.replace(ready_contract("invoice"), policies=policies)


def staged(policies: list[Policy] = POLICIES, run_as: str = "actor") -> Simulator:
    """A document to come."""
    body = read_body(BODY.replace("RUN_AS", run_as))
    graph = graph_of(compile_effective(generate_envelope(contract(policies)), body))
    return Simulator(graph, answers={"invoice.post": {"posting_ref": "GL-1"}})


def code(refusal: Rejection | None) -> str:
    """Why something was refused."""
    return "" if refusal is None else refusal.code


@pytest.mark.row("E-403", "EH-06", "E-887")
def test_who_may_do_what_by_the_policies_of_the_contract() -> None:
    """Creating, editing and transitions ask the policies: one that names the action must hold, by role and condition; its capability alone is not enough."""
    stage = staged()
    barred = stage.say(CreateDocument(data=LARGE), CLERK)
    assert barred is not None
    assert (barred.code, stage.document) == ("not_allowed", None)
    assert "clerks handle small ones" in barred.message
    assert "boss" in barred.message
    assert code(stage.say(CreateDocument(data=SMALL), CLERK)) == ""
    assert code(stage.say(Mutate(payload={"note": "x"}), CLERK)) == ""
    assert (
        code(stage.say(Mutate(payload={"note": "y"}), Actor(id="eve", capabilities=frozenset({"*"})))) == "not_allowed"
    )
    past = Mutate(payload={"grand_total": 2000})
    assert code(stage.say(past, CLERK)) == "not_allowed"  # It is small, and would not be.
    assert code(stage.say(past, BOSS)) == ""
    assert (
        code(stage.say(Mutate(payload={"grand_total": 100}), CLERK)) == "not_allowed"
    )  # It would be small, and is not.
    assert code(stage.say(RequestTransition(transition="submit"), CLERK)) == "not_allowed"
    assert code(stage.say(RequestTransition(transition="submit"), BOSS)) == ""


def test_a_policy_of_creating_knows_what_follows_from_the_content() -> None:
    """Defaults and computed fields are there when it is judged, and what somebody calls so does not stand for them."""
    euros = Policy(
        name="small euros", actions=["invoice.create"], when="entity.currency == 'EUR' and not entity.is_large"
    )
    assert code(staged([euros]).say(CreateDocument(data=SMALL), CLERK)) == ""
    assert code(staged([euros]).say(CreateDocument(data=LARGE), CLERK)) == "not_allowed"
    assert code(staged([euros]).say(CreateDocument(data={**SMALL, "currency": "USD"}), CLERK)) == "not_allowed"


@pytest.mark.row("EH-06")
def test_what_no_policy_names_is_a_matter_of_the_capability() -> None:
    """With policies for one action the others take their capability and nothing else; without it they are refused."""
    stage = staged([Policy(name="bosses submit", actions=["invoice.submit"], roles=["boss"])])
    eve = Actor(id="eve", capabilities=frozenset({"invoice.create"}))
    assert code(stage.say(CreateDocument(data=SMALL), eve)) == ""
    assert code(stage.say(Mutate(payload={"note": "x"}), eve)) == "not_allowed"
    assert code(stage.say(Mutate(payload={"note": "x"}), CLERK)) == ""
    assert code(stage.say(RequestTransition(transition="submit"), CLERK)) == "not_allowed"
    assert code(stage.say(RequestTransition(transition="submit"), BOSS)) == ""


@pytest.mark.row("E-403", "EH-06", "E-025")
def test_a_policy_gate_shows_the_policy_that_decided() -> None:
    """A step that acts for whoever asked is let through by the policy that holds for them, and stops where none does; a lent name is asked for no role."""
    stage = staged()
    stage.say(CreateDocument(data=LARGE), BOSS)
    for name in ("submit", "approve"):
        assert code(stage.say(RequestTransition(transition=name), BOSS)) == ""
    assert stage.document is not None
    assert (stage.document.status, stage.document.data["posting_ref"]) == ("active", "GL-1")
    (gate,) = [each for each in stage.trail if each.node == "sys:policy:usr:slot:approved_to_active:post"]
    assert (gate.outcome, gate.note) == ("ok", "by the policy 'bosses handle all'")

    only = [
        *POLICIES[1:],
        Policy(name="nobody posts large ones", actions=["invoice.post"], when="entity.grand_total < 10"),
    ]
    late = [Policy(name="bosses post", actions=["invoice.post"], roles=["boss"])]
    stage = staged(late)
    stage.say(CreateDocument(data=SMALL), CLERK)
    for name in ("submit", "approve"):
        stage.say(RequestTransition(transition=name), CLERK)
    assert (stage.state.status, stage.document is not None) == ("paused", True)
    assert "bosses post" in stage.state.error
    lent = [("system", late, "running"), ("service_account:poster", late, "running"), ("system", only[1:], "paused")]
    for name_, policies, status in lent:  # Conditions hold for lent names too.
        stage = staged(policies, run_as=name_)
        stage.say(CreateDocument(data=LARGE), CLERK)
        for name in ("submit", "approve"):
            stage.say(RequestTransition(transition=name), CLERK)
        assert stage.state.status == status


def test_a_condition_that_cannot_be_judged_does_not_hold() -> None:
    """Strict: what is missing lets nobody through, and the message says so."""
    policies = [Policy(name="by centre", actions=["invoice.submit"], when="entity.cost_center == 'A'")]
    stage = staged(policies)
    stage.say(CreateDocument(data=SMALL), SYSTEM)
    barred = stage.say(RequestTransition(transition="submit"), SYSTEM)
    assert barred is not None
    assert "cannot be judged" in barred.message or "does not hold" in barred.message
    stage.say(Mutate(payload={"cost_center": "A"}), SYSTEM)
    assert code(stage.say(RequestTransition(transition="submit"), SYSTEM)) == ""


def test_policies_are_part_of_the_graph_and_its_hash() -> None:
    """Patterns are spelt out; without policies a graph is what it was before there were any."""
    envelope = generate_envelope(contract(POLICIES))
    graph = graph_of(compile_effective(envelope))
    assert graph.document is not None
    first = graph.document.policies[0]
    assert {"create", "update", "post", "submit", "cancel"} <= set(first.actions)
    assert graph.hash != graph_of(compile_effective(generate_envelope(contract([])))).hash
    bare = graph_of(compile_effective(generate_envelope(ready_contract("invoice"))))
    document = graph_data(bare)["document"]
    assert isinstance(document, dict)
    assert "policies" not in document


def test_a_policy_about_nothing_is_refused() -> None:
    """Both the contract and the graph name what a policy is about that is not there."""
    text = msgspec.json.encode(contract([Policy(name="p", actions=["invoice.fly"])]))
    with pytest.raises(DefinitionError, match="unknown_action"):
        read_contract(text)
    assert DocumentPolicy(name="p", actions=("fly",)).when is None
