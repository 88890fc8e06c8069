"""Status names of sagas, for instances, steps and the effect of events on steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from standfast.graph.status_words.protocol import StepFacts

PENDING: Final = "pending"
RUNNING: Final = "running"
DLQ: Final = "dlq"

PAUSED: Final = "paused"

ACTIVE: Final = ("pending", "running", "paused", "dlq")
TERMINAL: Final = ("completed", "failed", "cancelled", "aborted")
ENDED_FOR: Final[Mapping[str, Sequence[str]]] = {}

STEP_STATUSES: Final = (
    "pending",
    "running",
    "completed",
    "failed",
    "paused",
    "compensation",
    "rolled_back",
    "skipped",
    "waiting_decision",
    "confirmed",
    "rejected",
)


ANSWERED: Final = {"confirmed": "approved", "rejected": "rejected"}
"""Names of answers in a history, by outcome."""

HARMLESS: Final = frozenset({"requested", "approved", "drift"})
"""Reasons of pauses without a fault: requested by a caller, or waiting after a decision."""


def instance_status(status: str, reason: str, *, has_begun: bool) -> str:
    """Return the status of an instance: `dlq` if it waits for an operator, or `paused` without a fault."""
    if status == "paused":
        return PAUSED if reason in HARMLESS else DLQ
    return PENDING if status == RUNNING and not has_begun else status


def stored_statuses(wanted: Sequence[str]) -> list[tuple[tuple[str, ...], bool | None]]:
    """Return the stored statuses for these names, or for all without names.

    Each has a flag whether work has begun: True, False, or None for both. No instance matches two of them.
    """
    if not wanted or {PENDING, RUNNING} <= set(wanted):
        return [(tuple(dict.fromkeys(_STORED.get(word, word) for word in wanted)), None)]
    others = tuple(_STORED.get(word, word) for word in dict.fromkeys(wanted) if word not in {PENDING, RUNNING})
    found: list[tuple[tuple[str, ...], bool | None]] = [(others, None)] if others else []
    if len(others) < len(set(wanted)):
        found.append(((RUNNING,), RUNNING in wanted))
    return found


_STORED: Final = {PENDING: RUNNING, DLQ: "paused"}


def step_status(
    status: str, *, wait_kind: str, outcome: str, undoing: str | None, is_called: bool, is_paused: bool, is_dead: bool
) -> str:
    """Return the status of a step.

    `undoing` is the status of its compensation. `is_called` says whether a worker runs its call, `is_paused` whether
    the instance waits for an operator, and `is_dead` whether the step does.
    """
    if undoing is not None:
        # After an abort the progress of a running compensation is unknown.
        return {"completed": "rolled_back", "failed": "failed"}.get(undoing, "compensation")
    if status == "completed":
        return outcome if outcome in {"confirmed", "rejected"} else status
    if status == "failed":
        return "paused" if is_dead else status
    if status in {"skipped", "cancelled"}:
        return "skipped"
    if wait_kind == "human":
        return "waiting_decision"
    if is_paused:
        return "paused"  # The event of the instance applies to all its open steps.
    return RUNNING if status == RUNNING or is_called or wait_kind else PENDING


_OF_STEP: Final = {
    "step_completed": "completed",
    "step_retry": RUNNING,
    "step_failed": "failed",
    "step_stopped": "skipped",
    "step_paused": "paused",
    "failure_held": "paused",
    "step_requeued": PENDING,
    "step_skipped": "skipped",
    "compensation_started": "compensation",
    "compensation_retry": "compensation",
    "compensation_success": "rolled_back",
    "compensation_max_retries_exceeded": "failed",
    "compensation_waived": "failed",
    "step_rolled_back": "rolled_back",
}

_OF_INSTANCE: Final = {
    "workflow_started": PENDING,
    "workflow_forked": PENDING,
    "workflow_paused": DLQ,
    "workflow_resumed": RUNNING,
    "workflow_completed": "completed",
    "workflow_failed": "failed",
    "workflow_cancelled": "cancelled",
    "workflow_aborted": "aborted",
}


def event_name(type_: str, data: Mapping[str, object]) -> str:
    """Return the name of an event in the history of a saga. A person's decision has the name of its outcome."""
    return ANSWERED.get(str(data.get("outcome", "")), type_) if type_ == "step_answered" else type_


def event_status(type_: str, known: StepFacts) -> str:
    """Return the status that an event sets for its step, or for the instance if it has no step.

    Empty if it sets none.
    """
    match type_:
        case "step_started" | "step_resumed" | "step_skipped_missing_handler":
            return _awaiting_call(type_, known)
        case "step_answered" | "step_completed" if known.outcome in {"confirmed", "rejected"}:
            return known.outcome
        case "step_failed" | "step_stopped" if known.is_undoing:
            return "compensation"
        case "step_failed" if known.reason and not known.is_dead:
            return "skipped"
        case "step_withdrawn":
            return "paused" if known.is_paused else "skipped"
        case "cancellation_started" | "rollback_started" | "move_back_started" if known.is_paused:
            return RUNNING
        case "workflow_paused" if known.reason in HARMLESS:
            return PAUSED
        case _:
            return _OF_STEP.get(type_) or _OF_INSTANCE.get(type_, "")


def _awaiting_call(type_: str, known: StepFacts) -> str:
    """Return the status of a step that waits for its handler or a person."""
    if known.is_undoing:
        return "compensation"
    if known.is_human:
        return "waiting_decision"
    if type_ == "step_started":
        return PENDING if known.is_delayed else RUNNING
    if known.is_paused:
        return ""
    return RUNNING if known.calls else PENDING
