"""A compiled graph is the same everywhere and for ever: its bytes, its hash, and what a store gives back."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import types
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec
import pytest

from standfast.errors import DefinitionError
from standfast.expressions import parse
from standfast.graph import model as g
from standfast.graph.compiler import compile_graph, graph_bytes, graph_hash, read_graph
from standfast.graph.document_spec import (
    DocumentAction,
    DocumentField,
    DocumentPolicy,
    DocumentTransition,
    Region,
)
from standfast.graph.model import IR_VERSION, Edge, Graph, Node, Policies, Rights
from standfast.graph.values.approver_rules import Ask

GOLDEN = "812cfdc07fb1a9953dde04dd44cb093b69591ad355b52a65d32c36a22e0cd319"
"""The hash of the sample. It may never change: stored definitions are known by theirs, and runs by their definition's."""

Plain = dict[str, object]

DEFAULTS: dict[str, Plain] = {
    "RetryRule": {
        "max_calls": 3,
        "delay_ms": 0,
        "backoff": "fixed",
        "factor_percent": 200,
        "cap_ms": 300000,
        "jitter_percent": 0,
        "is_default": False,
    },
    "HandlerCall": {
        "retry": {},
        "once": False,
        "transactional": False,
        "timeout_ms": None,
        "start_after_ms": 0,
        "capability": "",
    },
    "TaskOp": {"input": None, "output": None, "detached": False},
    "SplitOp": {"items": None, "item": "item", "limit": None, "most": None, "on_empty": "skip"},
    "JoinOp": {"strategy": "all", "count": 0, "losers": "undo", "answer": "", "accept": None, "abort": None},
    "HumanOp": {
        "outcomes": ("confirmed", "rejected"),
        "form": None,
        "form_for": (),
        "subject": "",
        "template": None,
        "shows": {},
        "role": "",
        "asks": (),
        "chain": "",
        "agree": None,
        "least": 0,
        "approves": "",
        "rejects": "rejected",
        "abstains": "abstained",
        "requires_reason": False,
        "self_approval": True,
        "distinct_from": (),
        "distinct_approvers": False,
        "delegable": True,
        "lays_over": False,
        "signs": {},
        "on_reject": None,
        "times": None,
        "last_resort": "",
        "channels": (),
        "pins": False,
        "covers": (),
    },
    "StateOp": {"intents": ()},
    "ActionOp": {"payload": {}, "work": None, "of": "", "target": None, "undo": ""},
    "PolicyGateOp": {"of": ""},
    "ScriptOp": {"into": ""},
    "DocumentField": {
        "required": False,
        "values": (),
        "items": None,
        "fields": {},
        "of": "",
        "formula": None,
        "times": None,
        "per": 1,
        "sensitive": False,
        "visible_to": (),
        "sources": (),
        "default": None,
        "system": False,
    },
    "DocumentTransition": {"capability": "", "begins": "asked", "kind": ""},
    "DocumentAction": {
        "payload": None,
        "capability": "",
        "workflow_allowed": False,
        "handler": "",
        "creates": False,
    },
    "Region": {"window": "editable", "stable": False, "on_edit": "keep", "on_reject": "keep"},
    "DocumentRule": {
        "when": None,
        "effect": "block",
        "field": "",
        "value": None,
        "reason": "",
        "outcome": "",
        "on": (),
        "to": (),
        "subject": "",
        "body": "",
        "channels": (),
        "url": "",
        "secret": "",
        "templates": {},
    },
    "DocumentSpec": {
        "terminal": (),
        "transitions": (),
        "actions": (),
        "regions": (),
        "windows": {},
        "stable": (),
        "amendment": "new_row",
        "amended": "amended",
        "superseded": "cancelled",
        "on_drift": "amend",
        "self_approval": False,
        "contract_version": "",
        "envelope_version": "",
        "compiler_version": "",
        "policies": (),
        "reads": {},
    },
    "DocumentPolicy": {"roles": (), "when": None},
    "Rung": {"role": "", "user": "", "outcome": "", "timeout_ms": None},
    "TaskTimes": {"due_ms": None, "reminders_ms": (), "every_ms": None, "escalation": (), "calendar": ""},
    "NotificationOp": {"body": "", "html": "", "templates": {}, "channels": ("in_app",), "wait": False},
    "WaitTimerOp": {"duration_ms": None, "until": None, "cron": "", "time_zone": "UTC", "calendar": ""},
    "Awaited": {"key": None, "match": None, "name": ""},
    "WaitEventsOp": {"need": "all"},
    "EventTrigger": {"key": None, "when": None, "input": None},
    "Ask": {"of": "", "rule": None, "weight": 1, "pick": "any", "via": ""},
    "CallOp": {"version": "", "input": None, "into": "", "detached": False},
    "EndOp": {"status": "completed", "outcome": "", "reason": ""},
    "Node": {
        "compensation": None,
        "compensation_name": "",
        "compensation_priority": None,
        "compensation_metadata": None,
        "priority": 0,
        "timeout_ms": None,
        "capability": "",
        "run_as": "",
        "region": "",
        "metadata": {},
    },
    "Edge": {"on": "ok", "when": None, "capability": "", "priority": 0, "rework": False, "assign": {}},
    "Policies": {
        "on_failure": "compensate",
        "on_cancel": "compensate",
        "on_reject": "abort",
        "on_no_edge": "complete",
        "deadline_ms": None,
        "on_deadline": "",
        "stop_grace_ms": 30000,
        "chain_limit": None,
        "max_visits": 1000,
        "max_tokens": None,
        "max_bytes": None,
    },
    "Rights": {"start": "", "cancel": "", "replaceable": False},
    "Graph": {"policies": {}, "rights": {}, "triggers": (), "document": None, "ir_version": 1, "hash": ""},
}
"""What every field means that a stored graph does not name. Add new fields; change nothing."""

QUESTION = parse("input.total > 100").to_data()
LIST = parse("input.lines", spelling="mapping").to_data()


def work(handler: str, **fields: object) -> g.HandlerCall:
    """A call of a handler."""
    return g.HandlerCall(handler=handler, **fields)  # type: ignore[arg-type]


def sample_nodes() -> list[Node]:
    """A node of every kind."""
    retry = g.RetryRule(
        max_calls=5, delay_ms=2000, backoff="exponential", factor_percent=150, cap_ms=9000, jitter_percent=10
    )
    return [
        Node(
            id="réserve",
            op=g.TaskOp(work=work("reserve", retry=retry, timeout_ms=5000)),
            compensation=work("release", transactional=True),
            compensation_name="undo",
            priority=7,
            metadata={"b": [1, None, {"y": True, "x": "ü"}], "a": -5},
            region="eu",
            run_as="clerk",
            capability="orders.reserve",
        ),
        Node(id="large", op=g.ConditionOp(expression=QUESTION)),
        Node(id="ask", op=g.HumanOp(subject="large order", role="manager"), timeout_ms=86_400_000),
        Node(id="fork", op=g.SplitOp()),
        Node(id="charge", op=g.TaskOp(work=work("charge", once=True, retry=g.RetryRule(max_calls=1)))),
        Node(id="each", op=g.SplitOp(items=LIST, item="line", limit=3)),
        Node(id="pack", op=g.TaskOp(work=work("pack"))),
        Node(id="packed", op=g.JoinOp(split="each")),
        Node(id="join", op=g.JoinOp(split="fork", strategy="count", count=1)),
        Node(id="safe", op=g.SavePointOp()),
        Node(id="gone", op=g.NoReturnOp()),
        Node(id="cool", op=g.WaitTimerOp(duration_ms=1000)),
        Node(id="paid", op=g.WaitEventOp(signal="payment")),
        Node(id="invoice", op=g.CallOp(definition="invoice", version="2")),
        Node(id="end", op=g.EndOp()),
        Node(id="bad", op=g.EndOp(status="failed")),
    ]


def sample_edges() -> list[Edge]:
    """Edges with every field."""
    return [
        Edge(source="réserve", target="large"),
        Edge(source="large", target="ask", on=g.TRUE),
        Edge(source="large", target="fork", on=g.FALSE),
        Edge(source="ask", target="fork", on=g.CONFIRMED, capability="orders.approve"),
        Edge(source="ask", target="réserve", on=g.REJECTED, rework=True, assign={"again": LIST}),
        Edge(source="ask", target="bad", on=g.TIMEOUT),
        Edge(source="fork", target="charge", on=g.BRANCH),
        Edge(source="fork", target="each", on=g.BRANCH),
        Edge(source="each", target="pack", on=g.BRANCH),
        Edge(source="pack", target="packed"),
        Edge(source="packed", target="join"),
        Edge(source="charge", target="join"),
        Edge(source="join", target="safe", priority=1),
        Edge(source="join", target="gone", when=QUESTION),
        Edge(source="safe", target="gone"),
        Edge(source="gone", target="cool"),
        Edge(source="cool", target="paid"),
        Edge(source="paid", target="invoice"),
        Edge(source="invoice", target="end"),
        Edge(source="invoice", target="bad", on="*"),
    ]


def compiled(nodes: list[Node], edges: list[Edge]) -> Graph:
    """The sample, of these nodes and edges."""
    policies = Policies(on_failure="pause", deadline_ms=10**9, chain_limit=50)
    return compile_graph(
        kind="process", name="order", version="3", entry="réserve", nodes=nodes, edges=edges, policies=policies
    )


def sample() -> Graph:
    """A graph with a bit of everything."""
    return compiled(sample_nodes(), sample_edges())


def fingerprint() -> str:
    """What must be the same in every process."""
    graph = sample()
    return f"{graph.hash} {graph_bytes(graph).hex()}"


# -- the same everywhere


@pytest.mark.row("E-939")
def test_the_hash_of_a_graph_never_changes() -> None:
    """The sample has the hash that it has always had."""
    assert sample().hash == GOLDEN


def test_the_defaults_never_change() -> None:
    """A stored graph leaves defaults out, so another default would change what it means: only new fields may be added."""
    assert {struct.__name__: defaults(struct) for struct in stored_structs() if defaults(struct)} == DEFAULTS


def defaults(struct: type[msgspec.Struct]) -> Plain:
    """The default of each field that has one, in plain values; one that is unset means that nothing is there."""
    needed = {each.name: "-" for each in msgspec.structs.fields(struct) if each.required}
    value = struct(**needed)
    given = {name: getattr(value, name) for name in struct.__struct_fields__ if name not in needed}
    return {name: msgspec.to_builtins(each) for name, each in given.items() if each is not msgspec.UNSET}


@pytest.mark.row("E-062")
@pytest.mark.parametrize("seed", range(20))
def test_the_order_of_the_input_does_not_matter(seed: int) -> None:
    """Nodes and edges in any order, and metadata too, give the same hash and the same bytes."""
    rng = Random(seed)
    nodes, edges = sample_nodes(), sample_edges()
    rng.shuffle(nodes)
    rng.shuffle(edges)
    nodes = [msgspec.structs.replace(each, metadata=shuffled(each.metadata, rng)) for each in nodes]
    graph = compiled(nodes, edges)
    assert graph.hash == sample().hash
    assert graph_bytes(graph) == graph_bytes(sample())


def shuffled(value: object, rng: Random) -> dict[str, g.Plain]:
    """The same object with its keys in another order, on every level."""

    def turn(part: object) -> object:
        if isinstance(part, list):
            return [turn(each) for each in part]
        if not isinstance(part, dict):
            return part
        return {key: turn(part[key]) for key in rng.sample(list(part), len(part))}

    return cast("dict[str, g.Plain]", turn(value))


@pytest.mark.row("E-062")
@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_another_process_compiles_the_same_bytes(seed: str, tmp_path: Path) -> None:
    """Neither the seed of Python's hashes nor the working directory nor the language shows in a graph."""
    script = f"import runpy; print(runpy.run_path({__file__!r})['fingerprint']())"
    there = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": "C", "TZ": "Asia/Kathmandu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert there.stdout.strip() == fingerprint()


# -- everything counts


def stored_structs() -> list[type[msgspec.Struct]]:
    """Every struct that is part of a stored graph."""
    structs = [g.RetryRule, g.HandlerCall, g.Rung, g.TaskTimes, g.Awaited, Ask, g.DocumentRule]
    structs += [DocumentField, DocumentTransition, DocumentAction, DocumentPolicy, Region, g.DocumentSpec]
    return [*structs, *get_args(g.Op), Node, Edge, Policies, Rights, g.EventTrigger, Graph]


def others(value: object, hint: object) -> Iterator[object]:
    """Values of a field's type that differ from the one it has."""
    kinds = get_args(hint) if get_origin(hint) in {Union, types.UnionType} else (hint,)
    for kind in kinds:
        yield from (each for each in _of_kind(value, kind) if each != value)


def _of_kind(value: object, kind: object) -> list[object]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if kind == dict[str, DocumentField]:
        return [{"zz": DocumentField(type="int")}, {"yy": DocumentField(type="int")}]
    if get_origin(kind) is dict and get_origin(get_args(kind)[1]) is Literal:
        return [{"zz": "locked"}, {"zz": "editable"}]
    if get_origin(kind) is dict:
        return [{"zz": {"z": 1}}, {"zz": {"z": 2}}, {"yy": {}}]
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return [example(kind)] if kind is not type(value) else []
    simple: dict[object, list[object]] = {
        tuple[Ask, ...]: [(Ask(by="zz"),), (Ask(by="zz"), Ask(by="yy"))],
        tuple[str, ...]: [("zz",), ("zz", "yy")],
        tuple[tuple[str, ...], ...]: [(("zz",),), (("zz",), ("yy",))],
        tuple[int, ...]: [(7,), (7, 8)],
        tuple[g.Rung, ...]: [(g.Rung(after_ms=7, role="zz"),)],
        tuple[g.Awaited, ...]: [(), (g.Awaited(event="zz"),), (g.Awaited(event="zz"), g.Awaited(event="yy"))],
        tuple[g.DocumentRule, ...]: [
            (g.DocumentRule(name="zz"),),
            (g.DocumentRule(name="zz"), g.DocumentRule(name="yy")),
        ],
        tuple[DocumentTransition, ...]: [(DocumentTransition(name="zz", sources=("a",), target="b"),)],
        tuple[DocumentAction, ...]: [(DocumentAction(name="zz"),)],
        tuple[DocumentPolicy, ...]: [(DocumentPolicy(name="zz", actions=("update",)),)],
        tuple[Region, ...]: [(Region(id="zz", entry="a", exit="b"),)],
        object: ["zz", 5],
        bool: [True, False],
        int: [0, 1, -1, 12345],
        str: ["", "zz", f"{value}x"],
        type(None): [None],
    }
    return simple.get(kind, [])


def example(struct: type[msgspec.Struct]) -> msgspec.Struct:
    """A value of a struct with something in each field that must have something."""
    hints = get_type_hints(struct)
    needed = [each.name for each in msgspec.structs.fields(struct) if each.required]
    return struct(**{name: next(others(None, hints[name])) for name in needed})


def variants(value: msgspec.Struct) -> Iterator[tuple[str, msgspec.Struct]]:
    """The struct with one field changed, for each field and each kind of change."""
    hints = get_type_hints(type(value))
    for field in msgspec.structs.fields(value):
        for other in others(getattr(value, field.name), hints[field.name]):
            yield f"{type(value).__name__}.{field.name}", msgspec.structs.replace(value, **{field.name: other})


def with_work(part: msgspec.Struct) -> Graph:
    """A graph with this call."""
    return with_op(g.TaskOp(work=cast("g.HandlerCall", part)))


def with_retry(part: msgspec.Struct) -> Graph:
    """A graph with this rule."""
    return with_work(g.HandlerCall(handler="h", retry=cast("g.RetryRule", part)))


def with_ask(part: msgspec.Struct) -> Graph:
    """A graph that asks so."""
    return with_op(g.HumanOp(asks=(cast("Ask", part),)))


def with_op(part: msgspec.Struct) -> Graph:
    """A graph with this operation."""
    return with_node(Node(id="a", op=cast("g.Op", part)))


def with_times(part: msgspec.Struct) -> Graph:
    """A graph with a question that has these times."""
    return with_op(g.HumanOp(times=cast("g.TaskTimes", part)))


def with_rung(part: msgspec.Struct) -> Graph:
    """A graph with a question that has this rung."""
    return with_times(g.TaskTimes(escalation=(cast("g.Rung", part),)))


def with_awaited(part: msgspec.Struct) -> Graph:
    """A graph with a wait for this event."""
    return with_op(g.WaitEventsOp(events=(cast("g.Awaited", part),)))


def with_trigger(part: msgspec.Struct) -> Graph:
    """A graph with this trigger."""
    return bare(triggers=(cast("g.EventTrigger", part),))


def with_node(part: msgspec.Struct) -> Graph:
    """A graph with this node."""
    return bare(nodes={"a": cast("Node", part)})


def with_edge(part: msgspec.Struct) -> Graph:
    """A graph with this edge."""
    return bare(edges=(cast("Edge", part),))


def with_policies(part: msgspec.Struct) -> Graph:
    """A graph with these policies."""
    return bare(policies=cast("Policies", part))


def with_rights(part: msgspec.Struct) -> Graph:
    """A graph with these rights."""
    return bare(rights=cast("Rights", part))


def with_document(part: msgspec.Struct) -> Graph:
    """A graph of these documents."""
    return bare(document=cast("g.DocumentSpec", part))


def with_part(name: str) -> Callable[[msgspec.Struct], Graph]:
    """A graph of documents that have one of these."""

    def whole(part: msgspec.Struct) -> Graph:
        value = {"zz": part} if name == "fields" else (part,)
        spec = {"entity_type": "z", "fields": {}, "initial": "a", "states": {}, name: value}
        return with_document(g.DocumentSpec(**spec))  # type: ignore[arg-type]

    return whole


def with_rule(part: msgspec.Struct) -> Graph:
    """A graph with this rule."""
    return with_op(g.RuleOp(rules=(cast("g.DocumentRule", part),)))


def as_it_is(part: msgspec.Struct) -> Graph:
    """A graph itself."""
    return cast("Graph", part)


def bare(**fields: object) -> Graph:
    """A graph of one node, or with these fields."""
    whole = {"kind": "saga", "name": "n", "version": "1", "entry": "a", "nodes": {}, "edges": (), **fields}
    return Graph(**whole)  # type: ignore[arg-type]


PLACES: dict[type[msgspec.Struct], Callable[[msgspec.Struct], Graph]] = {
    g.RetryRule: with_retry,
    g.HandlerCall: with_work,
    g.TaskTimes: with_times,
    g.Rung: with_rung,
    Ask: with_ask,
    **dict.fromkeys(get_args(g.Op), with_op),
    g.Awaited: with_awaited,
    g.EventTrigger: with_trigger,
    g.DocumentRule: with_rule,
    DocumentField: with_part("fields"),
    DocumentTransition: with_part("transitions"),
    DocumentAction: with_part("actions"),
    DocumentPolicy: with_part("policies"),
    Region: with_part("regions"),
    g.DocumentSpec: with_document,
    Node: with_node,
    Edge: with_edge,
    Policies: with_policies,
    Rights: with_rights,
    Graph: as_it_is,
}


@pytest.mark.parametrize("struct", stored_structs(), ids=lambda struct: str(struct.__name__))
def test_every_field_is_part_of_the_hash(struct: type[msgspec.Struct]) -> None:
    """Whatever changes in a graph changes its hash, and no two changes give the same one."""
    base = bare() if struct is Graph else example(struct)
    seen = {graph_hash(PLACES[struct](base)): "nothing changed"}
    touched = set()
    for name, variant in variants(base):
        if name in {"Graph.hash", "Graph.title"}:  # No run depends on a title.
            continue
        changed = graph_hash(PLACES[struct](variant))
        assert changed not in seen, f"{name} gives the hash of: {seen[changed]}"
        seen[changed] = f"{name} = {variant!r}"
        touched.add(name.split(".")[1])
    parts = {
        Graph: {"edges", "policies", "rights", "triggers", "hash", "title"},
        g.TaskOp: {"work"},
        g.HandlerCall: {"retry"},
    }.get(struct, set())
    assert {field.name for field in msgspec.structs.fields(struct)} - touched == parts


def twin(value: object) -> object:
    """The same value, each text in it another object, as it would come from a file; a struct that was left to its default is that."""
    if isinstance(value, str):
        return value.encode().decode()
    if isinstance(value, msgspec.Struct):
        given = {each.name: (getattr(value, each.name), each.default) for each in msgspec.structs.fields(value)}
        kept = {name for name, (item, default) in given.items() if isinstance(item, msgspec.Struct) and item is default}
        return msgspec.structs.replace(
            value, **{name: twin(item) for name, (item, _) in given.items() if name not in kept}
        )
    if isinstance(value, dict):
        return {key: twin(each) for key, each in value.items()}
    return value


@pytest.mark.parametrize("struct", stored_structs(), ids=lambda struct: str(struct.__name__))
def test_a_text_that_equals_a_default_is_the_default(struct: type[msgspec.Struct]) -> None:
    """Which object a text is does not show: a graph whose options were read from a file has the hash of one with literals."""
    base = bare() if struct is Graph else example(struct)
    from_file = cast("msgspec.Struct", twin(base))
    assert graph_hash(PLACES[struct](from_file)) == graph_hash(PLACES[struct](base))


def test_a_graph_with_texts_from_a_file_comes_back() -> None:
    """It is compiled to the very bytes of one with literals, and what is stored is read."""
    nodes = [cast("Node", twin(each)) for each in sample_nodes()]
    edges = [cast("Edge", twin(each)) for each in sample_edges()]
    graph = compiled(nodes, edges)
    assert graph_bytes(graph) == graph_bytes(sample())
    assert read_graph(graph_bytes(graph)) == sample()


def test_every_kind_of_node_counts() -> None:
    """Two kinds of nodes without any field are still two kinds."""
    hashes = [graph_hash(with_op(example(op))) for op in get_args(g.Op)]
    assert len(set(hashes)) == len(hashes)


def test_the_hash_leaves_itself_out() -> None:
    """The hash is over everything but itself."""
    assert graph_hash(sample()) == graph_hash(msgspec.structs.replace(sample(), hash="other")) == sample().hash


# -- stored and read


def test_a_stored_graph_comes_back() -> None:
    """What is read is what was stored, down to the bytes."""
    graph = sample()
    again = read_graph(graph_bytes(graph))
    assert again == graph
    assert graph_bytes(again) == graph_bytes(graph)


def stored() -> Plain:
    """The stored sample, to be tampered with."""
    return cast("Plain", json.loads(graph_bytes(sample())))


def refusal(data: bytes) -> tuple[str, str, str]:
    """Name, code and message of the one finding that a stored graph is refused with."""
    with pytest.raises(DefinitionError) as refused:
        read_graph(data)
    [finding] = refused.value.diagnostics
    return refused.value.name, finding.code, finding.message


CHANGES: dict[str, Plain] = {
    "hash": {"hash": "0" * 64},
    "no hash": {"hash": ""},
    "name": {"name": "other"},
    "policies": {"policies": {"max_visits": 7}},
    "an edge less": {"edges": stored()["edges"][1:]},  # type: ignore[index]
    "edges in another order": {"edges": stored()["edges"][::-1]},  # type: ignore[index]
    "a node less": {"nodes": {}},
    "a fraction": {"nodes": {"a": {"id": "a", "op": {"op": "save_point"}, "metadata": {"x": 0.5}}}},
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_graph_is_refused(change: str) -> None:
    """A stored graph that is not what was compiled is refused, and the finding says so."""
    tampered = stored() | CHANGES[change]
    name, code, message = refusal(json.dumps(tampered).encode())
    assert (name, code) == (tampered["name"], "changed_graph")
    assert "not the one that was compiled" in message


@pytest.mark.parametrize("version", [IR_VERSION + 1, 99, 0, -1])
def test_a_graph_of_another_form_is_refused(version: int) -> None:
    """What a newer compiler wrote is refused before it is read, even if it holds kinds of nodes that nobody knows yet."""
    newer = stored() | {"ir_version": version, "nodes": {"a": {"id": "a", "op": {"op": "teleport"}}}}
    name, code, message = refusal(json.dumps(newer).encode())
    assert (name, code) == ("order", "unknown_ir_version")
    assert f"the form {version}," in message
    assert f"up to {IR_VERSION};" in message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"\xff",
        b'{"name": "\xff"}',
        b'{"name": "n", "ir_version": 1}',
        b'{"name": "n", "ir_version": "1"}',
        b"[" * 100_000,
        graph_bytes(sample())[:-1],
        graph_bytes(sample()).replace(b'"op":"human"', b'"op":"alien"'),
    ],
    ids=lambda data: str(data[:24]),
)
def test_what_is_no_graph_is_refused(data: bytes) -> None:
    """Bytes that are not a graph are refused with a sentence, not with an accident."""
    _, code, message = refusal(data)
    assert code == "unreadable_graph"
    assert "cannot be read" in message


def test_what_is_not_sound_is_not_compiled() -> None:
    """The findings of the checks come as one error."""
    with pytest.raises(DefinitionError, match="order cannot be compiled") as refused:
        compiled(sample_nodes()[1:], sample_edges())
    assert {each.code for each in refused.value.diagnostics} == {"unknown_step", "unknown_entry"}
