"""The contract of every kind of workflow: its initial state, the effect of an event on the state, and the answer to a command."""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from types import MappingProxyType
from typing import ClassVar, Final, Generic, Literal, TypeVar

import msgspec

from standfast.errors import PayloadError
from standfast.kernel.codec.codecs import Upcaster
from standfast.kernel.codec.message_types import stored_name
from standfast.kernel.decision import Answer
from standfast.kernel.moment import Moment
from standfast.kernel.rows import Record

State = TypeVar("State")
Command = TypeVar("Command")
Event = TypeVar("Event")
Effect = TypeVar("Effect")

StatusWord = Literal["running", "paused", "completed", "failed", "cancelled", "aborted"]
WORDS: tuple[str, ...] = typing.get_args(StatusWord)
TERMINAL: frozenset[str] = frozenset({"completed", "failed", "cancelled", "aborted"})
"""Final statuses of an instance."""

SCHEDULE_KIND: Final = "schedule"
"""Kind of the instances that are schedules."""
BATCH_KIND: Final = "batch"
"""Kind of the instances that are batches."""


class Status(msgspec.Struct, frozen=True):
    """The status of an instance, for lists and operators."""

    word: StatusWord
    reason: str = ""
    """Reason in one word, for example `dlq` for a paused saga. Empty if the status says it all."""
    since: datetime | None = None
    """Since when the instance is paused, if the decider knows. None means since the decision that paused it."""
    next_step: str = ""
    """The step with which a paused instance continues, as a search key. Empty if none is named."""

    @property
    def is_terminal(self) -> bool:
        """Whether the instance has ended."""
        return self.word in TERMINAL


RUNNING, COMPLETED = Status("running"), Status("completed")


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """The failure of an effect."""

    error: str
    is_final: bool = False
    """The handler excluded a retry."""
    after: timedelta | None = None
    """Delay that the handler requested before a retry."""
    was_called: bool = True
    """Whether the handler may have started its work."""


class Decider(ABC, Generic[State, Command, Event, Effect]):
    """A workflow as three pure functions. Subclass it with your four types and register an object of the subclass.

    The functions must not read a clock, draw random numbers or do I/O; the time is an argument. The state is always the
    fold of `evolve` over the events. A stored snapshot is only a cache of it.
    """

    type: ClassVar[str]
    """Name under which instances are stored. It must not change while there are any."""
    state_version: ClassVar[int] = 1
    """Raise it when `evolve` or the meaning of the state changes. Older snapshots are then ignored and the events
    replayed.

    Changes to the state's types, or to the code of `evolve` and `initial` in their class and module, are detected
    automatically. Only a change in another module, such as a helper that `evolve` calls, needs a higher version.
    """
    upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = MappingProxyType({})
    """Maps (event name, version) to the function that upgrades the event's plain form to the next version."""
    command_upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = MappingProxyType({})
    """The same for commands in pending timers and messages."""
    effect_upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = MappingProxyType({})
    """The same for pending effects."""
    is_plain: ClassVar[bool] = False
    """Declares that all values of its types, including states, survive a round trip through the codec unchanged and
    have no other owner. Written values and rows are then not verified."""

    carries_state: ClassVar[bool] = False
    """Whether its decisions carry the state after them, because the decider evolves while it decides. Used by
    graphs."""

    definition_version: str = ""
    """Version that new instances are pinned to. Empty for deciders, whose version is the code."""
    kind: str = "decider"
    """Kind of its instances in lists: the front end that it was written for."""
    language: str = ""
    """Namespace of its message types. Empty means its own; all graphs share one."""
    has_steps: ClassVar[bool] = False
    """Whether its instances consist of steps, and count as begun only when a step has begun."""

    deadline_timer: ClassVar[str] = ""
    """Key of the timer that stops an overdue instance. Lists show when it is due. Empty without one."""

    @abstractmethod
    def initial(self) -> State:
        """Return the state of a new instance."""

    @abstractmethod
    def evolve(self, state: State, event: Event) -> State:
        """Return the state after `event`.

        It may be the given state, changed in place, because that is not used again.
        """

    @abstractmethod
    def decide(self, state: State, command: Command, moment: Moment) -> Answer:
        """Return the answer to `command` in `state`."""

    def rows_of(self, state: State, event: Event) -> Sequence[Record]:  # noqa: ARG002 - the default for deciders without rows
        """Return the row changes of `event` in the state before it. They must equal the `records` of the event's decision.

        It is called when an instance is verified. Rows of a decider without an implementation are not compared.
        """
        return ()

    def is_terminal(self, state: State) -> bool:  # noqa: ARG002 - the default for deciders that never end
        """Return whether the instance has ended. Later commands are ignored without an error."""
        return False

    def status(self, state: State) -> Status:
        """Return the status of the instance."""
        return COMPLETED if self.is_terminal(state) else RUNNING

    def subject(self, state: State) -> str:
        """Return the person for whom a new instance runs, for lists. Empty means the actor who started it."""
        del state
        return ""

    def key_of(self, command: Command) -> str:
        """Return the business key of the instance that `command` is for: its `workflow_id`, an attribute or a method."""
        told = getattr(command, "workflow_id", None)
        key = told() if callable(told) else told
        if not isinstance(key, str) or not key:
            raise PayloadError(
                f"{stored_name(command)} does not say which instance it is for: give it a non-empty text `workflow_id`, "
                f"or override key_of in {type(self).__name__}"
            )
        return key

    def effect_failed(self, effect: Effect, failure: Failure) -> Command | None:  # noqa: ARG002 - the default sends no command
        """Return the command that reports a failed effect to the instance. None leaves it to the dead letters alone."""
        return None

    def keeps_letter(self, effect: Effect) -> bool:  # noqa: ARG002 - the default keeps none
        """Return whether a failed effect also becomes a dead letter if its instance gets a command, so that it can be requeued."""
        return False

    def step_of(self, effect: Effect) -> str:
        """Return the name of the effect's step, for pauses of a step.

        In instances with steps, effects name it as `node`.
        """
        return getattr(effect, "node", "") if self.has_steps else ""

    def handler_missing(self, effect: Effect, handler: str) -> Command | None:  # noqa: ARG002 - the default sends no command
        """Return the command that reports a handler without a live worker to the instance. None reports nothing."""
        return None


def declared_types(decider: type[Decider[State, Command, Event, Effect]]) -> tuple[object, ...]:
    """Return the four type arguments that the class gives to `Decider`, or an empty tuple without any."""
    for cls in decider.__mro__:
        for base in getattr(cls, "__orig_bases__", ()):
            if typing.get_origin(base) is Decider:
                return typing.get_args(base)
    return ()
