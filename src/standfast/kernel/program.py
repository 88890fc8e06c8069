"""A decider made ready to run: its message types, checks of its answers, and the fold of stored events.

It is the engine's only view of a workflow. The built-in machine and user classes are treated alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Protocol, TypeAlias, TypeVar, cast
from weakref import WeakKeyDictionary

import msgspec

from standfast.errors import (
    CommandError,
    DefinitionError,
    Diagnostic,
    PayloadError,
    ReplayError,
    StandfastError,
    indefinite,
)
from standfast.kernel.codec.codecs import Codec, SelfCritical
from standfast.kernel.codec.equality import strict_difference
from standfast.kernel.codec.fold_fingerprint import fold_fingerprint
from standfast.kernel.codec.message_types import (
    DEFAULT_LIMIT,
    SYSTEM_PREFIX,
    MessageTypeSet,
    PlainMessageTypeSet,
    Upcasters,
    allows_none,
    diagnose_members,
    diagnose_upcasters,
    full_name,
    is_whole,
    members_of,
    name_flaw,
    names_nothing,
    stored_name,
    union_of,
)
from standfast.kernel.codec.type_checks import Flaw
from standfast.kernel.decider import Decider, Failure, Status, declared_types
from standfast.kernel.decision import Answer, Decision, Ignored, Rejection
from standfast.kernel.decision_checks import check_answer, check_status
from standfast.kernel.facts import FactsNeeded
from standfast.kernel.history import StoredEvent
from standfast.kernel.moment import Moment
from standfast.kernel.rows import Record, flaw_of, merge

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")

_KINDS = ("state", "command", "event", "effect")
_ANSWERS = frozenset({Decision, Rejection, Ignored})
_COMPLETED = Ignored(reason="the instance has ended")
_SEPARATOR = b"\x00"
_LAST_STATE_VERSION = 2**31 - 1


class Program:
    """A decider with its message types. Types are erased here: the engine passes values on without inspecting them."""

    def __init__(
        self, decider: Decider[S, C, E, F], codec: Codec, *, limit: int = DEFAULT_LIMIT, is_own: bool = False
    ) -> None:
        """Build the program. `is_own` marks a built-in decider, whose name may begin with the reserved prefix."""
        state, commands, events, effects = _declared(decider, codec, is_own=is_own)
        self.type = decider.type
        self.decider: object = decider
        self.state_version = decider.state_version
        self.definition_version = decider.definition_version
        self.kind = decider.kind
        self.language = decider.language or decider.type
        self.has_steps = decider.has_steps
        self.deadline_timer = decider.deadline_timer

        def words(members: tuple[type, ...], kind: str, upcasters: Upcasters) -> MessageTypeSet:
            make = PlainMessageTypeSet if decider.is_plain else MessageTypeSet
            return make(members, kind=kind, decider=decider.type, codec=codec, upcasters=upcasters, limit=limit)

        self.commands = words(commands, "command", decider.command_upcasters)
        self.events = words(events, "event", decider.upcasters)
        self.effects = words(effects, "effect", decider.effect_upcasters)
        self.effect_failed = cast("Callable[[object, Failure], object]", decider.effect_failed)
        self.keeps_letter = cast("Callable[[object], bool]", decider.keeps_letter)
        self.handler_missing = cast("Callable[[object, str], object]", decider.handler_missing)
        self.step_of = cast("Callable[[object], str]", decider.step_of)
        self.trusts_records = decider.is_plain
        self._rows_of = cast("Callable[[object, object], Sequence[Record]]", decider.rows_of)
        self._codec = codec
        self._state_type = state
        self._is_plain = decider.is_plain
        self._carries_state = decider.carries_state
        self._state_names = {cls: full_name(cls).encode() for cls in union_of(state)}
        """Written before a snapshot if the state is one of several classes, which the bytes alone do not
        distinguish."""
        self._state_classes = {name: cls for cls, name in self._state_names.items()}
        is_settled = is_own or decider.is_plain
        self.fingerprint = "" if is_settled else fold_fingerprint(decider, self._state_names or [state])
        """Fingerprint of the fold code. Empty for built-in deciders, whose state versions are maintained by hand."""
        self._key_of = cast("Callable[[object], str]", decider.key_of)
        self._initial = cast("Callable[[], object]", decider.initial)
        self._status = cast("Callable[[object], object]", decider.status)
        self._subject = cast("Callable[[object], object]", decider.subject)
        self._evolve = cast("Callable[[object, object], object]", decider.evolve)
        self._decide = cast("Callable[[object, object, Moment], Answer]", decider.decide)
        self._is_terminal = cast("Callable[[object], bool]", decider.is_terminal)
        own = type(decider)
        self._says_end_twice = own.status is not Decider.status and own.is_terminal is not Decider.is_terminal
        """A decider with only one of `status` and `is_terminal` cannot contradict itself."""

    def initial(self) -> object:
        """Return the state of a new instance."""
        try:
            return self._initial()
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} in initial", decider=self.type) from error

    def key_of(self, command: object) -> str:
        """Return the business key of the instance that a command is for."""
        try:
            key = self._key_of(command)
        except StandfastError:
            raise
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} in key_of", decider=self.type) from error
        if type(key) is not str or not key:
            raise CommandError(
                f"{self.type!r} gave {key!r} in key_of for {stored_name(command)}; return the key of its instance, "
                "a text that is not empty",
                decider=self.type,
            )
        return key

    def subject(self, state: object) -> str:
        """Return the person for whom a new instance runs. Empty means the actor who started it."""
        try:
            subject = self._subject(state)
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} in subject", decider=self.type) from error
        if not isinstance(subject, str):
            raise CommandError(f"{self.type!r} gave {subject!r} as subject; expected a text", decider=self.type)
        return subject

    def status(self, state: object) -> Status:
        """Return the status of an instance in this state."""
        try:
            status = self._status(state)
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} in status", decider=self.type) from error
        if not isinstance(status, Status):
            told = type(status).__name__
            raise CommandError(f"{self.type!r} gave {told} as status; expected a Status", decider=self.type)
        if not self._carries_state:
            check_status(status, self.type)
        if self._says_end_twice:
            self._check_end(state, status)
        return status

    def key_named_by(self, command: object) -> str:
        """Return the business key that a command names.

        Empty if it names none, as a command for its own instance may.
        """
        try:
            return self._key_of(command)
        except BaseException:  # noqa: BLE001 - it names none
            return ""

    def check_own(self, command: object, key: str, what: str) -> None:
        """Raise if a command for its own instance, which has this key, names another one."""
        named = self.key_named_by(command)
        if named and key and named != key:
            raise CommandError(
                f"{what} brings {stored_name(command)} to its own instance {key!r}, and the command names {named!r}: "
                "give it the key of its own instance, or tell the other one with a Message",
                decider=self.type,
            )

    def _check_end(self, state: object, status: Status) -> None:
        try:
            has_ended = bool(self._is_terminal(state))
        except Exception as error:
            raise CommandError(f"{self.type!r} raised {error!r} in is_terminal", decider=self.type) from error
        if has_ended != status.is_terminal:
            raise CommandError(
                f"{self.type!r} gives the status {status.word!r}, which is {'an end' if status.is_terminal else 'no end'}, "
                f"and its is_terminal says that it {'has ended' if has_ended else 'goes on'}: have both say the same",
                decider=self.type,
            )

    def answer(self, state: object, command: object, moment: Moment) -> Answer:
        """Return the decider's answer. Its exceptions become CommandError, except FactsNeeded, which requests facts."""
        if type(command) not in self.commands.classes:
            raise CommandError(self.commands.stranger(command), decider=self.type)
        try:
            if self._is_terminal(state):
                return _COMPLETED
            answer = self._decide(state, command, moment)
        except (StandfastError, FactsNeeded):
            raise
        except Exception as error:
            raise CommandError(
                f"{self.type!r} raised {error!r} on {stored_name(command)}", decider=self.type
            ) from error
        if type(answer) not in _ANSWERS and not isinstance(answer, Decision | Rejection | Ignored):
            raise CommandError(
                f"{self.type!r} answered {stored_name(command)} with {type(answer).__name__}; "
                "expected a Decision, a Rejection or Ignored",
                decider=self.type,
            )
        if not self._carries_state:
            check_answer(answer, self.type)
        return answer

    def carried_state(self, decision: Decision) -> object:
        """Return the state that a decision carries, or UNSET if `evolve` computes it.

        Raises CommandError if the decider may carry none.
        """
        if decision.state is not msgspec.UNSET and not self._carries_state:
            raise CommandError(
                f"{self.type!r} set the state of its Decision; leave it alone: the state is what `evolve` makes of the events",
                decider=self.type,
            )
        return decision.state

    def check_records(self, records: object) -> None:
        """Raise unless each record of a decision has a declared kind and can be written."""
        if not isinstance(records, tuple | list):
            told = f"{self.type!r} gave {indefinite(type(records))} as records of its Decision; give a tuple of them"
            raise CommandError(told, decider=self.type)
        for place, record in enumerate(records):
            flaw = flaw_of(record)
            if flaw:
                told = f"{self.type!r} named a row that cannot be written: record {place} of its Decision {flaw}"
                raise CommandError(told, decider=self.type)

    def apply(self, state: object, events: Iterable[object]) -> object:
        """Return the state after newly decided events."""
        for event in events:
            try:
                state = self._evolve(state, event)
            except Exception as error:
                told = f"{self.type!r} raised {error!r} while evolving on {stored_name(event)}"
                raise CommandError(told, decider=self.type) from error
            if state is None:
                self._check_none(stored_name(event), partial(CommandError, decider=self.type))
        return state

    def replay(self, state: object, events: Iterable[StoredEvent]) -> object:
        """Return the state after stored events."""
        for event in events:
            if event.is_system:
                continue
            value = self.decode(event)
            try:
                state = self._evolve(state, value)
            except Exception as error:
                raise ReplayError(f"{self.type!r} raised {error!r} on {_told(event)}") from error
            if state is None:
                self._check_none(_told(event), ReplayError)
        return state

    def rebuild(self, events: Iterable[StoredEvent]) -> tuple[object, list[Record] | None]:
        """Compute the state and the rows from a history, for comparison with the stored ones.

        The rows are None if the decider does not supply them.
        """
        tells_rows = type(self.decider).rows_of is not Decider.rows_of  # type: ignore[attr-defined]
        state, records = self.initial(), list[Record]()
        for event in events:
            if tells_rows and not event.is_system:
                records += self._told_rows(state, event)
            state = self.replay(state, (event,))
        return state, merge(records) if tells_rows else None

    def _told_rows(self, state: object, event: StoredEvent) -> Sequence[Record]:
        value = self.decode(event)
        try:
            records = self._rows_of(state, value)
            if not self.trusts_records:
                self.check_records(records)
        except Exception as error:
            raise ReplayError(f"{self.type!r} raised {error!r} in rows_of on {_told(event)}") from error
        return records

    def _check_none(self, event: str, make: Callable[[str], StandfastError]) -> None:
        """Raise unless None is a declared state, because a branch of `evolve` probably lacks its return."""
        if not allows_none(self._state_type) and self.initial() is not None:
            raise make(f"{self.type!r} returned None from `evolve` on {event}; return the state in every case")

    def snapshot(self, state: object) -> bytes:
        """Encode a state.

        Raises PayloadError if it would not survive the round trip; then only events can restore it.
        """
        data = self._codec.encode(state)
        if self._is_plain:
            return data
        if self._state_names:
            name = self._state_names.get(type(state))
            if name is None:
                raise PayloadError(f"the state is {indefinite(type(state))}, which {self.type!r} does not declare")
            data = name + _SEPARATOR + data
        found = strict_difference(self.restore(data), state)
        if found:
            raise PayloadError(f"in the state of {self.type!r} {found}")
        return data

    def restore(self, data: bytes) -> object:
        """Decode a state."""
        if not self._state_names:
            return self._codec.decode(data, self._state_type)
        name, _, rest = data.partition(_SEPARATOR)
        cls = self._state_classes.get(name)
        if cls is None:
            raise PayloadError(f"the snapshot is of a class that {self.type!r} does not declare as its state")
        return self._codec.decode(rest, cls)

    def takes_snapshot(self, state_version: int, fingerprint: str) -> bool:
        """Return whether a snapshot equals what the current code would fold."""
        return state_version == self.state_version and fingerprint == self.fingerprint

    def state_flaws(self) -> list[Flaw]:
        """Return why no state can be restored from a snapshot, as far as its types tell."""
        if self._is_plain or not isinstance(self._codec, SelfCritical):
            return []
        return [flaw for each in self._state_names or [self._state_type] for flaw in self._codec.flaws(each)]

    def decode(self, event: StoredEvent) -> object:
        """Decode a stored event as an object of the decider."""
        try:
            return self.events.decode(event.type, event.version, event.data)
        except PayloadError as error:
            raise ReplayError(
                f"{self.type!r} cannot read event {event.sequence} ({event.type} version {event.version}) "
                f"of instance {event.instance}: {error}"
            ) from error

    def plain(self, event: StoredEvent) -> object:
        """Return the plain data of a stored event with an unknown class, or its bytes if they cannot be read."""
        try:
            return self._codec.decode(event.data, dict)
        except PayloadError:
            return event.data


class Programs(Protocol):
    """Finds the program of a definition. Raises NotFoundError if it is unknown."""

    def __call__(self, tenant: str, definition: str, version: str = "", /) -> Program:
        """Return a tenant's program by name and version. Without a version, any that shares its message types."""
        ...


def _declared(
    decider: Decider[S, C, E, F], codec: Codec, *, is_own: bool
) -> tuple[type, tuple[type, ...], tuple[type, ...], tuple[type, ...]]:
    name = type(decider).__name__
    found = _diagnose_type(decider, is_own=is_own)
    declared = declared_types(type(decider))
    if len(declared) != len(_KINDS):
        found.append(
            Diagnostic(
                "missing_types", f"write class {name}(Decider[State, Command, Event, Effect]) with your four types"
            )
        )
        raise DefinitionError(name, found)
    words, flaws = _words(decider, declared, codec)
    found += flaws
    if found:
        raise DefinitionError(name, found)
    return cast("type", declared[0]), *words


def _words(decider: Decider[S, C, E, F], declared: Sequence[object], codec: Codec) -> _Words:
    """Return the classes of commands, events and effects, with their diagnostics."""
    upcasters = (decider.command_upcasters, decider.upcasters, decider.effect_upcasters)
    is_lasting = decider.is_plain and not any(upcasters)
    if is_lasting and type(decider) in _sound:
        return _sound[type(decider)]
    commands, events, effects = (members_of(each) for each in declared[1:])
    found: list[Diagnostic] = []
    reader = None if decider.is_plain else codec
    kinds = zip(_KINDS[1:], (commands, events, effects), declared[1:], upcasters, strict=True)
    for kind, members, each, casters in kinds:
        if not members and not (kind == "effect" and names_nothing(each)):
            found.append(Diagnostic("no_members", f"{each!r} names no class; use a class or a union of classes", kind))
        found += diagnose_members(members, kind, reader)
        found += diagnose_upcasters(members, kind, casters)
    made = ((commands, events, effects), found)
    if is_lasting:
        _sound[type(decider)] = made
    return made


_Words: TypeAlias = tuple[tuple[tuple[type, ...], tuple[type, ...], tuple[type, ...]], list[Diagnostic]]
_sound: WeakKeyDictionary[type, _Words] = WeakKeyDictionary()
"""Cache for classes whose message types depend on the class alone: each graph has its own machine, and all machines
share their types."""


def _diagnose_type(decider: Decider[S, C, E, F], *, is_own: bool) -> list[Diagnostic]:
    name, given = type(decider).__name__, getattr(decider, "type", None)
    if not isinstance(given, str) or not given:
        text = f"give {name} a non-empty text `type`, for example type = 'order'"
        return [Diagnostic("missing_type", text, "type")]
    flaw, version = name_flaw(given), decider.state_version
    found = [Diagnostic("invalid_type", f"the type {given!r} of {name} {flaw}", "type")] if flaw else []
    if given.startswith(SYSTEM_PREFIX) and not is_own:
        text = f"type {given!r} begins with '$', which Standfast keeps for itself"
        found.append(Diagnostic("reserved_name", text, "type"))
    if not is_whole(version, least=0, most=_LAST_STATE_VERSION):
        text = f"state_version of {name} is {version!r}; give a whole number, and a higher one with each change"
        found.append(Diagnostic("invalid_version", text, "state_version"))
    return found


def _told(event: StoredEvent) -> str:
    return f"event {event.sequence} ({event.type}) of instance {event.instance}"
