"""A join waits for the branches of its split."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from holdfast.errors import Diagnostic
from holdfast.machine.graphs.findings import word_findings
from holdfast.machine.graphs.kinds.kind import ERROR, OK, Execution, NodeOp, Shape

Losers = Literal["undo", "finish", "stop"]
"""What becomes of branches that a join can do without: what they did is undone; they go on to their ends; or they just stop."""

STRATEGIES = ("all", "any", "count")
LOSERS: tuple[str, ...] = get_args(Losers)

_TOLD: dict[Losers, str] = {"undo": "the others are undone", "finish": "the others finish", "stop": "the others stop"}


class Join(NodeOp, frozen=True, kw_only=True, tag="join"):
    """Waits for the branches of a split."""

    split: str
    """The split whose branches meet here."""
    strategy: Literal["all", "any", "count"] = "all"
    count: int = 0
    """How many branches are enough, for `count`."""
    losers: Losers = "undo"
    """What becomes of the branches that were not needed."""
    answer: str = ""
    """Name under which its answer leaves a branch that it lies in; empty means its own."""

    word: ClassVar[str] = "join"
    shape: ClassVar[Shape] = Shape(
        ('[\\"', '"/]'), "shape=box, style=filled, width=2, height=0.25, penwidth=2", is_bar=True
    )
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Enough branches are there; there may be no room for what they answered."""
        return frozenset({OK, ERROR})

    @property
    def detail(self) -> str:
        """How many branches are enough, and what becomes of the others."""
        if self.strategy == "all":
            return ""
        return f"{self.count if self.strategy == 'count' else 'any'} of them, {_TOLD[self.losers]}"

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with its words; where the branches meet is judged with the whole graph."""
        yield from word_findings(node, "join_strategy", f"the strategy of {node!r}", self.strategy, words=STRATEGIES)
        yield from word_findings(node, "join_losers", f"what {node!r} does with its losers", self.losers, words=LOSERS)
