"""What a builder has gathered so far: nodes, edges, handlers and findings, shared by all branches of one saga."""

from __future__ import annotations

from standfast.errors import Diagnostic
from standfast.expressions.model.suggestions import suggestion
from standfast.features.sagas.options import NO_OPTIONS, SAME_OPTIONS, StepOptions, handler_name
from standfast.graph.definition import NAME_IT, Function
from standfast.graph.model import BRANCH, Edge, Node

Loose = tuple[str, str]
"""A node and the outcome by which it is left, with no node behind it yet."""


class BuilderState:
    """Everything that belongs to one saga."""

    def __init__(self, saga: str) -> None:
        self._saga = saga
        """The id of the saga: name and version."""
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.handlers: dict[str, Function] = {}
        self.findings: list[Diagnostic] = []
        self.parallels: set[str] = set()
        """Names of the splits that were written as `parallel`."""
        self.awaited: dict[str, tuple[str, ...]] = {}
        """What joins wait for that were given a list, by their names."""

    def default_name(self, step: str) -> str:
        """How the handler of a step is called that has no name of its own, such as a lambda.

        It belongs to one version of the saga: another version may have another function there, and both may run in one process.
        """
        return f"{self._saga}.{step}"

    def add(self, node: Node) -> None:
        """One more node."""
        self.nodes.append(node)

    def connect(self, loose: list[Loose], target: str) -> None:
        """Lead all loose ends to a node."""
        for source, on in loose:
            self.edges.append(Edge(source=source, target=target, on=on, priority=self._place(source, on)))

    def _place(self, source: str, on: str) -> int:
        """Branches begin in the order in which they are written."""
        return sum(edge.source == source and edge.on == on for edge in self.edges) if on == BRANCH else 0

    def find(self, code: str, message: str, position: str = "") -> None:
        """Something is wrong."""
        self.findings.append(Diagnostic(code, message, position))

    def take(self, function: Function | str, step: str, options: StepOptions) -> None:
        """Look at the options of a call, and remember a handler that was given as a function, so that it can be registered."""
        known = StepOptions.__annotations__
        for unknown in sorted(options.keys() - known.keys()):
            told = suggestion(unknown, known) or f"; there are {', '.join(known)}"
            remedy = f"; {NO_OPTIONS[unknown]}" if unknown in NO_OPTIONS else told
            self.find("unknown_option", f"{step!r} has the option {unknown!r}, which does not exist{remedy}", step)
        for name, other in SAME_OPTIONS:
            if name in options and other in options:
                self.find("same_option", f"{name!r} and {other!r} of {step!r} are one option; give one of them", step)
        if isinstance(function, str):
            return
        if not callable(getattr(function, "execute", function)):
            self.find(
                "handler",
                f"the handler of {step!r} is {function!r}; give a function, an object with `execute`, or a name",
                step,
            )
            return
        name = handler_name(function, default=self.default_name(step))
        if self.handlers.setdefault(name, function) != function:
            self.find(
                "ambiguous_handler",
                f"two different functions are named {name!r}; {NAME_IT}",
                name,
            )

    def replace_last(self, node: Node) -> None:
        """Change the node that was added last under this name."""
        for place in range(len(self.nodes) - 1, -1, -1):
            if self.nodes[place].id == node.id:
                self.nodes[place] = node
                return
