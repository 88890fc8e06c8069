"""Task nodes: call a handler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored
from standfast.graph.values.handler_calls import HandlerCall
from standfast.graph.values.value_checks import work_findings

WEBHOOK = "standfast.webhook"
"""Built-in handler for HTTP requests. Its input has `url`, `secret` and the payload, each name with the prefix
`payload.`."""
GIVEN, KEPT = "given.", "kept."
"""Prefixes of the expressions for a handler's input and stored output."""


class TaskOp(NodeOp, frozen=True, kw_only=True, tag="task"):
    """Calls a handler."""

    work: HandlerCall
    input: dict[str, Stored] | None = None
    """Input of the handler: stored expressions by name. None passes all of the data."""
    output: dict[str, Stored] | None = None
    """Stored output: expressions over the answer, as `response`, by name in the data. None stores all of it."""

    detached: bool = False
    """Whether the token continues without waiting for the call. Only a failure is then recorded."""

    word: ClassVar[str] = "task"
    shape: ClassVar[NodeShape] = NodeShape(('["', '"]'), 'shape=box, style="filled,rounded"')
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Transactional inside the commit, otherwise an effect."""
        return "transactional" if self.work.transactional else "effect"

    @property
    def exits(self) -> frozenset[str]:
        """Returned or failed. A timeout is a failure."""
        return frozenset({OK, ERROR})

    @property
    def call(self) -> HandlerCall:
        """The handler call."""
        return self.work

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the expressions for input and output."""
        for name, stored in (self.input or {}).items():
            yield NodeExpression(f"{GIVEN}{name}", f"{name!r}, which {node!r} is given,", stored)
        for name, stored in (self.output or {}).items():
            yield NodeExpression(f"{KEPT}{name}", f"{name!r}, which {node!r} keeps,", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the call."""
        yield from work_findings(node, repr(node), self.work, least_calls=1)
        if self.detached and (self.work.transactional or self.output):
            kept = (
                "writes in the transaction of its step" if self.work.transactional else "keeps what its handler answers"
            )
            message = f"{node!r} is left before its handler is called, and {kept}; drop that, or wait for the call"
            yield Diagnostic("detached", message, node)
