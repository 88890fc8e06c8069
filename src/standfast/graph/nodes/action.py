"""Action nodes: change the run's document, or another one, on behalf of the workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored
from standfast.graph.values.handler_calls import HandlerCall, RetryRule
from standfast.graph.values.value_checks import name_findings, work_findings

PAYLOAD = "payload."
"""Prefix of the names of payload expressions."""
TARGET = "target"
"""Name of the expression for another document's id."""
ELSEWHERE: Final = HandlerCall(handler="$documents", transactional=True, retry=RetryRule(is_default=True))
"""Call of the built-in handler for other documents, in the commit that ends the step. Definitions cannot name this
handler."""
OWN_WORK: Final = (ELSEWHERE, HandlerCall(handler="$documents", transactional=True))
"""Calls of the built-in handler that stored graphs may contain: the current form, and that of compiler version 1.0
(three calls without a delay)."""


class ActionOp(NodeOp, frozen=True, kw_only=True, tag="action"):
    """Changes the document: merges computed values into the data, or calls a handler inside the commit.

    With `of` it changes or creates another document of the tenant.
    """

    action: str
    payload: dict[str, Stored] = {}  # noqa: RUF012 - every struct gets its own copy
    """Payload: stored expressions by name."""
    work: HandlerCall | None = None
    """The handler call. None merges the payload into the data."""
    of: str = ""
    """Type of the other document. Empty means the run's own."""
    target: Stored | None = None
    """Expression for the id of the other document. None creates one."""
    undo: str = ""
    """Compensating action. Empty without one."""

    word: ClassVar[str] = "action"
    shape: ClassVar[NodeShape] = NodeShape(('["✎ ', '"]'), 'shape=component, style="filled"')
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Transactional with a handler, otherwise pure."""
        return "pure" if self.call is None else "transactional"

    @property
    def exits(self) -> frozenset[str]:
        """Done, or failed."""
        return frozenset({OK, ERROR})

    @property
    def call(self) -> HandlerCall | None:
        """The call of the own handler, or of the built-in one for another document."""
        return ELSEWHERE if self.of else self.work

    @property
    def detail(self) -> str:
        """The action."""
        return f"{self.of}.{self.action}" if self.of else self.action

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the payload expressions."""
        for name, stored in self.payload.items():
            yield NodeExpression(f"{PAYLOAD}{name}", f"{name!r}, which {node!r} is given,", stored)
        if self.target is not None:
            yield NodeExpression(TARGET, f"the target of {node!r}", self.target)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of names and call."""
        yield from name_findings(node, "document_action", f"the action of {node!r}", self.action)
        if self.of:
            yield from name_findings(node, "entity_type", f"the type of the document of {node!r}", self.of)
        elif self.target is not None:
            message = f"{node!r} has a target and does not say of which type that is; name the type, or drop the target"
            yield Diagnostic("document_action", message, node)
        if self.of and self.work is not None:
            message = (
                f"{node!r} has a handler of its own, and is done to another document, whose contract says how; drop it"
            )
            yield Diagnostic("document_action", message, node)
        if self.work is not None:
            yield from work_findings(node, repr(node), self.work, least_calls=1)
            if not self.work.transactional:
                message = f"the handler of {node!r} changes a document, so it is called inside the commit; make it transactional"
                yield Diagnostic("document_action", message, node)
