"""What a decider may answer: a decision (events and the work they ask for), a rejection, or nothing to do.

Effects, timers and messages are values here. They are written in the same commit as the events and acted on afterwards.
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
"""A value that instances can be found by."""

LOWEST_PRIORITY, HIGHEST_PRIORITY = 0, 100


class Effect(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Something to do in the world after the commit: the body goes to a handler, at least once."""

    body: object
    """One of the decider's effect types; what the handler gets."""
    handler: str = ""
    """Name of the handler; empty means the one registered for the decider."""
    priority: int = LOWEST_PRIORITY
    """0 to 100; higher is claimed earlier, and waiting raises it."""
    delay: timedelta = timedelta(0)
    """Not before this long after the commit."""
    once: bool = False
    """At most once: the call is counted before it is made and never repeated, not even after a crash."""
    transactional: bool = False
    """The handler runs inside the commit that records it and gets the open connection: exactly once."""
    timeout: timedelta | None = None
    """A call that takes longer is a failed attempt; None means the handler's own limit."""
    retry: RetryPolicy | None = None
    """When to try again; None means the handler's policy at the time of the failure, so that it may change while effects wait."""

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
    """What will be decided when the timer fires, on the state of that time."""
    due_at: datetime | None = None
    """When; exactly one of `due_at` and `after` is set."""
    after: timedelta | None = None
    """How long after the commit; zero or less means at once."""
    key: str = ""
    """A timer replaces a pending one with the same key; empty means that nothing can replace or cancel it."""

    def __post_init__(self) -> None:
        if (self.due_at is None) == (self.after is None):
            raise CommandError("a timer needs either `due_at` or `after`, and not both", decider="")

    def due(self, now: datetime) -> datetime:
        """The instant at which the timer fires, given the instant of its commit."""
        return self.due_at if self.due_at is not None else now + (self.after or timedelta(0))


class Message(msgspec.Struct, frozen=True, kw_only=True):
    """A command for another instance, delivered through the inbox: in order for each target, exactly once."""

    decider: str
    """Type of the decider that the target runs."""
    command: object
    """What to tell it; one of that decider's command types."""
    key: str = ""
    """Business key of the target; empty means that `instance` names it, or that the command tells."""
    instance: InstanceId | None = None
    """Id of the target, when it is known."""
    command_id: str = ""
    """Makes the message idempotent beyond its own row; empty means it needs none."""
    definition_version: str = ""
    """Version that a new instance is pinned to."""
    parent: InstanceId | None = None
    """The instance that starts the target; the message may then be the target's first."""
    partition: str | None = None
    """The part of the tenant that the target is in, empty if it is in none; None means that of the sender."""
    elsewhere: bool = False
    """The decider's code is in another service: `command` has the name and fields of its command, and `key` or `instance` is given."""


class Recall(msgspec.Struct, frozen=True, kw_only=True):
    """Take an effect back if nobody has begun it; one that is under way comes back by itself.

    If the effect is taken back, the instance gets `command`, in the same commit and through its inbox. If its handler is running it
    is told to stop where `stop` says so, and its end is reported as always.
    """

    effect: int
    command: object
    stop: bool = False


class Decision(msgspec.Struct, frozen=True, gc=False):
    """Events that happened and the work they ask for. There is no decision without an event."""

    events: tuple[object, ...]
    effects: tuple[Effect, ...] = ()
    timers: tuple[Timer, ...] = ()
    cancelled_timers: tuple[str, ...] = ()
    """Keys of timers, pending before this decision, that must not fire any more; unknown keys do no harm."""
    withdrawn_effects: tuple[int, ...] = ()
    """Numbers of effects that are not wanted any more; a handler that runs one is told to stop."""
    recalls: tuple[Recall, ...] = ()
    messages: tuple[Message, ...] = ()
    records: tuple[Record, ...] = ()
    """Rows of the inline projections, written in the same commit."""
    attributes: Mapping[str, Attribute | None] | None = None
    """Values that the instance is to be found by, laid over those that it has; None takes one away."""
    state: object = msgspec.UNSET
    """The state after the events, from a decider that says `carries_state`; that of any other is what `evolve` makes of them."""

    def __post_init__(self) -> None:
        if not self.events:
            raise CommandError(
                "a decision needs at least one event; answer Ignored(...) when nothing happened", decider=""
            )

    @classmethod
    def event(cls, event: object, *more: object) -> Decision:
        """The decision that these events happened, in this order."""
        return cls((event, *more))

    def with_event(self, event: object) -> Decision:
        """This decision, and then one more event."""
        return msgspec.structs.replace(self, events=(*self.events, event))

    def with_effect(self, body: object, **options: object) -> Decision:
        """This decision and an effect; the options are the fields of `Effect`."""
        effect = body if isinstance(body, Effect) else _effect(body=body, **options)
        return msgspec.structs.replace(self, effects=(*self.effects, effect))

    def with_timer_after(self, delay: timedelta, command: object, *, key: str = "") -> Decision:
        """This decision and a command to itself after `delay`."""
        return self._with_timer(Timer(command=command, after=delay, key=key))

    def with_timer_at(self, due_at: datetime, command: object, *, key: str = "") -> Decision:
        """This decision and a command to itself at an instant."""
        if due_at.tzinfo is None:
            raise CommandError(
                f"timer at {due_at!r}: give a time with a zone, such as datetime(..., tzinfo=UTC)", decider=""
            )
        return self._with_timer(Timer(command=command, due_at=due_at, key=key))

    def cancel_timer(self, key: str) -> Decision:
        """This decision, and the timer with this key does not fire, be it pending or set by this decision so far."""
        timers = tuple(each for each in self.timers if not key or each.key != key)
        return msgspec.structs.replace(self, timers=timers, cancelled_timers=(*self.cancelled_timers, key))

    def with_message(self, message: Message) -> Decision:
        """This decision and a command for another instance."""
        return msgspec.structs.replace(self, messages=(*self.messages, message))

    def with_attributes(self, **attributes: Attribute | None) -> Decision:
        """This decision, and values that the instance is to be found by from now on; None takes one away."""
        return msgspec.structs.replace(self, attributes={**(self.attributes or {}), **attributes})

    def _with_timer(self, timer: Timer) -> Decision:
        return msgspec.structs.replace(self, timers=(*self.timers, timer))


_effect: Callable[..., Effect] = Effect


NOT_ALLOWED: Final = "not_allowed"
"""The code of a rejection because of who asks: the caller gets a ForbiddenError instead of a RejectedError."""


class Rejection(msgspec.Struct, frozen=True, kw_only=True):
    """The command is refused: nothing is written and the caller gets an error with this code."""

    code: str
    message: str


class Ignored(msgspec.Struct, frozen=True, kw_only=True):
    """There is nothing to do: nothing is written and the caller is told that all is well."""

    reason: str = ""


Answer: TypeAlias = Decision | Rejection | Ignored
