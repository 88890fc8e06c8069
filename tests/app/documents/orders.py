"""Sales orders, the stock that they take from and the ledger that they are posted to: the ready contracts, with bodies of one organisation."""

from __future__ import annotations

from standfast import Actor, Engine
from standfast.features.documents.body.checks import read_body
from standfast.features.documents.compiler.compiler import compile_effective
from standfast.features.documents.compiler.graph import graph_of
from standfast.features.documents.contract.envelope import generate_envelope
from standfast.features.documents.contract.library import ready_contract
from standfast.graph.definition import Definition

SELLER = Actor(id="sam", capabilities=frozenset({"sales_order.*", "stock_item.*", "gl_entry.*", "execution:read"}))
GIVEN: dict[str, object] = {
    "number": "S-1",
    "customer": "C-1",
    "grand_total": 90_000,
    "stock_item": "lamp",
    "quantity": 2,
}


def register(engine: Engine, kind: str, body: str = "") -> None:
    """Have an engine know a ready contract, filled in by a body."""
    envelope = generate_envelope(ready_contract(kind))
    engine.register(Definition(graph=graph_of(compile_effective(envelope, read_body(body) if body else None))))


def body(slot: str, nodes: str, edges: str = "", *, kind: str = "sales_order") -> str:
    """A body with one patch, of nodes and edges as lists in YAML."""
    told = f"""
base: {{entity_type: {kind}, envelope_version: 1}}
slots:
  {slot}:
    exit: join
    nodes: [{nodes}]
"""
    return f"{told}    edges: [{edges}]\n" if edges else told


def keep_stock(engine: Engine) -> None:
    """Have an engine know how stock is set aside and given back."""

    @engine.handler("stock_item.reserve")
    def reserve(document: dict[str, object], payload: dict[str, int]) -> dict[str, object]:
        data = document["data"]
        assert isinstance(data, dict)
        if data["on_hand"] - data["reserved"] < payload["quantity"]:
            raise ValueError("there is not enough of it")
        return {"reserved": data["reserved"] + payload["quantity"]}

    @engine.handler("stock_item.release")
    def release(document: dict[str, object], payload: dict[str, int]) -> dict[str, object]:
        data = document["data"]
        assert isinstance(data, dict)
        return {"reserved": data["reserved"] - payload["quantity"]}
