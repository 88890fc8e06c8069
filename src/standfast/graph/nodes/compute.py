"""A script computes a value.

A condition asks a question about the data.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import (
    ERROR,
    OK,
    Execution,
    NodeExpression,
    NodeOp,
    NodeShape,
    Stored,
    source,
)
from standfast.graph.values.value_checks import name_findings


class ScriptOp(NodeOp, frozen=True, kw_only=True, tag="script"):
    """Computes a value and keeps it in the data."""

    formula: Stored
    into: str = ""
    """The name that it is kept under; empty means that of the node."""

    word: ClassVar[str] = "script"
    shape: ClassVar[NodeShape] = NodeShape(('["ƒ ', '"]'), "shape=cds, style=filled")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It is computed, or it cannot be."""
        return frozenset({OK, ERROR})

    @property
    def detail(self) -> str:
        """What is computed."""
        return source(self.formula)

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """The formula."""
        yield NodeExpression("expression", f"the formula of {node!r}", self.formula)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the name."""
        if self.into:
            yield from name_findings(node, "script_name", f"the name that {node!r} keeps its value under", self.into)


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
