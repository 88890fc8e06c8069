"""What can happen to a run. Names are those of the specifications; every change of status has its event."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from holdfast.kernel.vocabulary import message

Data = dict[str, object]


class _Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Something that happened."""


@message(name="workflow_started")
class WorkflowStarted(_Event, frozen=True, kw_only=True):
    """The run began."""

    input: Data
    parent: str = ""
    parent_definition: str = ""
    parent_step: int = 0


@message(name="step_started")
class StepStarted(_Event, frozen=True, kw_only=True):
    """A token entered a node that takes time, or a call is made again."""

    step: int
    node: str
    token: str
    visit: int = 1
    attempt: int = 1
    effect: int | None = None
    """Number of the effect that does the work; None for nodes that wait."""
    input: Data | None = None
    """What the step works on, when that is not the token's data."""
    retry_of: int | None = None
    """The step that this one repeats, after an operator's requeue."""


@message(name="step_completed")
class StepCompleted(_Event, frozen=True, kw_only=True):
    """A step ended well. For a node that takes no time it also says where that was."""

    step: int
    outcome: str = "ok"
    output: object = None
    node: str = ""
    token: str = ""
    visit: int = 1


@message(name="step_retry")
class StepRetried(_Event, frozen=True, kw_only=True):
    """A call failed and another one is made."""

    step: int
    attempt: int
    """Number of the call that failed."""
    error: str
    effect: int


@message(name="step_failed")
class StepFailed(_Event, frozen=True, kw_only=True):
    """A step gave up, or was stopped (`reason` is then `workflow_stopped`)."""

    step: int
    error: str
    reason: str = ""
    awaits_stop: bool = False
    """Whether its handler may still be running, so that it is undone only after it came back."""


@message(name="step_stopped")
class StepStopped(_Event, frozen=True, kw_only=True):
    """The handler of a step that was stopped has come back, or was never called."""

    step: int
    was_called: bool
    output: object = None


@message(name="step_withdrawn")
class StepWithdrawn(_Event, frozen=True, kw_only=True):
    """The work of a step was taken back before anybody began it."""

    step: int


@message(name="step_paused")
class StepPaused(_Event, frozen=True, kw_only=True):
    """A step gave up and waits for an operator."""

    step: int
    error: str


@message(name="token_moved")
class TokenMoved(_Event, frozen=True, kw_only=True):
    """A token was born, or left its node by an edge."""

    token: str
    target: str
    parent: str = ""
    """The token it was split from; empty for one that only moved."""
    scope: int | None = None
    """Number of the split step it belongs to."""
    assigned: Data = {}
    """What the edge, or the item of a list, adds to its data."""


@message(name="token_ended")
class TokenEnded(_Event, frozen=True, kw_only=True):
    """A token's way is over."""

    token: str
    reason: Literal["finished", "failed", "cancelled"] = "finished"


@message(name="join_arrived")
class JoinArrived(_Event, frozen=True, kw_only=True):
    """A branch reached the join of its split."""

    token: str
    join: str


@message(name="approved")
class Approved(_Event, frozen=True, kw_only=True):
    """A person confirmed."""

    step: int
    actor: str
    comment: str = ""


@message(name="rejected")
class Rejected(_Event, frozen=True, kw_only=True):
    """A person refused."""

    step: int
    actor: str
    comment: str = ""


@message(name="timeout")
class TimedOut(_Event, frozen=True, kw_only=True):
    """A node waited too long."""

    step: int


@message(name="signal_received")
class SignalReceived(_Event, frozen=True, kw_only=True):
    """A signal came; it is kept until somebody waits for it."""

    name: str
    payload: object = None


@message(name="signal_taken")
class SignalTaken(_Event, frozen=True, kw_only=True):
    """A step that waited for a signal has it."""

    name: str


@message(name="compensation_started")
class CompensationStarted(_Event, frozen=True, kw_only=True):
    """A step is being undone."""

    step: int
    """Number of the compensation's own step."""
    of: int
    """The step it undoes."""
    effect: int | None = None


@message(name="compensation_retry")
class CompensationRetried(_Event, frozen=True, kw_only=True):
    """An undoing call failed and another one is made."""

    step: int
    attempt: int
    error: str
    effect: int


@message(name="compensation_success")
class CompensationSucceeded(_Event, frozen=True, kw_only=True):
    """A step was undone."""

    step: int


@message(name="compensation_max_retries_exceeded")
class CompensationExhausted(_Event, frozen=True, kw_only=True):
    """A step could not be undone."""

    step: int
    error: str


@message(name="step_rolled_back")
class StepRolledBack(_Event, frozen=True, kw_only=True):
    """A step that nothing has to be done about was rolled past."""

    step: int
    of: int


@message(name="rollback_started")
class RollbackStarted(_Event, frozen=True, kw_only=True):
    """The run turns back."""

    cause: Literal["failure", "cancel"]
    failed_step: int | None = None
    error: str = ""


@message(name="rollback_planned")
class RollbackPlanned(_Event, frozen=True, kw_only=True):
    """Nothing runs any more: these steps are undone, in this order."""

    chain: list[int]


@message(name="cancellation_started")
class CancellationStarted(_Event, frozen=True, kw_only=True):
    """Somebody cancelled the run."""

    requested_by: str
    reason: str


@message(name="abort_started")
class AbortStarted(_Event, frozen=True, kw_only=True):
    """Somebody aborted the run."""

    requested_by: str
    reason: str


@message(name="workflow_completed")
class WorkflowCompleted(_Event, frozen=True, kw_only=True):
    """The run ended well."""


@message(name="workflow_failed")
class WorkflowFailed(_Event, frozen=True, kw_only=True):
    """The run ended badly."""

    error: str
    reason: str = ""


@message(name="workflow_cancelled")
class WorkflowCancelled(_Event, frozen=True, kw_only=True):
    """The run was cancelled, and what had to be undone is undone."""

    requested_by: str
    reason: str


@message(name="workflow_aborted")
class WorkflowAborted(_Event, frozen=True, kw_only=True):
    """The run was ended at once."""

    requested_by: str
    reason: str


@message(name="workflow_dead_lettered")
class WorkflowDeadLettered(_Event, frozen=True, kw_only=True):
    """The run waits for an operator."""

    step: int


@message(name="step_requeued")
class StepRequeued(_Event, frozen=True, kw_only=True):
    """An operator lets a step be tried again."""

    step: int
    actor: str
    input: Data | None = None


@message(name="workflow_resumed")
class WorkflowResumed(_Event, frozen=True, kw_only=True):
    """The run goes on."""


@message(name="scope_closed")
class ScopeClosed(_Event, frozen=True, kw_only=True):
    """All branches of a split have ended without meeting."""

    scope: int


@message(name="child_started")
class ChildStarted(_Event, frozen=True, kw_only=True):
    """Another workflow was started."""

    step: int
    child: str


@message(name="step_skipped_missing_handler")
class HandlerMissing(_Event, frozen=True, kw_only=True):
    """A step waits for a handler that no live worker has."""

    step: int
    handler: str


Event: TypeAlias = (
    WorkflowStarted
    | StepStarted
    | StepCompleted
    | StepRetried
    | StepFailed
    | StepStopped
    | StepWithdrawn
    | StepPaused
    | TokenMoved
    | TokenEnded
    | JoinArrived
    | Approved
    | Rejected
    | TimedOut
    | SignalReceived
    | SignalTaken
    | CompensationStarted
    | CompensationRetried
    | CompensationSucceeded
    | CompensationExhausted
    | StepRolledBack
    | RollbackStarted
    | RollbackPlanned
    | CancellationStarted
    | AbortStarted
    | WorkflowCompleted
    | WorkflowFailed
    | WorkflowCancelled
    | WorkflowAborted
    | WorkflowDeadLettered
    | StepRequeued
    | WorkflowResumed
    | ScopeClosed
    | ChildStarted
    | HandlerMissing
)
