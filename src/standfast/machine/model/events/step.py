"""What can happen to a step, and to the one that undoes it."""

from __future__ import annotations

from typing import Literal

from standfast.kernel.codec.message_types import message
from standfast.machine.model.events.base import Data, Happening


@message(name="step_started")
class StepStarted(Happening, frozen=True, kw_only=True):
    """A token entered a node that takes time."""

    step: int
    node: str
    token: str
    visit: int = 1
    effect: int | None = None
    """Number of the effect that does the work; None for nodes that wait."""
    retry_of: int | None = None
    """The step that this one repeats, after an operator asked for it."""
    first: int = 0
    """The step whose idempotency key it shares, because it does the same work again; 0 means its own."""
    delay_ms: int = 0
    """How long its first call waits."""
    asked_at: str = ""
    """When a question was asked, as ISO 8601, if reminders or a ladder count from then; empty otherwise."""
    due_at: str = ""
    """When an answer is due, as ISO 8601; empty if nobody says."""
    call_at: str = ""
    """When its first call is to be made, as ISO 8601, if that is later; empty otherwise."""


@message(name="step_completed")
class StepCompleted(Happening, frozen=True, kw_only=True):
    """A step ended well. For a node that takes no time it also says where that was."""

    step: int
    outcome: str = "ok"
    output: object = None
    to: str = ""
    """Where the token went, if there was a choice."""
    edge: str = ""
    """Id of the edge that it went by, if there was a choice."""
    node: str = ""
    token: str = ""
    visit: int = 1
    retry_of: int | None = None
    by: str = ""
    """The operator who completed it by hand; empty if nobody did."""
    on_behalf_of: str = ""
    effect: int | None = None
    """The call that was asked for as the step was left, which nobody waits for."""


@message(name="step_retry")
class StepRetried(Happening, frozen=True, kw_only=True):
    """A call failed and another one is made."""

    step: int
    attempt: int
    """Number of the call that failed."""
    error: str
    effect: int | None = None
    """The effect that makes it; None while the run waits for an operator."""
    was_called: bool = True
    """Whether the call that failed was made at all."""
    call_at: str = ""
    """When the other one is to be made, as ISO 8601, if that is later; empty otherwise."""


@message(name="step_failed")
class StepFailed(Happening, frozen=True, kw_only=True):
    """A step gave up, or was stopped (`reason` is then `workflow_stopped`)."""

    step: int
    error: str
    reason: str = ""
    was_called: bool = True
    """Whether its last call was made at all."""
    awaits_stop: bool = False
    """Whether its handler may still be running: its end is told by a StepStopped, and waited for before the step is undone."""


@message(name="step_stopped")
class StepStopped(Happening, frozen=True, kw_only=True):
    """The handler of a step that was stopped has come back, was never called, or has had its time.

    After the end of the run it is told only of handlers that were called.
    """

    step: int
    attempt: int = 0
    """Number of the call that came back; 0 if it was never made."""
    is_done: bool = False
    """Whether it finished its work all the same."""
    output: object = None
    is_shown: bool = False
    """Whether the row of the step has the output too; those of older histories have not."""


@message(name="step_withdrawn")
class StepWithdrawn(Happening, frozen=True, kw_only=True):
    """The work of a step was taken back before anybody began it."""

    step: int


@message(name="step_resumed")
class StepResumed(Happening, frozen=True, kw_only=True):
    """A step whose work was taken back is called after all."""

    step: int
    effect: int


@message(name="step_paused")
class StepPaused(Happening, frozen=True, kw_only=True):
    """A step gave up and waits for an operator."""

    step: int
    error: str
    was_called: bool = True
    """Whether its last call was made at all."""


@message(name="step_answered")
class StepAnswered(Happening, frozen=True, kw_only=True):
    """A person, or the world, answered a step that waited for that."""

    step: int
    outcome: str
    actor: str
    at: str
    """When, as ISO 8601."""
    on_behalf_of: str = ""
    """Whom the actor stood in for; empty if it acted for itself."""
    comment: str = ""
    data: object = None
    """What came with the answer, and what its form fills in."""
    is_filled: bool = False
    """Whether the form has filled something in."""
    given: object = None
    """What came with the answer then."""
    document_version: str = ""
    """The version of the document that was decided on; empty if the question is about none."""
    overridden: bool = False
    """Whether it was given past those who were asked."""
    reason: str = ""
    """Why it came to this where nobody answered so: `all_abstained`, `out_of_reach`."""
    decisions: list[Data] = []  # noqa: RUF012 - every struct gets one of its own
    """What each of several has decided, in their order; empty if one decision was enough."""


@message(name="timeout")
class TimedOut(Happening, frozen=True, kw_only=True):
    """A node waited too long."""

    step: int
    node: str = ""
    """Its name; empty in histories that are older than this."""


@message(name="compensation_started")
class CompensationStarted(Happening, frozen=True, kw_only=True):
    """A step is being undone."""

    step: int
    """Number of the compensation's own step."""
    of: int
    """The step it undoes."""
    effect: int | None = None
    delay_ms: int = 0
    """How long its first call waits."""


@message(name="compensation_retry")
class CompensationRetried(Happening, frozen=True, kw_only=True):
    """An undoing call failed and another one is made."""

    step: int
    attempt: int
    error: str
    effect: int
    was_called: bool = True
    """Whether the call that failed was made at all."""


@message(name="compensation_success")
class CompensationSucceeded(Happening, frozen=True, kw_only=True):
    """A step was undone."""

    step: int


@message(name="compensation_max_retries_exceeded")
class CompensationExhausted(Happening, frozen=True, kw_only=True):
    """A step could not be undone."""

    step: int
    error: str
    was_called: bool = True
    """Whether the last call was made at all."""


@message(name="compensation_waived")
class CompensationWaived(Happening, frozen=True, kw_only=True):
    """An operator lets the run go on although a step could not be undone."""

    step: int
    """The step that stays as it is."""
    actor: str
    reason: str = ""
    """Why, in the operator's words."""


@message(name="step_rolled_back")
class StepRolledBack(Happening, frozen=True, kw_only=True):
    """A step that nothing has to be done about was rolled past."""

    step: int
    of: int


@message(name="step_requeued")
class StepRequeued(Happening, frozen=True, kw_only=True):
    """An operator lets a step be tried again."""

    step: int
    actor: str
    input: Data | None = None
    """What it works on now; None leaves it as it was."""
    reason: str = ""
    """Why, in the operator's words."""
    verb: Literal["requeue", "retry"] = "requeue"
    """Which of the two was asked for."""


@message(name="child_started")
class ChildStarted(Happening, frozen=True, kw_only=True):
    """Another workflow was started."""

    step: int
    child: str


@message(name="child_ended")
class ChildEnded(Happening, frozen=True, kw_only=True):
    """A workflow that a step started has ended, and a rollback will have to know how."""

    step: int
    is_undoable: bool = False
    """Whether it has completed, and is undone with the step."""
    no_return: str = ""
    """The point of no return that it has passed, so that it cannot be undone any more."""
    is_settled: bool = False
    """Whether it has undone itself, so that nothing is left to undo."""


@message(name="child_not_undone")
class ChildNotUndone(Happening, frozen=True, kw_only=True):
    """A workflow that a step started has ended, and could not be undone."""

    step: int
    error: str


@message(name="child_undone")
class ChildUndone(Happening, frozen=True, kw_only=True):
    """It is undone after all."""

    step: int


@message(name="step_skipped_missing_handler")
class HandlerMissing(Happening, frozen=True, kw_only=True):
    """A step waits for a handler that no live worker has."""

    step: int
    handler: str
