"""Envelopes made by hand: the standard lifecycle of an invoice, with bodies in its slots."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from standfast.expressions import parse
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph
from standfast.graph.document_spec import (
    DocumentAction,
    DocumentField,
    DocumentSpec,
    DocumentTransition,
    Region,
    Window,
)
from standfast.graph.model import Edge, Graph, Node, Policies
from standfast.graph.values.approver_rules import Ask

SUBMIT_SLOT, APPROVE_SLOT, ACTIVE_SLOT, AMEND_SLOT = (
    "slot:draft_to_submit",
    "slot:submitted_to_approved",
    "slot:approved_to_active",
    "slot:amendment_cycle",
)
FIELDS: Mapping[str, DocumentField] = {
    "vendor": DocumentField(type="string", required=True),
    "total": DocumentField(type="money", required=True),
    "currency": DocumentField(type="enum", values=("EUR", "USD"), default="EUR"),
    "note": DocumentField(type="string"),
    "iban": DocumentField(type="string", sensitive=True, visible_to=("finance",)),
    "large": DocumentField(type="computed", formula=parse("entity.total > 100000").to_data()),
    "posting": DocumentField(type="string", system=True),
}


def when(text: str) -> dict[str, object]:
    """A stored condition."""
    return parse(text).to_data()


def value(text: str) -> dict[str, object]:
    """A stored expression for a value."""
    return parse(text, spelling="mapping").to_data()


@dataclass(frozen=True)
class Body:
    """What fills a slot."""

    nodes: Sequence[Node]
    first: str
    last: Sequence[str]
    """Nodes that lead out of the slot, by the outcome after the colon."""
    edges: Sequence[Edge] = ()
    windows: Mapping[str, Window] = field(default_factory=dict)


def approval(name: str, *, who: str = "user:ann", covers: Sequence[str] = (), **options: object) -> Node:
    """A question that pins the version of the document."""
    by, _, of = who.partition(":")
    op = g.HumanOp(
        outcomes=("approved", "rejected"),
        asks=(Ask(by=by, of=of),),
        pins=True,
        covers=tuple(covers),
        requires_reason=True,
        **options,  # type: ignore[arg-type]
    )
    return Node(id=name, op=op)


def chain(*nodes: Node, out: str = "approved") -> Body:
    """Nodes one after the other, each left by one outcome."""
    edges = [Edge(source=a.id, target=b.id, on=_on(a, out)) for a, b in pairwise(nodes)]
    return Body(nodes=nodes, first=nodes[0].id, last=(f"{nodes[-1].id}:{_on(nodes[-1], out)}",), edges=edges)


def _on(node: Node, out: str) -> str:
    return out if isinstance(node.op, g.HumanOp) else g.OK


def both(first: Node, second: Node) -> Body:
    """Two nodes at the same time, which meet."""
    split, join = Node(id="fork", op=g.SplitOp()), Node(id="meet", op=g.JoinOp(split="fork"))
    edges = [
        Edge(source="fork", target=first.id, on=g.BRANCH),
        Edge(source="fork", target=second.id, on=g.BRANCH),
        Edge(source=first.id, target="meet", on=_on(first, "approved")),
        Edge(source=second.id, target="meet", on=_on(second, "approved")),
    ]
    return Body(nodes=(split, first, second, join), first="fork", last=("meet:ok",), edges=edges)


@dataclass
class _Draft:
    nodes: list[Node]
    edges: list[Edge]
    windows: dict[str, Window]


def invoice(  # noqa: PLR0913 - what can be different, all by name
    bodies: Mapping[str, Body] | None = None,
    *,
    fields: Mapping[str, DocumentField] = FIELDS,
    actions: Sequence[DocumentAction] = (),
    amendment: str = "new_row",
    on_drift: str = "amend",
    on_edit: str = "keep",
    capabilities: Mapping[str, str] | None = None,
    name: str = "invoice",
    version: str = "1",
) -> Graph:
    """The standard lifecycle: draft, submitted, active, cancelled, amended."""
    filled, may = bodies or {}, capabilities or {}
    draft = _frame(amendment)
    regions = _regions(on_edit)
    for slot, region in regions.items():
        _fill(draft, region, filled.get(slot))
    transitions = (
        DocumentTransition(
            name="submit", sources=("draft", "amended"), target="submitted", capability=may.get("submit", "")
        ),
        DocumentTransition(
            name="approve",
            sources=("submitted",),
            target="active",
            capability=may.get("approve", ""),
            begins="by_itself" if APPROVE_SLOT in filled else "asked",
        ),
        DocumentTransition(
            name="cancel",
            sources=("draft", "submitted", "active", "amended"),
            target="cancelled",
            capability=may.get("cancel", ""),
            kind="cancel",
        ),
        DocumentTransition(name="recall", sources=("submitted",), target="draft", kind="recall"),
    )
    stable = {node.id for node in draft.nodes if node.region == APPROVE_SLOT}
    document = DocumentSpec(
        entity_type=name,
        fields=dict(fields),
        initial="draft",
        terminal=("cancelled",),
        states={
            "draft": "editable",
            "submitted": "amend_only",
            "active": "locked",
            "cancelled": "locked",
            "amended": "editable",
        },
        transitions=transitions,
        actions=tuple(actions),
        regions=tuple(regions.values()),
        windows=draft.windows,
        stable=tuple(sorted(stable | {"sys:state:submitted", "sys:gate:approve"})),
        amendment=amendment,  # type: ignore[arg-type]
        on_drift=on_drift,  # type: ignore[arg-type]
        contract_version="1",
    )
    return compile_graph(
        kind="envelope",
        name=name,
        version=version,
        entry="sys:start",
        nodes=draft.nodes,
        edges=draft.edges,
        policies=Policies(on_failure="pause", on_no_edge="pause"),
        document=document,
    )


def _frame(amendment: str) -> _Draft:
    intents = {
        "draft": ("submit", "cancel"),
        "submitted": ("approve", "cancel", "recall"),
        "active": ("cancel",),
        "cancelled": (),
        "amended": ("submit", "cancel"),
    }
    windows: dict[str, Window] = {
        "sys:start": "editable",
        "sys:end": "locked",
        "sys:gate:submit": "editable",
        "sys:gate:approve": "amend_only",
        "sys:gate:cancel": "locked",
        "sys:gate:recall": "amend_only",
        "sys:state:draft": "editable",
        "sys:state:submitted": "amend_only",
        "sys:state:active": "locked",
        "sys:state:cancelled": "locked",
        "sys:state:amended": "editable",
    }
    nodes = [Node(id="sys:start", op=g.StartOp()), Node(id="sys:end", op=g.RestOp())]
    nodes += [Node(id=f"sys:state:{each}", op=g.StateOp(status=each, intents=names)) for each, names in intents.items()]
    nodes += [Node(id=f"sys:gate:{t}", op=g.GateOp(transition=t)) for t in ("submit", "approve", "cancel", "recall")]
    edges = [
        Edge(source="sys:start", target="sys:state:draft"),
        Edge(source="sys:start", target="sys:state:amended", on=g.AMENDED),
        Edge(source="sys:gate:submit", target="sys:state:submitted", on=g.PASS),
        *(
            Edge(
                source="sys:gate:submit",
                target=f"sys:state:{each}",
                on=g.REJECT,
                rework=True,
                priority=place,
                when=when(f"entity.status == '{each}'"),
            )
            for place, each in enumerate(("draft", "amended"))
        ),
        Edge(source="sys:gate:approve", target="sys:state:draft", on=g.REJECT, rework=True),
        Edge(source="sys:gate:cancel", target="sys:state:cancelled", on=g.PASS),
        Edge(source="sys:gate:recall", target="sys:state:draft", on=g.PASS, rework=True),
        Edge(source="sys:state:submitted", target="sys:gate:recall", on="recall"),
        *(
            Edge(source=f"sys:state:{each}", target="sys:gate:cancel", on="cancel")
            for each in ("draft", "submitted", "active", "amended")
        ),
        Edge(source="sys:state:active", target="sys:end"),
        Edge(source="sys:state:cancelled", target="sys:end"),
    ]
    if amendment == "in_place":
        edges += [
            Edge(source=f"sys:state:{each}", target="sys:state:amended", on=g.AMEND, rework=True)
            for each in ("submitted", "active")
        ]
    return _Draft(nodes, edges, windows)


def _regions(on_edit: str) -> dict[str, Region]:
    return {
        SUBMIT_SLOT: Region(
            id=SUBMIT_SLOT,
            entry="sys:state:draft",
            exit="sys:gate:submit",
            on_edit=on_edit,  # type: ignore[arg-type]
        ),
        APPROVE_SLOT: Region(
            id=APPROVE_SLOT, entry="sys:state:submitted", exit="sys:gate:approve", window="amend_only", stable=True
        ),
        ACTIVE_SLOT: Region(id=ACTIVE_SLOT, entry="sys:gate:approve", exit="sys:state:active", window="locked"),
        AMEND_SLOT: Region(id=AMEND_SLOT, entry="sys:state:amended", exit="sys:gate:submit"),
    }


def _fill(draft: _Draft, region: Region, body: Body | None) -> None:
    on = {"sys:gate:submit": "submit", "sys:gate:approve": "approve", "sys:state:active": g.PASS}[region.exit]
    if body is None:
        draft.edges.append(Edge(source=region.entry, target=region.exit, on=on))
        if region.exit == "sys:gate:approve":
            draft.edges.append(Edge(source=region.exit, target=region.entry, on=g.AGAIN, rework=True))
        return
    short = region.id.removeprefix("slot:")
    inside, outside = f"sys:slot:{short}:in", f"sys:slot:{short}:out"
    draft.nodes.append(Node(id=inside, op=g.ProxyOp(slot=region.id, side="in"), region=region.id))
    draft.nodes.append(Node(id=outside, op=g.ProxyOp(slot=region.id, side="out"), region=region.id))
    draft.nodes += [_in_region(node, region.id) for node in body.nodes]
    draft.edges += [Edge(source=region.entry, target=inside, on=on), Edge(source=inside, target=body.first)]
    draft.edges += body.edges
    for end in body.last:
        name, _, outcome = end.rpartition(":")
        draft.edges.append(Edge(source=name, target=outside, on=outcome))
    draft.edges.append(Edge(source=outside, target=region.exit))
    if region.exit.startswith("sys:gate:"):
        when_back = None if region.exit == "sys:gate:approve" else when(f"entity.status == '{_status(region)}'")
        draft.edges.append(
            Edge(
                source=region.exit,
                target=inside,
                on=g.AGAIN,
                rework=True,
                when=when_back,
                priority=int(region.id == AMEND_SLOT),
            )
        )
    for name in (inside, outside, *(node.id for node in body.nodes)):
        draft.windows[name] = body.windows.get(name, region.window)


def _status(region: Region) -> str:
    return region.entry.removeprefix("sys:state:")


def _in_region(node: Node, slot: str) -> Node:
    return Node(**{name: getattr(node, name) for name in node.__struct_fields__} | {"region": slot})
