"""What a dry run supposes of the world, as requests say it."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from standfast.http.requests.routing import RequestModel


class AssumptionArguments(TypedDict):
    """The same, by the names that the engine's calls have for it."""

    decisions: dict[str, str | list[str]]
    forms: dict[str, object]
    answers: dict[str, object]
    failing: list[str]
    events: dict[str, object]
    unanswered: list[str]


class Supposed(RequestModel, frozen=True, kw_only=True):
    """What is supposed where it is not for the best: that everybody agrees, and everything awaited comes."""

    decisions: dict[str, str | list[str]] = msgspec.field(default_factory=dict)
    """What those who are asked say, by node: the same each time, or one after the other; yes if nothing is told."""
    forms: dict[str, object] = msgspec.field(default_factory=dict)
    """What they fill in, by node."""
    answers: dict[str, object] = msgspec.field(default_factory=dict)
    """What handlers and other workflows answer, by their names or by the steps that call them."""
    failing: list[str] = msgspec.field(default_factory=list)
    """Handlers and workflows that fail, and steps."""
    events: dict[str, object] = msgspec.field(default_factory=dict)
    """What events and signals bring, by name."""
    unanswered: list[str] = msgspec.field(default_factory=list)
    """Nodes where nobody decides, and events and signals that do not come."""

    def told(self) -> AssumptionArguments:
        """What the engine is told."""
        return AssumptionArguments(
            decisions=self.decisions,
            forms=self.forms,
            answers=self.answers,
            failing=self.failing,
            events=self.events,
            unanswered=self.unanswered,
        )
