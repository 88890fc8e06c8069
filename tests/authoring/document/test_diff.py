"""Differences: of a workflow beside its envelope, of two versions of a body, of two versions of a document, of two contracts."""

from __future__ import annotations

import pytest

from authoring.document.examples import (
    ACTIVE,
    AMEND,
    APPROVE,
    GONE,
    SUBMIT,
    ask,
    bills,
    compiled,
    contract,
    patch,
    usr,
    way,
)
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.contract_changes import contract_changes
from standfast.features.documents.compiler.document_diff import document_diff, document_diff_text
from standfast.features.documents.compiler.workflow_diff import diff

WAY_IN, WAY_OUT = "sys:slot:submitted_to_approved:in", "sys:slot:submitted_to_approved:out"


@pytest.mark.row("E-721", "E-722", "E-724", "E-958", "E-970")
def test_a_workflow_beside_its_envelope_slot_by_slot() -> None:
    """What was added, the edge that went, the window that became stricter; slots without a patch say so."""
    bare, made = compile_effective(bills()), compiled({APPROVE: patch([ask("a", title="Boss")], window="locked")})
    found = diff(bare, made)
    groups = {each.slot: each for each in found.slots}
    assert [name for name, each in groups.items() if each.is_untouched] == [AMEND, ACTIVE, SUBMIT]
    changes = [(each.sign, each.what, each.id) for each in groups[APPROVE].changes]
    assert changes == [
        ("+", "node", WAY_IN),
        ("+", "node", WAY_OUT),
        ("+", "node", usr("a")),
        ("~", "window", APPROVE),
        ("+", "edge", f"edge:sys:gate:approve->{WAY_IN}"),
        ("+", "edge", f"edge:{WAY_IN}->{usr('a')}"),
        ("+", "edge", f"edge:{WAY_OUT}->sys:gate:approve"),
        ("-", "edge", "edge:sys:state:submitted->sys:gate:approve"),
        ("+", "edge", f"edge:sys:state:submitted->{WAY_IN}"),
        ("+", "edge", f"edge:{usr('a')}->{WAY_OUT}"),
        ("+", "edge", f"edge:{usr('a')}->{WAY_OUT}#2"),
    ]
    assert {each.provenance for each in groups[APPROVE].changes} == {APPROVE, "envelope"}
    text = found.to_text()
    assert "amend_only → locked" in text
    assert text.count("no customisation") == 3
    assert diff(bare, made) == found
    assert found.to_data()["entity_type"] == "bill"


@pytest.mark.row("E-723")
def test_two_versions_of_a_body() -> None:
    """Nodes that came, went and changed, and conditions that say something else."""
    first = compiled({APPROVE: patch([ask("a"), ask("b")], ["a b approved"])})
    second = compiled({APPROVE: patch([ask("a", approvers=[{"role": "cfo"}]), ask("c")], [way("a c approved")])})
    (changes,) = [each.changes for each in diff(first, second).slots if not each.is_untouched]
    told = {(each.sign, each.id): each.told for each in changes if each.what == "node"}
    assert told["~", usr("a")] == 'approvers: [{"role":"boss"}] → [{"role":"cfo"}]'
    assert ("+", usr("c")) in told
    assert ("-", usr("b")) in told
    assert all(each.is_untouched for each in diff(first, first).slots)


@pytest.mark.row("E-723")
def test_another_condition_is_a_changed_edge() -> None:
    """From what to what."""
    ways = [
        patch([ask("a")], [way("in a", when=f"entity.total > {most}"), "in out"], entry="branch", exit="join")
        for most in (5, 6)
    ]
    (changes,) = [
        each.changes for each in diff(*(compiled({APPROVE: each}) for each in ways)).slots if not each.is_untouched
    ]
    assert [(each.sign, each.what) for each in changes] == [("~", "edge")]
    assert "entity.total > 5" in changes[0].told
    assert "entity.total > 6" in changes[0].told


@pytest.mark.row("E-240")
def test_two_versions_of_a_document_field_by_field() -> None:
    """With old and new values; of sensitive fields only that they changed."""
    old = {"number": "1", "total": 5, "iban": "DE1", "tags": ["a", "b"], "owner": "ann"}
    new = {"number": "1", "total": 6, "iban": "DE2", "tags": ["a", "c", "d"], "kind": "goods"}
    found = document_diff(contract(), old, new)
    assert [(each.field, each.how, each.old, each.new) for each in found] == [
        ("total", "changed", 5, 6),
        ("kind", "added", None, "goods"),
        ("tags[1]", "changed", "b", "c"),
        ("tags[2]", "added", None, "d"),
        ("iban", "changed", "***", "***"),
        ("owner", "removed", "ann", None),
    ]
    text = document_diff_text(found)
    assert "DE" not in text
    assert "~ total: 5 → 6" in text
    assert document_diff_text(document_diff(contract(), old, old)) == "no field differs\n"


@pytest.mark.row("E-240")
def test_what_is_masked_stays_masked_inside_of_what_came_or_went() -> None:
    """Also in objects and lists, and for those who have none of the roles."""
    inner = {"type": "object", "fields": {"name": {"type": "string"}, "salary": {"type": "money", "sensitive": True}}}
    secret = contract(
        fields__people={"type": "list", "items": inner}, fields__memo={"type": "string", "visible_to": ["boss"]}
    )
    new = {"people": [{"name": "ann", "salary": 7}], "memo": "psst"}
    (people, memo) = document_diff(secret, {}, new, roles=frozenset({"clerk"}))
    assert people.new == [{"name": "ann", "salary": "***"}]
    assert memo.is_masked
    assert document_diff(secret, {}, new, roles=frozenset({"boss"}))[1].new == "psst"
    (salary,) = document_diff(secret, {"people": [{"salary": 7}]}, {"people": [{"salary": 8}]})
    assert (salary.field, salary.old) == ("people[0].salary", "***")


def test_true_is_not_one() -> None:
    """Values of another type are another value."""
    assert document_diff(contract(), {"number": True}, {"number": 1})


def test_what_the_contract_does_not_know_is_shown() -> None:
    """A field that came from an older contract is nobody's secret: alone, in an object, and in a list whose items say nothing."""
    open_list = contract(fields__rows={"type": "list"}, fields__place={"type": "object", "fields": {}})
    old: dict[str, object] = {"x": 1, "gone": "a", "rows": [{"a": 1}], "place": {"city": "Ulm"}}
    new: dict[str, object] = {"x": 2, "come": ["b"], "rows": [{"a": 2}], "place": {"city": "Bonn"}}
    told = document_diff_text(document_diff(open_list, old, new, roles=frozenset())).splitlines()
    assert sorted(told) == [
        '+ come: ["b"]',
        '- gone: "a"',
        '~ place.city: "Ulm" → "Bonn"',
        "~ rows[0].a: 1 → 2",
        "~ x: 1 → 2",
    ]


def test_a_change_of_contract_is_listed_with_what_refers_to_it() -> None:
    """Fields that are gone or of another type break the workflows that read them; others break nothing."""
    made = compiled(
        {
            APPROVE: patch([ask("a", covers=["total"])], [way("in a", when="entity.kind == 'goods'", id="e"), "in out"], entry="branch", exit="join"),
            ACTIVE: patch([{"id": "p", "type": "action", "action": "bill.post", "payload": {"owner": "entity.owner"}}]),
        }
    )  # fmt: skip
    later = contract(
        version=2,
        fields__total={"type": "int"},
        fields__kind={"type": "enum", "values": ["service"]},
        fields__owner=GONE,
        fields__due=GONE,
        fields__more={"type": "string"},
        actions__0__workflow_allowed=False,
    )
    found = {(each.what, each.name, each.how): each for each in contract_changes(contract(), later, {"acme v3": made})}
    breaking = {key for key, each in found.items() if each.breaks}
    assert breaking == {
        ("field", "total", "retyped"),
        ("field", "kind", "narrowed"),
        ("field", "owner", "removed"),
        ("action", "bill.post", "narrowed"),
    }
    assert found["field", "owner", "removed"].used_by == [f"acme v3: usr:{ACTIVE}:p"]
    assert found["field", "kind", "narrowed"].used_by == ["acme v3: e"]
    assert found["field", "due", "removed"].used_by == []
    assert ("field", "more", "added") in found
    assert contract_changes(contract(), contract()) == []


def test_a_slot_that_is_gone_breaks_those_who_fill_it() -> None:
    """The patch would have no place any more."""
    later = contract(slots__3=GONE)
    found = contract_changes(contract(), later, {"acme": compiled({AMEND: patch([ask("a")])})})
    (slot,) = [each for each in found if each.what == "slot"]
    assert (slot.name, slot.how, slot.breaks) == (AMEND, "removed", True)


def test_a_window_that_a_patch_kept_is_no_change() -> None:
    """A window that was stricter in both versions is not told again; one that became another is told once, of its node."""
    nodes = [ask("a")]
    locked, again = (compiled({APPROVE: patch(nodes, window="locked")}) for _ in range(2))
    assert [each for group in diff(locked, again).slots for each in group.changes] == []
    changed = compiled({APPROVE: patch([ask("a", title="Boss")], window="locked")})
    told = [(each.what, each.id) for group in diff(locked, changed).slots for each in group.changes]
    assert told == [("node", usr("a"))]
