"""Gates: perform lifecycle transitions. Policy gates check whether an action is allowed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import OK, Execution, NodeOp, NodeShape
from standfast.graph.values.value_checks import name_findings

PASS, REJECT, AGAIN = "pass", "reject", "again"
DENIED = "denied"


class GateOp(NodeOp, frozen=True, kw_only=True, tag="gate"):
    """Performs one transition, once.

    Outcomes: `pass` if all approvals of its slot are valid, `reject` if one was rejected, `again` if one is void.
    """

    transition: str

    word: ClassVar[str] = "gate"
    shape: ClassVar[NodeShape] = NodeShape(('{{"⛭ ', '"}}'), "shape=hexagon, style=filled, penwidth=3")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Performed, rejected, or the approvals are requested again."""
        return frozenset({PASS, REJECT, AGAIN})

    @property
    def required(self) -> tuple[str, ...]:
        """The edge after the transition."""
        return (PASS,)

    @property
    def detail(self) -> str:
        """The transition."""
        return self.transition

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the name."""
        return name_findings(node, "transition", f"the transition of {node!r}", self.transition)


class PolicyGateOp(NodeOp, frozen=True, kw_only=True, tag="policy"):
    """Checks, before an action, whether its actor is allowed to perform it."""

    action: str
    of: str = ""
    """Type of the other document. Its policy is then checked in the commit of the action."""

    word: ClassVar[str] = "policy"
    shape: ClassVar[NodeShape] = NodeShape(('{{"⚿ ', '"}}'), "shape=hexagon, style=filled, penwidth=2")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Allowed or denied. Without an edge for a denial the step fails."""
        return frozenset({OK, DENIED})

    @property
    def required(self) -> tuple[str, ...]:
        """The edge to the action."""
        return (OK,)

    @property
    def detail(self) -> str:
        """The action."""
        return f"{self.of}.{self.action}" if self.of else self.action

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the name."""
        return name_findings(node, "document_action", f"the action of {node!r}", self.action)
