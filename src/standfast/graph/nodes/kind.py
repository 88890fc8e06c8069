"""What every kind of node says of itself in a graph: outcomes, findings, expressions, its picture and its word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import msgspec

from standfast.errors import Diagnostic
from standfast.graph.values.handler_calls import HandlerCall

Plain: TypeAlias = object
"""Data without fractions, as it can be hashed; the checks see to it."""
Stored: TypeAlias = dict[str, Plain]
"""The stored form of an expression."""

Execution = Literal["pure", "effect", "transactional", "wait"]
"""Inside the decision; by a handler outside of any transaction; by a handler inside the commit; by the world."""

OK, ERROR, TIMEOUT = "ok", "error", "timeout"
"""Outcomes that any kind of node may have."""


class NodeShape(NamedTuple):
    """How a kind of node is drawn."""

    mermaid: tuple[str, str]
    """What stands before and after the label."""
    dot: str
    """Attributes of the box."""
    is_bar: bool = False
    """Whether it is a dark bar where no status colours it."""


class NodeExpression(NamedTuple):
    """An expression of a node."""

    name: str
    """By which the machine finds it; unique within the node."""
    what: str
    """What it is, in a finding."""
    stored: Stored


class NodeOp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="op", forbid_unknown_fields=True):
    """What a node does, as data, with all that a graph has to know of its kind."""

    word: ClassVar[str]
    """What authors call such a step."""
    shape: ClassVar[NodeShape]
    is_answering: ClassVar[bool]
    """Whether it gives an answer. A kind that does not only leads a token on, and names nothing that comes out of a branch."""
    is_named: ClassVar[bool]
    """Whether its answer is found under the name of the node, whatever it is; an object is laid over the data otherwise."""

    is_protected: ClassVar[bool] = False
    """Whether it is a gate that no operator can go past, whatever he may do."""

    @property
    def execution(self) -> Execution:
        """Where its work is done."""
        raise NotImplementedError

    @property
    def exits(self) -> frozenset[str]:
        """What it can be left by."""
        raise NotImplementedError

    @property
    def answers(self) -> tuple[str, ...]:
        """The outcomes that an answer from outside may name; none if it waits for nobody's answer."""
        return ()

    @property
    def required(self) -> tuple[str, ...]:
        """The outcomes that an edge must lead on from, because nothing else says what follows."""
        return ()

    @property
    def call(self) -> HandlerCall | None:
        """The call of a handler that it makes; None if it makes none."""
        return None

    @property
    def detail(self) -> str:
        """What a picture says besides the name of the node."""
        return ""

    def formulas(self, node: str) -> Iterator[NodeExpression]:  # noqa: ARG002 - see the docstring
        """Its expressions; here none."""
        return iter(())

    def findings(self, node: str) -> Iterator[Diagnostic]:  # noqa: ARG002 - see the docstring
        """What is wrong with its own fields, expressions apart; here nothing can be."""
        return iter(())


def source(stored: Mapping[str, object]) -> str:
    """An expression as its author wrote it."""
    return str(stored.get("source", ""))
