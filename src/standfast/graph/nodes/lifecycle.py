"""Start, state and rest are where a document begins, stays, and lies between its rounds.

A proxy is the way into a slot, or the way out of it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import OK, TIMEOUT, Execution, NodeOp, NodeShape
from standfast.graph.values.value_checks import name_findings, word_findings

AMENDED, AMEND = "amended", "amend"
"""What a start is left by for a document that takes the place of another; what a state is left by when its document is amended in place."""
_RESERVED = frozenset({AMEND, TIMEOUT, "*"})


class StartOp(NodeOp, frozen=True, kw_only=True, tag="start"):
    """Where the life of a document begins."""

    word: ClassVar[str] = "start"
    shape: ClassVar[NodeShape] = NodeShape(('(["▶ ', '"])'), 'shape=circle, style="filled", width=0.3')
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Inside the decision."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """It is passed, in another way by a document that amends one."""
        return frozenset({OK, AMENDED})

    @property
    def required(self) -> tuple[str, ...]:
        """The way of a new document."""
        return (OK,)


class StateOp(NodeOp, frozen=True, kw_only=True, tag="state"):
    """Where a token stays while its document has a status: left by the name of a transition that somebody asks for, or that begins by itself."""

    status: str
    intents: tuple[str, ...] = ()
    """The transitions that lead on from here."""

    word: ClassVar[str] = "state"
    shape: ClassVar[NodeShape] = NodeShape(('("', '")'), 'shape=box, style="filled,rounded", penwidth=2')
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """A transition was asked for; the document is amended in place; nobody asked in time; or a final status leads on to the rest."""
        return frozenset({*self.intents, AMEND, TIMEOUT, OK})

    @property
    def required(self) -> tuple[str, ...]:
        """All that can be asked for."""
        return self.intents

    @property
    def detail(self) -> str:
        """The status."""
        return self.status

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the words."""
        yield from name_findings(node, "status", f"the status of {node!r}", self.status)
        for intent, count in Counter(self.intents).items():
            yield from name_findings(node, "outcomes", f"a transition of {node!r}", intent)
            if count > 1:
                yield Diagnostic(
                    "outcomes", f"{node!r} names the transition {intent!r} {count} times; name it once", node
                )
            if intent in _RESERVED:
                message = f"{node!r} names the transition {intent!r}, which is kept for the engine; take another word"
                yield Diagnostic("outcomes", message, node)


class RestOp(NodeOp, frozen=True, kw_only=True, tag="rest"):
    """The end of a round: nothing is under way until somebody asks for another transition."""

    word: ClassVar[str] = "rest"
    shape: ClassVar[NodeShape] = NodeShape(('(["■ ', '"])'), 'shape=doublecircle, style="filled", width=0.3')
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """No edge leads on from it: the next round begins at the state that the document has."""
        return frozenset()


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
