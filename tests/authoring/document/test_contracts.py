"""Entity contracts: read whole or refused whole, every mistake with its place and a remedy; those that come with the package are sound."""

from __future__ import annotations

import json
import re

import pytest

from authoring.document.examples import CONTRACT, GONE, changed, contract, mistakes
from standfast import DefinitionError
from standfast.errors import ConfigurationError, NotFoundError
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import contract_names, ready_contract
from standfast.features.documents.contract.loading import contract_hash, read_contract

DEEP: dict[str, object] = {"type": "string"}
for _ in range(8):
    DEEP = {"type": "list", "items": DEEP}

LOCKED = {"window": "locked"}
PLACE = re.compile(r"[1-9][0-9]*:[1-9][0-9]*")


def codes(**changes: object) -> list[str]:
    """The codes of what is wrong with the contract of a bill that was changed."""
    return [each.code for each in mistakes(changed(CONTRACT, changes))]


def test_a_sound_contract_is_read() -> None:
    """Nothing is wrong with the one that the others are made from."""
    assert contract().lifecycle.initial == "draft"


@pytest.mark.parametrize("name", contract_names())
def test_ready_contracts_are_sound_and_have_an_envelope(name: str) -> None:
    """Every contract that comes with the package can be used as it is."""
    ready = ready_contract(name)
    assert ready.entity_type == name
    assert generate_envelope(ready).hash


@pytest.mark.row("EH-04")
def test_the_contracts_of_the_use_cases_are_there() -> None:
    """Invoice, purchase order, sales order and royalty statement, and what they refer to."""
    wanted = {"invoice", "purchase_order", "sales_order", "royalty_statement", "credit_note"}
    assert wanted | {"customer", "vendor", "stock_item", "gl_entry"} == set(contract_names())
    with pytest.raises(NotFoundError, match="did you mean 'invoice'"):
        ready_contract("invoce")


@pytest.mark.row("E-131", "E-132", "EH-04")
@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"fields__number__type": "text"}, "word"),
        ({"fields__number__required": "yes"}, "wrong_type"),
        ({"fields__kind__values": GONE}, "missing_field"),
        ({"fields__kind__values": ["a", "a"]}, "enum"),
        ({"fields__2nd": {"type": "string"}}, "name"),
        ({"fields__status": {"type": "string"}}, "reserved_field"),
        ({"fields": {}}, "empty"),
        ({"fields__total__default": "1"}, "default"),
        ({"fields__kind__default": "x"}, "default"),
        ({"fields__day": {"type": "date", "default": "tomorrow"}}, "default"),
        ({"fields__at": {"type": "datetime", "default": "2026-11-17T09:00:00"}}, "default"),
        ({"fields__part": {"type": "object", "fields": {"n": {"type": "int", "default": 3}}}}, "default"),
        ({"fields__total__default": 1.5}, "default"),
        ({"fields__tags": {"type": "list", "items": {"type": "string"}, "default": ["a", 1]}}, "default"),
        ({"fields__part": {"type": "object", "fields": {"n": {"type": "int"}}, "default": {"n": "x"}}}, "default"),
        ({"fields__big": {"type": "computed", "formula": "entity.totl > 1"}}, "expression"),
        ({"fields__big": {"type": "computed", "formula": "entity.total > 1", "default": True}}, "computed"),
        ({"fields__big": {"type": "computed", "formula": "entity.total", "as": "string"}}, "expression"),
        ({"fields__big": {"type": "computed", "formula": "entity.total", "as": "int", "times": "entity.kind"}}, "expression"),
        ({"fields__big": {"type": "computed", "formula": "entity.big", "as": "int"}}, "computed"),
        ({"fields__lines": {"type": "list", "items": {"type": "computed", "formula": "true"}}}, "computed"),
        ({"system_fields": ["nope"]}, "unknown_field_name"),
        ({"fields__deep": DEEP}, "too_deep"),
        ({"lifecycle__initial": "darft"}, "unknown_state"),
        ({"lifecycle__terminal": []}, "no_terminal"),
        ({"lifecycle__amended": GONE}, "amended"),
        ({"lifecycle__amended": "active"}, "amended"),
        ({"lifecycle__superseded": "draft"}, "superseded"),
        ({"lifecycle__states__draft__window": "open"}, "word"),
        ({"lifecycle__states__draft__timeout": "1d"}, "timeout"),
        ({"lifecycle__states__draft": {"window": "editable", "timeout": "1d", "on_timeout": "approve"}}, "unknown_transition"),
        ({"lifecycle__states__active": {"window": "locked", "timeout": "1d", "on_timeout": "cancel"}}, "timeout"),
        ({"lifecycle__transitions__0__to": "sent"}, "unknown_state"),
        ({"lifecycle__transitions__0__from": []}, "empty"),
        ({"lifecycle__transitions__0__name": "approve"}, "duplicate_transition"),
        ({"lifecycle__transitions__0__name": "pass"}, "reserved_transition"),
        ({"lifecycle__transitions__1__on_reject": "cancelled"}, "on_reject"),
        ({"lifecycle__transitions__1__window": "editable"}, "window"),
        ({"lifecycle__transitions__0__kind": "cancel"}, "kind"),
        ({"lifecycle__transitions__0__from": ["cancelled"]}, "terminal"),
        ({"lifecycle__transitions__0__begins": "by_itself"}, "begins"),
        ({"lifecycle__states__lost": {"window": "editable"}}, "unreachable_state"),
        ({"slots__0__entry": "sys:state:nope"}, "unknown_node"),
        ({"slots__0__entry": "draft"}, "unknown_node"),
        ({"slots__0__exit": "sys:gate:approve"}, "slot_edge"),
        ({"slots__0__stable": GONE}, "missing_field"),
        ({"slots__0__window": GONE}, "missing_field"),
        ({"slots__0__id": "draft_to_submit"}, "name"),
        ({"slots__1__id": "slot:draft_to_submit"}, "duplicate_slot"),
        ({"slots__1__window": "editable"}, "window"),
        ({"actions__0__name": "invoice.post"}, "action_name"),
        ({"actions__0__name": "post"}, "name"),
        ({"actions__1__name": "bill.post"}, "duplicate_action"),
        ({"actions__0__payload": {"type": "strin"}}, "payload"),
        ({"policies": [{"name": "p", "actions": ["bill.fly"]}]}, "unknown_action"),
        ({"policies": [{"name": "p", "actions": ["bill.*"], "when": "entity.total > 'x'"}]}, "expression"),
        ({"policies": [{"name": "p", "actions": ["bill.*"], "when": "entity.status == 'darft'"}]}, "expression"),
        ({"policies": [{"name": "p", "actions": ["bill.*"], "when": "entity.kind == 'godos'"}]}, "expression"),
        ({"fields__sort": {"type": "list", "items": {"type": "enum", "values": ["a"]}}, "fields__big": {"type": "computed", "formula": "'b' in entity.sort"}}, "expression"),
        ({"lifecycle__superseded": "old", "lifecycle__terminal": ["cancelled", "old", "older"], "lifecycle__states__old": LOCKED, "lifecycle__states__older": LOCKED}, "unreachable_state"),
        ({"amendment": "sometimes"}, "word"),
        ({"version": 0}, "number"),
        ({"colour": "red"}, "unknown_field"),
    ],
)  # fmt: skip
def test_each_rule_has_its_code(changes: dict[str, object], code: str) -> None:
    """A contract that breaks one rule is refused by the code of that rule, with a place and a remedy."""
    found = mistakes(changed(CONTRACT, changes))
    assert code in [each.code for each in found], found
    assert all(PLACE.fullmatch(each.position) for each in found)
    assert all(each.code == "expression" or ";" in each.message or "," in each.message for each in found)


def test_the_state_of_what_was_replaced_needs_no_transition() -> None:
    """Amendments lead to it: the one that the contract names, or else the first one that is terminal."""
    old = {"lifecycle__states__old": LOCKED}
    assert codes(**old, lifecycle__terminal=["cancelled", "old"], lifecycle__superseded="old") == []
    assert codes(**old, lifecycle__terminal=["old", "cancelled"]) == []
    assert codes(**old, lifecycle__terminal=["cancelled", "old"]) == ["unreachable_state"]


@pytest.mark.row("E-132")
@pytest.mark.parametrize("field", ["id", "entry", "exit", "window", "stable"])
def test_a_slot_says_where_it_is_and_what_holds_in_it(field: str) -> None:
    """A slot lacks nothing of id, entry, exit, window and stability."""
    assert codes(**{f"slots__0__{field}": GONE}) == ["missing_field"]


def test_all_mistakes_come_at_once_in_the_order_of_the_file() -> None:
    """Five faults are five findings, each where it stands."""
    text = """\
entity_type: bill
version: one
fields:
  total: {type: monney}
  note: {type: string, requierd: true}
lifecycle:
  version: 1
  initial: draft
  terminal: [gone]
  states:
    draft: {window: loose}
    gone: {window: locked}
  transitions:
    - {name: end, from: [draft], to: gon, kind: cancel}
"""
    found = mistakes(text)
    places = [each.position.split(":")[0] for each in found]
    assert places == sorted(places, key=int)
    assert {"2", "4", "5", "11"} <= set(places)
    assert any("did you mean 'money'" in each.message for each in found)
    assert any("did you mean 'required'" in each.message for each in found)


@pytest.mark.parametrize("text", ["", "[]", "7", "a: [", "{}", "\x00", "a: &a [*a]"])
def test_what_is_no_contract_is_refused_with_a_place(text: str) -> None:
    """Whatever a file holds, there is a finding and no traceback."""
    found = mistakes(text)
    assert found
    assert all(PLACE.fullmatch(each.position) for each in found)


def test_what_is_no_text_is_refused() -> None:
    """A contract is given as text."""
    with pytest.raises(ConfigurationError, match="YAML or JSON"):
        read_contract(7)  # type: ignore[arg-type]


@pytest.mark.row("EH-04")
def test_the_hash_is_over_what_it_says() -> None:
    """Order and spelling do not matter, every value does."""
    backwards = json.dumps(dict(reversed(list(CONTRACT.items()))))
    assert contract_hash(read_contract(backwards)) == contract_hash(contract())
    assert contract_hash(contract(self_approval=True)) != contract_hash(contract())


def test_a_file_that_was_changed_after_its_export_is_refused() -> None:
    """The hash of an export is believed only as long as it is true."""
    with pytest.raises(DefinitionError) as caught:
        contract(hash="0" * 64)
    assert [each.code for each in caught.value.diagnostics] == ["hash_mismatch"]
    assert contract(hash=contract_hash(contract())) is not None
