"""Standfast: durable workflows for Python that stand fast when processes die and people take weeks to answer."""

from __future__ import annotations

import atexit
import gc
from importlib import import_module
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from standfast.app.api.aio import AsyncCalls, AsyncRun
    from standfast.app.api.sync import Calls, Run
    from standfast.app.copy import Copied, CopyProgress, copy_database
    from standfast.app.engine import Engine
    from standfast.calls.handlers.step_handlers import StepContext
    from standfast.calls.operator_views import (
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
    from standfast.engine.common.handlers import EffectContext, Fail, Retry
    from standfast.engine.common.health import Health
    from standfast.engine.common.settings import Settings
    from standfast.engine.concurrency.replies import Reply
    from standfast.engine.loops.projections import ProjectedEvent, Projection
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
    from standfast.features.access.views import ApiKey, NewApiKey, RefusedRequest, Written, WrittenPage
    from standfast.features.deciders.verification import Verification
    from standfast.features.deciders.views import Instance, Recorded
    from standfast.features.documents.content.views import (
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
    from standfast.features.documents.invariants.views import Invariant, InvariantPage, Mended, Violation
    from standfast.features.documents.publishing.views import (
        BodyCheck,
        BodyDraft,
        BodyTemplate,
        BodyVersion,
        BrokenBody,
        ContractCheck,
        ContractVersion,
        PublishingRules,
    )
    from standfast.features.events.views import PublishedEvent
    from standfast.features.operations.dead_letter_groups import LetterGroup, LetterGroups
    from standfast.features.process_files.loading import load_processes
    from standfast.features.processes.reads import ProcessCode
    from standfast.features.processes.views import (
        ExpiredProcess,
        ProcessChoice,
        ProcessDescriptor,
        ProcessEvent,
        ProcessInstance,
        ProcessPage,
        ProcessStep,
        ProcessSummary,
    )
    from standfast.features.rules import load_rules
    from standfast.features.runs.explain import Reason, RunExplanation
    from standfast.features.runs.fork import ForkPreview, RepeatedCall
    from standfast.features.runs.history import PastState
    from standfast.features.runs.pauses.pause_points import PausePoint
    from standfast.features.runs.pauses.views import ResumeOption, ResumeRequest
    from standfast.features.runs.remedies import Remedy
    from standfast.features.runs.views import (
        HistoryEntry,
        HumanTask,
        InstanceSummary,
        Notification,
        Page,
        Step,
        WorkflowInstance,
    )
    from standfast.features.sagas import (
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
    from standfast.features.tasks.views import (
        DecidedTask,
        TaskComment,
        TaskCounts,
        TaskDecision,
        TaskDetails,
        TaskPerson,
    )
    from standfast.graph.definition import Definition, TypedDefinition
    from standfast.graph.diagrams.state_charts import (
        StateInfo,
        StateMachineDefinition,
        StateMachineView,
        TransitionInfo,
    )
    from standfast.graph.model import DocumentRule
    from standfast.graph.values.approver_rules import Ask, Stage
    from standfast.kernel.actor import Actor, RequestContext
    from standfast.kernel.codec.codecs import Codec, JsonCodec, MessagePackCodec
    from standfast.kernel.codec.message_types import message
    from standfast.kernel.decider import Decider, Failure, Status
    from standfast.kernel.decision import Decision, Effect, Ignored, Message, Rejection, Timer
    from standfast.kernel.moment import Moment
    from standfast.kernel.people import Absence, Delegation, DirectoryChange, Grant, Principal
    from standfast.kernel.retry import RetryPolicy
    from standfast.notifications.mail import Mail
    from standfast.notifications.notification import Channel, Notice
    from standfast.notifications.webhook import Webhook
    from standfast.outbound.http import Outbound
    from standfast.outbound.invokers import Invocation, Invoker
    from standfast.outbound.openapi.invoker import ApiDocument, OpenApi
    from standfast.people.approval_chains import Chain
    from standfast.people.capabilities import Capabilities, CapabilityResolver, ClaimedCapabilities
    from standfast.people.directory import Directory
    from standfast.people.resolvers import PeopleRequest

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
    "app.api.aio": "AsyncCalls AsyncRun",
    "app.api.sync": "Calls Run",
    "app.copy": "Copied CopyProgress copy_database",
    "app.engine": "Engine",
    "calls.handlers.step_handlers": "StepContext",
    "calls.operator_views": (
        "Backlog DeadLetter DefinitionCheck DefinitionInfo Hold InboxMessage IncidentInfo InstanceInfo "
        "MissingHandler Observation PauseInfo ProjectionInfo Transition WorkerInfo"
    ),
    "engine.common.handlers": "EffectContext Fail Retry",
    "engine.common.health": "Health",
    "engine.common.settings": "Settings",
    "engine.concurrency.replies": "Reply",
    "engine.loops.projections": "ProjectedEvent Projection",
    "errors": (
        "CommandError ConfigurationError ConflictError CorruptHistoryError DeadlockError DefinitionError Diagnostic "
        "ExpressionError ForbiddenError HeldError NotFoundError PayloadError RejectedError ReplayError "
        "ReusedIdError SchemaMismatchError StandfastError StoppedError StoreError StoreUnavailableError "
        "UnknownEventError WorkflowFailedError"
    ),
    "features.access.views": "ApiKey NewApiKey RefusedRequest Written WrittenPage",
    "features.deciders.verification": "Verification",
    "features.deciders.views": "Instance Recorded",
    "features.documents.content.views": (
        "AuditLine DocumentMutation DocumentPage DocumentRound DocumentSummary DocumentVersion DocumentView "
        "EditCheck FieldDifference TransitionChoice"
    ),
    "features.documents.invariants.views": "Invariant InvariantPage Mended Violation",
    "features.documents.publishing.views": (
        "BodyCheck BodyDraft BodyTemplate BodyVersion BrokenBody ContractCheck ContractVersion PublishingRules"
    ),
    "features.events.views": "PublishedEvent",
    "features.operations.dead_letter_groups": "LetterGroup LetterGroups",
    "features.process_files.loading": "load_processes",
    "features.processes.reads": "ProcessCode",
    "features.processes.views": (
        "ExpiredProcess ProcessChoice ProcessDescriptor ProcessEvent ProcessInstance ProcessPage ProcessStep "
        "ProcessSummary"
    ),
    "features.rules": "load_rules",
    "features.runs.explain": "Reason RunExplanation",
    "features.runs.fork": "ForkPreview RepeatedCall",
    "features.runs.history": "PastState",
    "features.runs.pauses.pause_points": "PausePoint",
    "features.runs.pauses.views": "ResumeOption ResumeRequest",
    "features.runs.remedies": "Remedy",
    "features.runs.views": "HistoryEntry HumanTask InstanceSummary Notification Page Step WorkflowInstance",
    "features.sagas": "Branch Escalation Saga SagaDefinition StepDefinition ask event handler task",
    "features.tasks.views": "DecidedTask TaskComment TaskCounts TaskDecision TaskDetails TaskPerson",
    "graph.definition": "Definition TypedDefinition",
    "graph.diagrams.state_charts": "StateInfo StateMachineDefinition StateMachineView TransitionInfo",
    "graph.model": "DocumentRule",
    "graph.values.approver_rules": "Ask Stage",
    "kernel.actor": "Actor RequestContext",
    "kernel.codec.codecs": "Codec JsonCodec MessagePackCodec",
    "kernel.codec.message_types": "message",
    "kernel.decider": "Decider Failure Status",
    "kernel.decision": "Decision Effect Ignored Message Rejection Timer",
    "kernel.moment": "Moment",
    "kernel.people": "Absence Delegation DirectoryChange Grant Principal",
    "kernel.retry": "RetryPolicy",
    "notifications.mail": "Mail",
    "notifications.notification": "Channel Notice",
    "notifications.webhook": "Webhook",
    "outbound.http": "Outbound",
    "outbound.invokers": "Invocation Invoker",
    "outbound.openapi.invoker": "ApiDocument OpenApi",
    "people.approval_chains": "Chain",
    "people.capabilities": "Capabilities CapabilityResolver ClaimedCapabilities",
    "people.directory": "Directory",
    "people.resolvers": "PeopleRequest",
}
"""Where the names of the package come from, module by module. Each is loaded when it is first asked for: who only wants `standfast --help` waits for none."""
_HOME_OF: Final = {name: home for home, names in _HOMES.items() for name in names.split()}


# msgspec can crash when the interpreter collects struct classes on its way out (msgspec issue 717). What lives then is
# of no more use, so it is kept from the collector. The hook runs after all that are registered later.
atexit.register(gc.freeze)

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
