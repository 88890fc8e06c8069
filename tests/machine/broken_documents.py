"""Envelopes with one thing wrong each: the code, the place, and what is put in the place of what is right."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from standfast.graph import model as g
from standfast.graph.document_spec import (
    DocumentAction,
    DocumentField,
    DocumentPolicy,
    DocumentTransition,
    Region,
)
from standfast.graph.model import DocumentSpec, Edge, Graph, Node
from support.envelopes import APPROVE_SLOT, FIELDS, approval, chain, invoice

RIGHT = invoice({APPROVE_SLOT: chain(approval("a"))})


class Case(NamedTuple):
    """One thing that is wrong."""

    code: str
    position: str
    graph: Graph


def spec(**fields: object) -> Graph:
    """The envelope with other documents."""
    assert RIGHT.document is not None
    return whole(document=msgspec.structs.replace(RIGHT.document, **fields))


def whole(**fields: object) -> Graph:
    """The envelope with other parts."""
    return msgspec.structs.replace(RIGHT, **fields)


def with_fields(**fields: DocumentField) -> Graph:
    """Documents that have these fields besides."""
    return spec(fields={**FIELDS, **fields})


def moved(change: Callable[[DocumentTransition], DocumentTransition]) -> Graph:
    """Transitions with the first one changed."""
    assert RIGHT.document is not None
    first, *rest = RIGHT.document.transitions
    return spec(transitions=(change(first), *rest))


def with_node(node: Node, **document: object) -> Graph:
    """The envelope with another node in the slot, which has a window."""
    assert RIGHT.document is not None
    windows = {**RIGHT.document.windows, node.id: "amend_only"}
    edges = [each for each in RIGHT.edges if each.source != "a"]
    edges += [Edge(source="a", target=node.id, on="approved")]
    outside = "sys:slot:submitted_to_approved:out"
    exits = node.op.required or (g.OK,)
    edges += [Edge(source=node.id, target=outside, on=each, priority=place) for place, each in enumerate(exits)]
    changed = msgspec.structs.replace(RIGHT.document, windows=windows, **document)
    return whole(nodes={**RIGHT.nodes, node.id: node}, edges=tuple(edges), document=changed)


def ruled(*rules: g.DocumentRule) -> Graph:
    """The envelope with these rules."""
    return with_node(Node(id="b", op=g.RuleOp(rules=rules)))


def asked(**options: object) -> Graph:
    """The envelope with another question."""
    assert isinstance(RIGHT.nodes["a"].op, g.HumanOp)
    op = msgspec.structs.replace(RIGHT.nodes["a"].op, **options)
    return whole(nodes={**RIGHT.nodes, "a": msgspec.structs.replace(RIGHT.nodes["a"], op=op)})


def bare(node: Node) -> Graph:
    """A saga of one step."""
    return Graph(kind="saga", name="s", version="1", entry=node.id, nodes={node.id: node}, edges=())


def _spec() -> DocumentSpec:
    assert RIGHT.document is not None
    return RIGHT.document


_DEEP = DocumentField(type="list")
for _ in range(9):
    _DEEP = DocumentField(type="list", items=_DEEP)

BROKEN_DOCUMENTS: dict[str, Case] = {
    "an envelope without documents": Case(
        "no_document",
        "",
        Graph(kind="envelope", name="n", version="1", entry="w", nodes={"w": Node(id="w", op=g.EndOp())}, edges=()),
    ),
    "a state without a document": Case("no_document", "s", bare(Node(id="s", op=g.StateOp(status="draft")))),
    "a pin without a document": Case("no_document", "h", bare(Node(id="h", op=g.HumanOp(pins=True)))),
    "a saga with documents": Case("no_document", "", whole(kind="saga")),
    "no type": Case("entity_type", "", spec(entity_type="")),
    "an unknown first status": Case("status", "", spec(initial="new")),
    "a status of white space": Case("status", "", spec(states={**_spec().states, " ": "locked"})),
    "an unknown window": Case("window", "", spec(states={**_spec().states, "draft": "open"})),
    "a node without a window": Case(
        "window", "a", spec(windows={name: each for name, each in _spec().windows.items() if name != "a"})
    ),
    "a window of nothing": Case("window", "zz", spec(windows={**_spec().windows, "zz": "locked"})),
    "an unknown mode": Case("amendment", "", spec(amendment="never")),
    "an unknown policy": Case("on_drift", "", spec(on_drift="ignore")),
    "two actions of a name": Case(
        "duplicate", "", spec(actions=(DocumentAction(name="post"), DocumentAction(name="post")))
    ),
    "an unknown type of field": Case("field", "x", with_fields(x=DocumentField(type="float"))),  # type: ignore[arg-type]
    "an enum without values": Case("field", "x", with_fields(x=DocumentField(type="enum"))),
    "a computed field without a formula": Case("field", "x", with_fields(x=DocumentField(type="computed"))),
    "a formula of a given field": Case(
        "field", "x", with_fields(x=DocumentField(type="int", formula=FIELDS["large"].formula))
    ),
    "a formula that is none": Case(
        "expression", "x", with_fields(x=DocumentField(type="computed", formula={"source": "x"}))
    ),
    "a default that is not plain": Case("default", "x", with_fields(x=DocumentField(type="int", default=0.5))),
    "a field too deep": Case("field", "x" + "[]" * 8, with_fields(x=_DEEP)),
    "a transition to nowhere": Case(
        "transition", "submit", moved(lambda each: msgspec.structs.replace(each, target="gone"))
    ),
    "a transition from the end": Case(
        "transition", "submit", moved(lambda each: msgspec.structs.replace(each, sources=("draft", "cancelled")))
    ),
    "a transition from nowhere": Case(
        "transition", "submit", moved(lambda each: msgspec.structs.replace(each, sources=()))
    ),
    "a payload that is no schema": Case(
        "payload", "post", spec(actions=(DocumentAction(name="post", payload={"type": "objekt"}),))
    ),
    "a status without a node": Case("envelope", "posted", spec(states={**_spec().states, "posted": "locked"})),
    "a slot in the air": Case(
        "slot", "slot:x", spec(regions=(*_spec().regions, Region(id="slot:x", entry="a", exit="zz")))
    ),
    "an action nobody knows": Case("document_action", "b", with_node(Node(id="b", op=g.ActionOp(action="post")))),
    "an action outside of the commit": Case(
        "document_action",
        "b",
        with_node(Node(id="b", op=g.ActionOp(action="update", work=g.HandlerCall(handler="h")))),
    ),
    "a policy about what cannot be done": Case(
        "policy", "p", spec(policies=(DocumentPolicy(name="p", actions=("fly",)),))
    ),
    "a field nobody has": Case("covers", "a", asked(covers=("colour",))),
    "fields without a pin": Case("covers", "a", asked(covers=("total",), pins=False)),
    "no rules": Case("document_rule", "b", ruled()),
    "two rules of a name": Case("document_rule", "b", ruled(g.DocumentRule(name="r"), g.DocumentRule(name="r"))),
    "an effect nobody knows": Case(
        "document_rule",
        "b",
        ruled(g.DocumentRule(name="r", effect="shout")),  # type: ignore[arg-type]
    ),
    "a rule without its field": Case("document_rule", "b", ruled(g.DocumentRule(name="r", effect="require_field"))),
    "a rule without its value": Case(
        "document_rule", "b", ruled(g.DocumentRule(name="r", effect="set_field", field="note"))
    ),
    "a rule without its outcome": Case("document_rule", "b", ruled(g.DocumentRule(name="r", effect="outcome"))),
    "a script with a long name": Case(
        "script_name",
        "b",
        with_node(Node(id="b", op=g.ScriptOp(formula=FIELDS["large"].formula or {}, into=" "))),
    ),
}
