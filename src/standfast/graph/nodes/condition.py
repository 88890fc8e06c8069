"""A condition asks a question about the data."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from standfast.graph.nodes.kind import ERROR, Execution, NodeExpression, NodeOp, NodeShape, Stored, source

TRUE, FALSE = "true", "false"


class ConditionOp(NodeOp, frozen=True, kw_only=True, tag="condition"):
    """Asks a question: left by `true` or `false`."""

    expression: Stored
    """The stored form of the expression."""

    word: ClassVar[str] = "condition"
    shape: ClassVar[NodeShape] = NodeShape(('{"', '"}'), "shape=diamond, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It holds, it does not, or it cannot be answered."""
        return frozenset({TRUE, FALSE, ERROR})

    @property
    def detail(self) -> str:
        """The question."""
        return source(self.expression)

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """The question."""
        yield NodeExpression("expression", f"the condition of {node!r}", self.expression)
