"""Pictures of graphs: everything is in them, in one order, and no name can break their grammar."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import pairwise
from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from standfast.expressions import parse
from standfast.graph import model as g
from standfast.graph.diagrams.diagram_text import LONGEST_TEXT
from standfast.graph.diagrams.graph_diagram import NodeLife, dot, graph_json, mermaid
from standfast.graph.model import Edge, Graph, Node
from support.untimed import untimed

QUESTION = parse("input.total > 100").to_data()
GUARD = parse('input.name == "x]"').to_data()
LIST = parse("input.lines", spelling="mapping").to_data()


def task(name: str, undo: str = "") -> Node:
    """A task, with what undoes it."""
    work = g.HandlerCall(handler="h")
    return Node(id=name, op=g.TaskOp(work=work), compensation=work if undo else None, compensation_name=undo)


def drawn(nodes: list[Node], edges: list[Edge], name: str = "order") -> Graph:
    """A graph as it is drawn; nothing checks it."""
    return Graph(
        kind="process",
        name=name,
        version="1",
        entry=nodes[0].id,
        nodes={node.id: node for node in nodes},
        edges=tuple(edges),
        hash="cafe",
    )


ORDER = drawn(
    [
        task("reserve", "release"),
        Node(id="large", op=g.ConditionOp(expression=QUESTION)),
        Node(id="ask", op=g.HumanOp(role="manager")),
        task("ship"),
    ],
    [
        Edge(source="reserve", target="large"),
        Edge(source="large", target="ask", on="true"),
        Edge(source="large", target="ship", on="false"),
        Edge(source="ask", target="ship", on="confirmed", when=GUARD),
        Edge(source="ask", target="reserve", on="rejected", rework=True),
    ],
)
LIFE = {
    "reserve": NodeLife(status="completed", visits=2, attempts=3),
    "large": NodeLife(status="completed", visits=1),
    "ask": NodeLife(status="waiting", visits=1),
}
TAKEN = ["reserve-[ok]->large", "large-[true]->ask"]

MERMAID = """%% order 1
flowchart TD
    n0["reserve"]
    n1{"large<br/>input#46;total #62; 100"}
    n2["ship"]
    n3[/"ask<br/>manager"/]
    entry(("start"))
    entry --> n0
    n0 --> n1
    n1 -->|"false"| n2
    n1 -->|"true"| n3
    n3 -->|"confirmed#58; input#46;name #61;#61; #34;x#93;#34;"| n2
    n3 -.->|"rejected"| n0
    n0u["release"]
    n0 -.- n0u
    classDef plain fill:#ffffff,stroke:#57606a,color:#1b1f24
    class n0,n0u,n1,n2,n3 plain
    classDef undoing stroke-dasharray:4 3
    class n0u undoing
"""

DOT = r"""digraph "order 1" {
    node [fontname="sans-serif"];
    edge [fontname="sans-serif"];
    n0 [label="reserve\ncompleted, 2 visits, 3 attempts", shape=box, style="filled,rounded", fillcolor="#dafbe1", color="#1a7f37", fontcolor="#1b1f24"];
    n1 [label="large\ninput.total > 100\ncompleted", shape=diamond, style=filled, fillcolor="#dafbe1", color="#1a7f37", fontcolor="#1b1f24"];
    n2 [label="ship", shape=box, style="filled,rounded", fillcolor="#f6f8fa", color="#8c959f", fontcolor="#57606a"];
    n3 [label="ask\nmanager\nwaiting", shape=parallelogram, style=filled, fillcolor="#fff8c5", color="#9a6700", fontcolor="#1b1f24"];
    entry [shape=point];
    entry -> n0;
    n0 -> n1 [color="#0969da", penwidth=3];
    n1 -> n2 [label="false"];
    n1 -> n3 [label="true", color="#0969da", penwidth=3];
    n3 -> n2 [label="confirmed: input.name == \"x]\""];
    n3 -> n0 [label="rejected", style=dashed];
    n0u [label="release", shape=box, style="filled,rounded,dashed", fillcolor="#f6f8fa", color="#8c959f", fontcolor="#57606a"];
    n0 -> n0u [style=dashed, arrowhead=none, constraint=false];
    { rank=same; n0; n0u; }
}
"""


@pytest.mark.row("E-191")
@pytest.mark.row("G-31")
def test_a_graph_as_mermaid() -> None:
    """Shapes by kind, outcomes and conditions on edges, dashed ways back, and what undoes a step beside it."""
    assert mermaid(ORDER) == MERMAID


def test_a_run_as_dot() -> None:
    """A run has the same picture, with colours by status, the status in words, and the ways that were taken."""
    assert dot(ORDER, LIFE, taken=TAKEN) == DOT


# -- a strict reading of both languages

LABEL = r'"(?P<label>(?:[^\W_]|[ _-]|#\d+;|<br/>)*)"'
SHAPES = [
    (r"\[", r"\]"),
    (r"\{", r"\}"),
    (r"\[/", r"\\\]"),
    (r"\[\\", r"/\]"),
    (r"\[\(", r"\)\]"),
    (r">", r"\]"),
    (r"\[/", r"/\]"),
    (r"\(\(\(", r"\)\)\)"),
    (r"\(\(", r"\)\)"),
    (r"\{\{", r"\}\}"),
    (r"\[\[", r"\]\]"),
    (r"\(\[", r"\]\)"),
]
BOX = [re.compile(rf"    (?P<key>n\d+u?|entry){before}{LABEL}{after}") for before, after in SHAPES]
LINK = re.compile(rf"    (?P<source>n\d+|entry) (?P<arrow>-->|-\.->|-\.-)(?:\|{LABEL}\|)? (?P<target>n\d+u?)")
OTHER = [
    re.compile(r"%% (?:[^\W_]|[ _.-]|#\d+;)*"),
    re.compile(r"flowchart TD"),
    re.compile(r"    classDef \w+ [a-z-]+:[^:;\s]+(?: 3)?(?:,[a-z-]+:[^:;\s]+)*"),
    re.compile(r"    class n\d+u?(?:,n\d+u?)* \w+"),
    re.compile(r"    linkStyle \d+(?:,\d+)* stroke:#\w+,stroke-width:3px"),
]


class Read(msgspec.Struct):
    """What a picture says when it is read again."""

    boxes: dict[str, str]
    """The label of each box, its lines parted by line breaks."""
    links: list[tuple[str, str, str]]
    """Source, target and label."""


def read_mermaid(text: str) -> Read:
    """Read a flowchart; what is not one of its few forms is refused."""
    read = Read({}, [])
    for line in text.removesuffix("\n").split("\n"):
        box = next((match for form in BOX if (match := form.fullmatch(line))), None)
        link = LINK.fullmatch(line)
        if box is not None:
            assert box["key"] not in read.boxes
            read.boxes[box["key"]] = decoded(box["label"])
        elif link is not None:
            read.links.append((link["source"], link["target"], decoded(link["label"] or "")))
        else:
            assert any(form.fullmatch(line) for form in OTHER), line
    return read


def decoded(label: str) -> str:
    """The text that Mermaid shows for a label."""
    return re.sub(r"#(\d+);", lambda match: chr(int(match[1])), label.replace("<br/>", "\n"))


TOKEN = re.compile(
    r'\s*(?:(?P<text>"(?:[^"\\]|\\["\\n])*")|(?P<word>[A-Za-z_][\w.]*|\d+(?:\.\d+)?)|(?P<sign>->|[{}\[\]=,;]))'
)


def read_dot(text: str) -> Read:
    """Read a digraph of plain statements; anything else is refused. Control characters have no place in one."""
    assert not re.search(r"[^\S\n ]|[\x00-\x09\x0b-\x1f\x7f-\x9f\ud800-\udfff]", text)
    words: list[str] = []
    place = 0
    while place < len(text.rstrip()):
        match = TOKEN.match(text, place)
        assert match is not None, text[place : place + 40]
        words.append(match[0].strip())
        place = match.end()
    assert words[0] == "digraph"
    assert words[1].startswith('"')
    assert (words[2], words[-1]) == ("{", "}")
    read = Read({}, [])
    for statement in statements(words[3:-1]):
        note(read, statement)
    return read


def statements(words: list[str]) -> list[list[str]]:
    """The statements of a digraph, each without its semicolon; a group in braces is taken apart."""
    found: list[list[str]] = [[]]
    for word in words:
        if word in {"{", "}"}:
            assert not found[-1]
        elif word == ";":
            found.append([])
        else:
            found[-1].append(word)
    assert found.pop() == []
    return found


def note(read: Read, words: list[str]) -> None:
    """Take note of one statement."""
    if words[:1] in (["node"], ["edge"]) or words == ["rank", "=", "same"] or len(words) == 1:
        return
    is_link = words[1] == "->"
    rest = words[3:] if is_link else words[1:]
    values = attributes(rest)
    label = undone(values.get("label", '""'))
    assert re.fullmatch(r"n\d+u?|entry", words[0])
    if is_link:
        assert re.fullmatch(r"n\d+u?", words[2])
        read.links.append((words[0], words[2], label))
    else:
        assert words[0] not in read.boxes
        read.boxes[words[0]] = label


def attributes(words: list[str]) -> dict[str, str]:
    """What stands in brackets."""
    if not words:
        return {}
    assert (words[0], words[-1]) == ("[", "]")
    inner = [word for word in words[1:-1] if word != ","]
    assert inner[1::3] == ["="] * (len(inner) // 3)
    return dict(zip(inner[0::3], inner[2::3], strict=True))


def undone(quoted: str) -> str:
    """The text that Graphviz shows for a quoted label."""
    plain = re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], quoted[1:-1])
    assert not re.search(r"&(?!amp;)", plain)
    return plain.replace("&amp;", "&")


READERS: list[tuple[Callable[..., str], Callable[[str], Read]]] = [(mermaid, read_mermaid), (dot, read_dot)]

HOSTILE = [
    "end",
    "graph",
    "subgraph",
    "click",
    "style",
    "linkStyle",
    "default",
    "node",
    "strict",
    "n0",
    "entry",
    'a"b',
    '"]; end',
    "a]b[c",
    "{x} {{y}} (z) |w|",
    "back\\slash\\",
    "\\N \\G \\n",
    "&lt; &quot; &amp; &#35;",
    "#quot; #35; #",
    "<b>bold</b><script>alert(1)</script><br/>",
    "%% comment",
    "%%{init: {'theme': 'dark'}}%%",
    "classDef x fill:#f00;",
    "style: x#1;",
    "a:::b",
    "x@{ shape: fork }",
    "`code` **bold** _em_ __init__ ~~gone~~",
    "1. list",
    "- list",
    "# head",
    "http://a.b/c www.example.com a@b.co",
    "$$x^2$$",
    "--> -.-> o--o ==>",
    "übergröße → 日本語 😀 é\u0301",
    "'single'",
    "snake_case kebab-case",
    "// comment /* x */",
]


def chain_of(names: list[str]) -> Graph:
    """A chain of nodes of every kind in turn, each undone by something, with the names as outcomes as well."""
    ops: list[g.Op] = [
        g.TaskOp(work=g.HandlerCall(handler="h")),
        g.SplitOp(),
        g.JoinOp(split="x"),
        g.SavePointOp(),
        g.NoReturnOp(),
        g.EndOp(),
    ]
    work = g.HandlerCall(handler="h")
    nodes = [
        Node(id=name, op=ops[place % len(ops)], compensation=work, compensation_name=f"undo {name}")
        for place, name in enumerate(names)
    ]
    edges = [Edge(source=before, target=after, on=after) for before, after in pairwise(names)]
    return drawn(nodes, edges, name=" ".join(names))


@pytest.mark.parametrize(("draw", "read"), READERS, ids=["mermaid", "dot"])
def test_hostile_names_are_only_labels(draw: Callable[..., str], read: Callable[[str], Read]) -> None:
    """Words and signs of the languages in a name are shown as they are, and nothing else comes of them."""
    picture = read(draw(chain_of(HOSTILE)))
    keys = [f"n{place}" for place in range(len(HOSTILE))]
    assert [picture.boxes[key] for key in keys] == HOSTILE
    assert [picture.boxes[f"{key}u"] for key in keys] == [f"undo {name}" for name in HOSTILE]
    links = [link for link in picture.links if link[0] != "entry" and not link[1].endswith("u")]
    assert links == list(zip(keys, keys[1:], HOSTILE[1:], strict=False))


@pytest.mark.parametrize(("draw", "read"), READERS, ids=["mermaid", "dot"])
def test_hidden_characters_are_shown_or_smoothed(draw: Callable[..., str], read: Callable[[str], Read]) -> None:
    """Line breaks become spaces, other hidden characters are written out, and endless names are cut."""
    names = ["a\r\n\tb", "x\x00y", "\x1b[31m", "\u202eabc", "\ud800", "one\u2028two", "👩\u200d🚀", "n" * 500, " "]
    picture = read(draw(chain_of(names)))
    shown = [picture.boxes[f"n{place}"].strip() for place in range(len(names))]
    assert shown == [
        "a b",
        "x\\u0000y",
        "\\u001b[31m",
        "\\u202eabc",
        "\\ud800",
        "one two",
        "👩\u200d🚀",
        "n" * LONGEST_TEXT + "…",
        "",
    ]


@untimed
@given(st.lists(st.text(max_size=30), min_size=1, max_size=6, unique=True), st.text(max_size=10))
def test_no_text_breaks_the_grammar(names: list[str], status: str) -> None:
    """Whatever names and statuses are, the pictures can be read and have as many boxes and ways as the graph."""
    graph = chain_of(names)
    live = {name: NodeLife(status=status, visits=2) for name in names}
    for draw, read in READERS:
        picture = read(draw(graph, live, taken=[edge.id for edge in graph.edges]))
        assert len([key for key in picture.boxes if key != "entry"]) == 2 * len(names)
        assert len(picture.links) == 1 + len(graph.edges) + len(names)
    assert {node["id"] for node in json.loads(graph_json(graph, live))["nodes"]} == set(names)


# -- what is shown


@pytest.mark.parametrize(
    ("op", "before", "detail"),
    [
        (g.TaskOp(work=g.HandlerCall(handler="h")), '["', ""),
        (g.ConditionOp(expression=QUESTION), '{"', "input.total > 100"),
        (g.SplitOp(), '[/"', ""),
        (g.SplitOp(items=LIST, item="line", limit=2), '[/"', "each line of input.lines, 2 at a time"),
        (g.JoinOp(split="x"), '[\\"', ""),
        (g.JoinOp(split="x", strategy="any"), '[\\"', "any of them, the others are undone"),
        (g.JoinOp(split="x", strategy="any", losers="finish"), '[\\"', "any of them, the others finish"),
        (g.JoinOp(split="x", strategy="count", count=2, losers="stop"), '[\\"', "2 of them, the others stop"),
        (g.SavePointOp(), '[("', ""),
        (g.NoReturnOp(), '>"', ""),
        (g.HumanOp(subject="large order", role="manager"), '[/"', "large order, manager"),
        (g.WaitTimerOp(duration_ms=86_400_000), '(("', "1 d"),
        (g.WaitTimerOp(duration_ms=90_000), '(("', "90 s"),
        (g.WaitTimerOp(duration_ms=7_200_000), '(("', "2 h"),
        (g.WaitTimerOp(duration_ms=1), '(("', "1 ms"),
        (g.WaitTimerOp(duration_ms=0), '(("', "0 ms"),
        (g.WaitTimerOp(until=LIST), '(("', "until input.lines"),
        (g.WaitTimerOp(cron="0 9 * * *", time_zone="Europe/Berlin"), '(("', "0 9 * * * Europe/Berlin"),
        (g.WaitEventOp(signal="payment"), '{{"', "payment"),
        (g.WaitEventsOp(events=(g.Awaited(event="paid"), g.Awaited(event="sent", name="x"))), '((("', "paid, x"),
        (g.WaitEventsOp(events=(g.Awaited(event="a"), g.Awaited(event="b")), need=1), '((("', "1 of a, b"),
        (g.CallOp(definition="invoice", version="2"), '[["', "invoice 2"),
        (g.EndOp(), '(["', ""),
        (g.EndOp(status="failed"), '(["', "failed"),
    ],
)
def test_each_kind_has_its_shape_and_its_words(op: g.Op, before: str, detail: str) -> None:
    """A node shows its name, what its kind says, and the shape of its kind, in both languages."""
    graph = drawn([Node(id="a", op=op)], [])
    expected = f"a\n{detail}" if detail else "a"
    assert f"    n0{before}a" in mermaid(graph)
    assert read_mermaid(mermaid(graph)).boxes["n0"] == expected
    assert read_dot(dot(graph)).boxes["n0"] == expected
    assert json.loads(graph_json(graph))["nodes"][0]["detail"] == detail


def test_a_way_says_what_it_takes() -> None:
    """The capability stands beside the condition: two ways by one outcome can be told apart."""
    ways = [
        Edge(source="a", target="b", on="confirmed", when=GUARD),
        Edge(source="a", target="b", on="confirmed", capability="orders:large", priority=1),
        Edge(source="a", target="b", on="confirmed", when=GUARD, capability="orders:large", priority=2),
    ]
    labels = [edge["label"] for edge in json.loads(graph_json(drawn([task("a"), task("b")], ways)))["edges"]]
    condition = labels[0].removeprefix("confirmed: ")
    assert labels[1:] == ["confirmed: needs orders:large", f"confirmed: {condition}, needs orders:large"]


def test_the_way_at_the_deadline_is_drawn() -> None:
    """The step that a run goes to when its time is over hangs on the start, as it is reached from everywhere."""
    graph = drawn([task("a"), task("late")], [])
    policies = msgspec.structs.replace(graph.policies, deadline_ms=1000, on_deadline="late")
    graph = msgspec.structs.replace(graph, policies=policies)
    for read in (read_mermaid(mermaid(graph)), read_dot(dot(graph))):
        assert ("entry", "n1", "time is over") in read.links


def test_branches_are_not_labelled() -> None:
    """The usual outcome and the branches of a fork need no word; every other outcome has one."""
    outcomes = ["ok", "branch", "error", "true", "*"]
    graph = drawn([task("a"), task("b")], [Edge(source="a", target="b", on=on) for on in outcomes])
    expected = ["", "*", "", "", "error", "true"]
    assert sorted(label for _, _, label in read_mermaid(mermaid(graph)).links) == sorted(expected)
    assert sorted(label for _, _, label in read_dot(dot(graph)).links) == sorted(expected)


@pytest.mark.parametrize("draw", [mermaid, dot, graph_json])
def test_the_order_of_the_graph_does_not_show(draw: Callable[..., str]) -> None:
    """The same graph gives the same text, however its nodes and edges are ordered."""
    expected = draw(ORDER, LIFE, taken=TAKEN)
    for seed in range(10):
        rng = Random(seed)
        nodes, edges = list(ORDER.nodes.items()), list(ORDER.edges)
        rng.shuffle(nodes)
        rng.shuffle(edges)
        life = dict(rng.sample(list(LIFE.items()), len(LIFE)))
        graph = msgspec.structs.replace(ORDER, nodes=dict(nodes), edges=tuple(edges))
        assert draw(graph, life, taken=rng.sample(TAKEN, len(TAKEN))) == expected


def test_what_cannot_be_reached_is_drawn_too() -> None:
    """A graph that nobody checked is drawn as far as it goes: lonely nodes are there, edges to nowhere are not."""
    graph = drawn([task("a"), task("lonely")], [Edge(source="a", target="gone"), Edge(source="gone", target="a")])
    for draw, read in READERS:
        picture = read(draw(msgspec.structs.replace(graph, entry="gone")))
        assert sorted(picture.boxes.values()) == ["a", "lonely"]
        assert picture.links == []
    assert len(json.loads(graph_json(graph))["edges"]) == 2


# -- live state


def classes(text: str) -> Mapping[str, list[str]]:
    """The boxes of each class of a flowchart."""
    return {name: keys.split(",") for keys, name in re.findall(r"^    class (\S+) (\w+)$", text, re.MULTILINE)}


def test_statuses_are_classes() -> None:
    """Each node has the class of its status; one that has not begun is pending; unknown words change nothing."""
    statuses = {
        "pending": "pending",
        "running": "running",
        "waiting": "waiting",
        "completed": "completed",
        "failed": "failed",
        "skipped": "skipped",
        "rolled_back": "rolled_back",
        "confirmed": "completed",
        "rejected": "failed",
        "paused": "waiting",
        "waiting_decision": "waiting",
        "compensation": "rolled_back",
        'odd"]; class n0 failed': "pending",
    }
    nodes = [task(f"{place:02}") for place in range(len(statuses))]
    live = {node.id: NodeLife(status=status, visits=1) for node, status in zip(nodes, statuses, strict=True)}
    found = classes(mermaid(drawn([*nodes, task("99")], []), {**live, "unknown": NodeLife(status="failed")}))
    of = {key: name for name, keys in found.items() for key in keys}
    places = {f"n{place}": look for place, look in enumerate(statuses.values())}
    assert of == {**places, f"n{len(statuses)}": "pending"}


def test_a_compensation_has_a_life_of_its_own() -> None:
    """What undoes a step is coloured by its own name."""
    graph = drawn([task("charge", "refund")], [])
    life = {"charge": NodeLife(status="rolled_back", visits=1), "refund": NodeLife(status="running", visits=1)}
    assert classes(mermaid(graph, life)) == {"rolled_back": ["n0"], "running": ["n0u"], "undoing": ["n0u"]}
    node = json.loads(graph_json(graph, life))["nodes"][0]
    assert (node["live"]["status"], node["compensation_live"]["status"]) == ("rolled_back", "running")


def test_an_unnamed_compensation_says_what_it_undoes() -> None:
    """Without a name of its own, a compensation is shown as the undoing of its step."""
    graph = drawn([Node(id="charge", op=g.SavePointOp(), compensation=g.HandlerCall(handler="h"))], [])
    assert read_mermaid(mermaid(graph)).boxes["n0u"] == "undo charge"


def test_ways_that_were_taken_stand_out() -> None:
    """The links that are marked in a flowchart are the edges that were taken, and no others."""
    text = mermaid(ORDER, LIFE, taken=TAKEN)
    marked = re.search(r"linkStyle (\S+)", text)
    assert marked is not None
    links = read_mermaid(text).links
    assert [links[int(place)][:2] for place in marked[1].split(",")] == [("n0", "n1"), ("n1", "n3")]
    assert "linkStyle" not in mermaid(ORDER, LIFE)


def test_the_json_tells_everything() -> None:
    """Nodes, edges, policies and hash, with defaults spelt out, and live state where there is one."""
    plain = json.loads(graph_json(ORDER))
    assert (plain["name"], plain["version"], plain["kind"], plain["entry"]) == ("order", "1", "process", "reserve")
    assert (plain["hash"], plain["ir_version"]) == ("cafe", g.IR_VERSION)
    assert plain["policies"] == {name: getattr(g.Policies(), name) for name in g.Policies.__struct_fields__}
    assert [node["id"] for node in plain["nodes"]] == ["reserve", "large", "ship", "ask"]
    reserve = plain["nodes"][0]
    assert (reserve["kind"], reserve["execution"], reserve["priority"]) == ("task", "effect", 0)
    assert reserve["op"]["work"]["retry"]["max_calls"] == 3
    assert reserve["compensation"]["handler"] == "h"
    assert "live" not in reserve
    last = plain["edges"][-1]
    assert (last["id"], last["rework"], last["label"]) == ("ask-[rejected]->reserve", True, "rejected")
    assert plain["edges"][-2]["when"]["source"] == 'input.name == "x]"'
    assert "is_taken" not in last


def test_the_json_of_a_run_has_its_life() -> None:
    """Each node of a run has a life, also one that has not begun, and each edge says whether it was taken."""
    run = json.loads(graph_json(ORDER, LIFE, taken=TAKEN))
    lives = {node["id"]: node["live"] for node in run["nodes"]}
    assert lives["reserve"] == {"status": "completed", "visits": 2, "attempts": 3}
    assert lives["ship"] == {"status": "pending", "visits": 0, "attempts": 0}
    assert [edge["id"] for edge in run["edges"] if edge["is_taken"]] == ["reserve-[ok]->large", "large-[true]->ask"]


def test_a_large_graph_is_drawn() -> None:
    """Five thousand steps in a row overflow nothing."""
    nodes = [task(f"s{place}") for place in range(5000)]
    edges = [Edge(source=f"s{place}", target=f"s{place + 1}") for place in range(4999)]
    for draw in (mermaid, dot, graph_json):
        assert "s4999" in draw(drawn(nodes, edges))
