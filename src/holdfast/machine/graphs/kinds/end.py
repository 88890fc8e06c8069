"""An end says how a token's way ends."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from holdfast.errors import Diagnostic
from holdfast.machine.graphs.findings import word_findings
from holdfast.machine.graphs.kinds.kind import Execution, NodeOp, Shape

END_STATUSES = ("completed", "failed", "cancelled")


class End(NodeOp, frozen=True, kw_only=True, tag="end"):
    """The end of a token's way."""

    status: Literal["completed", "failed", "cancelled"] = "completed"

    word: ClassVar[str] = "end"
    shape: ClassVar[Shape] = Shape(('(["', '"])'), 'shape=box, style="filled,rounded", peripheries=2')
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It is never left."""
        return frozenset()

    @property
    def detail(self) -> str:
        """How the run ends, where it is not as it should."""
        return "" if self.status == "completed" else self.status

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the status."""
        return word_findings(node, "end_status", f"the status of {node!r}", self.status, words=END_STATUSES)
