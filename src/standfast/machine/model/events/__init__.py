"""What can happen to a run. Names are those of the specifications; every change of status has its event."""

from __future__ import annotations

from typing import TypeAlias

from standfast.kernel.codec.message_types import message
from standfast.machine.model.events.base import Data, Happening
from standfast.machine.model.events.document import (
    ApprovalsApplied,
    ApprovalsKept,
    ApprovalsVoided,
    DocumentChanged,
    DocumentCreated,
    DocumentEvent,
    DocumentMoved,
    DocumentRedacted,
    DocumentSuperseded,
    FactsRead,
    RoundCompleted,
    RoundStarted,
    RulesApplied,
    SlotRejected,
    TransitionRequested,
    WorkflowSwitched,
)
from standfast.machine.model.events.event_wait import EventDeclined, EventReceived, EventsSought
from standfast.machine.model.events.notification import (
    NotificationDelivered,
    NotificationFailed,
    NotificationsSent,
    TaskEscalated,
    TaskReminded,
)
from standfast.machine.model.events.pause import (
    FailureHeld,
    PauseReason,
    TimerHeld,
    Trigger,
    WorkflowPaused,
    WorkflowResumed,
)
from standfast.machine.model.events.repair import (
    ActNoted,
    BranchCancelled,
    DataChanged,
    MoveBackStarted,
    MovedBack,
    PeopleInvolved,
    Repairing,
    StepRepaired,
    StepSkipped,
    WorkflowForked,
)
from standfast.machine.model.events.step import (
    ChildEnded,
    ChildNotUndone,
    ChildStarted,
    ChildUndone,
    CompensationExhausted,
    CompensationRetried,
    CompensationStarted,
    CompensationSucceeded,
    CompensationWaived,
    HandlerMissing,
    StepAnswered,
    StepCompleted,
    StepFailed,
    StepPaused,
    StepRequeued,
    StepResumed,
    StepRetried,
    StepRolledBack,
    StepStarted,
    StepStopped,
    StepWithdrawn,
    TimedOut,
)
from standfast.machine.model.events.task import (
    ApproverAdded,
    ChainFound,
    DecisionWithdrawn,
    Handed,
    PeopleAsked,
    PeopleSought,
    StagePassed,
    TaskClaimed,
    TaskCommented,
    TaskDecided,
    TaskDelegated,
    TaskEvent,
    TaskReassigned,
    TaskReleased,
)
from standfast.machine.model.events.token import (
    BranchesClosed,
    BranchesDropped,
    BranchesMet,
    BranchesOpened,
    BranchesUndone,
    DataAssigned,
    ItemsBegun,
    JoinArrived,
    TokenEnded,
    TokenHeld,
)

__all__ = [
    "AbortStarted",
    "ActNoted",
    "ApprovalsApplied",
    "ApprovalsKept",
    "ApprovalsVoided",
    "ApproverAdded",
    "BranchCancelled",
    "BranchesClosed",
    "BranchesDropped",
    "BranchesMet",
    "BranchesOpened",
    "BranchesUndone",
    "CancellationStarted",
    "ChainFound",
    "ChildEnded",
    "ChildNotUndone",
    "ChildStarted",
    "ChildUndone",
    "CompensationExhausted",
    "CompensationRetried",
    "CompensationStarted",
    "CompensationSucceeded",
    "CompensationWaived",
    "DataAssigned",
    "DataChanged",
    "DecisionWithdrawn",
    "DocumentChanged",
    "DocumentCreated",
    "DocumentEvent",
    "DocumentMoved",
    "DocumentRedacted",
    "DocumentSuperseded",
    "Ended",
    "Event",
    "EventDeclined",
    "EventReceived",
    "EventsSought",
    "FactsRead",
    "FailureHeld",
    "Handed",
    "HandlerMissing",
    "ItemsBegun",
    "JoinArrived",
    "MoveBackStarted",
    "MovedBack",
    "NotificationDelivered",
    "NotificationFailed",
    "NotificationsSent",
    "PauseReason",
    "PeopleAsked",
    "PeopleInvolved",
    "PeopleSought",
    "Repairing",
    "RollbackPlanned",
    "RollbackStarted",
    "RoundCompleted",
    "RoundStarted",
    "RulesApplied",
    "SignalReceived",
    "SignalTaken",
    "SlotRejected",
    "StagePassed",
    "StepAnswered",
    "StepCompleted",
    "StepFailed",
    "StepPaused",
    "StepRepaired",
    "StepRequeued",
    "StepResumed",
    "StepRetried",
    "StepRolledBack",
    "StepSkipped",
    "StepStarted",
    "StepStopped",
    "StepWithdrawn",
    "TaskClaimed",
    "TaskCommented",
    "TaskDecided",
    "TaskDelegated",
    "TaskEscalated",
    "TaskEvent",
    "TaskReassigned",
    "TaskReleased",
    "TaskReminded",
    "TimedOut",
    "TimerHeld",
    "TokenEnded",
    "TokenHeld",
    "TransitionRequested",
    "Trigger",
    "WorkflowAborted",
    "WorkflowCancelled",
    "WorkflowCompleted",
    "WorkflowFailed",
    "WorkflowForked",
    "WorkflowPaused",
    "WorkflowResumed",
    "WorkflowStarted",
    "WorkflowSwitched",
]


@message(name="workflow_started")
class WorkflowStarted(Happening, frozen=True, kw_only=True):
    """The run began."""

    input: Data
    delay_ms: int = 0
    """How long the first node is not entered."""
    parent: str = ""
    parent_definition: str = ""
    parent_step: int = 0
    requester: str = ""
    """Who wants it; empty if nobody but the engine does."""
    involved: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """Who else has brought it about: who started it for another, had a schedule fire, or has a part in the run that it is a part of."""
    wait_ms: int = 0
    """How long its steps wait where the definition does not say; 0 means for ever."""
    escalates: bool = False
    """Whether questions that nobody decides in time are put to others first."""
    looks_up: bool = False
    """Whether it is looked up whether those can decide whom the definition names."""
    starter: str = ""
    """Who started it, or the run that it is a part of, where that is asked for; empty if the engine did."""
    may: list[str] = []  # noqa: RUF012 - every struct gets one of its own
    """Their capabilities then."""
    has_row: bool = False
    """Whether it is a process that has a row of its own."""


@message(name="signal_received")
class SignalReceived(Happening, frozen=True, kw_only=True):
    """A signal came; it is kept until somebody waits for it."""

    name: str
    payload: object = None


@message(name="signal_taken")
class SignalTaken(Happening, frozen=True, kw_only=True):
    """A signal that was kept is given to a step that waits for it."""

    name: str


@message(name="rollback_started")
class RollbackStarted(Happening, frozen=True, kw_only=True):
    """The run turns back after a failure."""

    error: str
    failed_step: int | None = None
    """None if it is not a step that failed."""
    requested_by: str = ""
    """The operator who wants it; empty if it follows from a failure."""


@message(name="rollback_planned")
class RollbackPlanned(Happening, frozen=True, kw_only=True):
    """Nothing runs any more: these steps are undone, in this order."""

    chain: list[int]


@message(name="cancellation_started")
class CancellationStarted(Happening, frozen=True, kw_only=True):
    """Somebody cancelled the run."""

    requested_by: str
    reason: str


@message(name="abort_started")
class AbortStarted(Happening, frozen=True, kw_only=True):
    """Somebody aborted the run."""

    requested_by: str
    reason: str


@message(name="workflow_completed")
class WorkflowCompleted(Happening, frozen=True, kw_only=True):
    """The run ended well."""


@message(name="workflow_failed")
class WorkflowFailed(Happening, frozen=True, kw_only=True):
    """The run ended badly."""

    error: str
    reason: str = ""


@message(name="workflow_cancelled")
class WorkflowCancelled(Happening, frozen=True, kw_only=True):
    """The run was cancelled, and what had to be undone is undone."""

    requested_by: str
    reason: str


@message(name="workflow_aborted")
class WorkflowAborted(Happening, frozen=True, kw_only=True):
    """The run was ended at once."""

    requested_by: str
    reason: str


Ended: TypeAlias = WorkflowCompleted | WorkflowFailed | WorkflowCancelled | WorkflowAborted

Event: TypeAlias = (
    WorkflowStarted
    | StepStarted
    | StepCompleted
    | StepRetried
    | StepFailed
    | StepStopped
    | StepWithdrawn
    | StepResumed
    | StepPaused
    | DataAssigned
    | TokenHeld
    | TokenEnded
    | BranchesOpened
    | ItemsBegun
    | JoinArrived
    | BranchesMet
    | BranchesClosed
    | BranchesDropped
    | BranchesUndone
    | StepAnswered
    | TimedOut
    | SignalReceived
    | SignalTaken
    | CompensationStarted
    | CompensationRetried
    | CompensationSucceeded
    | CompensationExhausted
    | CompensationWaived
    | StepRolledBack
    | RollbackStarted
    | RollbackPlanned
    | CancellationStarted
    | AbortStarted
    | WorkflowCompleted
    | WorkflowFailed
    | WorkflowCancelled
    | WorkflowAborted
    | WorkflowPaused
    | TimerHeld
    | FailureHeld
    | StepRequeued
    | WorkflowResumed
    | ChildStarted
    | ChildEnded
    | ChildNotUndone
    | ChildUndone
    | HandlerMissing
    | EventReceived
    | EventDeclined
    | EventsSought
    | StepRepaired
    | BranchCancelled
    | PeopleInvolved
    | StepSkipped
    | DataChanged
    | MoveBackStarted
    | MovedBack
    | WorkflowForked
    | ActNoted
    | TaskReminded
    | TaskEscalated
    | NotificationsSent
    | NotificationFailed
    | NotificationDelivered
    | TaskEvent
    | DocumentEvent
)
