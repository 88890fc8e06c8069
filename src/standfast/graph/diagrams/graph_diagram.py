"""Diagrams of graphs: Mermaid, DOT, and JSON for other renderers.

Pure functions of a graph, the state of its nodes in a run (`live`), and the ids of the edges taken (`taken`). Equal
input gives equal text. Names and conditions are escaped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

import msgspec

from standfast.graph.diagrams.diagram_text import digraph, dot_arrow, dot_box, in_mermaid, written
from standfast.graph.model import BRANCH, OK, Edge, Graph, Node, Op, TaskOp
from standfast.graph.nodes.kind import NodeShape, source


class NodeLife(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a node in a run."""

    status: str = "pending"
    """One of pending, running, waiting, completed, failed, skipped, rolled_back and similar."""
    visits: int = 0
    """Number of visits."""
    attempts: int = 0
    """Handler calls in the last visit."""


Live = Mapping[str, NodeLife]
"""Node states by name of the node or compensation. Missing ones have not begun."""


class _Look(msgspec.Struct, frozen=True):
    """The colours of a box."""

    fill: str
    line: str
    text: str = "#1b1f24"


_LOOKS = {
    "pending": _Look("#f6f8fa", "#8c959f", "#57606a"),
    "running": _Look("#ddf4ff", "#0969da"),
    "waiting": _Look("#fff8c5", "#9a6700"),
    "completed": _Look("#dafbe1", "#1a7f37"),
    "failed": _Look("#ffebe9", "#cf222e"),
    "skipped": _Look("#eaeef2", "#8c959f", "#57606a"),
    "rolled_back": _Look("#fbefff", "#8250df"),
}
_SAME_LOOK = {
    "confirmed": "completed",
    "rejected": "failed",
    "paused": "waiting",
    "waiting_decision": "waiting",
    "compensation": "rolled_back",
}
"""Statuses that share a style."""
_PLAIN_LOOK = _Look("#ffffff", "#57606a")
_BAR = _Look("#424a53", "#1b1f24", "#ffffff")
_TAKEN = "#0969da"
_DOT = "#46;"
"""A dot as an entity, which comments do not need."""


class _Box(msgspec.Struct, frozen=True, kw_only=True):
    """A node in the diagram."""

    key: str
    """Generated key of the node, never an external name."""
    shape: NodeShape
    lines: tuple[str, ...]
    look: str = ""
    """The status that colours it. Empty without live state."""
    undoing: _Box | None = None
    """Its compensation, drawn beside it."""


class _Line(msgspec.Struct, frozen=True, kw_only=True):
    """An edge in the diagram."""

    source: str
    target: str
    label: str
    is_dashed: bool
    is_taken: bool


class _Picture(msgspec.Struct, frozen=True, kw_only=True):
    """The content of the diagram for both languages."""

    title: str
    entry: str
    boxes: list[_Box]
    lines: list[_Line]


# -- the languages


def mermaid(graph: Graph, live: Live | None = None, *, taken: Collection[str] = ()) -> str:
    """Return the graph as a Mermaid flowchart."""
    picture = _picture(graph, live, taken)
    links = [(f"entry --> {picture.entry}", False)] if picture.entry else []
    links += [(_mermaid_link(line), line.is_taken) for line in picture.lines]
    lines = [_mermaid_box(box) for box in picture.boxes]
    lines += ['entry(("start"))'] if picture.entry else []
    lines += [link for link, _ in links]
    for box in picture.boxes:
        if box.undoing is not None:
            lines += [_mermaid_box(box.undoing), f"{box.key} -.- {box.undoing.key}"]
    lines += _mermaid_classes(picture)
    marked = ",".join(str(place) for place, (_, is_taken) in enumerate(links) if is_taken)
    lines += [f"linkStyle {marked} stroke:{_TAKEN},stroke-width:3px"] if marked else []
    return written(f"%% {in_mermaid(picture.title).replace(_DOT, '.')}\nflowchart TD", lines)


def _mermaid_box(box: _Box) -> str:
    before, after = box.shape.mermaid
    return f"{box.key}{before}{in_mermaid(*box.lines)}{after}"


def _mermaid_link(line: _Line) -> str:
    arrow = "-.->" if line.is_dashed else "-->"
    label = f'|"{in_mermaid(line.label)}"|' if line.label else ""
    return f"{line.source} {arrow}{label} {line.target}"


def _mermaid_classes(picture: _Picture) -> Iterator[str]:
    """Return the colours by status. Bars have a dark colour where no status is known."""
    members: defaultdict[str, list[str]] = defaultdict(list)
    for box in _all_boxes(picture):
        members[box.look or ("bar" if box.shape.is_bar else "plain")].append(box.key)
    for name in sorted(members):
        look = {**_LOOKS, "bar": _BAR, "plain": _PLAIN_LOOK}[name]
        yield f"classDef {name} fill:{look.fill},stroke:{look.line},color:{look.text}"
        yield f"class {','.join(members[name])} {name}"
    undoing = [box.undoing.key for box in picture.boxes if box.undoing is not None]
    if undoing:
        yield "classDef undoing stroke-dasharray:4 3"
        yield f"class {','.join(undoing)} undoing"


def dot(graph: Graph, live: Live | None = None, *, taken: Collection[str] = ()) -> str:
    """Return the graph in the DOT language."""
    picture = _picture(graph, live, taken)
    lines = ['node [fontname="sans-serif"];', 'edge [fontname="sans-serif"];']
    lines += [_dot_box(box) for box in picture.boxes]
    lines += ["entry [shape=point];", dot_arrow("entry", picture.entry)] if picture.entry else []
    lines += [_dot_link(line) for line in picture.lines]
    for box in picture.boxes:
        if box.undoing is not None:
            lines.append(_dot_box(box.undoing, is_dashed=True))
            lines.append(dot_arrow(box.key, box.undoing.key, "", "style=dashed", "arrowhead=none", "constraint=false"))
            lines.append(f"{{ rank=same; {box.key}; {box.undoing.key}; }}")
    return digraph(picture.title, lines)


def _dot_box(box: _Box, *, is_dashed: bool = False) -> str:
    look = _LOOKS[box.look] if box.look else (_BAR if box.shape.is_bar else _PLAIN_LOOK)
    shape = 'shape=box, style="filled,rounded,dashed"' if is_dashed else box.shape.dot
    colours = f'fillcolor="{look.fill}", color="{look.line}", fontcolor="{look.text}"'
    return dot_box(box.key, box.lines, shape, colours)


def _dot_link(line: _Line) -> str:
    marks = ["style=dashed"] if line.is_dashed else []
    marks += [f'color="{_TAKEN}", penwidth=3'] if line.is_taken else []
    return dot_arrow(line.source, line.target, line.label, *marks)


def graph_json(graph: Graph, live: Live | None = None, *, taken: Collection[str] = ()) -> str:
    """Return the graph as JSON with all defaults: nodes, edges, policies and hash, and the live state if given."""
    order = _order(graph)
    whole = {
        name: _spelt_out(getattr(graph, name))
        for name in graph.__struct_fields__
        if name not in {"nodes", "edges", "title"}
    }
    whole["title"] = graph.title or ""
    nodes = [_json_node(graph.nodes[name], live) for name in order]
    edges = [
        {**_fields(edge), "id": edge.id, "label": _label(edge)}
        | ({} if live is None else {"is_taken": edge.id in taken})
        for edge in _edges(graph, order)
    ]
    return msgspec.json.encode({**whole, "nodes": nodes, "edges": edges}, order="deterministic").decode()


def _json_node(node: Node, live: Live | None) -> dict[str, object]:
    plain = _fields(node) | {"kind": _kind(node.op), "execution": node.execution, "detail": node.op.detail}
    if live is None:
        return plain
    lives = {"live": _fields(live.get(node.id, NodeLife()))}
    if node.compensation_name in live:
        lives["compensation_live"] = _fields(live[node.compensation_name])
    return plain | lives


# -- content of the diagram


def _picture(graph: Graph, live: Live | None, taken: Collection[str]) -> _Picture:
    order = _order(graph)
    keys = {name: f"n{place}" for place, name in enumerate(order)}
    return _Picture(
        title=f"{graph.name} {graph.version}",
        entry=keys.get(graph.entry, ""),
        boxes=[_box(graph.nodes[name], keys[name], live) for name in order],
        lines=[
            _Line(
                source=keys[edge.source],
                target=keys[edge.target],
                label=_label(edge),
                is_dashed=edge.rework,
                is_taken=edge.id in taken,
            )
            for edge in _edges(graph, order)
            if edge.source in keys and edge.target in keys
        ]
        + _deadline(graph, keys),
    )


def _deadline(graph: Graph, keys: Mapping[str, str]) -> list[_Line]:
    """Return the edge for the run's deadline, drawn from the start."""
    target = graph.policies.on_deadline
    if not target or not {target, graph.entry} <= keys.keys():
        return []
    return [_Line(source="entry", target=keys[target], label="time is over", is_dashed=True, is_taken=False)]


def _order(graph: Graph) -> list[str]:
    """Return the nodes in the order of their distance from the entry, then the unreachable ones."""
    targets: defaultdict[str, list[str]] = defaultdict(list)
    for edge in sorted(graph.edges, key=lambda edge: (edge.priority, edge.id)):
        targets[edge.source].append(edge.target)
    seen = dict.fromkeys([graph.entry] if graph.entry in graph.nodes else [])
    pending = list(seen)
    for name in pending:  # The list grows during the iteration.
        fresh = [each for each in dict.fromkeys(targets[name]) if each in graph.nodes and each not in seen]
        seen.update(dict.fromkeys(fresh))
        pending += fresh
    return [*seen, *sorted(graph.nodes.keys() - seen.keys())]


def _edges(graph: Graph, order: list[str]) -> list[Edge]:
    places = {name: place for place, name in enumerate(order)}
    return sorted(graph.edges, key=lambda edge: (places.get(edge.source, len(places)), edge.priority, edge.id))


def _all_boxes(picture: _Picture) -> Iterator[_Box]:
    for box in picture.boxes:
        yield box
        if box.undoing is not None:
            yield box.undoing


def _box(node: Node, key: str, live: Live | None) -> _Box:
    undoing = None
    if node.compensation is not None:
        undoing = _titled(node.compensation_name or f"undo {node.id}", "", live, key=f"{key}u", shape=TaskOp.shape)
    box = _titled(node.id, node.op.detail, live, key=key, shape=node.op.shape)
    return msgspec.structs.replace(box, undoing=undoing)


def _titled(title: str, detail: str, live: Live | None, *, key: str, shape: NodeShape) -> _Box:
    life = None if live is None else live.get(title, NodeLife())
    lines = tuple(line for line in (title, detail, _told(life)) if line.strip())
    return _Box(key=key, shape=shape, lines=lines or (" ",), look=_look(life))


def _look(life: NodeLife | None) -> str:
    if life is None:
        return ""
    look = _SAME_LOOK.get(life.status, life.status)
    return look if look in _LOOKS else "pending"


def _told(life: NodeLife | None) -> str:
    """Describe a node's state in words, because colours alone are not accessible."""
    if life is None or life == NodeLife():
        return ""
    counts = [(life.visits, "visits"), (life.attempts, "attempts")]
    return ", ".join([life.status, *(f"{count} {what}" for count, what in counts if count > 1)])


def _label(edge: Edge) -> str:
    """Return the label of an edge: the outcome unless it is the default, the condition and the capability."""
    outcome = "" if edge.on in {OK, BRANCH} else edge.on
    condition = "" if edge.when is None else source(edge.when)
    needed = f"needs {edge.capability}" if edge.capability else ""
    asked = ", ".join(text for text in (condition, needed) if text)
    return ": ".join(text for text in (outcome, asked) if text)


def _kind(op: Op) -> str:
    return str(type(op).__struct_config__.tag)


def _spelt_out(value: object) -> object:
    return _fields(value) if isinstance(value, msgspec.Struct) else value


def _fields(value: msgspec.Struct) -> dict[str, object]:
    """Return all fields of a struct, including defaults."""
    return {name: _spelt_out(getattr(value, name)) for name in value.__struct_fields__}
