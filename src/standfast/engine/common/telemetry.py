"""Telemetry events for logs, metrics and traces. Every measurement of the engine is published here.

Listeners are called after the commit, on the engine's threads, and must be quick. Exceptions from them are logged and
ignored.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeAlias

import msgspec

from standfast.engine.common.interceptors import Interceptors
from standfast.kernel.ids import InstanceId

_log = logging.getLogger("standfast")


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """A group of commands was committed."""

    commands: int
    instances: int
    events: int
    took: timedelta


class InstanceStarted(msgspec.Struct, frozen=True, kw_only=True):
    """The first command of an instance was committed."""

    definition: str
    tenant: str
    instance: InstanceId
    kind: str
    """Front end of the definition. `decider` for a class in the code."""


class InstanceEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An instance has ended."""

    definition: str
    tenant: str
    instance: InstanceId
    kind: str
    status: str
    took: timedelta
    """Time from its first commit to its last."""


class InstancePaused(msgspec.Struct, frozen=True, kw_only=True):
    """An instance was paused until it is resumed."""

    definition: str
    tenant: str
    instance: InstanceId
    kind: str
    reason: str
    """Reason in one word. For workflows: `requested` by a caller, `dlq` if steps were dead-lettered, `no_approver`
    without an eligible approver."""


class CommandRefused(msgspec.Struct, frozen=True, kw_only=True):
    """A command was rejected or failed. Nothing of it was written, or the outcome is unknown."""

    definition: str
    """Definition of the instance. Empty if only the instance was named."""
    instance: InstanceId | None
    """The target instance. None if it was named by a key."""
    command: str
    """The stored type name of the command: its class name, or the name from `@message(name=…)`."""
    code: str
    """Code of the rejection or error."""
    error: str


class EffectEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A handler call has ended."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    handler: str
    work: str
    """Name of the effect: `RunStep` for a step, others for built-in effects or those of a decider."""
    attempt: int
    waited: timedelta
    """Time from the commit that requested the effect to its claim by a worker, including earlier attempts."""
    took: timedelta
    error: str
    """Error of the call. Empty on success."""
    trace: str
    """Trace of the request that the effect follows from. Empty without one."""


class EffectBuried(msgspec.Struct, frozen=True, kw_only=True):
    """An effect was moved to the dead letters."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    handler: str
    attempts: int
    error: str


class WorkBuried(msgspec.Struct, frozen=True, kw_only=True):
    """A message, a timer or an unreadable effect was moved to the dead letters."""

    source: str
    """`inbox`, `timer` or `effect`."""
    definition: str
    tenant: str
    instance: InstanceId | None
    """The target instance. None if it is named by a key."""
    reason: str
    """Code of the dead letter, such as `unreadable`."""
    error: str


class WorkRetried(msgspec.Struct, frozen=True, kw_only=True):
    """A call failed and will be retried."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    """Number of the step, or of a decider's effect."""
    is_step: bool
    error: str


class StepBuried(msgspec.Struct, frozen=True, kw_only=True):
    """A step, or its compensation, failed permanently and was moved to the dead letters."""

    definition: str
    tenant: str
    instance: InstanceId
    step: str
    """Name of the step."""
    reason: str
    error: str


class WorkRevived(msgspec.Struct, frozen=True, kw_only=True):
    """The work of a dead worker was released."""

    handlers: tuple[str, ...]


class WorkLost(msgspec.Struct, frozen=True, kw_only=True):
    """A handler call was cancelled, because its effect was withdrawn or belongs to another worker."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int


class TimerFired(msgspec.Struct, frozen=True, kw_only=True):
    """A timer came due and was submitted."""

    definition: str
    tenant: str
    instance: InstanceId
    key: str
    late_by: timedelta


class StepTimedOut(msgspec.Struct, frozen=True, kw_only=True):
    """The timeout of a step, or of its workflow, has passed with consequences.

    The metric `standfast_workflow_timeouts_total` counts these.
    """

    definition: str
    tenant: str
    instance: InstanceId
    kind: str
    step: str
    """Name of the step."""


class InstanceStuck(msgspec.Struct, frozen=True, kw_only=True):
    """An instance has not ended and cannot be woken. This indicates a bug."""

    definition: str
    tenant: str
    instance: InstanceId
    since: datetime
    """Time of its last activity."""


class HandlerMissingObserved(msgspec.Struct, frozen=True, kw_only=True):
    """Work waits for a handler that no live worker has."""

    handler: str
    waiting: int


class HistoryUnreadable(msgspec.Struct, frozen=True, kw_only=True):
    """Work was left to other processes, because this one cannot read its history or definition."""

    definition: str
    error: str


class WorkUnreadable(msgspec.Struct, frozen=True, kw_only=True):
    """Work waits whose command or effect this process cannot read."""

    kind: str
    """Source of the work: `effect`, `timer` or `inbox`."""
    language: str
    """The decider that the message type belongs to, or `$graph`."""
    type: str
    version: int
    since: datetime


class CallHangs(msgspec.Struct, frozen=True, kw_only=True):
    """A handler call has exceeded `hung_after` and may hang. Only its own return ends it."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    handler: str
    since: datetime


class LoopFailed(msgspec.Struct, frozen=True, kw_only=True):
    """A round of a loop failed. The loop continues after a delay."""

    loop: str
    error: str
    failures: int
    exception: BaseException
    """The error of the round."""


Happening: TypeAlias = (
    Committed
    | InstanceStarted
    | InstanceEnded
    | InstancePaused
    | CommandRefused
    | EffectEnded
    | EffectBuried
    | WorkBuried
    | CallHangs
    | StepBuried
    | WorkRetried
    | WorkRevived
    | WorkLost
    | TimerFired
    | StepTimedOut
    | HandlerMissingObserved
    | InstanceStuck
    | HistoryUnreadable
    | WorkUnreadable
    | LoopFailed
)
Listener = Callable[[Happening], None]


class Telemetry:
    """Publishes telemetry events to the listeners."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.companions = Interceptors()
        """The interceptors, which run around the operations."""

    def listen(self, listener: Listener) -> None:
        """Call `listener` with every event from now on."""
        self._listeners = (*self._listeners, listener)

    @property
    def is_heard(self) -> bool:
        """Whether there is a listener, so that measuring is worthwhile."""
        return bool(self._listeners)

    def tell(self, happening: Happening) -> None:
        """Publish an event."""
        for listener in self._listeners:
            try:
                listener(happening)
            except BaseException:  # noqa: BLE001 - a failing listener must not stop the engine
                _log.exception("telemetry_listener_failed event=%s", type(happening).__name__)
