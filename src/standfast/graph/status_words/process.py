"""Status names of processes: an instance is `active` until it ends, or `suspended` until it is resumed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from standfast.graph.status_words.protocol import StepFacts

ACTIVE: Final = ("active", "suspended")
TERMINAL: Final = ("completed", "failed", "cancelled")
ENDED_FOR: Final[Mapping[str, Sequence[str]]] = {}

_STATUSES: Final = {"running": "active", "paused": "suspended", "aborted": "cancelled"}
"""Statuses whose names differ from the stored ones."""
_STORED: Final = {"active": ("running",), "suspended": ("paused",), "cancelled": ("cancelled", "aborted")}

_EVENTS: Final = {
    "step_started": "step_entered",
    "step_paused": "step_failed",
    "workflow_cancelled": "cancelled",
    "workflow_aborted": "cancelled",
}
"""Names of events in the trail of a process that differ from the stored ones."""

_OF_STEP: Final = {
    "step_started": "active",
    "step_resumed": "active",
    "step_retry": "active",
    "step_requeued": "active",
    "step_answered": "completed",
    "step_completed": "completed",
    "step_failed": "failed",
    "step_paused": "suspended",
    "step_stopped": "cancelled",
}
_OF_INSTANCE: Final = {
    "workflow_started": "active",
    "workflow_resumed": "active",
    "workflow_paused": "suspended",
    "workflow_completed": "completed",
    "workflow_failed": "failed",
    "workflow_cancelled": "cancelled",
    "workflow_aborted": "cancelled",
}


def instance_status(status: str, reason: str, *, has_begun: bool) -> str:  # noqa: ARG001 - an instance is active from its start
    """Return the status of an instance. An aborted process is cancelled, because it compensates nothing."""
    return _STATUSES.get(status, status)


def stored_statuses(wanted: Sequence[str]) -> list[tuple[tuple[str, ...], bool | None]]:
    """Return the stored statuses for these names, or for all without names."""
    stored = [each for word in dict.fromkeys(wanted) for each in _STORED.get(word, (word,))]
    return [(tuple(stored), None)]


def step_status(
    status: str,
    *,
    wait_kind: str,  # noqa: ARG001 - a waiting step is active too
    outcome: str,  # noqa: ARG001 - shown separately
    undoing: str | None,  # noqa: ARG001 - a process compensates nothing
    is_called: bool,  # noqa: ARG001 - see wait_kind
    is_paused: bool,
    is_dead: bool,
) -> str:
    """Return the status of a step."""
    match status:
        case "failed":
            return "suspended" if is_dead else "failed"
        case "skipped" | "cancelled":
            return "cancelled"
        case "pending" | "running":
            return "suspended" if is_paused else "active"
        case _:
            return status


def event_name(type_: str, data: Mapping[str, object]) -> str:
    """Return the name of an event in the trail. An answer has the name of its event."""
    return str(data.get("outcome", "")) if type_ == "step_answered" else _EVENTS.get(type_, type_)


def event_status(type_: str, known: StepFacts) -> str:
    """Return the status that an event sets for its step, or for the instance if it has no step.

    Empty if it sets none.
    """
    if type_ == "step_failed" and known.reason and not known.is_dead:
        return "cancelled"  # A caller ended it; it did not fail.
    return _OF_STEP.get(type_) or _OF_INSTANCE.get(type_, "")
