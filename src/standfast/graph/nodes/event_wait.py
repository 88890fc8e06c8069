"""Waiting for events that are published to whoever waits: one, or several of them."""

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
"""What the names of the expressions begin with; the name of the event follows."""

Need = Literal["all", "any"] | int
"""How many of the events: every one, the first one, or a number of them."""


class Awaited(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """An event that a node waits for."""

    event: str
    """The name that it is published under."""
    key: Stored | None = None
    """Stored expression over the data: the event must be published for this key. None means for no key."""
    match: Stored | None = None
    """Stored condition over the data and over what the event brings, as `event`; None means that any will do."""
    name: str = ""
    """What it is called here, where that is not the name of the event."""

    @property
    def title(self) -> str:
        """What it is called here."""
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
        """By the world."""
        return "wait"

    @property
    def exits(self) -> frozenset[str]:
        """Enough came; they did not in time; or there was no key to wait for, or no room for what they brought."""
        return frozenset({OK, TIMEOUT, ERROR})

    @property
    def answers(self) -> tuple[str, ...]:
        """What it waited for has happened."""
        return (OK,)

    @property
    def detail(self) -> str:
        """What it waits for."""
        told = ", ".join(each.title for each in self.events)
        return told if self.need == "all" else f"{self.need} of {told}"

    @property
    def enough(self) -> int:
        """How many have to come."""
        if isinstance(self.need, int):
            return self.need
        return 1 if self.need == "any" else len(self.events)

    def formulas(self, node: str) -> Iterator[NodeExpression]:
        """The keys and the conditions."""
        for each in self.events:
            if each.key is not None:
                yield NodeExpression(
                    KEY + each.title, f"the key of {each.title!r}, which {node!r} waits for,", each.key
                )
            if each.match is not None:
                yield NodeExpression(MATCH + each.title, f"what {node!r} asks of {each.title!r}", each.match)

    def findings(self, node: str) -> Iterator[Diagnostic]:
        """What is wrong with the events and with how many are needed."""
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
