"""A gate performs a lifecycle transition; a policy gate asks whether an action may be done."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import OK, Execution, NodeOp, NodeShape
from standfast.graph.values.value_checks import name_findings

PASS, REJECT, AGAIN = "pass", "reject", "again"
DENIED = "denied"


class GateOp(NodeOp, frozen=True, kw_only=True, tag="gate"):
    """Performs one transition, once: by `pass` if all approvals of its slot stand, by `reject` if one was refused, by `again` if one is void."""

    transition: str

    word: ClassVar[str] = "gate"
    shape: ClassVar[NodeShape] = NodeShape(('{{"⛭ ', '"}}'), "shape=hexagon, style=filled, penwidth=3")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """The transition is performed; it is refused; or its approvals are asked for once more."""
        return frozenset({PASS, REJECT, AGAIN})

    @property
    def required(self) -> tuple[str, ...]:
        """The way behind it."""
        return (PASS,)

    @property
    def detail(self) -> str:
        """The transition."""
        return self.transition

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the name."""
        return name_findings(node, "transition", f"the transition of {node!r}", self.transition)


class PolicyGateOp(NodeOp, frozen=True, kw_only=True, tag="policy"):
    """Stands before an action, and asks whether the one in whose name it is done may do it."""

    action: str
    of: str = ""
    """The type of the other document that it is done to: then the policy of that one is asked, in the commit that does it."""

    word: ClassVar[str] = "policy"
    shape: ClassVar[NodeShape] = NodeShape(('{{"⚿ ', '"}}'), "shape=hexagon, style=filled, penwidth=2")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It may be done, or not; without an edge for that the step has failed."""
        return frozenset({OK, DENIED})

    @property
    def required(self) -> tuple[str, ...]:
        """The way to the action."""
        return (OK,)

    @property
    def detail(self) -> str:
        """The action."""
        return f"{self.of}.{self.action}" if self.of else self.action

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the name."""
        return name_findings(node, "document_action", f"the action of {node!r}", self.action)
