"""Answers of a decider: a decision (events and requested work), a rejection, or nothing to do.

Effects, timers and messages are values here. They are written in the same commit as the events and executed afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Final, TypeAlias

import msgspec

from standfast.errors import CommandError
from standfast.kernel.ids import InstanceId
from standfast.kernel.retry import LONGEST_TIMEOUT, NOT_A_TIMEOUT, RetryPolicy
from standfast.kernel.rows import Record

Attribute: TypeAlias = str | int | float | bool
"""A value of a search attribute."""

LOWEST_PRIORITY, HIGHEST_PRIORITY = 0, 100


class Effect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """External work after the commit. A handler gets the body at least once."""

    body: object
    """One of the decider's effect types, which the handler gets."""
    handler: str = ""
    """Name of the handler. Empty means the one registered for the decider."""
    priority: int = LOWEST_PRIORITY
    """0 to 100. Effects with a higher priority are claimed earlier, and waiting raises it."""
    delay: timedelta = timedelta(0)
    """Minimum delay after the commit."""
    once: bool = False
    """At most once: the call is counted before it is made and never repeated, not even after a crash."""
    transactional: bool = False
    """Exactly once: the handler runs inside the commit that records its result, and gets the open connection."""
    timeout: timedelta | None = None
    """Timeout of a call, after which the attempt fails. None means the handler's own."""
    retry: RetryPolicy | None = None
    """Retry policy. None means the handler's policy at the time of the failure, so that it may change while effects
    wait."""

    def __post_init__(self) -> None:
        if type(self.priority) is not int or not LOWEST_PRIORITY <= self.priority <= HIGHEST_PRIORITY:
            raise CommandError(
                f"effect priority {self.priority!r} is not a whole number between 0 and 100", decider=self.handler
            )
        if self.timeout is not None and not timedelta(0) < self.timeout <= LONGEST_TIMEOUT:
            raise CommandError(f"effect timeout {self.timeout} {NOT_A_TIMEOUT}", decider=self.handler)


class Timer(msgspec.Struct, frozen=True, kw_only=True):
    """A command that the instance sends to itself later."""

    command: object
    """The command, decided on the state when the timer fires."""
    due_at: datetime | None = None
    """Due time. Exactly one of `due_at` and `after` is set."""
    after: timedelta | None = None
    """Delay after the commit. Zero or less means immediately."""
    key: str = ""
    """A timer replaces a pending one with the same key. A timer without a key cannot be replaced or cancelled."""

    def __post_init__(self) -> None:
        if (self.due_at is None) == (self.after is None):
            raise CommandError("a timer needs either `due_at` or `after`, and not both", decider="")

    def due(self, now: datetime) -> datetime:
        """Return when the timer fires, for the given time of its commit."""
        return self.due_at if self.due_at is not None else now + (self.after or timedelta(0))


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A command for another instance. The inbox delivers it exactly once, and in order for each target."""

    decider: str
    """Type of the target's decider."""
    command: object
    """One of that decider's commands."""
    key: str = ""
    """Business key of the target. Empty if `instance` or the command names it."""
    instance: InstanceId | None = None
    """Id of the target, if it is known."""
    command_id: str = ""
    """Makes the message idempotent across messages. Empty if that is not needed."""
    definition_version: str = ""
    """Version that a new instance is pinned to."""
    parent: InstanceId | None = None
    """The instance that starts the target. The message may then be the target's first."""
    partition: str | None = None
    """Partition of the target, empty if it has none. None means that of the sender."""
    elsewhere: bool = False
    """The decider's code is in another service. `command` has the name and fields of its command, and `key` or
    `instance` is given."""


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """Recalls an effect that has not begun; a running one completes.

    If the effect is recalled, the instance gets `command` through its inbox, in the same commit. A running handler is
    asked to stop if `stop` is set, and its end is reported as usual.
    """

    effect: int
    command: object
    stop: bool = False


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Events that happened, and the work they request. A decision has at least one event."""

    events: tuple[object, ...]
    effects: tuple[Effect, ...] = ()
    timers: tuple[Timer, ...] = ()
    cancelled_timers: tuple[str, ...] = ()
    """Keys of pending timers to cancel. Unknown keys are ignored."""
    withdrawn_effects: tuple[int, ...] = ()
    """Numbers of effects that are no longer wanted. A running handler is asked to stop."""
    recalls: tuple[Recall, ...] = ()
    messages: tuple[Message, ...] = ()
    records: tuple[Record, ...] = ()
    """Rows of the inline projections, written in the same commit."""
    attributes: Mapping[str, Attribute | None] | None = None
    """Search attributes to merge into those of the instance. None removes one."""
    state: object = msgspec.UNSET
    """The state after the events, from a decider with `carries_state`. For others it is computed by `evolve`."""

    def __post_init__(self) -> None:
        if not self.events:
            raise CommandError(
                "a decision needs at least one event; answer Ignored(...) when nothing happened", decider=""
            )

    @classmethod
    def event(cls, event: object, *more: object) -> Decision:
        """Return a decision with these events, in this order."""
        return cls((event, *more))

    def with_event(self, event: object) -> Decision:
        """Return this decision with one more event."""
        return msgspec.structs.replace(self, events=(*self.events, event))

    def with_effect(self, body: object, **options: object) -> Decision:
        """Return this decision with an effect. The options are the fields of `Effect`."""
        effect = body if isinstance(body, Effect) else _effect(body=body, **options)
        return msgspec.structs.replace(self, effects=(*self.effects, effect))

    def with_timer_after(self, delay: timedelta, command: object, *, key: str = "") -> Decision:
        """Return this decision with a command to the instance itself after `delay`."""
        return self._with_timer(Timer(command=command, after=delay, key=key))

    def with_timer_at(self, due_at: datetime, command: object, *, key: str = "") -> Decision:
        """Return this decision with a command to the instance itself at `due_at`."""
        if due_at.tzinfo is None:
            raise CommandError(
                f"timer at {due_at!r}: give a time with a zone, such as datetime(..., tzinfo=UTC)", decider=""
            )
        return self._with_timer(Timer(command=command, due_at=due_at, key=key))

    def cancel_timer(self, key: str) -> Decision:
        """Return this decision without the timer of this key, whether it is pending or set by this decision."""
        timers = tuple(each for each in self.timers if not key or each.key != key)
        return msgspec.structs.replace(self, timers=timers, cancelled_timers=(*self.cancelled_timers, key))

    def with_message(self, message: Message) -> Decision:
        """Return this decision with a command for another instance."""
        return msgspec.structs.replace(self, messages=(*self.messages, message))

    def with_attributes(self, **attributes: Attribute | None) -> Decision:
        """Return this decision with search attributes to set. None removes one."""
        return msgspec.structs.replace(self, attributes={**(self.attributes or {}), **attributes})

    def _with_timer(self, timer: Timer) -> Decision:
        return msgspec.structs.replace(self, timers=(*self.timers, timer))


_effect: Callable[..., Effect] = Effect


NOT_ALLOWED: Final = "not_allowed"
"""Code of a rejection for lack of rights. The caller gets a ForbiddenError instead of a RejectedError."""


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """A refusal of the command. Nothing is written, and the caller gets an error with this code."""

    code: str
    message: str


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """The command has nothing to do. Nothing is written, and the caller gets a success."""

    reason: str = ""


Answer: TypeAlias = Decision | Rejection | Ignored
