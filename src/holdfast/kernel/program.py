"""A decider made ready to run: its types as vocabularies, its answers checked, its state folded from stored events.

This is all the runtime knows of a workflow. The built-in machine and a user's class come here alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar, cast

from holdfast.errors import CommandError, DefinitionError, Diagnostic, HoldfastError, PayloadError, ReplayError
from holdfast.kernel.decider import Decider, Failure, Status, declared_types
from holdfast.kernel.decision import Answer, Decision, Ignored, Rejection
from holdfast.kernel.history import StoredEvent
from holdfast.kernel.moment import Moment
from holdfast.kernel.vocabulary import (
    DEFAULT_LIMIT,
    Vocabulary,
    diagnose_members,
    members_of,
    must_be_checked,
    names_nothing,
)
from holdfast.kernel.wire import Codec, comes_back

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")

_KINDS = ("state", "command", "event", "effect")
_COMPLETED = Ignored(reason="the instance has ended")


class Program:
    """One decider with its vocabularies. Types are erased here: the runtime hands values through without looking at them."""

    def __init__(self, decider: Decider[S, C, E, F], codec: Codec, *, limit: int = DEFAULT_LIMIT) -> None:
        state, commands, events, effects = _declared(decider)
        self.type = decider.type
        self.decider: object = decider
        self.state_type = state
        self.state_version = decider.state_version
        self.definition_version = decider.definition_version
        self.commands = Vocabulary(commands, kind="command", decider=self.type, codec=codec, limit=limit)
        self.events = Vocabulary(
            events, kind="event", decider=self.type, codec=codec, upcasters=decider.upcasters, limit=limit
        )
        self.effects = Vocabulary(effects, kind="effect", decider=self.type, codec=codec, limit=limit)
        self.effect_failed = cast("Callable[[object, Failure], object]", decider.effect_failed)
        self.handler_missing = cast("Callable[[object, str], object]", decider.handler_missing)
        self._codec = codec
        self._must_check_state = must_be_checked(state)
        self._key_of = cast("Callable[[object], str]", decider.key_of)
        self._initial = cast("Callable[[], object]", decider.initial)
        self._status = cast("Callable[[object], object]", decider.status)
        self._evolve = cast("Callable[[object, object], object]", decider.evolve)
        self._decide = cast("Callable[[object, object, Moment], Answer]", decider.decide)
        self._is_terminal = cast("Callable[[object], bool]", decider.is_terminal)

    def initial(self) -> object:
        """The state of an instance to which nothing has happened."""
        try:
            return self._initial()
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} in initial", decider=self.type) from error

    def key_of(self, command: object) -> str:
        """The business key of the instance that a command is for."""
        try:
            return self._key_of(command)
        except HoldfastError:
            raise
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} in key_of", decider=self.type) from error

    def status(self, state: object) -> Status:
        """Where an instance in this state stands."""
        try:
            status = self._status(state)
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} in status", decider=self.type) from error
        if not isinstance(status, Status):
            told = type(status).__name__
            raise CommandError(f"{self.type!r} gave {told} as status; expected a Status", decider=self.type)
        return status

    def answer(self, state: object, command: object, moment: Moment) -> Answer:
        """What the decider answers; whatever goes wrong in it becomes a CommandError."""
        if command not in self.commands:
            raise CommandError(
                f"{self.type!r} does not declare {type(command).__name__} as one of its commands; "
                f"it has {', '.join(self.commands.names) or 'none'}",
                decider=self.type,
            )
        try:
            if self._is_terminal(state):
                return _COMPLETED
            answer = self._decide(state, command, moment)
        except HoldfastError:
            raise
        except Exception as error:
            raise CommandError(
                f"{self.type!r} raised {error!r} on {type(command).__name__}", decider=self.type
            ) from error
        if not isinstance(answer, Decision | Rejection | Ignored):
            raise CommandError(
                f"{self.type!r} answered {type(command).__name__} with {type(answer).__name__}; "
                "expected a Decision, a Rejection or Ignored",
                decider=self.type,
            )
        return answer

    def apply(self, state: object, events: Iterable[object]) -> object:
        """The state after these events, which were just decided."""
        try:
            for event in events:
                state = self._evolve(state, event)
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} while evolving", decider=self.type) from error
        return state

    def replay(self, state: object, events: Iterable[StoredEvent]) -> object:
        """The state after these stored events."""
        for event in events:
            if event.is_system:
                continue
            value = self.decode(event)
            try:
                state = self._evolve(state, value)
            except Exception as error:
                raise ReplayError(
                    f"{self.type!r} raised {error!r} on event {event.sequence} ({event.type}) of instance {event.instance}"
                ) from error
        return state

    def snapshot(self, state: object) -> bytes | None:
        """The bytes of a state, or None where its type cannot be stored."""
        try:
            data = self._codec.encode(state)
        except PayloadError:
            return None
        if self._must_check_state and not comes_back(self._codec, data, state):
            return None
        return data

    def restore(self, data: bytes) -> object:
        """The state of these bytes."""
        return self._codec.decode(data, self.state_type)

    def decode(self, event: StoredEvent) -> object:
        """A stored event in the decider's own words."""
        try:
            return self.events.decode(event.type, event.version, event.data)
        except PayloadError as error:
            raise ReplayError(
                f"{self.type!r} cannot read event {event.sequence} ({event.type} version {event.version}) "
                f"of instance {event.instance}: {error}"
            ) from error


class Programs(Protocol):
    """Finds the program that runs a definition; NotFoundError if nobody knows it."""

    def __call__(self, definition: str, version: str = "", /) -> Program:
        """The program of this version; without a version any that speaks the definition's vocabulary."""
        ...


def _declared(decider: Decider[S, C, E, F]) -> tuple[type, tuple[type, ...], tuple[type, ...], tuple[type, ...]]:
    name = type(decider).__name__
    found: list[Diagnostic] = []
    if not isinstance(getattr(decider, "type", None), str) or not decider.type:
        found.append(
            Diagnostic("missing_type", f"give {name} a non-empty text `type`, for example type = 'order'", "type")
        )
    declared = declared_types(type(decider))
    if len(declared) != len(_KINDS):
        found.append(
            Diagnostic(
                "missing_types", f"write class {name}(Decider[State, Command, Event, Effect]) with your four types"
            )
        )
        raise DefinitionError(name, found)
    words = [members_of(each) for each in declared[1:]]
    for kind, members, each in zip(_KINDS[1:], words, declared[1:], strict=True):
        if not members and not (kind == "effect" and names_nothing(each)):
            found.append(Diagnostic("no_members", f"{each!r} names no class; use a class or a union of classes", kind))
        found += diagnose_members(members, kind)
    if found:
        raise DefinitionError(name, found)
    return cast("type", declared[0]), words[0], words[1], words[2]
