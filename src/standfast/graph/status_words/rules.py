"""Status names of rules. A waiting run is `paused`, and a run ended by a block is `blocked`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from standfast.graph.status_words import saga
from standfast.graph.status_words.protocol import StepFacts

ACTIVE: Final = ("pending", "running", "paused", "resuming")
TERMINAL: Final = ("completed", "failed", "blocked", "cancelled", "aborted")

ALLOWED: Final = "allowed"
BLOCKED: Final = "blocked"
APPROVAL_REJECTED: Final = "approval_rejected"
"""Reason of a blocked run whose approval was rejected."""
RESUMING: Final = "resuming"
ENDED_FOR: Final[Mapping[str, Sequence[str]]] = {BLOCKED: (BLOCKED, APPROVAL_REJECTED)}


def instance_status(status: str, reason: str, *, has_begun: bool) -> str:
    """Return the status of an instance."""
    if reason in ENDED_FOR[BLOCKED] and status == "completed":
        return BLOCKED
    if reason == RESUMING and status == "running":
        return RESUMING
    return "pending" if status == "running" and not has_begun else status


def stored_statuses(wanted: Sequence[str]) -> list[tuple[tuple[str, ...], bool | None]]:
    """Return the stored statuses for these names. Names with a common stored status are distinguished by reason."""
    plain = [{BLOCKED: "completed", RESUMING: "running"}.get(word, word) for word in wanted]
    return saga.stored_statuses(plain)


def step_status(
    status: str, *, wait_kind: str, outcome: str, undoing: str | None, is_called: bool, is_paused: bool, is_dead: bool
) -> str:
    """Return the status of a step: `paused` if it waits for a person or an event."""
    if undoing is None and status in {"pending", "running"} and wait_kind:
        return "paused"
    told = saga.step_status(
        status,
        wait_kind=wait_kind,
        outcome="",
        undoing=undoing,
        is_called=is_called,
        is_paused=is_paused,
        is_dead=is_dead,
    )
    return outcome if told == "completed" and outcome in {"approved", "rejected", ALLOWED, BLOCKED} else told


def event_name(type_: str, data: Mapping[str, object]) -> str:
    """Return the name of an event in a history. An answer has the name of its outcome."""
    if type_ == "step_answered" and str(data.get("outcome", "")) in {"approved", "rejected"}:
        return str(data["outcome"])
    return type_


def event_status(type_: str, known: StepFacts) -> str:
    """Return the status that an event sets for its step, or for the instance if it has no step.

    Empty if it sets none.
    """
    match type_:
        case "step_answered" | "step_completed" if known.outcome in {"approved", "rejected", ALLOWED, BLOCKED}:
            return known.outcome
        case "step_started" if known.is_waiting:
            return "paused"
        case "workflow_paused":
            return "paused"
        case "workflow_resumed":
            return RESUMING
        case _:
            return saga.event_status(type_, known)
