"""Organisations that fill the slots of invoices, and the people who do that for them."""

from __future__ import annotations

from standfast import Actor, RequestContext
from standfast.app.api.sync import Calls
from standfast.features.documents.contract.library import ready_contract
from standfast.testing import ManualEngine
from support.engines import Place

DORA = Actor(id="dora", capabilities=frozenset({"bodies:design"}))
PAUL = Actor(id="paul", capabilities=frozenset({"bodies:publish", "bodies:run_as"}))
BOTH = Actor(id="bea", capabilities=frozenset({"bodies:*"}))
AUDITOR = Actor(id="audra", capabilities=frozenset({"execution:read"}))
CLERK = Actor(id="bob", capabilities=frozenset({"invoice.*"}))
NOBODY = Actor(id="eve")
GIVEN: dict[str, object] = {"number": "R-1", "vendor_id": "V-1", "grand_total": 40_000, "budget_owner_id": "otto"}

BODY = """
base: {entity_type: invoice, envelope_version: 1}
name: One manager
slots:
  "slot:submitted_to_approved":
    nodes:
      - {id: manager, type: approval, approvers: [{role: manager}]}
"""
SCENARIOS = """
scenarios:
  - name: the manager approves
    data: {number: R-1, vendor_id: V-1, grand_total: 40000}
    acts: [{ask: submit}, {decide: manager}]
    expect: {status: active, path: [manager, "sys:gate:approve"], asks_nobody: true}
"""


def opened(place: Place | None = None) -> ManualEngine:
    """An engine with the contract of invoices, for all tenants; in memory, where no database has a say."""
    engine = ManualEngine() if place is None else place.engine()
    engine.contracts.publish(ready_contract("invoice"))
    return engine


def of(engine: ManualEngine, actor: Actor = BOTH, tenant: str = "acme") -> Calls:
    """The calls of somebody in an organisation."""
    return engine.acting(RequestContext(tenant=tenant, actor=actor))


def published(engine: ManualEngine, body: str = BODY, tenant: str = "acme") -> Calls:
    """An organisation that has published a body."""
    calls = of(engine, tenant=tenant)
    calls.bodies.publish(calls.bodies.save(body).id)
    return calls
