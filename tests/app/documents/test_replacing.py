"""A tenant's contract stands before the shared one of its type only if that allows it, and never with fewer rights."""

from __future__ import annotations

import pytest

from standfast import Actor, RejectedError, RequestContext
from standfast.app.api.sync import Calls
from standfast.testing import ManualEngine
from support.engines import Place

SHARED = """
entity_type: bill
version: 1
replaceable: true
fields:
  total: {type: money, required: true}
  pay: {type: money, visible_to: [hr, boss]}
  bank: {type: object, fields: {iban: {type: string, sensitive: true}}}
  ref: {type: string}
  large: {type: computed, formula: entity.total > 100}
system_fields: [ref]
on_drift: fail
lifecycle:
  version: 1
  initial: draft
  terminal: [cancelled]
  amended: amended
  states:
    draft: {window: editable}
    submitted: {window: amend_only}
    active: {window: locked}
    cancelled: {window: locked}
    amended: {window: editable}
  transitions:
    - {name: submit, from: [draft, amended], to: submitted, permission: bill.submit}
    - {name: approve, from: [submitted], to: active, permission: bill.approve, on_reject: draft, window: locked}
    - {name: cancel, from: [draft, submitted, active, amended], to: cancelled, kind: cancel}
    - {name: recall, from: [submitted], to: draft, kind: recall}
slots:
  - {id: "slot:check", entry: "sys:state:amended", exit: "sys:gate:submit", window: amend_only, stable: true, on_edit: restart, on_reject: compensate}
actions:
  - {name: bill.create, creates: true, permission: bill.create}
  - {name: bill.update, permission: bill.update}
  - {name: bill.amend, permission: bill.amend}
  - {name: bill.note, permission: bill.note}
  - {name: bill.tag, permission: bill.tag, payload: {type: object, properties: {total: {type: integer}}}}
policies:
  - {name: managers, actions: [bill.approve], roles: [manager]}
  - {name: chiefs, actions: [bill.approve], roles: [chief]}
"""
OWN = SHARED.replace("version: 1", "version: 2", 1)
EXTRA = "    - {name: wave_through, from: [submitted], to: active}\n"
ASKING = "    - {name: wave_through, from: [submitted], to: active, permission: bill.approve}\n"
RUSH = "    - {name: rush, from: [amended], to: submitted, permission: bill.submit}\n"
WEAKER = {
    "a transition": (", permission: bill.approve", ""),
    "another permission": ("permission: bill.approve", "permission: bill.submit"),
    "another way": ("    - {name: cancel", f"{EXTRA}    - {{name: cancel"),
    "a way by itself": ("bill.approve, on_reject", "bill.approve, begins: by_itself, on_reject"),
    "a way after a time": ("amend_only}", "amend_only, timeout: 1s, on_timeout: approve}"),
    "a way from the beginning": ("initial: draft", "initial: active"),
    "a way by a rejection": ("permission: bill.submit", "permission: bill.submit, on_reject: active"),
    "a way without its policy": ("    - {name: cancel", f"{ASKING}    - {{name: cancel"),
    "a way past another": ("approve, from: [submitted]", "approve, from: [draft, submitted]"),
    "a way around a slot": ("    - {name: cancel", f"{RUSH}    - {{name: cancel"),
    "a slot that is gone": (SHARED[SHARED.index("slots:") : SHARED.index("actions:")], ""),
    "a slot elsewhere": ("sys:state:amended", "sys:state:draft"),
    "the window of a slot": ("window: amend_only, stable", "window: editable, stable"),
    "the window of a gate": (", window: locked}\n    - {name: cancel", "}\n    - {name: cancel"),
    "a slot that is not stable": ("stable: true", "stable: false"),
    "a slot that goes on": ("on_edit: restart", "on_edit: keep"),
    "a slot that undoes nothing": (", on_reject: compensate", ""),
    "drift": ("on_drift: fail\n", ""),
    "a recall by others": (", kind: recall", ""),
    "another way back": (
        "    - {name: cancel",
        "    - {name: back, from: [submitted], to: draft}\n    - {name: cancel",
    ),
    "a round that is over": ("amend_only}", "amend_only, completes: true}"),
    "another end of a round": (
        "  transitions:\n",
        "    kept: {window: amend_only}\n  transitions:\n    - {name: keep, from: [submitted], to: kept}\n    - {name: drop, from: [kept], to: cancelled, kind: cancel}\n",
    ),
    "a window": ("active: {window: locked}", "active: {window: editable}"),
    "an action": (", permission: bill.create", ""),
    "an action that changes more": (", payload: {type: object, properties: {total: {type: integer}}}", ""),
    "an action with another right": (
        "  - {name: bill.note",
        "  - {name: bill.mark, permission: bill.note}\n  - {name: bill.note",
    ),
    "an action of the workflow that is new": (
        "  - {name: bill.note",
        "  - {name: bill.mark, permission: bill.update, workflow_allowed: true}\n  - {name: bill.note",
    ),
    "another action that creates": (
        "  - {name: bill.note",
        "  - {name: bill.copy, permission: bill.update, creates: true}\n  - {name: bill.note",
    ),
    "an action that is left out": ("  - {name: bill.update, permission: bill.update}\n", ""),
    "amendments that are edits": ("  - {name: bill.amend, permission: bill.amend}\n", ""),
    "another action": ("  - {name: bill.note", "  - {name: bill.scribble}\n  - {name: bill.note"),
    "an action of the workflow": ("permission: bill.note", "permission: bill.note, workflow_allowed: true"),
    "own approval": ("replaceable: true", "self_approval: true"),
    "no policies": (SHARED[SHARED.index("policies:") :], ""),
    "a wider policy": ("roles: [chief]", "roles: [clerk]"),
    "a field for all": (", visible_to: [hr, boss]", ""),
    "a field for more": ("[hr, boss]", "[hr, clerk]"),
    "a field that is not sensitive": (", sensitive: true", ""),
    "a field that people write": ("system_fields: [ref]\n", ""),
    "a field that is the workflow's own": ("[ref]", "[ref, total]"),
    "a field that is computed otherwise": ("total > 100", "total > 900"),
}
STRICTER = {
    "the same": ("", ""),
    "fewer roles": ("  - {name: chiefs, actions: [bill.approve], roles: [chief]}\n", ""),
    "one more permission": ("to: cancelled, kind", "to: cancelled, permission: bill.cancel, kind"),
    "fewer readers": ("[hr, boss]", "[hr]"),
    "a rejection that leads back": ("permission: bill.submit", "permission: bill.submit, on_reject: draft"),
    "an end after a time": ("amend_only}", "amend_only, timeout: 1s, on_timeout: cancel}"),
    "an action that changes less": ("permission: bill.note}", "permission: bill.note, payload: {type: object}}"),
    "a stricter slot": ("window: amend_only, stable", "window: locked, stable"),
    "a recall with a permission": ("kind: recall", "kind: recall, permission: bill.recall"),
    "a round that goes on": ("active: {window: locked", "active: {window: locked, completes: false"),
    "a stricter window": ("submitted: {window: amend_only", "submitted: {window: locked"),
    "one more field": ("fields:\n", "fields:\n  memo: {type: string}\n"),
    "another action": ("  - {name: bill.note", "  - {name: bill.mark, permission: bill.update}\n  - {name: bill.note"),
}


def tenant(engine: ManualEngine) -> Calls:
    """Whoever publishes contracts of a tenant."""
    actor = Actor(id="tim", capabilities=frozenset({"contracts:publish"}))
    return engine.acting(RequestContext(tenant="acme", actor=actor))


def refused(engine: ManualEngine, contract: str) -> str:
    """Why a tenant's contract is not published; `check` says the same, and `force` changes nothing."""
    own = tenant(engine).contracts
    with pytest.raises(RejectedError) as caught:
        own.publish(contract, force=True)
    assert caught.value.reason in {each.code for each in own.check(contract).problems}
    assert own.get("bill").version == 1
    return caught.value.reason


@pytest.mark.row("E-576")
def test_a_shared_contract_is_not_replaced_unless_it_allows_that(place: Place) -> None:
    """The type of a shared contract is taken; the engine itself goes on publishing it, and other types are free."""
    engine = place.engine()
    engine.contracts.publish(SHARED.replace("replaceable: true\n", ""))
    assert refused(engine, OWN) == "CONTRACT_SHARED"
    tenant(engine).contracts.publish(SHARED.replace("bill", "slip"))
    engine.contracts.publish(OWN)
    assert tenant(engine).contracts.publish(SHARED.replace("version: 1", "version: 3", 1)).version == 3


@pytest.mark.row("E-576")
@pytest.mark.parametrize("how", WEAKER)
def test_a_contract_that_replaces_a_shared_one_asks_for_no_less(place: Place, how: str) -> None:
    """Every right that the shared contract asks for is asked for by the tenant's own: of transitions, actions, policies and readers."""
    engine = place.engine()
    engine.contracts.publish(SHARED)
    assert SHARED.count(WEAKER[how][0]) == 1
    assert refused(engine, OWN.replace(*WEAKER[how])) == "CONTRACT_FEWER_RIGHTS"


@pytest.mark.row("E-576")
@pytest.mark.parametrize("how", STRICTER)
def test_a_contract_that_replaces_a_shared_one_may_ask_for_more(place: Place, how: str) -> None:
    """What asks for the same or for more is published, and stands before the shared one."""
    engine = place.engine()
    engine.contracts.publish(SHARED)
    own = tenant(engine).contracts
    own.publish(OWN.replace(*STRICTER[how], 1))
    assert (own.get("bill").version, engine.contracts.get("bill").version) == (2, 1)
