"""Testing a decider in three sentences, with no database and no clock.

given(Order(), Placed("o-1", 5)).when(Pay("o-1")).then(Paid("o-1"))
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Generic, TypeVar, cast
from uuid import UUID

import msgspec

from holdfast.errors import HoldfastError
from holdfast.kernel.decider import Decider
from holdfast.kernel.decision import Answer, Decision, Effect, Ignored, Message, Rejection, Timer
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.moment import Moment
from holdfast.kernel.program import Program
from holdfast.kernel.sameness import strict_difference
from holdfast.kernel.wire import Codec, JsonCodec
from holdfast.runtime.checking import check_decision

S = TypeVar("S")
C = TypeVar("C")
E = TypeVar("E")
F = TypeVar("F")

A_MOMENT = Moment(now=datetime(2030, 1, 1, 12, tzinfo=UTC), instance=InstanceId(UUID(int=7)))


class Then(Generic[S]):
    """What came of a command, and what must have come of it. Each check gives the same object, so that they can be chained."""

    def __init__(self, state: S, answer: Answer | HoldfastError) -> None:
        self.state = state
        """The state afterwards; the one before if nothing happened."""
        self.answer = answer

    def then(
        self,
        *events: object,
        effects: Sequence[object] | None = None,
        timers: Sequence[Timer] | None = None,
        messages: Sequence[Message] | None = None,
    ) -> Then[S]:
        """Exactly these events happened, in this order; with exactly these effects, timers and messages, where given."""
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
        """The state afterwards is this one."""
        _same("state", self.state, state)
        return self

    def then_rejected(self, code: str) -> Then[S]:
        """The command was refused with this code."""
        _check(isinstance(self.answer, Rejection), f"expected a rejection, got {self.answer!r}")
        assert isinstance(self.answer, Rejection)
        _same("rejection", self.answer.code, code)
        return self

    def then_nothing(self) -> Then[S]:
        """The command was ignored: nothing happened."""
        _check(isinstance(self.answer, Ignored), f"expected nothing to happen, got {self.answer!r}")
        return self

    def then_error(self, kind: type[HoldfastError]) -> Then[S]:
        """The decider failed with this kind of error."""
        _check(isinstance(self.answer, kind), f"expected {kind.__name__}, got {self.answer!r}")
        return self

    def _decision(self) -> Decision:
        if not isinstance(self.answer, Decision):
            raise AssertionError(f"expected a decision, got {self.answer!r}")  # noqa: TRY004 - a failed check, not a wrong type
        return self.answer


class Given(Generic[S, C, E, F]):
    """A decider with a past."""

    def __init__(self, decider: Decider[S, C, E, F], events: Sequence[E], codec: Codec | None = None) -> None:
        self._program = Program(decider, codec or JsonCodec())
        # An event that is not declared, or would come back as another one, could never have been stored.
        stored = [self._program.events.own(event) for event in events]
        self.state: S = cast("S", self._program.apply(decider.initial(), stored))
        self._version = len(events)

    def when(self, command: C, *, moment: Moment = A_MOMENT) -> Then[S]:
        """The decider answers a command, as it does in an engine: on values that came back from their bytes."""
        now = msgspec.structs.replace(moment, version=self._version)
        state = copy.deepcopy(self.state)
        try:
            answer = self._program.answer(state, self._program.commands.own(command), now)
            carried = self._program.carried_state(answer) if isinstance(answer, Decision) else msgspec.UNSET
            if carried is not msgspec.UNSET:
                return Then(cast("S", carried), answer)
            self._check_untouched(state)
            return Then(self._after(state, answer, now), answer)
        except HoldfastError as error:
            return Then(copy.deepcopy(self.state), error)

    def _check_untouched(self, state: S) -> None:
        """Fail if `decide` wrote into its state, which an engine keeps. Where even a copy differs, nobody can tell."""
        written = strict_difference(self.state, state)
        if written and not strict_difference(self.state, copy.deepcopy(self.state)):
            raise AssertionError(f"`decide` must not change the state, only `evolve` may: after a restart {written}")

    def _after(self, state: S, answer: Answer, moment: Moment) -> S:
        if not isinstance(answer, Decision):
            return state
        check_decision(answer, moment.now)
        for effect in answer.effects:
            self._program.effects.encode(effect.body)
        for timer in answer.timers:
            self._program.commands.encode(timer.command)
        return cast("S", self._program.apply(state, [self._program.events.own(event) for event in answer.events]))


def given(decider: Decider[S, C, E, F], *events: E) -> Given[S, C, E, F]:
    """A decider to which these events have happened."""
    return Given(decider, events)


def _pairs(found: Sequence[Effect], wanted: Sequence[object]) -> list[tuple[Effect, object]]:
    padded = [*wanted, *([None] * (len(found) - len(wanted)))]
    return list(zip(found, padded, strict=False))


def _like(found: Effect, wanted: object) -> object:
    """An effect as the test wrote it: with its options, or only its body."""
    return found if isinstance(wanted, Effect) else found.body


def _same(what: str, found: object, wanted: object) -> None:
    _check(found == wanted, f"{what} differ:\n  expected {wanted!r}\n  got      {found!r}")


def _check(holds: bool, complaint: str) -> None:  # noqa: FBT001 - reads as a sentence at the call
    if not holds:
        raise AssertionError(complaint)
