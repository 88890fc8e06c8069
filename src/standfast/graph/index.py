"""A graph made ready to run: ways by outcome, joins by split, expressions compiled. Computed once for each graph."""

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
"""What expressions call the data of a token."""
WORKFLOW = "workflow"
"""What those of processes call it; their `input` is what an answer brings."""
EVENT = "event"
"""What they call the signal that was taken last."""


def names_of(data: object) -> dict[str, object]:
    """What expressions read that are asked apart from a moment: the data, by either of its names."""
    return {DATA: data, WORKFLOW: data}


Others: TypeAlias = "Callable[[str, str], GraphIndex | None]"


def _nobody(_tenant: str, _version: str) -> None:
    """There are no other versions."""


_DEFAULT_RETRY = RetryPolicy()


class GraphIndex:
    """What the machine asks of its graph."""

    def __init__(
        self, graph: Graph, limit: int, *, others: Others | None = None, retry: RetryPolicy = _DEFAULT_RETRY
    ) -> None:
        self.graph = graph
        self.retry = retry
        """How calls are made again of which the graph does not say it."""
        self.others: Others = others or _nobody
        """Finds other versions of the graph, which documents may be moved to: by tenant and version."""
        self.limit = limit if graph.policies.max_bytes is None else min(limit, graph.policies.max_bytes)
        """How large the data of a token may be, in bytes."""
        self.policies = graph.policies
        self.documents = None if graph.document is None else DocumentIndex(graph, graph.document)
        """What it says of its documents, if every run is one."""
        self.node: Callable[[str], Node] = graph.nodes.__getitem__
        """The node with a name. Every step asks several times."""
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
        """Who may see what its expressions read."""
        self._lists = {name: _place(each["items"]) for name, each in self._formulas.items() if "items" in each}
        self.item_names = frozenset(map(self.item_name, self._lists))
        """The names under which branches find the entries of lists."""
        self._look_at_answers(graph)
        self._shown = {name: self._beginning(name, SHOWN) for name in graph.nodes}
        self._forms: dict[str, Form] = {}
        self.questions: dict[str, object] = {}
        """Questions that nothing has happened to, by node, made once for all who only look at one."""
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
        """Whether a rollback goes back over what was done: a workflow that may go in circles, or for years, and undoes nothing just ends."""

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
        """What the starter of a run needs for a node to be entered, by node; most need nothing."""
        self.asks_starter = bool(self.demands) or any(isinstance(node.op, CallOp) for node in graph.nodes.values())
        """Whether a run has to know what its starter may do."""

    def _look_at_tasks(self, graph: Graph) -> None:
        tasks = {name: node.op for name, node in graph.nodes.items() if isinstance(node.op, TaskOp)}
        self.given = {
            name: self._beginning(name, GIVEN)
            for name, node in graph.nodes.items()
            if isinstance(node.op, TaskOp | CallOp) and node.op.input is not None
        }
        """What the handlers of tasks are given, and other workflows begin with; those that get all of the data are not in it."""
        self.works = {name: work for name, node in graph.nodes.items() if (work := node.op.call) is not None}
        """The work of those that call a handler."""
        self._kept = {name: self._beginning(name, KEPT) for name, op in tasks.items() if op.output is not None}
        self.maps_answers = bool(self._kept)
        """Whether any task keeps less of its handler's answer than all of it."""

    def _look_at_people(self, graph: Graph) -> None:
        people = [node.op for node in graph.nodes.values() if isinstance(node.op, HumanOp)]
        self.tells_deciders_apart = any(op.distinct_approvers or op.distinct_from for op in people)
        """Whether somebody may not decide because of what they decided before, so that this has to be remembered."""
        self._apart = _kept_apart(graph) if self.tells_deciders_apart else {}
        starts = any(isinstance(node.op, CallOp) for node in graph.nodes.values())
        self.keeps_own_out = starts or any(not op.self_approval for op in people)
        """Whether a run, or one that it starts, may keep those from deciding whose matter it is."""
        self.asks_people = starts or any(op.all_asks or op.chain for op in people)
        """Whether a run, or one that it starts, may ask somebody in particular."""

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
        """Whether the last signal or event has to be remembered; most graphs find what it brought in the data, and nowhere else."""

    def _expressions(self) -> list[Expression]:
        """All that is computed over the data; not what an event that comes is compared with."""
        formulas = (
            each for some in self._formulas.values() for name, each in some.items() if not name.startswith(MATCH)
        )
        return [*self._guards.values(), *_flat(self._assigns), *formulas]

    def _found_reads(self, graph: Graph, documents: DocumentIndex) -> dict[str, Reads]:
        """What nodes of documents read from outside, with the edges that leave them."""
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
        """What a node, and the edges that leave it, read from outside of the document; None if that is nothing."""
        return self._reads.get(node)

    def apart(self, node: str) -> frozenset[str]:
        """The human steps whose deciders may not decide this one, and the other way round: whichever is decided first."""
        return self._apart.get(node, _NOBODY)

    def ways(self, node: str, outcome: str) -> tuple[Edge, ...]:
        """The edges that an outcome may take, in the order in which they are tried."""
        return self._ways.get((node, outcome), ()) or self._ways.get((node, ANY_OUTCOME), ())

    def join_of(self, split: str) -> Node | None:
        """The join where the branches of a split meet, if there is one."""
        return self._joins.get(split)

    def payload(self, node: str) -> dict[str, Expression]:
        """What an action is given."""
        return self._beginning(node, PAYLOAD)

    def formula(self, node: str, name: str) -> Expression | None:
        """An expression of a node by its name, if it has that."""
        return self._formulas[node].get(name)

    def condition(self, node: str) -> Expression:
        """The question that a condition asks, or what a script computes."""
        return self._formulas[node]["expression"]

    def arrival(self, node: str, name: str) -> Expression | None:
        """What a join asks of a branch that arrives, if it asks that."""
        return self._formulas[node].get(name)

    def items(self, node: str) -> Expression | None:
        """What gives the list of a split over items."""
        return self._formulas[node].get("items")

    def list_place(self, node: str) -> tuple[str, ...]:
        """Where in the data the list of a split over items is found; empty if it is computed."""
        return self._lists[node]

    def is_answering(self, node: str) -> bool:
        """Whether a node is of a kind that answers."""
        return node in self._answering

    def is_named(self, node: str) -> bool:
        """Whether the answer of a node is found under a name, whatever it is."""
        return node in self._named

    def answer_name(self, node: str) -> str:
        """The name under which the answer of a node is found, where it is not laid over the data."""
        return self._answers.get(node, node)

    def item_name(self, node: str) -> str:
        """The name under which a branch of a split over items finds its item."""
        op = self.graph.nodes[node].op
        assert isinstance(op, SplitOp)
        return op.item

    def template(self, node: str) -> Expression | None:
        """The subject of a question, if it has holes to be filled in."""
        return self._formulas[node].get(TEMPLATE)

    def shown(self, node: str) -> dict[str, Expression]:
        """What a question shows of the data."""
        return self._shown[node]

    def guarded(self, node: str, name: str) -> Guarded | None:
        """An expression of a node by its name, if only some may see what it reads."""
        return self.audiences.guarded(node, name)

    def until(self, node: str) -> Expression | None:
        """What gives the instant that a node waits for."""
        return self._formulas[node].get(UNTIL)

    def event_key(self, node: str, title: str) -> Expression | None:
        """What gives the key of an event that a node waits for."""
        return self._formulas[node].get(KEY + title)

    def event_match(self, node: str, title: str) -> Expression | None:
        """What a node asks of an event that it waits for."""
        return self._formulas[node].get(MATCH + title)

    def text(self, node: str, name: str) -> Expression | None:
        """A text of a notice, if it has holes to be filled in."""
        return self._formulas[node].get(name)

    def form(self, node: str) -> Form | None:
        """The form of a question, if it has one; made ready when the first answer comes."""
        op = self.graph.nodes[node].op
        if node not in self._forms and isinstance(op, HumanOp) and op.form is not None:
            self._forms[node] = Form(op.form)
        return self._forms.get(node)

    def rule(self, node: str, place: int) -> Expression | None:
        """What yields those whom a part of a question asks, if that is a rule."""
        return self._formulas[node].get(f"{RULED}{place}")

    def kept(self, node: str) -> dict[str, Expression] | None:
        """What a task keeps of its handler's answer; None if that is all of it."""
        return self._kept.get(node)

    def waiting_for(self, signal: str) -> tuple[str, ...]:
        """The nodes that wait for a signal of this name."""
        return self._signals.get(signal, ())

    def guard(self, edge: Edge) -> Expression | None:
        """What must hold for an edge to be taken."""
        return self._guards.get(edge.id)

    def assigns(self, edge: Edge) -> dict[str, Expression]:
        """What an edge adds to the data that adds anything."""
        return self._assigns[edge.id]

    def _beginning(self, node: str, prefix: str) -> dict[str, Expression]:
        """The expressions of a node whose names begin so, by the rest of their names."""
        formulas = self._formulas[node]
        return {name.removeprefix(prefix): formulas[name] for name in formulas if name.startswith(prefix)}


_NOBODY: frozenset[str] = frozenset()


def _kept_apart(graph: Graph) -> dict[str, frozenset[str]]:
    """The human steps that are to be decided by different people, each with the others of its pairs."""
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
    """The nodes that come behind one for sure: a way leads from it to them, and none leads back but for rework."""
    into, out = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for edge in graph.edges:
        if not edge.rework:
            out[edge.source].append(edge.target)
            into[edge.target].append(edge.source)
    return led_to(out, name) - led_to(into, name)


def led_to(ways: Mapping[str, Iterable[str]], *names: str) -> set[str]:
    """Where ways lead from some places, however far."""
    found, waiting = set[str](), [*names]
    while waiting:
        following = {*ways.get(waiting.pop(), ())} - found
        found |= following
        waiting += following
    return found


def _demanded(node: Node) -> tuple[str, ...]:
    """What the starter of a run needs for what a node calls, and for what undoes it: that is not asked for again when it is undone."""
    works = (node.op.call, node.compensation)
    return tuple(dict.fromkeys(each.capability for each in works if each is not None and each.capability))


def _flat(expressions: Mapping[str, Mapping[str, Expression]]) -> Iterator[Expression]:
    return (each for some in expressions.values() for each in some.values())


def _first(path: str) -> str:
    return path.partition(".")[0].partition("[")[0]


def _place(expression: Expression) -> tuple[str, ...]:
    """The path into the data that an expression is, if it is nothing but one."""
    tree = expression.tree
    return tree.path[1:] if isinstance(tree, Variable) and tree.path[0] in {DATA, WORKFLOW} else ()
