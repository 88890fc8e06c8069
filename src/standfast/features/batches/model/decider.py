"""The decider of batches: a few items at a time are tried by an effect, and then looked at until each is what was wanted, or is not."""

from __future__ import annotations

from copy import copy
from datetime import timedelta
from typing import ClassVar, Final

from msgspec.structs import replace

from standfast.features.batches.model import messages as w
from standfast.kernel.actor import late_actor, late_terms
from standfast.kernel.decider import BATCH_KIND, COMPLETED, RUNNING, Decider, Failure, Status
from standfast.kernel.decision import Answer, Decision, Effect, Ignored, Timer
from standfast.kernel.moment import Moment
from standfast.machine.model.commands.run_commands import EndChild
from standfast.machine.model.engine_tasks import OWN_HANDLER

NEXT, LOOK = "next", "look"
"""Keys of the timers that bring the next items, and the next look."""
AT_ONCE: Final = 20
"""Items that one effect tries, or looks at."""
_FIRST_LOOK, _LONGEST_LOOK = timedelta(seconds=1), timedelta(minutes=1)
_SHORT: Final = 6
"""After so many looks there is the longest time between two."""

_KNOWN = Ignored(reason="this batch was begun before")
_LATE = Ignored(reason="the batch has gone on without it")


class BatchDecider(Decider[w.BatchState, w.Command, w.Event, w.Effect]):
    """Decides about one batch."""

    type: ClassVar[str] = w.BATCH
    is_plain: ClassVar[bool] = True  # What comes from outside is made plain, and a copy, before it becomes a command.
    kind = BATCH_KIND

    def initial(self) -> w.BatchState:
        """One that nobody has begun."""
        return w.BatchState()

    def key_of(self, command: w.Command) -> str:
        """The id of the batch; the end of a run names none, because it knows the instance."""
        return "" if isinstance(command, EndChild) else command.id

    def status(self, state: w.BatchState) -> Status:
        """It has ended once nothing is left to do, or to wait for."""
        if not state.is_over:
            return RUNNING
        return Status("cancelled") if state.cancelled_by else COMPLETED

    def effect_failed(self, effect: w.Effect, failure: Failure) -> w.Command:
        """Nobody knows what became of these items: they are looked at, as if they had been taken."""
        is_look = isinstance(effect, w.LookAtItems)
        taken = [w.ItemOutcome(number=each.number, status="accepted", detail=failure.error) for each in effect.items]
        return w.NoteOutcomes(
            id=effect.id, outcomes=[] if is_look else taken, last=effect.items[-1].number, is_look=is_look
        )

    def evolve(self, state: w.BatchState, event: w.Event) -> w.BatchState:
        """The batch after something happened to it."""
        match event:
            case w.BatchBegun():
                state.id, state.order, state.items = event.id, event.order, [*event.items]
                state.owner, state.terms = event.owner, event.terms
            case w.ItemsTried():
                state.tried = state.in_hand = event.last
                state.next_at = event.next_at
            case w.ItemsLookedAt():
                state.in_hand = event.last
                state.looks += event.last == _last_open(state)
            case w.ItemsMoved():
                for each in event.outcomes:
                    item = state.items[each.number - 1]
                    state.items[each.number - 1] = replace(item, status=each.status, detail=each.detail)
                state.in_hand = 0 if event.is_answer else state.in_hand
            case w.BatchTried(until=until):
                state.follow_until = until
            case w.BatchCancelled():
                state.cancelled_by, state.cancel_reason = event.by, event.reason
            case w.BatchEnded():
                state.is_over = True
        return state

    def decide(self, state: w.BatchState, command: w.Command, moment: Moment) -> Answer:
        """What becomes of the batch."""
        if isinstance(command, w.BeginBatch):
            return _KNOWN if state.order is not None else self._turn(state, moment).begin(command)
        if state.order is None or state.is_over:
            return _LATE
        turn = self._turn(state, moment)
        match command:
            case w.CancelBatch():
                turn.cancel(command)
            case w.TryMore():
                turn.go_on()
            case w.LookAgain():
                turn.look(0)
            case w.NoteOutcomes():
                turn.note(command)
            case EndChild():
                turn.note_end(command)
        return turn.decision() or _LATE

    def _turn(self, state: w.BatchState, moment: Moment) -> _Turn:
        return _Turn(self, state, moment)


def _last_open(state: w.BatchState) -> int:
    return max((each.number for each in state.items if each.status == "accepted"), default=0)


class _Turn:
    """One command to a batch. The state is a copy, which follows the events as they are made."""

    def __init__(self, decider: BatchDecider, state: w.BatchState, moment: Moment) -> None:
        self._decider = decider
        self._state = copy(state)
        self._state.items = [*state.items]
        self._moment = moment
        self._events: list[w.Event] = []
        self._effects: list[Effect] = []
        self._timers: list[Timer] = []
        self._cancelled: list[str] = []

    @property
    def _order(self) -> w.Order:
        assert self._state.order is not None
        return self._state.order

    def _emit(self, event: w.Event) -> None:
        self._events.append(event)
        self._state = self._decider.evolve(self._state, event)

    def decision(self) -> Decision | None:
        """All of it; None if nothing happened."""
        if not self._events:
            return None
        return Decision(
            tuple(self._events),
            effects=tuple(self._effects),
            timers=tuple(self._timers),
            cancelled_timers=tuple(self._cancelled),
        )

    def begin(self, command: w.BeginBatch) -> Decision:
        """Write down what is wanted, and try the first ones."""
        asked, roles = self._moment.asked, self._moment.actor.roles
        items = [self._named(each) if command.order.verb == "start" else each for each in command.items]
        owner, terms = late_actor(asked), late_terms(asked, roles)
        self._emit(w.BatchBegun(id=command.id, order=command.order, items=items, owner=owner, terms=terms))
        self.go_on()
        decision = self.decision()
        assert decision is not None
        return decision

    def _named(self, item: w.Item) -> w.Item:
        """A start whose run has its id before anybody starts it, so that there is one, however often that is tried."""
        return replace(item, run=str(self._moment.derive_id("run", item.number)))

    def go_on(self) -> None:
        """Try the next ones, as soon as it is time; or, behind the last one, look what they come to."""
        state, now = self._state, self._moment.now
        if state.in_hand or state.is_over:
            return
        left = [each for each in state.items[state.tried :] if each.status == "waiting"]
        if state.cancelled_by or not left:
            self._follow()
        elif state.next_at is not None and state.next_at > now:
            self._timers.append(Timer(command=w.TryMore(id=state.id), due_at=state.next_at, key=NEXT))
        else:
            self._try(left)

    def _try(self, left: list[w.Item]) -> None:
        rate = self._order.per_second
        page = left[: AT_ONCE if not rate else max(1, min(AT_ONCE, int(rate)))]
        next_at = self._moment.now + timedelta(seconds=len(page) / rate) if rate else None
        self._emit(w.ItemsTried(first=page[0].number, last=page[-1].number, next_at=next_at))
        self._ask(
            w.TryItems(
                id=self._state.id, order=self._order, items=page, owner=self._state.owner, terms=self._state.terms
            )
        )

    def _ask(self, effect: w.Effect) -> None:
        self._effects.append(Effect(body=effect, handler=OWN_HANDLER))

    def note(self, command: w.NoteOutcomes) -> None:
        """Some were tried, or looked at."""
        if self._state.in_hand != command.last:
            return
        known = [each for each in command.outcomes if self._is_news(each)]
        self._emit(w.ItemsMoved(outcomes=known, is_answer=True))
        if command.is_look:
            self.look(command.last)
        else:
            self.go_on()

    def _is_news(self, outcome: w.ItemOutcome) -> bool:
        """A run may have ended before it was told that it was started."""
        item = self._state.items[outcome.number - 1]
        return item.status in w.OPEN and (item.status, item.detail) != (outcome.status, outcome.detail)

    def note_end(self, command: EndChild) -> None:
        """A run that was started has ended."""
        item = self._state.items[command.step - 1]
        if item.status not in w.OPEN:
            return
        why = command.error or command.reason
        is_well = command.status == "completed"
        detail = "" if is_well else f"it ended as {command.status}{f': {why}' if why else ''}"
        self._emit(
            w.ItemsMoved(
                outcomes=[w.ItemOutcome(number=item.number, status="done" if is_well else "failed", detail=detail)]
            )
        )
        if self._state.follow_until is not None:
            self._follow()

    # -- what became of them

    def _follow(self) -> None:
        """Wait for those that were taken, also of a batch that was cancelled, unless there is none, or it was waited long enough."""
        state, now = self._state, self._moment.now
        if state.follow_until is None:
            self._emit(w.BatchTried(until=now + timedelta(milliseconds=self._order.follow_ms)))
        until = self._state.follow_until
        if until is None or until <= now or not _last_open(self._state):
            self._emit(w.BatchEnded())
            self._cancelled += [NEXT, LOOK]
            return
        pause = min(_FIRST_LOOK * 2 ** min(self._state.looks, _SHORT), _LONGEST_LOOK)
        due = until if self._order.verb == "start" else min(now + pause, until)
        self._timers.append(Timer(command=w.LookAgain(id=state.id), due_at=due, key=LOOK))

    def look(self, behind: int) -> None:
        """Look at those that were taken, a few at a time; behind the last one, wait again."""
        state = self._state
        if state.in_hand:
            return
        left = [each for each in state.items if each.status == "accepted" and each.number > behind]
        if self._order.verb == "start" or not left:
            self._follow()
            return
        page = left[:AT_ONCE]
        self._emit(w.ItemsLookedAt(last=page[-1].number))
        self._ask(w.LookAtItems(id=state.id, order=self._order, items=page, owner=state.owner, terms=state.terms))

    def cancel(self, command: w.CancelBatch) -> None:
        """Try no more of them; what is being tried is told of first."""
        if self._state.cancelled_by:
            return
        self._emit(w.BatchCancelled(by=self._moment.actor.id, reason=command.reason))
        dropped = [
            w.ItemOutcome(number=each.number, status="dropped", detail="the batch was cancelled before it was tried")
            for each in self._state.items[self._state.tried :]
            if each.status == "waiting"
        ]
        self._emit(w.ItemsMoved(outcomes=dropped))
        if not self._state.in_hand:
            self._follow()
