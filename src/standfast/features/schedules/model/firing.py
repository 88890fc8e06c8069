"""One command to a schedule: what it starts, puts off, skips or stops. The state is a copy, which follows the events as they are made."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import Final, NamedTuple

from msgspec.structs import replace

from standfast.features.schedules.model import messages as w
from standfast.features.schedules.model.plan import MOST_AT_ONCE, Clockwork, Overlap, Plan
from standfast.features.schedules.model.rows import records_of, standing_of
from standfast.kernel.actor import NO_TERMS, SYSTEM, Actor, Terms
from standfast.kernel.decision import Answer, Decision, Effect, Ignored, Timer
from standfast.kernel.moment import Moment
from standfast.kernel.row_kinds.schedules import FireStatus, Why
from standfast.kernel.rows import Record, merge
from standfast.machine.model.engine_tasks import OWN_HANDLER

TICK: Final = "tick"
"""The key of the timer that brings the next time."""
SET_BACK: Final = timedelta(hours=1)
"""By so much a clock may be set back without a time coming twice; one that was wrong by more is not gone by."""
BY_ITSELF: Final = frozenset({"time", "catch_up"})
"""Why a time comes that nobody has asked for."""
MOST_RUNNING: Final = 1000
"""Runs of one schedule that have not ended; there it starts nothing more."""

_UNKNOWN = Ignored(reason="that start has come to an end already")
_REPLACED = "a schedule starts another run in its place"

Evolve = Callable[[w.ScheduleState, w.Event], w.ScheduleState]


class Stopper(NamedTuple):
    """On whose behalf runs are stopped, and on which terms; the engine itself, if nobody is named."""

    actor: Actor | None = None
    terms: Terms = NO_TERMS


class ScheduleDecision:
    """What one command comes to."""

    def __init__(self, evolve: Evolve, state: w.ScheduleState, moment: Moment) -> None:
        self._evolve = evolve
        self.state = state.copied()
        self.moment = moment
        self._events: list[w.Event] = []
        self._effects: list[Effect] = []
        self._timers: dict[str, Timer] = {}
        self._cancelled: list[str] = []
        self._records: list[Record] = []

    @property
    def clockwork(self) -> Clockwork:
        """The times of the plan."""
        assert self.state.plan is not None
        return self.clockwork_of(self.state.id, self.state.plan)

    def clockwork_of(self, name: str, plan: Plan) -> Clockwork:
        """The times of a plan that is put."""
        return Clockwork(name, plan, self.state.anchor or self.moment.now)

    def emit(self, event: w.Event) -> None:
        """Something happens."""
        self._events.append(event)
        self.state = self._evolve(self.state, event)
        self._records += records_of(event, self.state)

    def decision(self) -> Decision | None:
        """All of it; None if nothing happened."""
        if not self._events:
            return None
        return Decision(
            tuple(self._events),
            effects=tuple(self._effects),
            timers=tuple(self._timers.values()),
            cancelled_timers=tuple(self._cancelled),
            records=tuple(merge([*self._records, standing_of(self.state)])),
        )

    # -- times

    @property
    def passed(self) -> datetime:
        """Up to when times have passed: also those that were dealt with before the clock was set back a little."""
        now, last = self.moment.now, self.state.last_at
        return last if last is not None and now < last <= now + SET_BACK else now

    def set_tick(self) -> None:
        """Have the next time come, if there is one."""
        if self.state.next_at is None:
            self._timers.pop(TICK, None)
            self._cancelled.append(TICK)
            return
        due = max(self.clockwork.begins(self.state.next_at), self.moment.now)
        self._timers[TICK] = Timer(command=w.PassTime(id=self.state.id), due_at=due, key=TICK)

    def pass_time(self) -> None:
        """Deal with every time that is due."""
        state, plan = self.state, self.state.plan
        if state.next_at is None or plan is None:
            return
        # The timer was due by the database's clock, which may be a little ahead of what this process takes it for.
        now = max(self.moment.now, self.moment.fired_due_at or self.moment.now)
        due = self.clockwork.due(state.next_at, now)
        if due.missed is not None:
            told = f"nobody was there, and of what was missed {_MADE_UP[plan.catch_up]}"
            first, last = due.missed
            self._tell(replace(self._new(first, "missed"), until=last, detail=told))
        late = now - plan.grace
        for time in due.times:
            why: Why = "catch_up" if self.clockwork.begins(time) < late else "time"
            self.fire(time, why, plan.overlap, Stopper(state.owner, state.terms))
        self.emit(w.ScheduleMoved(next_at=due.following))
        self.set_tick()

    # -- fires

    def fire(
        self,
        time: datetime,
        why: Why,
        overlap: Overlap,
        stopper: Stopper,
        *,
        by: Sequence[str] = (),
        asker: w.Asker | None = None,
    ) -> None:
        """Start the workflow for a time, unless a run that has not ended stands against it, which may be stopped on behalf of `stopper`.

        `by` are those who want it now, if it is not due by itself, and `asker` is who of them has asked.
        """
        state = self.state
        others = [each for each in state.running.values() if not each.backfill]
        fire = replace(self._new(time, "starting", why), by=list(by), asker=asker)
        if len(state.running) >= MOST_RUNNING:
            self._tell(replace(fire, status="skipped", detail=f"{MOST_RUNNING} runs of it have not ended"))
        elif not others or overlap == "allow_all":
            self._begin(fire)
        elif overlap == "skip" or (overlap == "buffer_one" and state.buffered is not None):
            told = f"the run of {others[0].at.isoformat()} has not ended"
            self._tell(replace(fire, status="skipped", detail=told))
        else:
            self._buffer(fire, others if overlap == "cancel_running" else [], stopper)

    def _buffer(self, fire: w.Fire, stopped: list[w.Fire], by: Stopper) -> None:
        """Begin when no other runs; those in whose place it is to begin are told to end."""
        if self.state.buffered is not None:
            before = self.state.buffered.number
            self.emit(w.FireMoved(number=before, status="skipped", detail="a later one took its place"))
        by = by if stopped else Stopper()
        waiting = replace(fire, status="buffered", detail="stops" if stopped else "")
        self.emit(w.FireTold(fire=waiting, stopper=by.actor, terms=by.terms))
        for each in stopped:
            self._stop(each)

    def _stop(self, fire: w.Fire) -> None:
        """Have a run end, on behalf of whoever wants another one in its place; one that is not there yet is stopped when it is."""
        state, waiting = self.state, self.state.buffered
        assert waiting is not None
        if fire.status == "started" and not fire.is_stopping:
            self.emit(w.FireStopped(number=fire.number))
            stop = w.StopScheduled(
                id=state.id,
                number=fire.number,
                waiting=waiting.number,
                run=fire.run,
                reason=_REPLACED,
                stopper=state.stopper,
                terms=state.stopper_terms,
            )
            self._effects.append(Effect(body=stop, handler=OWN_HANDLER))

    def _new(self, time: datetime, status: FireStatus, why: Why = "time") -> w.Fire:
        assert self.state.plan is not None
        return w.Fire(
            number=self.state.count + 1,
            at=time,
            why=why,
            status=status,
            workflow=self.state.plan.workflow,
            told_at=self.moment.now,
        )

    def _tell(self, fire: w.Fire) -> None:
        self.emit(w.FireTold(fire=fire))

    def _begin(self, fire: w.Fire) -> None:
        plan = self.state.plan
        assert plan is not None
        run = "" if plan.is_document else str(self.moment.derive_id("run", fire.number))
        if self.state.buffered is not None and self.state.buffered.number == fire.number:
            self.emit(w.FireMoved(number=fire.number, status="starting", run=run))
        else:
            self._tell(replace(fire, run=run))
        start = w.StartScheduled(
            id=self.state.id,
            number=fire.number,
            at=fire.at,
            why=fire.why,
            run=run,
            plan=plan,
            owner=self.state.owner,
            terms=self.state.terms,
            by=fire.by,
            asker=fire.asker,
        )
        self._effects.append(Effect(body=start, handler=OWN_HANDLER))

    def note_start(self, command: w.NoteStart) -> Answer | None:
        """The workflow was started, or the document created, or could not be."""
        number = command.number
        fire = self.state.running.get(number)
        if fire is None or fire.status != "starting":
            return _UNKNOWN
        if command.error:
            self._end(fire, w.FireMoved(number=number, status="refused", detail=command.error))
            return None
        if command.document:
            self._end(fire, _created(command))
            return None
        self.emit(w.FireMoved(number=number, status="started"))
        if self.state.buffered is not None and self.state.buffered.detail and not fire.backfill:
            self._stop(self.state.running[number])
        return None

    def note_stop(self, command: w.NoteStop) -> None:
        """A run was told to end; or it goes on, and nothing begins in its place, because whoever wanted that may not stop it."""
        if not command.error:
            return
        if command.number in self.state.running:
            self.emit(w.FireStopped(number=command.number, is_refused=True))
        waiting = self.state.buffered
        if waiting is not None and waiting.number == command.waiting:
            self.emit(w.FireMoved(number=waiting.number, status="refused", detail=command.error))

    def note_end(self, number: int, status: str, error: str) -> Answer | None:
        """The run of a time has ended."""
        fire = self.state.running.get(number)
        if fire is None:
            return _UNKNOWN
        detail = "" if status == "completed" else error
        self._end(fire, w.FireMoved(number=number, status=status, detail=detail))  # type: ignore[arg-type]
        return None

    def _end(self, fire: w.Fire, end: w.FireMoved) -> None:
        """A time has come to its end; what waited for that goes on."""
        self.emit(end)
        self.begin_waiting()
        if fire.backfill:
            self.go_on(fire.backfill)

    def begin_waiting(self) -> None:
        """Begin what waits until no other runs. A schedule that is paused begins only what somebody has triggered."""
        state, waiting = self.state, self.state.buffered
        if waiting is None or (state.pause is not None and waiting.why in BY_ITSELF):
            return
        if all(each.backfill for each in state.running.values()):
            self._begin(waiting)

    # -- periods

    def begin_backfill(self, start: datetime, end: datetime, *, is_at_once: bool, asker: w.Asker | None) -> None:
        """Begin to make up for a period."""
        first = next(self.clockwork.between(start, end), None)
        backfill = w.Backfill(
            number=self.state.count + 1,
            start=start,
            end=end,
            is_at_once=is_at_once,
            by=self.moment.actor.id,
            on_behalf_of=self.moment.actor.on_behalf_of,
            asker=asker,
            next_at=first,
        )
        self.emit(w.BackfillMoved(backfill=backfill, is_over=first is None))
        self.go_on(backfill.number)

    def go_on(self, number: int) -> None:
        """Start the workflow for the next times of a period: for one if it goes one after the other, else for as many as a commit takes."""
        backfill = self.state.backfills.get(number)
        if backfill is None or backfill.next_at is None:
            return
        running = sum(each.backfill == number for each in self.state.running.values())
        room = min(MOST_AT_ONCE, MOST_RUNNING - len(self.state.running)) if backfill.is_at_once else 1 - running
        if room <= 0:
            return
        found = list(islice(self.clockwork.between(backfill.next_at, backfill.end), room + 1))
        following = found[room] if len(found) > room else None
        by = [name for name in (backfill.by, backfill.on_behalf_of) if name not in {"", SYSTEM.id}]
        for time in found[:room]:
            fire = self._new(time, "starting", "backfill")
            self._begin(replace(fire, backfill=number, by=by, asker=backfill.asker))
        moved = replace(backfill, next_at=following)
        self.emit(w.BackfillMoved(backfill=moved, is_over=following is None))
        if following is not None and backfill.is_at_once:
            key, command = f"backfill {number}", w.GoOn(id=self.state.id, backfill=number)
            self._timers[key] = Timer(command=command, after=timedelta(0), key=key)

    def stop_backfills(self) -> None:
        """Start nothing more for periods; what was started goes on."""
        for each in list(self.state.backfills.values()):
            self.emit(w.BackfillMoved(backfill=replace(each, next_at=None), is_over=True, is_stopped=True))
            self._cancelled.append(f"backfill {each.number}")


def _created(command: w.NoteStart) -> w.FireMoved:
    """What a time has come to that asked for a document: it lives on by itself."""
    if command.was_there:
        told = f"the document {command.document!r} is there already, and was not created by this time"
        return w.FireMoved(number=command.number, status="skipped", detail=told)
    return w.FireMoved(number=command.number, status="created", run=command.run, document=command.document)


_MADE_UP = {
    "none": "nothing is made up for",
    "one": "the last one is made up for",
    "all": "only the window is made up for",
}
