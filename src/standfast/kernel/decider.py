"""The contract that every kind of workflow fulfils: how to begin, how an event changes the state, what to answer to a command."""

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
"""Statuses that an instance never leaves."""

SCHEDULE_KIND: Final = "schedule"
"""Kind of the instances that are schedules."""
BATCH_KIND: Final = "batch"
"""Kind of the instances that are batches."""


class Status(msgspec.Struct, frozen=True):
    """Where an instance stands, for lists and operators."""

    word: StatusWord
    reason: str = ""
    """Why, for example `dlq` for a paused saga; empty when the word says it all."""
    since: datetime | None = None
    """Since when it is paused, if the decider knows; None means since the decision that paused it."""
    next_step: str = ""
    """What a paused instance goes on with, to be found by; empty if nothing is named."""

    @property
    def is_terminal(self) -> bool:
        """Whether the instance has ended."""
        return self.word in TERMINAL


RUNNING, COMPLETED = Status("running"), Status("completed")


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why an effect gave up."""

    error: str
    is_final: bool = False
    """The handler said that trying again cannot help."""
    after: timedelta | None = None
    """When the handler asked to be tried again."""
    was_called: bool = True
    """Whether the handler may have begun its work."""


class Decider(ABC, Generic[State, Command, Event, Effect]):
    """A workflow as three pure functions. Subclass it with your four types and register an object of the subclass.

    The functions may not read a clock, draw random numbers or do I/O: the moment is an argument. The state is always the fold of
    `evolve` over the events; a stored snapshot is only a cache of that.
    """

    type: ClassVar[str]
    """Name under which instances are stored; it must never change while there are any."""
    state_version: ClassVar[int] = 1
    """Raise it when `evolve` or the state's shape changes meaning: older snapshots are then ignored and the events replayed.

    Snapshots are ignored too if the types of the state, or the code of `evolve` and `initial` in their class and module, have changed.
    Only a change in another module, such as a helper that `evolve` calls, needs a higher version."""
    upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = MappingProxyType({})
    """From (event name, version) to the function that brings the event's plain form to the next version."""
    command_upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = MappingProxyType({})
    """The same for commands that wait in timers and messages."""
    effect_upcasters: ClassVar[Mapping[tuple[str, int], Upcaster]] = MappingProxyType({})
    """The same for effects that wait for their handler."""
    is_plain: ClassVar[bool] = False
    """Promises that every value of its types, its states included, comes back from the codec as it is, and that nobody else holds it:
    then nothing is read again when it is written, and rows that it names are written as they are. Without the promise the engine makes
    sure of all that."""

    carries_state: ClassVar[bool] = False
    """Whether its decisions carry the state after them, as a decider does that evolves while it decides; for graphs."""

    definition_version: str = ""
    """Version that new instances are pinned to; empty for deciders, whose version is the code."""
    kind: str = "decider"
    """What lists call its instances by: the front end that it was written for."""
    language: str = ""
    """Whose words its commands and effects are written in: empty means its own; all graphs share one language."""
    has_steps: ClassVar[bool] = False
    """Whether its instances consist of steps, and count as begun only when one of them has."""

    deadline_timer: ClassVar[str] = ""
    """Key of the timer that stops an instance which takes too long; lists show when it is due. Empty means that there is none."""

    @abstractmethod
    def initial(self) -> State:
        """The state of an instance to which nothing has happened."""

    @abstractmethod
    def evolve(self, state: State, event: Event) -> State:
        """The state after `event`. It may be the given state, changed in place: nobody looks at that one again."""

    @abstractmethod
    def decide(self, state: State, command: Command, moment: Moment) -> Answer:
        """What happens when `command` arrives in `state`."""

    def rows_of(self, state: State, event: Event) -> Sequence[Record]:  # noqa: ARG002 - the default for deciders without rows
        """What `event` does to rows, in the state before it: the same that the decision which has the event names in `records`.

        It is asked when an instance is verified. Rows of a decider that does not answer are not compared.
        """
        return ()

    def is_terminal(self, state: State) -> bool:  # noqa: ARG002 - the default for deciders that never end
        """Whether the instance has ended; commands that arrive afterwards are skipped silently."""
        return False

    def status(self, state: State) -> Status:
        """Where the instance stands."""
        return COMPLETED if self.is_terminal(state) else RUNNING

    def subject(self, state: State) -> str:
        """Who wants an instance that begins so, for lists; empty if that is whoever began it."""
        del state
        return ""

    def key_of(self, command: Command) -> str:
        """The business key of the instance that `command` is for: its `workflow_id`, an attribute or a method."""
        told = getattr(command, "workflow_id", None)
        key = told() if callable(told) else told
        if not isinstance(key, str) or not key:
            raise PayloadError(
                f"{stored_name(command)} does not say which instance it is for: give it a non-empty text `workflow_id`, "
                f"or override key_of in {type(self).__name__}"
            )
        return key

    def effect_failed(self, effect: Effect, failure: Failure) -> Command | None:  # noqa: ARG002 - the default tells nobody
        """The command that tells the instance that an effect gave up; None leaves it to the dead letters alone."""
        return None

    def keeps_letter(self, effect: Effect) -> bool:  # noqa: ARG002 - the default keeps none
        """Whether an effect that gave up is a dead letter although its instance is told of it, so that it can be put back to work."""
        return False

    def step_of(self, effect: Effect) -> str:
        """Which step an effect is of, by name, for whoever pauses a step; where instances consist of steps, effects name theirs as `node`."""
        return getattr(effect, "node", "") if self.has_steps else ""

    def handler_missing(self, effect: Effect, handler: str) -> Command | None:  # noqa: ARG002 - the default tells nobody
        """The command that tells the instance that no live worker has the handler of an effect; None tells it nothing."""
        return None


def declared_types(decider: type[Decider[State, Command, Event, Effect]]) -> tuple[object, ...]:
    """The four type arguments that the class gives to `Decider`, or an empty tuple where it gives none."""
    for cls in decider.__mro__:
        for base in getattr(cls, "__orig_bases__", ()):
            if typing.get_origin(base) is Decider:
                return typing.get_args(base)
    return ()
