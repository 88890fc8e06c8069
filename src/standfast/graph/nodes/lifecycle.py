"""Lifecycle nodes of documents: start, state, rest, and the proxies at the entry and exit of a slot."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Literal, get_args

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import OK, TIMEOUT, Execution, NodeOp, NodeShape
from standfast.graph.values.value_checks import name_findings, word_findings

AMENDED, AMEND = "amended", "amend"
"""Outcome of a start for a document that replaces another, and of a state whose document is amended in place."""
_RESERVED = frozenset({AMEND, TIMEOUT, "*"})


class StartOp(NodeOp, frozen=True, kw_only=True, tag="start"):
    """The start of a document's life."""

    word: ClassVar[str] = "start"
    shape: ClassVar[NodeShape] = NodeShape(('(["▶ ', '"])'), 'shape=circle, style="filled", width=0.3')
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Passed, by another outcome for a document that amends one."""
        return frozenset({OK, AMENDED})

    @property
    def required(self) -> tuple[str, ...]:
        """The edge for a new document."""
        return (OK,)


class StateOp(NodeOp, frozen=True, kw_only=True, tag="state"):
    """Holds a token while its document has a status. The outcome is the name of a requested or automatic transition."""

    status: str
    intents: tuple[str, ...] = ()
    """The transitions from here."""

    word: ClassVar[str] = "state"
    shape: ClassVar[NodeShape] = NodeShape(('("', '")'), 'shape=box, style="filled,rounded", penwidth=2')
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Waits for an external request."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """A requested transition; an amendment in place; a timeout; or the edge from a final status to the rest."""
        return frozenset({*self.intents, AMEND, TIMEOUT, OK})

    @property
    def required(self) -> tuple[str, ...]:
        """All transitions that can be requested."""
        return self.intents

    @property
    def detail(self) -> str:
        """The status."""
        return self.status

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of status and transitions."""
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
    """The end of a round. The document rests until another transition is requested."""

    word: ClassVar[str] = "rest"
    shape: ClassVar[NodeShape] = NodeShape(('(["■ ', '"])'), 'shape=doublecircle, style="filled", width=0.3')
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Waits for an external request."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """None: the next round begins at the document's state."""
        return frozenset()


Side = Literal["in", "out"]
SIDES: tuple[Side, ...] = get_args(Side)


class ProxyOp(NodeOp, frozen=True, kw_only=True, tag="slot"):
    """The entry or exit of a slot."""

    slot: str
    side: Side

    word: ClassVar[str] = "slot"
    shape: ClassVar[NodeShape] = NodeShape(('(("⇥ ', '"))'), "shape=circle, style=filled, width=0.2")
    is_answering: ClassVar[bool] = False
    is_named: ClassVar[bool] = False
    is_protected: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Pure."""
        return "pure"

    @property
    def exits(self) -> frozenset[str]:
        """Passed. A rejection uses the same exit, and the gate behind it handles it."""
        return frozenset({OK})

    @property
    def required(self) -> tuple[str, ...]:
        """The edge that leads on."""
        return (OK,)

    @property
    def detail(self) -> str:
        """The slot and its side."""
        return f"{self.slot}, {self.side}"

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of slot and side."""
        yield from name_findings(node, "slot", f"the slot of {node!r}", self.slot)
        yield from word_findings(node, "slot", f"the side of {node!r}", self.side, words=SIDES)
