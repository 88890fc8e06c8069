"""Status names of documents: those of sagas, except that a stopped step is `cancelled`."""

from __future__ import annotations

from typing import Final

from standfast.graph.status_words import saga
from standfast.graph.status_words.protocol import StepFacts
from standfast.graph.status_words.saga import event_name, instance_status, stored_statuses

__all__ = [
    "ACTIVE",
    "ENDED_FOR",
    "TERMINAL",
    "event_name",
    "event_status",
    "instance_status",
    "step_status",
    "stored_statuses",
]

ACTIVE: Final = saga.ACTIVE
TERMINAL: Final = saga.TERMINAL
ENDED_FOR: Final = saga.ENDED_FOR

CANCELLED: Final = "cancelled"
SKIPPED: Final = "skipped"


def step_status(
    status: str, *, wait_kind: str, outcome: str, undoing: str | None, is_called: bool, is_paused: bool, is_dead: bool
) -> str:
    """Return the status of a step: `skipped` if an operator chose its outcome, `cancelled` if it was stopped without one."""
    told = saga.step_status(
        status,
        wait_kind=wait_kind,
        outcome=outcome,
        undoing=undoing,
        is_called=is_called,
        is_paused=is_paused,
        is_dead=is_dead,
    )
    return CANCELLED if told == SKIPPED and not outcome else told


def event_status(type_: str, known: StepFacts) -> str:
    """Return the status that an event sets for its step, or for the instance if it has no step.

    Empty if it sets none.
    """
    told = saga.event_status(type_, known)
    return CANCELLED if told == SKIPPED and type_ != "step_skipped" else told
