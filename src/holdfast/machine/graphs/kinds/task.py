"""A task calls a handler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from holdfast.errors import Diagnostic
from holdfast.machine.graphs.findings import work_findings
from holdfast.machine.graphs.kinds.kind import ERROR, OK, Execution, NodeOp, Shape
from holdfast.machine.graphs.work import Work


class Task(NodeOp, frozen=True, kw_only=True, tag="task"):
    """Calls a handler."""

    work: Work

    word: ClassVar[str] = "task"
    shape: ClassVar[Shape] = Shape(('["', '"]'), 'shape=box, style="filled,rounded"')
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """By a handler, inside the commit or outside of any."""
        return "transactional" if self.work.transactional else "effect"

    @property
    def exits(self) -> frozenset[str]:
        """The handler came back or failed; a call that took too long has failed."""
        return frozenset({OK, ERROR})

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the call."""
        return work_findings(node, repr(node), self.work, least_calls=1)
