"""An action changes the document, or another one, in the name of the workflow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored
from standfast.graph.values.handler_calls import HandlerCall, RetryRule
from standfast.graph.values.value_checks import name_findings, work_findings

PAYLOAD = "payload."
"""What the names of the expressions begin with that an action is given."""
TARGET = "target"
"""The name of the expression that gives the id of another document."""
ELSEWHERE: Final = HandlerCall(handler="$documents", transactional=True, retry=RetryRule(is_default=True))
"""How something is done to another document: by the engine itself, in the commit that ends the step. No definition can name the handler."""
OWN_WORK: Final = (ELSEWHERE, HandlerCall(handler="$documents", transactional=True))
"""Calls of the engine's own handler that a graph may store: today's form, and that of version 1.0 of the compiler (three calls without a wait)."""


class ActionOp(NodeOp, frozen=True, kw_only=True, tag="action"):
    """Does something to the document: lays what it computes over the data, or has a handler compute the changes inside the commit.

    With `of` it is done to another document of the tenant, or makes one.
    """

    action: str
    payload: dict[str, Stored] = {}  # noqa: RUF012 - every struct gets one of its own
    """What it is given: stored expressions, by name."""
    work: HandlerCall | None = None
    """The call of the handler; None if what it is given is laid over the data."""
    of: str = ""
    """The type of the other document that it is done to; empty means the run's own."""
    target: Stored | None = None
    """What gives the id of that one; None means that one is made."""
    undo: str = ""
    """The action that takes it back; empty if nothing does."""

    word: ClassVar[str] = "action"
    shape: ClassVar[NodeShape] = NodeShape(('["✎ ', '"]'), 'shape=component, style="filled"')
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """By a handler inside the commit, if there is one."""
        return "pure" if self.call is None else "transactional"

    @property
    def exits(self) -> frozenset[str]:
        """It is done, or it cannot be."""
        return frozenset({OK, ERROR})

    @property
    def call(self) -> HandlerCall | None:
        """The handler's, if there is one, or the engine's own, for another document."""
        return ELSEWHERE if self.of else self.work

    @property
    def detail(self) -> str:
        """What is done."""
        return f"{self.of}.{self.action}" if self.of else self.action

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """What it is given."""
        for name, stored in self.payload.items():
            yield NodeExpression(f"{PAYLOAD}{name}", f"{name!r}, which {node!r} is given,", stored)
        if self.target is not None:
            yield NodeExpression(TARGET, f"the target of {node!r}", self.target)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the name and the call."""
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
