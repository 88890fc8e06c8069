"""Nodes that compute within a decision: scripts and conditions."""

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
    """Computes a value and stores it in the data."""

    formula: Stored
    into: str = ""
    """Name of the value in the data. Empty means the node's name."""

    word: ClassVar[str] = "script"
    shape: ClassVar[NodeShape] = NodeShape(('["ƒ ', '"]'), "shape=cds, style=filled")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Computed, or failed."""
        return frozenset({OK, ERROR})

    @property
    def detail(self) -> str:
        """The formula."""
        return source(self.formula)

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the formula."""
        yield NodeExpression("expression", f"the formula of {node!r}", self.formula)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the name."""
        if self.into:
            yield from name_findings(node, "script_name", f"the name that {node!r} keeps its value under", self.into)


TRUE, FALSE = "true", "false"


class ConditionOp(NodeOp, frozen=True, kw_only=True, tag="condition"):
    """Evaluates a condition. Its outcome is `true` or `false`."""

    expression: Stored
    """Stored form of the expression."""

    word: ClassVar[str] = "condition"
    shape: ClassVar[NodeShape] = NodeShape(('{"', '"}'), "shape=diamond, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """True, false, or failed."""
        return frozenset({TRUE, FALSE, ERROR})

    @property
    def detail(self) -> str:
        """The condition."""
        return source(self.expression)

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the condition."""
        yield NodeExpression("expression", f"the condition of {node!r}", self.expression)
