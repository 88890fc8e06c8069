"""The words of rules for what the machine stores. A run that waits is `paused`, one that a block has ended is `blocked`."""

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
"""Why a run is blocked whose block somebody was to lift, and did not."""
RESUMING: Final = "resuming"
ENDED_FOR: Final[Mapping[str, Sequence[str]]] = {BLOCKED: (BLOCKED, APPROVAL_REJECTED)}


def instance_status(status: str, reason: str, *, has_begun: bool) -> str:
    """The status of an instance."""
    if reason in ENDED_FOR[BLOCKED] and status == "completed":
        return BLOCKED
    if reason == RESUMING and status == "running":
        return RESUMING
    return "pending" if status == "running" and not has_begun else status


def stored_statuses(wanted: Sequence[str]) -> list[tuple[tuple[str, ...], bool | None]]:
    """What is stored of the instances that these words stand for; what a word shares with another one is told apart by the reason."""
    plain = [{BLOCKED: "completed", RESUMING: "running"}.get(word, word) for word in wanted]
    return saga.stored_statuses(plain)


def step_status(
    status: str, *, wait_kind: str, outcome: str, undoing: str | None, is_called: bool, is_paused: bool, is_dead: bool
) -> str:
    """The status of a step: one that waits for a person or an event is `paused`."""
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
    """What an event is called in a history: an answer by what it was."""
    if type_ == "step_answered" and str(data.get("outcome", "")) in {"approved", "rejected"}:
        return str(data["outcome"])
    return type_


def event_status(type_: str, known: StepFacts) -> str:
    """The status that an event leaves its step in, or the instance if it concerns no step; empty if it changes none."""
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
