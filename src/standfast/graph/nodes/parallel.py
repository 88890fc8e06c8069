"""Nodes for parallel branches: a split creates them, by condition or one per list item, and a join waits for them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from standfast.errors import Diagnostic
from standfast.expressions.model.paths import NAME_PATTERN
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored, source
from standfast.graph.values.value_checks import number_findings, word_findings

Losers = Literal["undo", "finish", "stop"]
"""Effect on unneeded branches: `undo` compensates them, `finish` lets them complete, `stop` stops them."""

ACCEPT, ABORT = "accept", "abort"
"""Names of the conditions on arriving branches. The second is also the outcome that ends the join."""
NONE = "none"
"""Outcome if all branches have ended and none was accepted."""

STRATEGIES = ("all", "any", "count")
LOSERS: tuple[str, ...] = get_args(Losers)

_TOLD: dict[Losers, str] = {"undo": "the others are undone", "finish": "the others finish", "stop": "the others stop"}


class JoinOp(NodeOp, frozen=True, kw_only=True, tag="join"):
    """Waits for the branches of a split."""

    split: str
    """The split whose branches it joins."""
    strategy: Literal["all", "any", "count"] = "all"
    count: int = 0
    """Required number of branches, for `count`."""
    losers: Losers = "undo"
    """Effect on unneeded branches."""
    answer: str = ""
    """Name of its answer outside an enclosing branch. Empty means its own name."""
    accept: Stored | None = None
    """Stored condition over the data of an arriving branch. A branch that fails it has ended. None accepts all."""
    abort: Stored | None = None
    """Stored condition over the data of an arriving branch. If it is true, the join ends and the other branches are
    compensated."""

    word: ClassVar[str] = "join"
    shape: ClassVar[NodeShape] = NodeShape(
        ('[\\"', '"/]'), "shape=box, style=filled, width=2, height=0.25, penwidth=2", is_bar=True
    )
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Enough branches arrived; failed for lack of space; none was accepted; or one branch aborted the join."""
        return frozenset({OK, ERROR, *self.required})

    @property
    def required(self) -> tuple[str, ...]:
        """The outcomes without a default."""
        asked = {NONE: self.accept, ABORT: self.abort}
        return tuple(outcome for outcome, condition in asked.items() if condition is not None)

    @property
    def detail(self) -> str:
        """The required branches, and the effect on the others."""
        if self.strategy == "all":
            return ""
        return f"{self.count if self.strategy == 'count' else 'any'} of them, {_TOLD[self.losers]}"

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the conditions on arriving branches."""
        for name, stored in ((ACCEPT, self.accept), (ABORT, self.abort)):
            if stored is not None:
                yield NodeExpression(name, f"what {node!r} asks of a branch to {name}", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of its fields. Its branches are checked with the whole graph."""
        yield from word_findings(node, "join_strategy", f"the strategy of {node!r}", self.strategy, words=STRATEGIES)
        yield from word_findings(node, "join_losers", f"what {node!r} does with its losers", self.losers, words=LOSERS)


BRANCH = "branch"
"""Outcome of the edges to the branches."""
OnEmpty = Literal["skip", "fail"]
"""Effect of an empty list: `skip` joins immediately, `fail` fails the step."""
EMPTY: tuple[OnEmpty, ...] = get_args(OnEmpty)


class SplitOp(NodeOp, frozen=True, kw_only=True, tag="split"):
    """Sends a token into every branch whose condition holds.

    With `items`, sends one per list item into the single branch.
    """

    items: Stored | None = None
    """Stored expression for the list."""
    item: str = "item"
    """Name of the item in a branch."""
    limit: int | None = None
    """Maximum number of concurrent branches. None means all."""
    most: int | None = None
    """Maximum number of items. More fail the step. None means no limit."""
    on_empty: OnEmpty = "skip"
    """Effect of an empty list."""

    word: ClassVar[str] = "fork"
    shape: ClassVar[NodeShape] = NodeShape(
        ('[/"', '"\\]'), "shape=box, style=filled, width=2, height=0.25, penwidth=2", is_bar=True
    )
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """The branches; failed if no condition holds or the list is invalid."""
        return frozenset({BRANCH, ERROR})

    @property
    def detail(self) -> str:
        """The list and its limit."""
        if self.items is None:
            return ""
        return f"each {self.item} of {source(self.items)}" + (f", {self.limit} at a time" if self.limit else "")

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the list expression."""
        if self.items is not None:
            yield NodeExpression("items", f"the list of {node!r}", self.items)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of limits, item name and empty list."""
        yield from word_findings(node, "on_empty", f"what {node!r} does without items", self.on_empty, words=EMPTY)
        if self.limit is not None:
            yield from number_findings(node, "limit", f"the limit of {node!r}", self.limit, low=1)
        if self.most is not None:
            yield from number_findings(node, "most", f"the number of items of {node!r}", self.most, low=1)
        if self.items is not None and re.fullmatch(NAME_PATTERN, str(self.item)) is None:
            remedy = "take a name of ASCII letters, digits and _ that does not begin with a digit"
            yield Diagnostic("item_name", f"{node!r} names its item {self.item!r}; {remedy}", node)
