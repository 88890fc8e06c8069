"""A call starts another workflow and waits for its end."""

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
    """Stored expressions for the names of what it begins with; None means all of the data."""
    into: str = ""
    """Name under which the data has what it came to; empty means that of the node."""
    detached: bool = False
    """Whether it is no part of the run that starts it: neither stopped with that one nor undone by its rollback."""

    word: ClassVar[str] = "call"
    shape: ClassVar[NodeShape] = NodeShape(('[["', '"]]'), "shape=box, style=filled, peripheries=2")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """The other workflow ended well, did not, or took too long."""
        return frozenset({OK, ERROR, TIMEOUT})

    @property
    def detail(self) -> str:
        """What it starts."""
        return f"{self.definition} {self.version}".strip()

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """What it begins with."""
        for name, stored in (self.input or {}).items():
            yield NodeExpression(f"{GIVEN}{name}", f"{name!r} of what {node!r} begins with", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the name of the other workflow."""
        return name_findings(node, "no_definition", f"the workflow that {node!r} calls", self.definition)
