"""Call nodes: start another workflow and wait for its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import (
    ERROR,
    OK,
    TIMEOUT,
    Execution,
    NodeExpression,
    NodeOp,
    NodeShape,
    Stored,
)
from standfast.graph.nodes.task import GIVEN
from standfast.graph.values.value_checks import name_findings


class CallOp(NodeOp, frozen=True, kw_only=True, tag="call"):
    """Starts another workflow and waits for its end."""

    definition: str
    version: str = ""
    input: dict[str, Stored] | None = None
    """Stored expressions for its input by name. None passes all of the data."""
    into: str = ""
    """Name of its result in the data. Empty means the node's name."""
    detached: bool = False
    """Whether the child is independent: neither cancelled with its parent nor compensated by the parent's rollback."""

    word: ClassVar[str] = "call"
    shape: ClassVar[NodeShape] = NodeShape(('[["', '"]]'), "shape=box, style=filled, peripheries=2")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Waits for an external event."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """The child completed, failed, or took too long."""
        return frozenset({OK, ERROR, TIMEOUT})

    @property
    def detail(self) -> str:
        """The workflow to start."""
        return f"{self.definition} {self.version}".strip()

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the input expressions."""
        for name, stored in (self.input or {}).items():
            yield NodeExpression(f"{GIVEN}{name}", f"{name!r} of what {node!r} begins with", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the workflow's name."""
        return name_findings(node, "no_definition", f"the workflow that {node!r} calls", self.definition)
