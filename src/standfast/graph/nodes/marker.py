"""Save points and points of no return mark the way."""

from __future__ import annotations

from typing import ClassVar

from standfast.graph.nodes.kind import OK, Execution, NodeOp, NodeShape


class SavePointOp(NodeOp, frozen=True, kw_only=True, tag="save_point"):
    """A boundary: a rollback after a failure does not go back beyond it."""

    word: ClassVar[str] = "save_point"
    shape: ClassVar[NodeShape] = NodeShape(('[("', '")]'), "shape=cylinder, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It is passed."""
        return frozenset({OK})


class NoReturnOp(NodeOp, frozen=True, kw_only=True, tag="no_return"):
    """A declared point of no return: nothing before it is ever undone, not even by a cancellation."""

    word: ClassVar[str] = "point_of_no_return"
    shape: ClassVar[NodeShape] = NodeShape(('>"', '"]'), "shape=octagon, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It is passed."""
        return frozenset({OK})
