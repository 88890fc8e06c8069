"""Templates and exports: what comes with the package compiles as it is, and what is exported reads back as what it was."""

from __future__ import annotations

import json

import msgspec
import pytest

from authoring.document.examples import APPROVE, SUBMIT, ask, body, contract, patch
from standfast import DefinitionError
from standfast.errors import NotFoundError
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.body.format import export_yaml
from standfast.features.documents.body.templates import instantiate, read_template, template_names
from standfast.features.documents.compiler.artifact import Effective
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import contract_names, ready_contract
from standfast.features.documents.contract.loading import read_contract


def compiled(name: str, entity_type: str = "", **params: str | int) -> Effective:
    """The workflow that a template gives."""
    made = instantiate(name, params, entity_type=entity_type)
    return compile_effective(generate_envelope(ready_contract(made.base.entity_type)), made)


@pytest.mark.row("E-701", "E-702", "E-703", "E-704", "E-705", "E-938")
@pytest.mark.parametrize("name", template_names())
def test_every_template_compiles_as_it_is(name: str) -> None:
    """With its own parameters, for the type that it is written for."""
    assert compiled(name).gates.is_valid
    assert read_template(name).template == name


def test_the_templates_are_those_of_the_specification() -> None:
    """Five of them; another name is answered with the nearest."""
    assert template_names() == (
        "amendment_loop",
        "fast_track",
        "invoice_approval",
        "purchase_order_approval",
        "return_credit_note",
    )
    with pytest.raises(NotFoundError, match="did you mean 'fast_track'"):
        instantiate("fast_trak")


@pytest.mark.row("E-701")
def test_invoices_have_three_lanes() -> None:
    """By thresholds: nobody, two people at once, or a chain; then the posting."""
    made = compiled("invoice_approval", small=100, large=200)
    asked = {
        str((made.edges_by_id[each].when or {}).get("source"))
        for each in made.adjacency["sys:slot:submitted_to_approved:in"]
    }
    assert asked == {
        "entity.grand_total <= 100 && entity.vendor_id in org.trusted_vendors",
        "entity.grand_total > 200",
        "None",
    }
    assert [(each.tokens, each.mode) for each in made.joins.values()] == [(2, "all")]
    assert "sys:policy:usr:slot:approved_to_active:post" in made.nodes_by_id


@pytest.mark.row("E-702")
def test_purchase_orders_need_both() -> None:
    """Budget owner and finance manager meet at a join of all."""
    made = compiled("purchase_order_approval", finance_role="cfo")
    assert [(each.tokens, each.mode) for each in made.joins.values()] == [(2, "all")]
    assert made.nodes_by_id["usr:slot:submitted_to_approved:finance"].config["approvers"] == [{"role": "cfo"}]


@pytest.mark.row("E-703")
def test_a_credit_note_without_its_invoice_is_refused_before_it_is_submitted() -> None:
    """A rule stands before the gate, and its refusal leaves the slot."""
    made = compiled("return_credit_note")
    rule = made.nodes_by_id[f"usr:{SUBMIT}:reference"]
    assert rule.config["rules"] == [
        {
            "name": "original invoice",
            "effect": "require_field",
            "field": "original_invoice_id",
            "reason": "Name the invoice that this is about.",
        }
    ]
    refused = [edge for edge in made.edges_by_id.values() if edge.source == rule.id and edge.on == "blocked"]
    assert [edge.target for edge in refused] == ["sys:slot:draft_to_submit:out"]


@pytest.mark.row("E-705")
def test_the_fast_track_asks_nobody_below_its_threshold() -> None:
    """One way leads past the approval."""
    made = compiled("fast_track", threshold=777)
    first = made.edges_by_id[made.adjacency["sys:slot:submitted_to_approved:in"][0]]
    assert (first.target, (first.when or {})["source"]) == (
        "sys:slot:submitted_to_approved:out",
        "entity.grand_total <= 777",
    )


@pytest.mark.row("E-706", "E-889")
def test_a_template_is_taken_as_often_as_one_likes() -> None:
    """Each time it is a draft of its own, for any type that has its slots."""
    one, other = instantiate("fast_track", {"approver_role": "a"}), instantiate("fast_track", {"approver_role": "b"})
    assert one != other
    assert instantiate("fast_track", {"approver_role": "a"}) == one
    assert compiled("fast_track", "credit_note").entity_type == "credit_note"


@pytest.mark.parametrize(
    ("params", "code"),
    [
        ({"treshold": 5}, "unknown_parameter"),
        ({"threshold": "5"}, "parameter"),
        ({"threshold": -1}, "parameter"),
        ({"threshold": 2**60}, "parameter"),
        ({"threshold": True}, "parameter"),
        ({"approver_role": ""}, "parameter"),
        ({"approver_role": 5}, "parameter"),
        ({"approver_role": "x' || true || '"}, "parameter"),
        ({"approver_role": "{entity.iban}"}, "parameter"),
        ({"approver_role": "x" * 201}, "parameter"),
    ],
)
def test_wrong_parameters_are_refused(params: dict[str, str | int], code: str) -> None:
    """Unknown names, wrong types, and texts that would become something else than a text."""
    with pytest.raises(DefinitionError) as caught:
        instantiate("fast_track", params)
    assert [each.code for each in caught.value.diagnostics] == [code]


def test_exports_read_back_as_what_they_were() -> None:
    """Every contract and every template, and texts that YAML would take for something else."""
    for name in contract_names():
        assert same(read_contract(export_yaml(ready_contract(name))), ready_contract(name))
    for name in template_names():
        assert same(read_body(export_yaml(instantiate(name))), instantiate(name))
    odd = [
        "no",
        "1e5",
        "007",
        "2026-01-01",
        "null",
        "~",
        " x ",
        "a: b",
        "- x",
        "#",
        "é 😀",
        "line\nbreak",
        "0x1F",
        "yes",
        "1_000",
    ]
    tricky = body(
        {APPROVE: patch([ask("a", shows={str(at): json.dumps(text) for at, text in enumerate(odd)})])}, description="no"
    )
    assert same(read_body(export_yaml(tricky)), tricky)
    for text in (*odd, "a\x85b", "a\u2028b", "\u2029", "\ufeff", "'\""):
        named = body({}, name=text, context={f"x{text}": "any"})
        assert same(read_body(export_yaml(named)), named)


def same(one: msgspec.Struct, other: msgspec.Struct) -> bool:
    """Whether two are the same but for the hash that an export adds."""
    return {**msgspec.to_builtins(one), "hash": None} == {**msgspec.to_builtins(other), "hash": None}


def test_an_export_that_was_changed_says_so() -> None:
    """Until its hash is removed."""
    text = export_yaml(instantiate("fast_track"))
    edited = text.replace("50000", "50001")
    with pytest.raises(DefinitionError) as caught:
        read_body(edited)
    (found,) = caught.value.diagnostics
    assert found.code == "hash_mismatch"
    assert read_body("\n".join(line for line in edited.splitlines() if not line.startswith("hash:"))).hash is None
    assert export_yaml(contract()) == export_yaml(read_contract(export_yaml(contract())))


def test_what_a_template_makes_that_cannot_be_read_is_told_of_the_template() -> None:
    """The finding names the template, not a body that somebody wrote."""
    made = read_template("fast_track")
    with pytest.raises(DefinitionError, match="the template fast_track"):
        instantiate(msgspec.structs.replace(made, body={**made.body, "slots": 3}))
