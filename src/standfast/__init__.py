"""Standfast: durable workflows for Python that stand fast when processes die and people take weeks to answer."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from standfast.app.access_views import ApiKey, NewApiKey, RefusedRequest, Written, WrittenPage
    from standfast.app.blueprint_views import (
        BodyCheck,
        BodyDraft,
        BodyTemplate,
        BodyVersion,
        BrokenBody,
        ContractCheck,
        ContractVersion,
        PublishingRules,
    )
    from standfast.app.copying import Copied, CopyProgress, copy_database
    from standfast.app.document_views import (
        AuditLine,
        DocumentMutation,
        DocumentPage,
        DocumentRound,
        DocumentSummary,
        DocumentVersion,
        DocumentView,
        EditCheck,
        FieldDifference,
        TransitionChoice,
    )
    from standfast.app.engine import Engine
    from standfast.app.faces.awaitable import AsyncCalls, AsyncRun
    from standfast.app.faces.blocking import Calls, Run
    from standfast.app.forking import ForkPreview, RepeatedCall
    from standfast.app.invariants.views import Invariant, InvariantPage, Mended, Violation
    from standfast.app.letter_groups import LetterGroup, LetterGroups
    from standfast.app.operator_views import (
        Backlog,
        DeadLetter,
        DefinitionCheck,
        DefinitionInfo,
        Hold,
        InboxMessage,
        IncidentInfo,
        InstanceInfo,
        MissingHandler,
        Observation,
        PauseInfo,
        ProjectionInfo,
        Transition,
        WorkerInfo,
    )
    from standfast.app.past import PastState
    from standfast.app.pause_points import PausePoint
    from standfast.app.pause_views import ResumeOption, ResumeRequest
    from standfast.app.process_views import (
        ExpiredProcess,
        ProcessChoice,
        ProcessDescriptor,
        ProcessEvent,
        ProcessInstance,
        ProcessPage,
        ProcessStep,
        ProcessSummary,
    )
    from standfast.app.processes import ProcessCode
    from standfast.app.publication_views import PublishedEvent
    from standfast.app.reasons import Reason, RunExplanation
    from standfast.app.remedies import Remedy
    from standfast.app.step_handlers import StepContext
    from standfast.app.task_views import (
        DecidedTask,
        HumanTask,
        TaskComment,
        TaskCounts,
        TaskDecision,
        TaskDetails,
        TaskPerson,
    )
    from standfast.app.verification import Verification
    from standfast.app.views import Instance, Recorded
    from standfast.app.workflow_views import HistoryEntry, InstanceSummary, Notification, Page, Step, WorkflowInstance
    from standfast.authoring.definition import Definition, TypedDefinition
    from standfast.authoring.process import load_processes
    from standfast.authoring.rules import load_rules
    from standfast.authoring.saga import (
        Branch,
        Escalation,
        Saga,
        SagaDefinition,
        StepDefinition,
        ask,
        event,
        handler,
        task,
    )
    from standfast.diagrams.charts import StateInfo, StateMachineDefinition, StateMachineView, TransitionInfo
    from standfast.errors import (
        CommandError,
        ConfigurationError,
        ConflictError,
        CorruptHistoryError,
        DeadlockError,
        DefinitionError,
        Diagnostic,
        ExpressionError,
        ForbiddenError,
        HeldError,
        NotFoundError,
        PayloadError,
        RejectedError,
        ReplayError,
        ReusedIdError,
        SchemaMismatchError,
        StandfastError,
        StoppedError,
        StoreError,
        StoreUnavailableError,
        UnknownEventError,
        WorkflowFailedError,
    )
    from standfast.kernel.actor import Actor, RequestContext
    from standfast.kernel.codecs import Codec, JsonCodec, MessagePackCodec
    from standfast.kernel.decider import Decider, Failure, Status
    from standfast.kernel.decision import Decision, Effect, Ignored, Message, Rejection, Timer
    from standfast.kernel.moment import Moment
    from standfast.kernel.people import Absence, Delegation, DirectoryChange, Grant, Principal
    from standfast.kernel.retry import RetryPolicy
    from standfast.kernel.vocabulary import message
    from standfast.machine.graphs.asks import Ask, Stage
    from standfast.machine.graphs.graph import DocumentRule
    from standfast.outbound.http import Outbound
    from standfast.outbound.invokers import Invocation, Invoker
    from standfast.outbound.openapi.invoker import ApiDocument, OpenApi
    from standfast.people.capabilities import Capabilities, CapabilityResolver, ClaimedCapabilities
    from standfast.people.chains import Chain
    from standfast.people.directory import Directory
    from standfast.people.notices.mail import Mail
    from standfast.people.notices.notice import Channel, Notice
    from standfast.people.notices.webhook import Webhook
    from standfast.people.resolvers import PeopleRequest
    from standfast.runtime.handlers import EffectContext, Fail, Retry
    from standfast.runtime.health import Health
    from standfast.runtime.loops.projections import ProjectedEvent, Projection
    from standfast.runtime.replies import Reply
    from standfast.runtime.settings import Settings

__all__ = [
    "Absence",
    "Actor",
    "ApiDocument",
    "ApiKey",
    "Ask",
    "AsyncCalls",
    "AsyncRun",
    "AuditLine",
    "Backlog",
    "BodyCheck",
    "BodyDraft",
    "BodyTemplate",
    "BodyVersion",
    "Branch",
    "BrokenBody",
    "Calls",
    "Capabilities",
    "CapabilityResolver",
    "Chain",
    "Channel",
    "ClaimedCapabilities",
    "Codec",
    "CommandError",
    "ConfigurationError",
    "ConflictError",
    "ContractCheck",
    "ContractVersion",
    "Copied",
    "CopyProgress",
    "CorruptHistoryError",
    "DeadLetter",
    "DeadlockError",
    "DecidedTask",
    "Decider",
    "Decision",
    "Definition",
    "DefinitionCheck",
    "DefinitionError",
    "DefinitionInfo",
    "Delegation",
    "Diagnostic",
    "Directory",
    "DirectoryChange",
    "DocumentMutation",
    "DocumentPage",
    "DocumentRound",
    "DocumentRule",
    "DocumentSummary",
    "DocumentVersion",
    "DocumentView",
    "EditCheck",
    "Effect",
    "EffectContext",
    "Engine",
    "Escalation",
    "ExpiredProcess",
    "ExpressionError",
    "Fail",
    "Failure",
    "FieldDifference",
    "ForbiddenError",
    "ForkPreview",
    "Grant",
    "Health",
    "HeldError",
    "HistoryEntry",
    "Hold",
    "HumanTask",
    "Ignored",
    "InboxMessage",
    "IncidentInfo",
    "Instance",
    "InstanceInfo",
    "InstanceSummary",
    "Invariant",
    "InvariantPage",
    "Invocation",
    "Invoker",
    "JsonCodec",
    "LetterGroup",
    "LetterGroups",
    "Mail",
    "Mended",
    "Message",
    "MessagePackCodec",
    "MissingHandler",
    "Moment",
    "NewApiKey",
    "NotFoundError",
    "Notice",
    "Notification",
    "Observation",
    "OpenApi",
    "Outbound",
    "Page",
    "PastState",
    "PauseInfo",
    "PausePoint",
    "PayloadError",
    "PeopleRequest",
    "Principal",
    "ProcessChoice",
    "ProcessCode",
    "ProcessDescriptor",
    "ProcessEvent",
    "ProcessInstance",
    "ProcessPage",
    "ProcessStep",
    "ProcessSummary",
    "ProjectedEvent",
    "Projection",
    "ProjectionInfo",
    "PublishedEvent",
    "PublishingRules",
    "Reason",
    "Recorded",
    "RefusedRequest",
    "RejectedError",
    "Rejection",
    "Remedy",
    "RepeatedCall",
    "ReplayError",
    "Reply",
    "RequestContext",
    "ResumeOption",
    "ResumeRequest",
    "Retry",
    "RetryPolicy",
    "ReusedIdError",
    "Run",
    "RunExplanation",
    "Saga",
    "SagaDefinition",
    "SchemaMismatchError",
    "Settings",
    "Stage",
    "StandfastError",
    "StateInfo",
    "StateMachineDefinition",
    "StateMachineView",
    "Status",
    "Step",
    "StepContext",
    "StepDefinition",
    "StoppedError",
    "StoreError",
    "StoreUnavailableError",
    "TaskComment",
    "TaskCounts",
    "TaskDecision",
    "TaskDetails",
    "TaskPerson",
    "Timer",
    "Transition",
    "TransitionChoice",
    "TransitionInfo",
    "TypedDefinition",
    "UnknownEventError",
    "Verification",
    "Violation",
    "Webhook",
    "WorkerInfo",
    "WorkflowFailedError",
    "WorkflowInstance",
    "Written",
    "WrittenPage",
    "ask",
    "copy_database",
    "event",
    "handler",
    "load_processes",
    "load_rules",
    "message",
    "task",
]

_HOMES: Final = {
    "app.access_views": "ApiKey NewApiKey RefusedRequest Written WrittenPage",
    "app.blueprint_views": (
        "BodyCheck BodyDraft BodyTemplate BodyVersion BrokenBody ContractCheck ContractVersion PublishingRules"
    ),
    "app.copying": "Copied CopyProgress copy_database",
    "app.document_views": (
        "AuditLine DocumentMutation DocumentPage DocumentRound DocumentSummary DocumentVersion DocumentView "
        "EditCheck FieldDifference TransitionChoice"
    ),
    "app.engine": "Engine",
    "app.faces.awaitable": "AsyncCalls AsyncRun",
    "app.faces.blocking": "Calls Run",
    "app.forking": "ForkPreview RepeatedCall",
    "app.invariants.views": "Invariant InvariantPage Mended Violation",
    "app.letter_groups": "LetterGroup LetterGroups",
    "app.operator_views": (
        "Backlog DeadLetter DefinitionCheck DefinitionInfo Hold InboxMessage IncidentInfo InstanceInfo "
        "MissingHandler Observation PauseInfo ProjectionInfo Transition WorkerInfo"
    ),
    "app.past": "PastState",
    "app.pause_points": "PausePoint",
    "app.pause_views": "ResumeOption ResumeRequest",
    "app.process_views": (
        "ExpiredProcess ProcessChoice ProcessDescriptor ProcessEvent ProcessInstance ProcessPage ProcessStep "
        "ProcessSummary"
    ),
    "app.processes": "ProcessCode",
    "app.publication_views": "PublishedEvent",
    "app.reasons": "Reason RunExplanation",
    "app.remedies": "Remedy",
    "app.step_handlers": "StepContext",
    "app.task_views": "DecidedTask HumanTask TaskComment TaskCounts TaskDecision TaskDetails TaskPerson",
    "app.verification": "Verification",
    "app.views": "Instance Recorded",
    "app.workflow_views": "HistoryEntry InstanceSummary Notification Page Step WorkflowInstance",
    "authoring.definition": "Definition TypedDefinition",
    "authoring.process": "load_processes",
    "authoring.rules": "load_rules",
    "authoring.saga": "Branch Escalation Saga SagaDefinition StepDefinition ask event handler task",
    "diagrams.charts": "StateInfo StateMachineDefinition StateMachineView TransitionInfo",
    "errors": (
        "CommandError ConfigurationError ConflictError CorruptHistoryError DeadlockError DefinitionError Diagnostic "
        "ExpressionError ForbiddenError HeldError NotFoundError PayloadError RejectedError ReplayError "
        "ReusedIdError SchemaMismatchError StandfastError StoppedError StoreError StoreUnavailableError "
        "UnknownEventError WorkflowFailedError"
    ),
    "kernel.actor": "Actor RequestContext",
    "kernel.codecs": "Codec JsonCodec MessagePackCodec",
    "kernel.decider": "Decider Failure Status",
    "kernel.decision": "Decision Effect Ignored Message Rejection Timer",
    "kernel.moment": "Moment",
    "kernel.people": "Absence Delegation DirectoryChange Grant Principal",
    "kernel.retry": "RetryPolicy",
    "kernel.vocabulary": "message",
    "machine.graphs.asks": "Ask Stage",
    "machine.graphs.graph": "DocumentRule",
    "outbound.http": "Outbound",
    "outbound.invokers": "Invocation Invoker",
    "outbound.openapi.invoker": "ApiDocument OpenApi",
    "people.capabilities": "Capabilities CapabilityResolver ClaimedCapabilities",
    "people.chains": "Chain",
    "people.directory": "Directory",
    "people.notices.mail": "Mail",
    "people.notices.notice": "Channel Notice",
    "people.notices.webhook": "Webhook",
    "people.resolvers": "PeopleRequest",
    "runtime.handlers": "EffectContext Fail Retry",
    "runtime.health": "Health",
    "runtime.loops.projections": "ProjectedEvent Projection",
    "runtime.replies": "Reply",
    "runtime.settings": "Settings",
}
"""Where the names of the package come from, module by module. Each is loaded when it is first asked for: who only wants `standfast --help` waits for none."""
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:  # Who checks types is told of every name above, and that there are no others.

    def __getattr__(name: str) -> object:
        """A name of the package, or a part of it, that is asked for the first time."""
        home = _HOME_OF.get(name)
        if home is not None:
            found = globals()[name] = getattr(import_module(f"{__name__}.{home}"), name)
            return found
        if not name.startswith("_"):
            try:
                return import_module(f"{__name__}.{name}")
            except ModuleNotFoundError as error:
                if error.name != f"{__name__}.{name}":
                    raise
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    """All names, also those that nobody has asked for."""
    return sorted({*globals(), *__all__})
