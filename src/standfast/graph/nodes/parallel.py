"""A join waits for the branches of its split.

A split sends a token down every branch whose condition holds, or one for each item of a list.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from standfast.errors import Diagnostic
from standfast.expressions.model.paths import NAME_PATTERN
from standfast.graph.nodes.kind import ERROR, OK, Execution, NodeExpression, NodeOp, NodeShape, Stored, source
from standfast.graph.values.value_checks import number_findings, word_findings

Losers = Literal["undo", "finish", "stop"]
"""What becomes of branches that a join can do without: what they did is undone; they go on to their ends; or they just stop."""

ACCEPT, ABORT = "accept", "abort"
"""The names of what is asked of an arrival; the second is also what the join is left by then."""
NONE = "none"
"""What it is left by if all branches have ended and none of them was accepted."""

STRATEGIES = ("all", "any", "count")
LOSERS: tuple[str, ...] = get_args(Losers)

_TOLD: dict[Losers, str] = {"undo": "the others are undone", "finish": "the others finish", "stop": "the others stop"}


class JoinOp(NodeOp, frozen=True, kw_only=True, tag="join"):
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
    accept: Stored | None = None
    """Stored condition over the data of a branch: one that arrives without meeting it has come to its end. None means that all are welcome."""
    abort: Stored | None = None
    """Stored condition over the data of a branch: one that arrives and meets it ends the join at once, and what the others did is undone."""

    word: ClassVar[str] = "join"
    shape: ClassVar[NodeShape] = NodeShape(
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
        """Enough branches are there; there may be no room for what they answered; none was accepted; or one ends it for all."""
        return frozenset({OK, ERROR, *self.required})

    @property
    def required(self) -> tuple[str, ...]:
        """What nothing else says a word about."""
        asked = {NONE: self.accept, ABORT: self.abort}
        return tuple(outcome for outcome, condition in asked.items() if condition is not None)

    @property
    def detail(self) -> str:
        """How many branches are enough, and what becomes of the others."""
        if self.strategy == "all":
            return ""
        return f"{self.count if self.strategy == 'count' else 'any'} of them, {_TOLD[self.losers]}"

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """What is asked of those that arrive."""
        for name, stored in ((ACCEPT, self.accept), (ABORT, self.abort)):
            if stored is not None:
                yield NodeExpression(name, f"what {node!r} asks of a branch to {name}", stored)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with its words; where the branches meet is judged with the whole graph."""
        yield from word_findings(node, "join_strategy", f"the strategy of {node!r}", self.strategy, words=STRATEGIES)
        yield from word_findings(node, "join_losers", f"what {node!r} does with its losers", self.losers, words=LOSERS)


BRANCH = "branch"
"""The label of the edges that a split sends tokens down."""
OnEmpty = Literal["skip", "fail"]
"""What becomes of a split over a list without items: its branches meet at once, or the step has failed."""
EMPTY: tuple[OnEmpty, ...] = get_args(OnEmpty)


class SplitOp(NodeOp, frozen=True, kw_only=True, tag="split"):
    """Sends a token down every branch whose condition holds; with `items`, one for each item of a list, all of them down the one branch."""

    items: Stored | None = None
    """Stored mapping expression that gives the list."""
    item: str = "item"
    """Name under which a branch finds its item."""
    limit: int | None = None
    """Branches that run at the same time; None means all."""
    most: int | None = None
    """Items that there may be: with more of them the step has failed. None means that any number will do."""
    on_empty: OnEmpty = "skip"
    """What a list without items comes to."""

    word: ClassVar[str] = "fork"
    shape: ClassVar[NodeShape] = NodeShape(
        ('[/"', '"\\]'), "shape=box, style=filled, width=2, height=0.25, penwidth=2", is_bar=True
    )
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Its branches; no condition may hold, and what should be a list may not be one."""
        return frozenset({BRANCH, ERROR})

    @property
    def detail(self) -> str:
        """The list, and how much of it at a time."""
        if self.items is None:
            return ""
        return f"each {self.item} of {source(self.items)}" + (f", {self.limit} at a time" if self.limit else "")

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """The list."""
        if self.items is not None:
            yield NodeExpression("items", f"the list of {node!r}", self.items)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the limit, with the name of an item, and with what is said of an empty list."""
        yield from word_findings(node, "on_empty", f"what {node!r} does without items", self.on_empty, words=EMPTY)
        if self.limit is not None:
            yield from number_findings(node, "limit", f"the limit of {node!r}", self.limit, low=1)
        if self.most is not None:
            yield from number_findings(node, "most", f"the number of items of {node!r}", self.most, low=1)
        if self.items is not None and re.fullmatch(NAME_PATTERN, str(self.item)) is None:
            remedy = "take a name of ASCII letters, digits and _ that does not begin with a digit"
            yield Diagnostic("item_name", f"{node!r} names its item {self.item!r}; {remedy}", node)
