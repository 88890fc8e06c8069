"""Request fields for the assumptions of a dry run."""

from __future__ import annotations

from typing import TypedDict

import msgspec

from standfast.http.requests.routing import RequestModel


class AssumptionArguments(TypedDict):
    """The assumptions, by parameter name of the engine's calls."""

    decisions: dict[str, str | list[str]]
    forms: dict[str, object]
    answers: dict[str, object]
    failing: list[str]
    events: dict[str, object]
    unanswered: list[str]


class Supposed(RequestModel, frozen=True, kw_only=True):
    """The assumptions of a dry run. By default every approver agrees, and every awaited event arrives."""

    decisions: dict[str, str | list[str]] = msgspec.field(default_factory=dict)
    """The approvers' decisions by node: one for all, or a list in order; approval if omitted."""
    forms: dict[str, object] = msgspec.field(default_factory=dict)
    """The form data of approvers, by node."""
    answers: dict[str, object] = msgspec.field(default_factory=dict)
    """The results of handlers and child workflows, by name or by calling step."""
    failing: list[str] = msgspec.field(default_factory=list)
    """Handlers and workflows that fail, and steps."""
    events: dict[str, object] = msgspec.field(default_factory=dict)
    """The payloads of events and signals, by name."""
    unanswered: list[str] = msgspec.field(default_factory=list)
    """Nodes without a decision, and events and signals that do not arrive."""

    def told(self) -> AssumptionArguments:
        """Return the engine's form of the assumptions."""
        return AssumptionArguments(
            decisions=self.decisions,
            forms=self.forms,
            answers=self.answers,
            failing=self.failing,
            events=self.events,
            unanswered=self.unanswered,
        )
