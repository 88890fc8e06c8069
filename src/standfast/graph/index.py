"""Index of a graph for execution: edges by outcome, joins by split, compiled expressions.

It is computed once per graph.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from standfast.expressions import Expression
from standfast.expressions.model.tree import Variable
from standfast.graph.document_index import DocumentIndex
from standfast.graph.field_visibility import Audiences, Guarded
from standfast.graph.model import (
    ANY_OUTCOME,
    LOOPING,
    CallOp,
    Edge,
    Graph,
    HumanOp,
    JoinOp,
    Node,
    PolicyGateOp,
    ScriptOp,
    SplitOp,
    TaskOp,
    WaitEventOp,
    WaitTimerOp,
)
from standfast.graph.nodes.action import PAYLOAD
from standfast.graph.nodes.event_wait import KEY, MATCH
from standfast.graph.nodes.human import RULED, SHOWN, TEMPLATE
from standfast.graph.nodes.task import GIVEN, KEPT
from standfast.graph.nodes.wait import UNTIL
from standfast.graph.values.external_reads import Reads, reads_of
from standfast.graph.values.forms import Form
from standfast.kernel.retry import RetryPolicy

DATA = "input"
"""Name of a token's data in expressions."""
WORKFLOW = "workflow"
"""Name of the data in expressions of processes, whose `input` is the content of an answer."""
EVENT = "event"
"""Name of the last signal in expressions of processes."""


def names_of(data: object) -> dict[str, object]:
    """Return the names for expressions outside a decision: the data under both its names."""
    return {DATA: data, WORKFLOW: data}


Others: TypeAlias = "Callable[[str, str], GraphIndex | None]"


def _nobody(_tenant: str, _version: str) -> None:
    """Find no other version."""


_DEFAULT_RETRY = RetryPolicy()


class GraphIndex:
    """The machine's view of its graph."""

    def __init__(
        self, graph: Graph, limit: int, *, others: Others | None = None, retry: RetryPolicy = _DEFAULT_RETRY
    ) -> None:
        self.graph = graph
        self.retry = retry
        """Default retry policy."""
        self.others: Others = others or _nobody
        """Finds other versions of the graph for migrations, by tenant and version."""
        self.limit = limit if graph.policies.max_bytes is None else min(limit, graph.policies.max_bytes)
        """Size limit of a token's data in bytes."""
        self.policies = graph.policies
        self.documents = None if graph.document is None else DocumentIndex(graph, graph.document)
        """Index of its document specification, if its runs are documents."""
        self.node: Callable[[str], Node] = graph.nodes.__getitem__
        """Returns the node with a name. Called several times per step."""
        ways: defaultdict[tuple[str, str], list[Edge]] = defaultdict(list)
        for edge in sorted(graph.edges, key=lambda edge: (edge.priority, edge.id)):
            ways[edge.source, edge.on].append(edge)
        self._ways = {key: tuple(edges) for key, edges in ways.items()}
        self._joins = {node.op.split: node for node in graph.nodes.values() if isinstance(node.op, JoinOp)}
        self._formulas = {
            node.id: {name: Expression.from_data(stored) for name, _, stored in node.op.formulas(node.id)}
            for node in graph.nodes.values()
        }
        self.audiences = Audiences(graph, self._formulas)
        """Audiences of its expressions."""
        self._lists = {name: _place(each["items"]) for name, each in self._formulas.items() if "items" in each}
        self.item_names = frozenset(map(self.item_name, self._lists))
        """Names under which branches find list items."""
        self._look_at_answers(graph)
        self._shown = {name: self._beginning(name, SHOWN) for name in graph.nodes}
        self._forms: dict[str, Form] = {}
        self.questions: dict[str, object] = {}
        """Tasks in their initial state, by node, cached for readers."""
        self._look_at_undoing(graph)
        self._look_at_starters(graph)
        self._look_at_tasks(graph)
        self._look_at_people(graph)
        self._look_at_ways(graph)
        self._reads = {} if self.documents is None else self._found_reads(graph, self.documents)

    def _look_at_undoing(self, graph: Graph) -> None:
        may_undo = graph.kind not in LOOPING and graph.document is None
        regions = () if graph.document is None else graph.document.regions
        given_back = {each.id for each in regions if each.on_reject == "compensate"}
        self.remembers = may_undo or any(
            node.compensation or (isinstance(node.op, CallOp) and node.region in given_back)
            for node in graph.nodes.values()
        )
        """Whether a rollback visits earlier steps. A workflow with loops or without a time limit that compensates
        nothing just ends."""

    def _look_at_answers(self, graph: Graph) -> None:
        self._answering = frozenset(node.id for node in graph.nodes.values() if node.op.is_answering)
        self._named = frozenset(
            node.id
            for node in graph.nodes.values()
            if node.op.is_named and not (isinstance(node.op, HumanOp) and node.op.lays_over)
        )
        self._answers = {
            node.id: node.op.split if node.op.split in self._lists else node.op.answer or node.id
            for node in graph.nodes.values()
            if isinstance(node.op, JoinOp)
        }
        self._answers |= {
            node.id: node.op.into
            for node in graph.nodes.values()
            if isinstance(node.op, ScriptOp | CallOp) and node.op.into
        }

    def _look_at_starters(self, graph: Graph) -> None:
        self.demands = {name: found for name, node in graph.nodes.items() if (found := _demanded(node))}
        """Capabilities that the starter of a run needs for entering a node. Most nodes need none."""
        self.asks_starter = bool(self.demands) or any(isinstance(node.op, CallOp) for node in graph.nodes.values())
        """Whether a run must store its starter's rights."""

    def _look_at_tasks(self, graph: Graph) -> None:
        tasks = {name: node.op for name, node in graph.nodes.items() if isinstance(node.op, TaskOp)}
        self.given = {
            name: self._beginning(name, GIVEN)
            for name, node in graph.nodes.items()
            if isinstance(node.op, TaskOp | CallOp) and node.op.input is not None
        }
        """Inputs of handlers and called workflows. Nodes that pass all of the data are not included."""
        self.works = {name: work for name, node in graph.nodes.items() if (work := node.op.call) is not None}
        """Handler calls by node."""
        self._kept = {name: self._beginning(name, KEPT) for name, op in tasks.items() if op.output is not None}
        self.maps_answers = bool(self._kept)
        """Whether a task stores only part of its handler's answer."""

    def _look_at_people(self, graph: Graph) -> None:
        people = [node.op for node in graph.nodes.values() if isinstance(node.op, HumanOp)]
        self.tells_deciders_apart = any(op.distinct_approvers or op.distinct_from for op in people)
        """Whether earlier decisions exclude people, so that deciders must be recorded."""
        self._apart = _kept_apart(graph) if self.tells_deciders_apart else {}
        starts = any(isinstance(node.op, CallOp) for node in graph.nodes.values())
        self.keeps_own_out = starts or any(not op.self_approval for op in people)
        """Whether a run, or one that it starts, may exclude its requester from decisions."""
        self.asks_people = starts or any(op.all_asks or op.chain for op in people)
        """Whether a run, or one that it starts, may ask particular people."""

    def _look_at_ways(self, graph: Graph) -> None:
        signals: defaultdict[str, list[str]] = defaultdict(list)
        for node in graph.nodes.values():
            if isinstance(node.op, WaitEventOp):
                signals[node.op.signal].append(node.id)
        self._signals = {name: tuple(nodes) for name, nodes in signals.items()}
        self._guards = {edge.id: Expression.from_data(edge.when) for edge in graph.edges if edge.when is not None}
        self._assigns = {
            edge.id: {name: Expression.from_data(stored) for name, stored in edge.assign.items()}
            for edge in graph.edges
            if edge.assign
        }
        self.reads_event = any(_first(name) == EVENT for each in self._expressions() for name in each.variables)
        """Whether the last signal or event must be stored. Most graphs read its content from the data only."""

    def _expressions(self) -> list[Expression]:
        """Return all expressions over the data, without those that match incoming events."""
        formulas = (
            each for some in self._formulas.values() for name, each in some.items() if not name.startswith(MATCH)
        )
        return [*self._guards.values(), *_flat(self._assigns), *formulas]

    def _found_reads(self, graph: Graph, documents: DocumentIndex) -> dict[str, Reads]:
        """Return what document nodes and their outgoing edges read from outside."""
        around: defaultdict[str, list[Expression]] = defaultdict(list)
        for edge in graph.edges:
            around[edge.source] += [self._guards[edge.id]] if edge.id in self._guards else []
            around[edge.source] += self._assigns.get(edge.id, {}).values()
        found = {}
        for name, node in graph.nodes.items():
            op, expressions = node.op, [*self._formulas[name].values(), *around[name]]
            if isinstance(op, PolicyGateOp):
                policies = documents.policies(op.action)
                expressions += [documents.rule(each.when) for each in policies if each.when is not None]
            timed = op.times if isinstance(op, HumanOp) else op if isinstance(op, WaitTimerOp) else None
            reads = reads_of(expressions, org=timed is not None and bool(timed.calendar))
            if reads is not None:
                found[name] = reads
        return found

    def reads(self, node: str) -> Reads | None:
        """Return what a node and its outgoing edges read from outside the document, or None."""
        return self._reads.get(node)

    def apart(self, node: str) -> frozenset[str]:
        """Return the human steps that must have other deciders than this one, in either order."""
        return self._apart.get(node, _NOBODY)

    def ways(self, node: str, outcome: str) -> tuple[Edge, ...]:
        """Return the edges for an outcome in the order in which they are tried."""
        return self._ways.get((node, outcome), ()) or self._ways.get((node, ANY_OUTCOME), ())

    def join_of(self, split: str) -> Node | None:
        """Return the join of a split, or None."""
        return self._joins.get(split)

    def payload(self, node: str) -> dict[str, Expression]:
        """Return the payload expressions of an action."""
        return self._beginning(node, PAYLOAD)

    def formula(self, node: str, name: str) -> Expression | None:
        """Return a node's expression by name, or None."""
        return self._formulas[node].get(name)

    def condition(self, node: str) -> Expression:
        """Return the expression of a condition or a script."""
        return self._formulas[node]["expression"]

    def arrival(self, node: str, name: str) -> Expression | None:
        """Return the condition of a join for arriving branches, or None."""
        return self._formulas[node].get(name)

    def items(self, node: str) -> Expression | None:
        """Return the list expression of a split over items."""
        return self._formulas[node].get("items")

    def list_place(self, node: str) -> tuple[str, ...]:
        """Return the path of a split's list in the data. Empty if the list is computed."""
        return self._lists[node]

    def is_answering(self, node: str) -> bool:
        """Return whether the node's kind produces an answer."""
        return node in self._answering

    def is_named(self, node: str) -> bool:
        """Return whether the node's answer is always stored under a name."""
        return node in self._named

    def answer_name(self, node: str) -> str:
        """Return the name of the node's answer, if it is not merged into the data."""
        return self._answers.get(node, node)

    def item_name(self, node: str) -> str:
        """Return the name of the item in a branch of a split over items."""
        op = self.graph.nodes[node].op
        assert isinstance(op, SplitOp)
        return op.item

    def template(self, node: str) -> Expression | None:
        """Return the template of a task's subject, or None."""
        return self._formulas[node].get(TEMPLATE)

    def shown(self, node: str) -> dict[str, Expression]:
        """Return the expressions for the data that a task shows."""
        return self._shown[node]

    def guarded(self, node: str, name: str) -> Guarded | None:
        """Return a node's expression with its masked form, if it reads restricted data."""
        return self.audiences.guarded(node, name)

    def until(self, node: str) -> Expression | None:
        """Return the expression for the time that a node waits for."""
        return self._formulas[node].get(UNTIL)

    def event_key(self, node: str, title: str) -> Expression | None:
        """Return the correlation key expression of an awaited event."""
        return self._formulas[node].get(KEY + title)

    def event_match(self, node: str, title: str) -> Expression | None:
        """Return the condition of an awaited event."""
        return self._formulas[node].get(MATCH + title)

    def text(self, node: str, name: str) -> Expression | None:
        """Return the template of a notification text, or None."""
        return self._formulas[node].get(name)

    def form(self, node: str) -> Form | None:
        """Return the form of a task, or None. It is compiled on first use."""
        op = self.graph.nodes[node].op
        if node not in self._forms and isinstance(op, HumanOp) and op.form is not None:
            self._forms[node] = Form(op.form)
        return self._forms.get(node)

    def rule(self, node: str, place: int) -> Expression | None:
        """Return the rule expression that selects approvers for a part of an assignment, or None."""
        return self._formulas[node].get(f"{RULED}{place}")

    def kept(self, node: str) -> dict[str, Expression] | None:
        """Return the output mapping of a task. None stores the whole answer."""
        return self._kept.get(node)

    def waiting_for(self, signal: str) -> tuple[str, ...]:
        """Return the nodes that wait for this signal."""
        return self._signals.get(signal, ())

    def guard(self, edge: Edge) -> Expression | None:
        """Return the condition of an edge, or None."""
        return self._guards.get(edge.id)

    def assigns(self, edge: Edge) -> dict[str, Expression]:
        """Return the assignments of an edge."""
        return self._assigns[edge.id]

    def _beginning(self, node: str, prefix: str) -> dict[str, Expression]:
        """Return a node's expressions with this prefix, by the rest of their names."""
        formulas = self._formulas[node]
        return {name.removeprefix(prefix): formulas[name] for name in formulas if name.startswith(prefix)}


_NOBODY: frozenset[str] = frozenset()


def _kept_apart(graph: Graph) -> dict[str, frozenset[str]]:
    """Return the human steps with distinct deciders, each with its counterparts."""
    people = {name: node.op for name, node in graph.nodes.items() if isinstance(node.op, HumanOp)}
    found: defaultdict[str, set[str]] = defaultdict(set)
    for name, op in people.items():
        others = {*op.distinct_from} & people.keys()
        if op.distinct_approvers:
            found[name] |= people.keys() - {name}
            others |= people.keys() - _behind(graph, name) - {name}
        found[name] |= others
        for other in others:
            found[other].add(name)
    return {name: frozenset(others) for name, others in found.items()}


def _behind(graph: Graph, name: str) -> set[str]:
    """Return the nodes strictly after a node: reachable from it, and not leading back except by rework."""
    into, out = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for edge in graph.edges:
        if not edge.rework:
            out[edge.source].append(edge.target)
            into[edge.target].append(edge.source)
    return led_to(out, name) - led_to(into, name)


def led_to(ways: Mapping[str, Iterable[str]], *names: str) -> set[str]:
    """Return the nodes reachable from these."""
    found, waiting = set[str](), [*names]
    while waiting:
        following = {*ways.get(waiting.pop(), ())} - found
        found |= following
        waiting += following
    return found


def _demanded(node: Node) -> tuple[str, ...]:
    """Return the starter's required capabilities for a node's calls and their compensations.

    Compensations do not require them again.
    """
    works = (node.op.call, node.compensation)
    return tuple(dict.fromkeys(each.capability for each in works if each is not None and each.capability))


def _flat(expressions: Mapping[str, Mapping[str, Expression]]) -> Iterator[Expression]:
    return (each for some in expressions.values() for each in some.values())


def _first(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _place(expression: Expression) -> tuple[str, ...]:
    """Return the path of an expression that is a plain path, or an empty tuple."""
    tree = expression.tree
    return tree.path[1:] if isinstance(tree, Variable) and tree.path[0] in {DATA, WORKFLOW} else ()
