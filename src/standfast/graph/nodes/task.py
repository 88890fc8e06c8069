"""A task calls a handler."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored
from standfast.graph.values.handler_calls import HandlerCall
from standfast.graph.values.value_checks import work_findings

WEBHOOK = "standfast.webhook"
"""The engine's own handler of requests to other systems: it is given `url`, `secret` and what is sent, each name behind `payload.`."""
GIVEN, KEPT = "given.", "kept."
"""What the names of the expressions begin with that a handler is given, and that are kept of its answer."""


class TaskOp(NodeOp, frozen=True, kw_only=True, tag="task"):
    """Calls a handler."""

    work: HandlerCall
    input: dict[str, Stored] | None = None
    """What the handler is given: stored mapping expressions, by name; None means all of the data."""
    output: dict[str, Stored] | None = None
    """What is kept of the answer: stored mapping expressions over it, as `response`, by the names in the data; None means all of it."""

    detached: bool = False
    """Whether the token goes on at once and nobody waits for the call; only that it has failed is told."""

    word: ClassVar[str] = "task"
    shape: ClassVar[NodeShape] = NodeShape(('["', '"]'), 'shape=box, style="filled,rounded"')
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

    @property
    def call(self) -> HandlerCall:
        """The handler's."""
        return self.work

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """What the handler is given, and what is kept of its answer."""
        for name, stored in (self.input or {}).items():
            yield NodeExpression(f"{GIVEN}{name}", f"{name!r}, which {node!r} is given,", stored)
        for name, stored in (self.output or {}).items():
            yield NodeExpression(f"{KEPT}{name}", f"{name!r}, which {node!r} keeps,", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the call."""
        yield from work_findings(node, repr(node), self.work, least_calls=1)
        if self.detached and (self.work.transactional or self.output):
            kept = (
                "writes in the transaction of its step" if self.work.transactional else "keeps what its handler answers"
            )
            message = f"{node!r} is left before its handler is called, and {kept}; drop that, or wait for the call"
            yield Diagnostic("detached", message, node)
