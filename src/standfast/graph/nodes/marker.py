"""Markers: save points and points of no return."""

from __future__ import annotations

from typing import ClassVar

from standfast.graph.nodes.kind import OK, Execution, NodeOp, NodeShape


class SavePointOp(NodeOp, frozen=True, kw_only=True, tag="save_point"):
    """A boundary for rollbacks: a rollback after a failure stops here."""

    word: ClassVar[str] = "save_point"
    shape: ClassVar[NodeShape] = NodeShape(('[("', '")]'), "shape=cylinder, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Passed."""
        return frozenset({OK})


class NoReturnOp(NodeOp, frozen=True, kw_only=True, tag="no_return"):
    """A point of no return: earlier steps are never compensated, not even by a cancellation."""

    word: ClassVar[str] = "point_of_no_return"
    shape: ClassVar[NodeShape] = NodeShape(('>"', '"]'), "shape=octagon, style=filled")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Passed."""
        return frozenset({OK})
