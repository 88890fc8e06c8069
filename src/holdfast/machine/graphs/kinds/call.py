"""A call starts another workflow and waits for its end."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from holdfast.errors import Diagnostic
from holdfast.machine.graphs.findings import name_findings
from holdfast.machine.graphs.kinds.kind import ERROR, OK, TIMEOUT, Execution, NodeOp, Shape


class Call(NodeOp, frozen=True, kw_only=True, tag="call"):
    """Starts another workflow and waits for its end."""

    definition: str
    version: str = ""

    word: ClassVar[str] = "call"
    shape: ClassVar[Shape] = Shape(('[["', '"]]'), "shape=box, style=filled, peripheries=2")
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

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the name of the other workflow."""
        return name_findings(node, "no_definition", f"the workflow that {node!r} calls", self.definition)
