"""The words of processes for what the machine stores: an instance that has not ended is `active`, or `suspended` until somebody resumes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from standfast.graph.status_words.protocol import StepFacts

ACTIVE: Final = ("active", "suspended")
TERMINAL: Final = ("completed", "failed", "cancelled")
ENDED_FOR: Final[Mapping[str, Sequence[str]]] = {}

_STATUSES: Final = {"running": "active", "paused": "suspended", "aborted": "cancelled"}
"""What is called otherwise than it is stored."""
_STORED: Final = {"active": ("running",), "suspended": ("paused",), "cancelled": ("cancelled", "aborted")}

_EVENTS: Final = {
    "step_started": "step_entered",
    "step_paused": "step_failed",
    "workflow_cancelled": "cancelled",
    "workflow_aborted": "cancelled",
}
"""What events are called in the trail of a process, where that is not their own name."""

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
    """The status of an instance: what was aborted is cancelled, because a process undoes nothing anyhow."""
    return _STATUSES.get(status, status)


def stored_statuses(wanted: Sequence[str]) -> list[tuple[tuple[str, ...], bool | None]]:
    """What is stored of the instances that these words stand for, all of them for no word at all."""
    stored = [each for word in dict.fromkeys(wanted) for each in _STORED.get(word, (word,))]
    return [(tuple(stored), None)]


def step_status(
    status: str,
    *,
    wait_kind: str,  # noqa: ARG001 - a step that waits is active too
    outcome: str,  # noqa: ARG001 - which is told beside it
    undoing: str | None,  # noqa: ARG001 - a process undoes nothing
    is_called: bool,  # noqa: ARG001 - see wait_kind
    is_paused: bool,
    is_dead: bool,
) -> str:
    """The status of a step."""
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
    """What an event is called in the trail: an answer by the event that it was."""
    return str(data.get("outcome", "")) if type_ == "step_answered" else _EVENTS.get(type_, type_)


def event_status(type_: str, known: StepFacts) -> str:
    """The status that an event leaves its step in, or the instance if it concerns no step; empty if it changes none."""
    if type_ == "step_failed" and known.reason and not known.is_dead:
        return "cancelled"  # Somebody ended it; it did not fail by itself.
    return _OF_STEP.get(type_) or _OF_INSTANCE.get(type_, "")
