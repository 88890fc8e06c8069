"""Invoices of one organisation, and the people around them."""

from __future__ import annotations

from standfast import Actor, RequestContext
from standfast.app.api.sync import Calls
from standfast.graph import model as g
from standfast.graph.definition import Definition
from standfast.graph.document_spec import DocumentAction
from standfast.graph.model import Graph, Node
from standfast.testing import ManualEngine
from support.engines import Place
from support.envelopes import ACTIVE_SLOT, APPROVE_SLOT, approval, chain, invoice, value

ANN, BOB, CARL = (Actor(id=name) for name in ("ann", "bob", "carl"))
EVE = Actor(id="eve")
FINANCE = Actor(id="fred", roles=frozenset({"finance"}), capabilities=frozenset({"execution:read"}))
GIVEN: dict[str, object] = {"vendor": "acme", "total": 500, "iban": "DE1"}


def graph(**options: object) -> Graph:
    """Invoices that two people approve one after the other, and that are posted then."""
    post = Node(id="post", op=g.ActionOp(action="mark", payload={"posting": value("'GL-1'")}))
    bodies = {APPROVE_SLOT: chain(approval("first"), approval("second", who="user:carl")), ACTIVE_SLOT: chain(post)}
    actions = [
        DocumentAction(name="mark", workflow_allowed=True),
        DocumentAction(name="discount", handler="give_discount", capability="invoice.discount"),
    ]
    return invoice(bodies, actions=actions, **options)  # type: ignore[arg-type]


def opened(place: Place, **options: object) -> ManualEngine:
    """An engine that knows invoices."""
    engine = place.engine()
    engine.register(Definition(graph=graph(**options)))
    return engine


def asking(engine: ManualEngine, actor: Actor, tenant: str = "default") -> Calls:
    """The calls of somebody."""
    return engine.acting(RequestContext(tenant=tenant, actor=actor))


def approve(engine: ManualEngine, actor: Actor, *, version: str = "", decision: str = "approved") -> None:
    """Decide the only question that is open, on the version that it asks about."""
    (task,) = engine.tasks.list()
    asking(engine, actor).tasks.decide(
        task, decision, document_version=version or task.document_version, comment="because"
    )


def submitted(engine: ManualEngine, name: str = "INV-1") -> None:
    """An invoice of bob's that waits for its approvals."""
    asking(engine, BOB).documents.create("invoice", GIVEN, id=name)
    asking(engine, BOB).documents.transition("invoice", name, "submit")


def active(engine: ManualEngine, name: str = "INV-1") -> None:
    """An invoice of bob's that was approved."""
    submitted(engine, name)
    approve(engine, ANN)
    approve(engine, CARL)
