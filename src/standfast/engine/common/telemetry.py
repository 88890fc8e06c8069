"""What happened, for logs, metrics and traces: every measurement of the engine leaves it here.

Listeners are called after the commit, on the engine's threads; they must be quick. One that raises is logged and does no harm.
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
    """Which front end its definition was written for; `decider` for a class of the code."""


class InstanceEnded(msgspec.Struct, frozen=True, kw_only=True):
    """An instance has ended."""

    definition: str
    tenant: str
    instance: InstanceId
    kind: str
    status: str
    took: timedelta
    """From its first commit to its last."""


class InstancePaused(msgspec.Struct, frozen=True, kw_only=True):
    """An instance stands still until somebody lets it go on."""

    definition: str
    tenant: str
    instance: InstanceId
    kind: str
    reason: str
    """Why, in a word: of workflows `requested` if somebody wanted it, `dlq` if steps gave up, `no_approver` if nobody can decide."""


class CommandRefused(msgspec.Struct, frozen=True, kw_only=True):
    """A command was rejected or failed; nothing of it was written, or nobody knows."""

    definition: str
    """Empty where only the instance was named."""
    instance: InstanceId | None
    """None where a key named it."""
    command: str
    """The name under which it is stored: that of its class unless `@message(name=…)` gives another one."""
    code: str
    """That of the rejection, or else of the error."""
    error: str


class EffectEnded(msgspec.Struct, frozen=True, kw_only=True):
    """A handler was called and came back."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    handler: str
    work: str
    """What was asked for, by the name of the effect: `RunStep` for a step, others for what the engine does itself, or a decider's own."""
    attempt: int
    waited: timedelta
    """From the commit that asked for it to the moment at which a worker took it, all attempts before this one included."""
    took: timedelta
    error: str
    """Empty when it went well."""
    trace: str
    """Names the request that it follows from; empty if none was named."""


class EffectBuried(msgspec.Struct, frozen=True, kw_only=True):
    """An effect gave up and is a dead letter now."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    handler: str
    attempts: int
    error: str


class WorkBuried(msgspec.Struct, frozen=True, kw_only=True):
    """A message or a timer gave up and is a dead letter now; or an effect that no code can read."""

    source: str
    """`inbox`, `timer` or `effect`."""
    definition: str
    tenant: str
    instance: InstanceId | None
    """None where a key names it."""
    reason: str
    """The code of the dead letter, such as `unreadable`."""
    error: str


class WorkRetried(msgspec.Struct, frozen=True, kw_only=True):
    """A call failed, and there will be another one."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    """Of the step, or of the effect of a decider."""
    is_step: bool
    error: str


class StepBuried(msgspec.Struct, frozen=True, kw_only=True):
    """A step gave up, or cannot be undone, and is a dead letter now."""

    definition: str
    tenant: str
    instance: InstanceId
    step: str
    """Its name."""
    reason: str
    error: str


class WorkRevived(msgspec.Struct, frozen=True, kw_only=True):
    """Work of a worker that died is free again."""

    handlers: tuple[str, ...]


class WorkLost(msgspec.Struct, frozen=True, kw_only=True):
    """A handler was told to stop: its effect was withdrawn, or belongs to another worker."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int


class TimerFired(msgspec.Struct, frozen=True, kw_only=True):
    """A timer came due and was handed in."""

    definition: str
    tenant: str
    instance: InstanceId
    key: str
    late_by: timedelta


class StepTimedOut(msgspec.Struct, frozen=True, kw_only=True):
    """The time of a step is over, its own or that of its workflow, and something follows from it: the metric `standfast_workflow_timeouts_total` counts these."""

    definition: str
    tenant: str
    instance: InstanceId
    kind: str
    step: str
    """Its name."""


class InstanceStuck(msgspec.Struct, frozen=True, kw_only=True):
    """An instance has not ended, and nothing can ever wake it; that should never be."""

    definition: str
    tenant: str
    instance: InstanceId
    since: datetime
    """When something last happened to it."""


class HandlerMissingObserved(msgspec.Struct, frozen=True, kw_only=True):
    """Work waits for a handler that no live worker has."""

    handler: str
    waiting: int


class HistoryUnreadable(msgspec.Struct, frozen=True, kw_only=True):
    """Work was left to other processes, because this one cannot read the history or the definition that it belongs to."""

    definition: str
    error: str


class WorkUnreadable(msgspec.Struct, frozen=True, kw_only=True):
    """Work waits with a command or an effect that this process cannot read."""

    kind: str
    """`effect`, `timer` or `inbox`."""
    language: str
    """The decider whose word it is, or `$graph`."""
    type: str
    version: int
    since: datetime


class CallHangs(msgspec.Struct, frozen=True, kw_only=True):
    """A worker has had a call in hand for longer than `hung_after`; it may hang, and nothing ends it but its own return."""

    definition: str
    tenant: str
    instance: InstanceId
    number: int
    handler: str
    since: datetime


class LoopFailed(msgspec.Struct, frozen=True, kw_only=True):
    """A loop of the engine failed and goes on after a pause."""

    loop: str
    error: str
    failures: int
    exception: BaseException
    """What it failed with."""


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
    """Passes on what happened to whoever listens."""

    def __init__(self) -> None:
        self._listeners: tuple[Listener, ...] = ()
        self.companions = Interceptors()
        """Those who are there while it happens."""

    def listen(self, listener: Listener) -> None:
        """Call `listener` with everything that happens from now on."""
        self._listeners = (*self._listeners, listener)

    @property
    def is_heard(self) -> bool:
        """Whether it is worth the trouble of measuring."""
        return bool(self._listeners)

    def tell(self, happening: Happening) -> None:
        """Something happened."""
        for listener in self._listeners:
            try:
                listener(happening)
            except BaseException:  # noqa: BLE001 - whatever a listener does, the engine goes on
                _log.exception("a telemetry listener failed on %s", type(happening).__name__)
