"""What a builder has gathered so far: nodes, edges, handlers and findings, shared by all branches of one saga."""

from __future__ import annotations

from holdfast.authoring.saga.options import Function, handler_name
from holdfast.errors import Diagnostic
from holdfast.machine.graph import Edge, Node

Loose = tuple[str, str]
"""A node and the outcome by which it is left, with no node behind it yet."""


class Parts:
    """Everything that belongs to one saga."""

    def __init__(self) -> None:
        self.nodes: list[Node] = []
        self.edges: list[Edge] = []
        self.handlers: dict[str, Function] = {}
        self.findings: list[Diagnostic] = []

    def add(self, node: Node) -> None:
        """One more node."""
        self.nodes.append(node)

    def connect(self, loose: list[Loose], target: str) -> None:
        """Lead all loose ends to a node."""
        self.edges += [Edge(source=source, target=target, on=on) for source, on in loose]

    def find(self, code: str, message: str, position: str = "") -> None:
        """Something is wrong."""
        self.findings.append(Diagnostic(code, message, position))

    def take(self, function: Function | str) -> None:
        """Remember a handler that was given as a function, so that it can be registered."""
        if isinstance(function, str):
            return
        name = handler_name(function)
        known = self.handlers.setdefault(name, function)
        if known is not function:
            self.find(
                "ambiguous_handler",
                f"two different functions are named {name!r}; name one of them with @handler('...')",
                name,
            )

    def replace_last(self, node: Node) -> None:
        """Change the node that was added last under this name."""
        for place in range(len(self.nodes) - 1, -1, -1):
            if self.nodes[place].id == node.id:
                self.nodes[place] = node
                return
