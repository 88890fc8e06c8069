"""End nodes: end the path of a token."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import Execution, NodeOp, NodeShape
from standfast.graph.values.value_checks import name_findings, word_findings

END_STATUSES = ("completed", "failed", "cancelled")


class EndOp(NodeOp, frozen=True, kw_only=True, tag="end"):
    """The end of a token's path."""

    status: Literal["completed", "failed", "cancelled"] = "completed"
    outcome: str = ""
    """Outcome of a successful run, named by the author: `allowed`, `blocked`."""
    reason: str = ""
    """Reason of the run's status. Empty means the outcome."""

    word: ClassVar[str] = "end"
    shape: ClassVar[NodeShape] = NodeShape(('(["', '"])'), 'shape=box, style="filled,rounded", peripheries=2')
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """None: the node has no exits."""
        return frozenset()

    @property
    def detail(self) -> str:
        """The status of the run, if it is not successful."""
        return self.outcome if self.status == "completed" else self.status

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of status, outcome and reason."""
        yield from word_findings(node, "end_status", f"the status of {node!r}", self.status, words=END_STATUSES)
        if self.outcome:
            yield from name_findings(node, "outcomes", f"the outcome of {node!r}", self.outcome)
        if self.outcome and self.status != "completed":
            message = f"{node!r} ends the run as {self.status}, so it has no outcome; drop {self.outcome!r}, or let it end well"
            yield Diagnostic("outcomes", message, node)
        if self.reason:
            yield from name_findings(node, "outcomes", f"the reason of {node!r}", self.reason)
        if self.reason and not self.outcome:
            message = (
                f"{node!r} has a reason, {self.reason!r}, for an outcome that it does not name; name one, or drop it"
            )
            yield Diagnostic("outcomes", message, node)
