"""Holdfast: durable workflows for Python that hold fast when processes die and people take weeks to answer."""

from holdfast.app.access_views import ApiKey, NewApiKey, RefusedRequest, Written, WrittenPage
from holdfast.app.blueprint_views import (
    BodyCheck,
    BodyDraft,
    BodyTemplate,
    BodyVersion,
    BrokenBody,
    ContractCheck,
    ContractVersion,
    PublishingRules,
)
from holdfast.app.copying import Copied, copy_database
from holdfast.app.document_views import (
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
from holdfast.app.engine import Engine
from holdfast.app.faces.awaitable import AsyncCalls, AsyncRun
from holdfast.app.faces.blocking import Calls, Run
from holdfast.app.forking import ForkPreview, RepeatedCall
from holdfast.app.invariants.views import Invariant, InvariantPage, Mended, Violation
from holdfast.app.letter_groups import LetterGroup, LetterGroups
from holdfast.app.operator_views import (
    Backlog,
    DeadLetter,
    DefinitionCheck,
    DefinitionInfo,
    Hold,
    InboxMessage,
    InstanceInfo,
    MissingHandler,
    Observation,
    PauseInfo,
    ProjectionInfo,
    Transition,
    WorkerInfo,
)
from holdfast.app.past import PastState
from holdfast.app.pause_points import PausePoint
from holdfast.app.pause_views import ResumeOption, ResumeRequest
from holdfast.app.process_views import (
    ExpiredProcess,
    ProcessChoice,
    ProcessDescriptor,
    ProcessEvent,
    ProcessInstance,
    ProcessPage,
    ProcessStep,
    ProcessSummary,
)
from holdfast.app.processes import ProcessCode
from holdfast.app.publication_views import PublishedEvent
from holdfast.app.reasons import Reason, Why
from holdfast.app.step_handlers import StepContext
from holdfast.app.task_views import (
    DecidedTask,
    HumanTask,
    TaskComment,
    TaskCounts,
    TaskDecision,
    TaskDetails,
    TaskPerson,
)
from holdfast.app.verification import Verification
from holdfast.app.views import Instance, Recorded
from holdfast.app.workflow_views import HistoryEntry, InstanceSummary, Notification, Page, Step, WorkflowInstance
from holdfast.authoring.definition import Definition, TypedDefinition
from holdfast.authoring.process import load_processes
from holdfast.authoring.rules import load_rules
from holdfast.authoring.saga import Branch, Escalation, Saga, SagaDefinition, StepDefinition, ask, event, handler, task
from holdfast.diagrams.charts import StateInfo, StateMachineDefinition, StateMachineView, TransitionInfo
from holdfast.errors import (
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
    HoldfastError,
    NotFoundError,
    PayloadError,
    RejectedError,
    ReplayError,
    ReusedIdError,
    SchemaMismatchError,
    StoppedError,
    StoreError,
    StoreUnavailableError,
    UnknownEventError,
    WorkflowFailedError,
)
from holdfast.kernel.actor import Actor, RequestContext
from holdfast.kernel.codecs import Codec, JsonCodec, MessagePackCodec
from holdfast.kernel.decider import Decider, Failure, Status
from holdfast.kernel.decision import Decision, Effect, Ignored, Message, Rejection, Timer
from holdfast.kernel.moment import Moment
from holdfast.kernel.people import Absence, Delegation, DirectoryChange, Grant, Principal
from holdfast.kernel.retry import RetryPolicy
from holdfast.kernel.vocabulary import message
from holdfast.machine.graphs.asks import Ask, Stage
from holdfast.machine.graphs.graph import DocumentRule
from holdfast.outbound.http import Outbound
from holdfast.outbound.invokers import Invocation, Invoker
from holdfast.outbound.openapi.invoker import ApiDocument, OpenApi
from holdfast.people.capabilities import Capabilities, CapabilityResolver, ClaimedCapabilities
from holdfast.people.chains import Chain
from holdfast.people.directory import Directory
from holdfast.people.notices.mail import Mail
from holdfast.people.notices.notice import Channel, Notice
from holdfast.people.notices.webhook import Webhook
from holdfast.people.resolvers import PeopleRequest
from holdfast.runtime.handlers import EffectContext, Fail, Retry
from holdfast.runtime.health import Health
from holdfast.runtime.loops.projections import ProjectedEvent, Projection
from holdfast.runtime.replies import Reply
from holdfast.runtime.settings import Settings

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
    "HoldfastError",
    "HumanTask",
    "Ignored",
    "InboxMessage",
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
    "Saga",
    "SagaDefinition",
    "SchemaMismatchError",
    "Settings",
    "Stage",
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
    "Why",
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
