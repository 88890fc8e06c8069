"""What can happen to a run that waits for an operator: it is paused, things are held meanwhile, and it goes on."""

from __future__ import annotations

from datetime import datetime
from typing import Literal, TypeAlias

from standfast.kernel.codec.message_types import message
from standfast.kernel.row_kinds.steps import PauseClock, ResumeTrigger
from standfast.machine.model.events.base import Data, Happening

PauseReason = Literal[
    "dlq",
    "step_failed",
    "no_edge",
    "condition_failed",
    "chain_limit",
    "max_visits",
    "compensation_failed",
    "requested",
    "approved",
    "no_approver",
    "drift",
]
"""What a run waits for an operator for; `no_edge` if no condition of the ways on holds, `condition_failed` if one of them cannot be answered, `requested` if nothing went wrong and a person wants it to wait, `approved` if a question is decided
and the run is left to whoever lets it go on, `no_approver` if nobody can decide a question, `drift` if another system has changed a document."""

Trigger: TypeAlias = ResumeTrigger
"""What has a run go on."""


@message(name="workflow_paused")
class WorkflowPaused(Happening, frozen=True, kw_only=True):
    """The run waits for an operator."""

    reason: PauseReason
    error: str = ""
    """Why, in words: what went wrong, or what the person said who wants it to wait."""
    at: datetime | None = None
    """When, if a person wants it to wait; nothing is held for the other reasons."""
    by: str = ""
    clock: PauseClock = "run_on"
    until: datetime | None = None
    """When it goes on by itself; None means that it does not."""
    held: dict[str, datetime] = {}  # noqa: RUF012 - every struct gets one of its own
    """The timers that do not fire meanwhile, by key, and when they were due."""
    since: datetime | None = None
    """Since when the run was to be held for this, if another pause has held it then; `at` is the beginning of that one."""
    request: str = ""
    """The id of the request to resume that has ended that pause; empty if a timer has."""
    place: int = 0
    """How many events the run had before it, which tells it from another pause of the same instant; 0 in those of old."""


@message(name="timer_held")
class TimerHeld(Happening, frozen=True, kw_only=True):
    """A timer was set while the run is paused, or is not wanted any more: it is set once the run goes on, or is not."""

    key: str
    due_at: datetime | None = None
    """None if it is not wanted any more."""


@message(name="failure_held")
class FailureHeld(Happening, frozen=True, kw_only=True):
    """A step gave up while the run is paused; what follows from that follows once the run goes on."""

    step: int
    error: str
    was_called: bool = True


@message(name="workflow_resumed")
class WorkflowResumed(Happening, frozen=True, kw_only=True):
    """The run goes on."""

    request: str = ""
    """Id of the request to go on; empty if that follows from something else, such as a step that is tried again."""
    by: str = ""
    reason: str = ""
    """Why, in words."""
    trigger: Trigger = "manual"
    trigger_id: str = ""
    """What tells this request from others, so that the same one twice is one."""
    data: Data | None = None
    """What conditions find from now on under `resume`."""
    told: Data | None = None
    """The decision or the event that the run has waited for; conditions find it under `approval` or `event`."""
    shift_ms: int = 0
    """How long the clocks of the run stood still; 0 if they ran on."""
