"""Holdfast: durable workflows for Python that hold fast when processes die and people take weeks to answer."""

from holdfast.app.engine import Engine
from holdfast.app.faces.awaitable import AsyncCalls, AsyncRun
from holdfast.app.faces.blocking import Calls, Run
from holdfast.app.operator_views import (
    Backlog,
    DeadLetter,
    DefinitionInfo,
    InboxMessage,
    InstanceInfo,
    MissingHandler,
    Observation,
    ProjectionInfo,
    Transition,
    WorkerInfo,
)
from holdfast.app.step_handlers import StepContext
from holdfast.app.verification import Verification
from holdfast.app.views import Instance, Recorded
from holdfast.app.workflow_views import HistoryEntry, HumanTask, InstanceSummary, Page, Step, WorkflowInstance
from holdfast.authoring.definition import Definition, TypedDefinition
from holdfast.authoring.process import load_processes
from holdfast.authoring.rules import load_rules
from holdfast.authoring.saga import Branch, Saga, SagaDefinition, StepDefinition, handler, task
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
from holdfast.kernel.retry import RetryPolicy
from holdfast.kernel.vocabulary import message
from holdfast.runtime.handlers import EffectContext, Fail, Retry
from holdfast.runtime.health import Health
from holdfast.runtime.loops.projections import ProjectedEvent, Projection
from holdfast.runtime.replies import Reply
from holdfast.runtime.settings import Settings

__all__ = [
    "Actor",
    "AsyncCalls",
    "AsyncRun",
    "Backlog",
    "Branch",
    "Calls",
    "Codec",
    "CommandError",
    "ConfigurationError",
    "ConflictError",
    "CorruptHistoryError",
    "DeadLetter",
    "DeadlockError",
    "Decider",
    "Decision",
    "Definition",
    "DefinitionError",
    "DefinitionInfo",
    "Diagnostic",
    "Effect",
    "EffectContext",
    "Engine",
    "ExpressionError",
    "Fail",
    "Failure",
    "ForbiddenError",
    "Health",
    "HeldError",
    "HistoryEntry",
    "HoldfastError",
    "HumanTask",
    "Ignored",
    "InboxMessage",
    "Instance",
    "InstanceInfo",
    "InstanceSummary",
    "JsonCodec",
    "Message",
    "MessagePackCodec",
    "MissingHandler",
    "Moment",
    "NotFoundError",
    "Observation",
    "Page",
    "PayloadError",
    "ProjectedEvent",
    "Projection",
    "ProjectionInfo",
    "Recorded",
    "RejectedError",
    "Rejection",
    "ReplayError",
    "Reply",
    "RequestContext",
    "Retry",
    "RetryPolicy",
    "ReusedIdError",
    "Run",
    "Saga",
    "SagaDefinition",
    "SchemaMismatchError",
    "Settings",
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
    "Timer",
    "Transition",
    "TransitionInfo",
    "TypedDefinition",
    "UnknownEventError",
    "Verification",
    "WorkerInfo",
    "WorkflowFailedError",
    "WorkflowInstance",
    "handler",
    "load_processes",
    "load_rules",
    "message",
    "task",
]
