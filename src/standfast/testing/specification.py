"""Given-when-then tests of a decider, without database and clock.

given(Order(), Placed("o-1", 5)).when(Pay("o-1")).then(Paid("o-1"))
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Generic, NamedTuple, TypeVar, cast
from uuid import UUID

import msgspec

from standfast.calls.context import checked_key
from standfast.engine.commit.limits import check_decision, check_text
from standfast.engine.commit.work_rows import message_row
from standfast.errors import NotFoundError, PayloadError, StandfastError
from standfast.kernel.codec.codecs import Codec, JsonCodec
from standfast.kernel.codec.equality import strict_difference
from standfast.kernel.codec.message_types import MessageTypeSet
from standfast.kernel.decider import Decider
from standfast.kernel.decision import Answer, Decision, Effect, Ignored, Message, Rejection, Timer
from standfast.kernel.facts import SupposedFacts
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment
from standfast.kernel.program import Program
from standfast.store.records.instances import Address

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")
S2 = TypeVar("S2")
C2 = TypeVar("C2")
E2 = TypeVar("E2")
F2 = TypeVar("F2")

A_MOMENT = Moment(now=datetime(2030, 1, 1, 12, tzinfo=UTC), instance=InstanceId(UUID(int=7)), facts=SupposedFacts())


class Then(Generic[S]):
    """The outcome of a command, and checks of it. Each check returns the same object, so that checks can be chained."""

    def __init__(self, state: S, answer: Answer | StandfastError) -> None:
        self.state = state
        """The state afterwards; the one before if there were no events."""
        self.answer = answer

    def then(
        self,
        *events: object,
        effects: Sequence[object] | None = None,
        timers: Sequence[Timer] | None = None,
        messages: Sequence[Message] | None = None,
    ) -> Then[S]:
        """Check that exactly these events happened, in this order; with exactly these effects, timers and messages, where given."""
        decision = self._decision()
        _same("events", list(decision.events), list(events))
        if effects is not None:
            _same(
                "effects", [_like(given, wanted) for given, wanted in _pairs(decision.effects, effects)], list(effects)
            )
        if timers is not None:
            _same("timers", list(decision.timers), list(timers))
        if messages is not None:
            _same("messages", list(decision.messages), list(messages))
        return self

    def then_state(self, state: S) -> Then[S]:
        """Check the state afterwards."""
        _same("state", self.state, state)
        return self

    def then_rejected(self, code: str) -> Then[S]:
        """Check that the command was rejected with this code."""
        _check(isinstance(self.answer, Rejection), f"expected a rejection, got {self.answer!r}")
        assert isinstance(self.answer, Rejection)
        _same("rejection", self.answer.code, code)
        return self

    def then_nothing(self) -> Then[S]:
        """Check that the command was ignored."""
        _check(isinstance(self.answer, Ignored), f"expected nothing to happen, got {self.answer!r}")
        return self

    def then_error(self, kind: type[StandfastError]) -> Then[S]:
        """Check that the decider raised this kind of error."""
        _check(isinstance(self.answer, kind), f"expected {kind.__name__}, got {self.answer!r}")
        return self

    def _decision(self) -> Decision:
        if not isinstance(self.answer, Decision):
            raise AssertionError(f"expected a decision, got {self.answer!r}")  # noqa: TRY004 - a failed check, not a wrong type
        return self.answer


class StoredState(NamedTuple):
    """An event, a command or an effect as stored in a database; upcasters convert an older version."""

    type: str
    """The stored name, which is that of its class unless `@message` names another."""
    data: Mapping[str, object]
    """The fields of that version, as plain data."""
    version: int = 1


class Given(Generic[S, C, E, F]):
    """A decider with past events."""

    def __init__(
        self, decider: Decider[S, C, E, F], events: Sequence[E | StoredState], codec: Codec | None = None
    ) -> None:
        self._codec = codec or JsonCodec()
        self._program = Program(decider, self._codec)
        self._others: dict[str, Program] = {}
        # An event that is not declared, or that does not survive encoding, could not have been stored.
        stored = [self._owned(self._program.events, event) for event in events]
        self.state: S = cast("S", self._program.apply(decider.initial(), stored))
        if events:
            self._program.status(self.state)
        self._version = len(events)

    def beside(self, other: Decider[S2, C2, E2, F2]) -> Given[S, C, E, F]:
        """Register another decider. Messages to it are checked as in an engine."""
        self._others[other.type] = Program(other, self._codec)
        return self

    def when(self, command: C | StoredState, *, moment: Moment = A_MOMENT, by_key: bool = True) -> Then[S]:
        """Decide a command as an engine does, on values that were encoded and decoded.

        `by_key` means that the command is sent with `execute` or `submit`, which find the instance by its key. A
        command from a timer, an effect or an older version carries the instance and needs no key.
        """
        now = msgspec.structs.replace(moment, version=self._version)
        state = copy.deepcopy(self.state)
        try:
            own = self._owned(self._program.commands, command)
            if by_key and not isinstance(command, StoredState):
                self._check_key(own)
            answer = self._program.answer(state, own, now)
            carried = self._program.carried_state(answer) if isinstance(answer, Decision) else msgspec.UNSET
            if carried is not msgspec.UNSET:
                self._program.status(carried)
                return Then(cast("S", carried), answer)
            self._check_untouched(state)
            return Then(self._after(state, answer, now, self._program.key_named_by(own)), answer)
        except StandfastError as error:
            return Then(copy.deepcopy(self.state), error)

    def read_effect(self, effect: StoredState) -> F:
        """Return an effect as its handler would receive it."""
        return cast("F", self._owned(self._program.effects, effect))

    def _owned(self, words: MessageTypeSet, value: object) -> object:
        """Encode and decode a value."""
        if not isinstance(value, StoredState):
            return words.own(value)
        return words.decode(value.type, value.version, self._codec.encode(value.data))

    def _check_key(self, command: object) -> None:
        try:
            checked_key(self._program.key_of(command), "key")
        except PayloadError as error:
            raise PayloadError(
                f"{error}; one that comes from a timer or an effect needs none: when(..., by_key=False)"
            ) from error

    def _check_untouched(self, state: S) -> None:
        """Fail if `decide` modified its state, which an engine caches.

        A state that differs from its own copy cannot be checked.
        """
        written = strict_difference(self.state, state)
        if written and not strict_difference(self.state, copy.deepcopy(self.state)):
            raise AssertionError(f"`decide` must not change the state, only `evolve` may: after a restart {written}")

    def _after(self, state: S, answer: Answer, moment: Moment, key: str) -> S:
        if not isinstance(answer, Decision):
            return state
        check_decision(answer, moment.now)
        self._program.check_records(answer.records)
        for effect in answer.effects:
            self._program.effects.encode(effect.body)
        for what, asked in (("timer", answer.timers), ("recall", answer.recalls)):
            for each in asked:
                self._program.check_own(each.command, key, f"a {what} of {self._program.type!r}")
                self._program.commands.encode(each.command)
        for message in answer.messages:
            self._check_message(message, moment.tenant)
        after = self._program.apply(state, [self._program.events.own(event) for event in answer.events])
        check_text(self._program.status(after).reason, "reason of a status")
        return cast("S", after)

    def _check_message(self, message: Message, tenant: str) -> None:
        """Check a message as an engine does.

        For an unregistered target only the general rules apply: its code may derive keys in its own way.
        """
        is_known = self._others or message.decider == self._program.type
        if is_known or message.elsewhere:
            message_row(message, self._program, self._target, Address(tenant=tenant), context=None)
            return
        self._program.commands.encode_for(message.decider, message.command)
        if not message.key and message.instance is None and getattr(message.command, "workflow_id", None) == "":
            raise PayloadError(
                f"the message to {message.decider!r} does not say which instance it is for: its workflow_id is empty"
            )

    def _target(self, _tenant: str, definition: str, _version: str = "", /) -> Program:
        if definition == self._program.type:
            return self._program
        if definition not in self._others:
            known = ", ".join(sorted({self._program.type, *self._others}))
            raise NotFoundError("decider or workflow", definition, hint=f"beside one another are: {known}")
        return self._others[definition]


def given(decider: Decider[S, C, E, F], *events: E | StoredState) -> Given[S, C, E, F]:
    """Return a decider to which these events have happened. An event may be `Stored`, of an older version."""
    return Given(decider, events)


def _pairs(found: Sequence[Effect], wanted: Sequence[object]) -> list[tuple[Effect, object]]:
    padded = [*wanted, *([None] * (len(found) - len(wanted)))]
    return list(zip(found, padded, strict=False))


def _like(found: Effect, wanted: object) -> object:
    """Return an effect as the test wrote it: with its options, or only its body."""
    return found if isinstance(wanted, Effect) else found.body


def _same(what: str, found: object, wanted: object) -> None:
    _check(found == wanted, f"{what} differ:\n  expected {wanted!r}\n  got      {found!r}")


def _check(holds: bool, complaint: str) -> None:  # noqa: FBT001 - reads as a sentence at the call
    if not holds:
        raise AssertionError(complaint)
