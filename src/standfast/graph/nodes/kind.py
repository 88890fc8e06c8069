"""Base of the kinds of nodes: outcomes, findings, expressions, shape and display word."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar, Literal, NamedTuple, TypeAlias

import msgspec

from standfast.errors import Diagnostic
from standfast.graph.values.handler_calls import HandlerCall

Plain: TypeAlias = object
"""Data without fractions, which can be hashed. The checks enforce it."""
Stored: TypeAlias = dict[str, Plain]
"""Stored form of an expression."""

Execution = Literal["pure", "effect", "transactional", "wait"]
"""`pure`: within the decision; `effect`: by a handler outside a transaction; `transactional`: by a handler inside
the commit; `wait`: waits for an external event."""

OK, ERROR, TIMEOUT = "ok", "error", "timeout"
"""Outcomes that any kind of node may have."""


class NodeShape(NamedTuple):
    """The shape of a kind of node in diagrams."""

    mermaid: tuple[str, str]
    """Texts before and after the label."""
    dot: str
    """Attributes of the box."""
    is_bar: bool = False
    """Whether it is a dark bar without a status colour."""


class NodeExpression(NamedTuple):
    """An expression of a node."""

    name: str
    """Name for the machine, unique within the node."""
    what: str
    """Description for findings."""
    stored: Stored


class NodeOp(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="op", forbid_unknown_fields=True):
    """The operation of a node as data, with all properties of its kind that a graph needs."""

    word: ClassVar[str]
    """Authors' word for such a step."""
    shape: ClassVar[NodeShape]
    is_answering: ClassVar[bool]
    """Whether it produces an answer. Other kinds only pass a token on, and name no result of a branch."""
    is_named: ClassVar[bool]
    """Whether its answer is always stored under the node's name. Otherwise an object is merged into the data."""

    is_protected: ClassVar[bool] = False
    """Whether it is a gate that no operator can skip, whatever the operator's rights."""

    @property
    def execution(self) -> Execution:
        """Where its work is executed."""
        raise NotImplementedError

    @property
    def exits(self) -> frozenset[str]:
        """Its possible outcomes."""
        raise NotImplementedError

    @property
    def answers(self) -> tuple[str, ...]:
        """The outcomes that an external answer may name. Empty if it waits for none."""
        return ()

    @property
    def required(self) -> tuple[str, ...]:
        """The outcomes that require an edge."""
        return ()

    @property
    def call(self) -> HandlerCall | None:
        """Its handler call, or None."""
        return None

    @property
    def detail(self) -> str:
        """Text for diagrams in addition to the node's name."""
        return ""

    def formulas(self, node: str) -> Iterator[NodeExpression]:  # noqa: ARG002 - for subclasses
        """Yield its expressions. None by default."""
        return iter(())

    def findings(self, node: str) -> Iterator[Diagnostic]:  # noqa: ARG002 - for subclasses
        """Yield the findings of its own fields, without expressions. None by default."""
        return iter(())


def source(stored: Mapping[str, object]) -> str:
    """Return the source text of an expression."""
    return str(stored.get("source", ""))
