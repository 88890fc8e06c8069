"""Why a run refuses a command: the codes, each with its meaning, and those refusals that several commands share."""

from __future__ import annotations

from enum import StrEnum

from holdfast.kernel.decision import NOT_ALLOWED as FORBIDDEN
from holdfast.kernel.decision import Rejection


class Refusal(StrEnum):
    """A code of a rejection. The page `docs/reference/rejections.md` is made from this list."""

    NOT_STARTED = "not_started"
    """There is no such workflow: its instance has not been started."""
    ALREADY_STARTED = "already_started"
    """The business key belongs to a workflow that was started before; look at that one, or give another key."""
    OUTDATED = "outdated"
    """Something has happened to the workflow since the caller looked at it; look again, and decide anew."""
    ALREADY_TERMINAL = "already_terminal"
    """The workflow has ended; nothing can be asked of it any more."""
    NOT_ALLOWED = FORBIDDEN
    """The actor lacks the capability or the role that this needs; the call raises ForbiddenError."""
    NOT_WAITING = "not_waiting"
    """The step does not wait for an answer: it has ended, has not begun, or waits for something else."""
    UNKNOWN_OUTCOME = "unknown_outcome"
    """The step has no such outcome; the message names those that it has."""
    NO_TRANSITION = "no_transition"
    """The ways that this outcome leads to are open, but not for this actor."""
    INVALID_FORM = "invalid_form"
    """What came with the answer is not what the form of the step asks for; the message lists every fault with its place."""
    ALREADY_DECIDED = "already_decided"
    """The step was answered before, in another way or by another actor, and the first answer stands."""
    TOO_LARGE = "too_large"
    """The data would become larger or deeper than it may be; keep large data elsewhere and pass a reference."""
    TOO_MANY_SIGNALS = "too_many_signals"
    """As many signals as can be kept wait already, and no step waits for this one; send it again when one does."""
    ROLLBACK_IN_PROGRESS = "rollback_in_progress"
    """The workflow undoes what it did already; wait for its end, or abort it."""
    NOT_DEAD = "not_dead"
    """The step or its compensation is not among the dead letters; another operator may have been faster."""
    NOT_PAUSED = "not_paused"
    """The workflow is not paused; `run.resume_options()` tells what can be done."""
    ALREADY_PAUSED = "already_paused"
    """The workflow is paused already, or waits for an operator; resume or cancel it."""
    TIME_PASSED = "time_passed"
    """The instant at which it should go on is over already; give a later one, or none."""
    DEAD_LETTERS = "dead_letters"
    """Steps gave up and have to be requeued before the workflow can go on."""
    CHILD_NOT_UNDONE = "child_not_undone"
    """A workflow that the step started has to be undone first: try its own compensation again."""
    NO_REASON = "no_reason"
    """A repair needs a reason, which the history keeps."""
    NOT_OPEN = "not_open"
    """The step has not begun, or has ended; the message names those that have not."""
    NOT_REPAIRABLE = "not_repairable"
    """This cannot be done to such a step; the message says what can."""
    STILL_RUNNING = "still_running"
    """A live worker has the step in hand, so that it is not called a second time; the message says which."""
    PROTECTED = "protected"
    """The step is a gate that no operator can go past."""
    UNKNOWN_TOKEN = "unknown_token"  # noqa: S105 - a code
    """The workflow has no such token; the message names those that it has."""
    NO_SAVE_POINT = "no_save_point"
    """The workflow cannot be moved back to this save point; the message names those that it can be moved back to."""
    NO_FORK = "no_fork"
    """No run can begin at this point of the history; the message says why, and which points there are."""
    STILL_STOPPING = "still_stopping"
    """Handlers of the branch are still being stopped; try again when they have."""
    EVENT_GONE = "event_gone"
    """Another taker has the event, or its time is over; wait for the next one."""
    EVENT_WANTED = "event_wanted"
    """Others want the event and come first; look for another one, or wait in line."""

    NOT_ASKED_YET = "not_asked_yet"
    """Those whom the question asks are still being looked for; decide when it has come to an inbox."""
    CLAIMED = "claimed"
    """Somebody else has claimed the task and decides it alone, until they release it."""
    SELF_APPROVAL = "self_approval"
    """Whoever started the workflow may not decide this too; somebody else has to."""
    NOT_DISTINCT = "not_distinct"
    """This has to be decided by somebody who has not decided the steps that it is to be distinct from."""
    REASON_REQUIRED = "reason_required"
    """A rejection of this task needs a reason: give a comment."""
    DELEGATION_TO_SELF = "delegation_to_self"
    """A task cannot be delegated to the person who has it, and nobody stands in for themselves; name somebody else."""
    DELEGATION_CIRCLE = "delegation_circle"
    """The task, or what is delegated in the directory, would come back to somebody who has handed it on; name somebody else, or end that."""
    NOT_DELEGABLE = "not_delegable"
    """Those who are asked decide this themselves: nobody can do so in their place. It can be reassigned."""
    ALREADY_ASKED = "already_asked"
    """The person or role is among those who are asked already."""
    NOBODY_NAMED = "nobody_named"
    """Nobody, or not one of those who are asked, is named; the message lists them."""
    NOTHING_DECIDED = "nothing_decided"
    """The actor has no decision on this task that could be withdrawn."""


def refused(code: Refusal, message: str) -> Rejection:
    """A refusal with one of these codes."""
    return Rejection(code=code.value, message=message)


def already_terminal(status: str) -> Rejection:
    """The run has ended."""
    return refused(Refusal.ALREADY_TERMINAL, f"already in terminal state: {status}")
