"""A proxy is the way into a slot, or the way out of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import OK, Execution, NodeOp, NodeShape
from standfast.graph.values.value_checks import name_findings, word_findings

Side = Literal["in", "out"]
SIDES: tuple[Side, ...] = get_args(Side)


class ProxyOp(NodeOp, frozen=True, kw_only=True, tag="slot"):
    """Lets a token into a slot, or out of it."""

    slot: str
    side: Side

    word: ClassVar[str] = "slot"
    shape: ClassVar[NodeShape] = NodeShape(('(("⇥ ', '"))'), "shape=circle, style=filled, width=0.2")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It is passed. A rejection leaves the slot by the same way out, and the gate behind it knows."""
        return frozenset({OK})

    @property
    def required(self) -> tuple[str, ...]:
        """The way on."""
        return (OK,)

    @property
    def detail(self) -> str:
        """The slot, and which side of it."""
        return f"{self.slot}, {self.side}"

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the words."""
        yield from name_findings(node, "slot", f"the slot of {node!r}", self.slot)
        yield from word_findings(node, "slot", f"the side of {node!r}", self.side, words=SIDES)
