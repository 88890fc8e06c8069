"""Nodes that wait for one or several published events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import ClassVar, Literal

import msgspec

from standfast.errors import Diagnostic
from standfast.graph.nodes.kind import (
    ERROR,
    OK,
    TIMEOUT,
    Execution,
    NodeExpression,
    NodeOp,
    NodeShape,
    Stored,
)
from standfast.graph.values.value_checks import name_findings

KEY, MATCH = "key.", "match."
"""Prefixes of expression names, followed by the event's name."""

Need = Literal["all", "any"] | int
"""Required number of events: all, any one, or a number."""


class Awaited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An event that a node waits for."""

    event: str
    """Name of the published event."""
    key: Stored | None = None
    """Stored expression for the required correlation key. None means no key."""
    match: Stored | None = None
    """Stored condition on the data and on the event's content, as `event`. None accepts all."""
    name: str = ""
    """Local name of the event. Empty means the event's own."""

    @property
    def title(self) -> str:
        """Local name of the event."""
        return self.name or self.event


class WaitEventsOp(NodeOp, frozen=True, kw_only=True, tag="wait_events"):
    """Waits for published events."""

    events: tuple[Awaited, ...]
    need: Need = "all"

    word: ClassVar[str] = "wait_for_event"
    shape: ClassVar[NodeShape] = NodeShape(('((("', '")))'), "shape=doublecircle, style=filled")
    is_answering: ClassVar[bool] = True
    is_named: ClassVar[bool] = True

    @property
    def execution(self) -> Execution:
        """Waits for an external event."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """Enough events arrived; the timeout passed; or the wait failed, without a key or for lack of space."""
        return frozenset({OK, TIMEOUT, ERROR})

    @property
    def answers(self) -> tuple[str, ...]:
        """Answered by the events."""
        return (OK,)

    @property
    def detail(self) -> str:
        """The awaited events."""
        told = ", ".join(each.title for each in self.events)
        return told if self.need == "all" else f"{self.need} of {told}"

    @property
    def enough(self) -> int:
        """Required number of events."""
        if isinstance(self.need, int):
            return self.need
        return 1 if self.need == "any" else len(self.events)

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """Yield the keys and the conditions."""
        for each in self.events:
            if each.key is not None:
                yield NodeExpression(
                    KEY + each.title, f"the key of {each.title!r}, which {node!r} waits for,", each.key
                )
            if each.match is not None:
                yield NodeExpression(MATCH + each.title, f"what {node!r} asks of {each.title!r}", each.match)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """Yield the findings of the events and their required number."""
        for each in self.events:
            yield from name_findings(node, "no_event", f"the event that {node!r} waits for", each.event)
            if each.name:
                yield from name_findings(node, "no_event", f"the name of an event of {node!r}", each.name)
        if not self.events:
            yield Diagnostic("no_event", f"{node!r} waits for no event; name at least one", node)
        for title, count in Counter(each.title for each in self.events).items():
            if count > 1:
                message = f"{node!r} waits for {count} events that are called {title!r}; give each a `name` of its own"
                yield Diagnostic("duplicate_event", message, node)
        if self.need not in ("all", "any") and not (type(self.need) is int and 1 <= self.need <= len(self.events)):
            message = (
                f"{node!r} needs {self.need!r} of {len(self.events)} events; it can be 'all', 'any' or a number of them"
            )
            yield Diagnostic("event_need", message, node)
