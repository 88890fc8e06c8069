"""The decider of schedules. It computes the times; a timer brings each of them, and the run that it starts tells when it has ended."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import ClassVar, Final

from msgspec.structs import replace

from standfast.features.schedules.model import messages as w
from standfast.features.schedules.model.firing import BY_ITSELF, TICK, ScheduleDecision, Stopper
from standfast.features.schedules.model.rows import records_of, standing_of
from standfast.kernel.actor import late_actor, late_terms
from standfast.kernel.decider import RUNNING, SCHEDULE_KIND, Decider, Failure, Status
from standfast.kernel.decision import Answer, Ignored, Rejection
from standfast.kernel.moment import Moment
from standfast.kernel.rows import Record
from standfast.machine.model.commands.run_commands import EndChild
from standfast.machine.model.queries.eligibility import acting_names
from standfast.machine.model.rejections import Refusal, refused

MOST_BACKFILLS: Final = 10

_LATE = Ignored(reason="the schedule has gone on without it")
_SAME = Ignored(reason="it says so already")
_UNDER_WAY: Final = frozenset({"starting", "started"})


class ScheduleDecider(Decider[w.ScheduleState, w.Command, w.Event, w.ScheduleEffect]):
    """Decides about one schedule."""

    type: ClassVar[str] = w.SCHEDULE
    is_plain: ClassVar[bool] = True  # What comes from outside is made plain, and a copy, before it becomes a command.
    kind = SCHEDULE_KIND

    def initial(self) -> w.ScheduleState:
        """One that nobody has put."""
        return w.ScheduleState()

    def key_of(self, command: w.Command) -> str:
        """The id of the schedule; the end of a run names none, because it knows the instance."""
        return "" if isinstance(command, EndChild) else command.id

    def status(self, state: w.ScheduleState) -> Status:
        """It never ends: what was deleted can be put again, and keeps its history."""
        if state.is_deleted:
            return Status("paused", "deleted")
        if state.pause is not None:
            return Status("paused", "requested", state.pause.at)
        return RUNNING if state.next_at is not None or state.plan is None else Status("paused", "over")

    def effect_failed(self, effect: w.ScheduleEffect, failure: Failure) -> w.Command:
        """It could not even be found out whether the workflow can be started, or stopped."""
        if isinstance(effect, w.StopScheduled):
            return w.NoteStop(id=effect.id, number=effect.number, waiting=effect.waiting, error=failure.error)
        return w.NoteStart(id=effect.id, number=effect.number, error=failure.error)

    def evolve(self, state: w.ScheduleState, event: w.Event) -> w.ScheduleState:
        """The schedule after something happened to it."""
        match event:
            case w.SchedulePut():
                state.id, state.plan, state.version, state.owner = event.id, event.plan, event.version, event.owner
                state.terms = event.terms
                state.next_at, state.changed_at, state.is_deleted = event.next_at, event.at, False
                state.anchor = state.anchor or event.at
            case w.SchedulePaused():
                state.pause, state.next_at = w.SchedulePause(at=event.at, by=event.by, reason=event.reason), None
            case w.ScheduleResumed():
                state.pause, state.next_at = None, event.next_at
            case w.ScheduleDeleted():
                state.is_deleted, state.next_at, state.pause, state.anchor = True, None, None, None
                state.last_at, state.buffered, state.backfills = None, None, {}
            case w.ScheduleMoved():
                state.next_at = event.next_at
            case w.FireTold() | w.FireMoved() | w.FireStopped():
                _evolve_fire(state, event)
            case w.BackfillMoved(backfill=backfill):
                state.count = max(state.count, backfill.number)
                state.backfills.pop(backfill.number, None)
                if not event.is_over:
                    state.backfills[backfill.number] = backfill
        return state

    def rows_of(self, state: w.ScheduleState, event: w.Event) -> Sequence[Record]:
        """What an event does to the rows of the schedule and of its times."""
        after = self.evolve(state.copied(), event)
        return [*records_of(event, after), standing_of(after)]

    def decide(self, state: w.ScheduleState, command: w.Command, moment: Moment) -> Answer:
        """What becomes of the schedule."""
        turn = ScheduleDecision(self.evolve, state, moment)
        answer = self._answer(turn, command)
        if answer is not None:
            return answer
        return turn.decision() or _LATE

    def _answer(self, turn: ScheduleDecision, command: w.Command) -> Answer | None:
        is_there = turn.state.plan is not None and not turn.state.is_deleted
        if not is_there and not isinstance(command, _ALWAYS):
            is_own = isinstance(command, w.PassTime | w.GoOn)
            return _LATE if is_own else refused(Refusal.NOT_STARTED, "there is no such schedule")
        return _TABLE[type(command)](turn, command)


def _keep(state: w.ScheduleState, fire: w.Fire) -> None:
    """What has come to its end is told by rows alone."""
    if fire.status == "buffered":
        state.buffered = fire
    elif fire.status in _UNDER_WAY:
        state.running[fire.number] = fire


def _evolve_fire(state: w.ScheduleState, event: w.FireTold | w.FireMoved | w.FireStopped) -> None:
    if isinstance(event, w.FireTold):
        state.count = event.fire.number
        if event.fire.status == "buffered":
            state.stopper, state.stopper_terms = event.stopper, event.terms
        if event.fire.why in BY_ITSELF:
            state.last_at = event.fire.until or event.fire.at
        _keep(state, event.fire)
    elif isinstance(event, w.FireStopped):
        state.running[event.number] = replace(state.running[event.number], is_stopping=not event.is_refused)
    else:
        fire = state.running.pop(event.number, None)
        if fire is None:
            fire, state.buffered = state.buffered, None
        assert fire is not None
        _keep(state, replace(fire, status=event.status, detail=event.detail, run=event.run or fire.run))


def _put(turn: ScheduleDecision, command: w.PutSchedule) -> Answer | None:
    state, now, asked = turn.state, turn.moment.now, turn.moment.asked
    is_there = state.plan is not None and not state.is_deleted
    refusal = _conflict(state, command.expected_version)
    if refusal is not None:
        return refusal
    owner, terms = late_actor(asked), late_terms(asked, turn.moment.actor.roles)
    if is_there and (state.plan, state.owner, state.terms) == (command.plan, owner, terms):
        return _SAME
    put = w.SchedulePut(id=command.id, plan=command.plan, version=state.version + 1, owner=owner, terms=terms, at=now)
    times = turn.clockwork_of(command.id, command.plan)
    # What was due before it is put has passed, but for the one time of a plan that has no other.
    following = times.after(turn.passed) if command.plan.at is None or is_there else command.plan.at
    turn.emit(replace(put, next_at=None if state.pause is not None else following))
    turn.set_tick()
    return None


def _conflict(state: w.ScheduleState, expected: int | None) -> Rejection | None:
    seen = 0 if state.is_deleted else state.version
    if expected is None or expected == seen:
        return None
    told = (
        f"it has version {seen} by now, not {expected}; look at it again" if seen else "there is no such schedule yet"
    )
    return refused(Refusal.VERSION_CONFLICT, told)


def _pause(turn: ScheduleDecision, command: w.PauseSchedule) -> Answer | None:
    if turn.state.pause is not None:
        return _SAME
    turn.emit(w.SchedulePaused(by=turn.moment.actor.id, reason=command.reason, at=turn.moment.now))
    turn.set_tick()
    return None


def _resume(turn: ScheduleDecision, command: w.ResumeSchedule) -> Answer | None:
    if turn.state.pause is None:
        return _SAME
    following = turn.clockwork.after(turn.passed)
    turn.emit(w.ScheduleResumed(by=turn.moment.actor.id, reason=command.reason, next_at=following))
    turn.set_tick()
    turn.begin_waiting()
    return None


def _backfill(turn: ScheduleDecision, command: w.BackfillSchedule) -> Answer | None:
    if len(turn.state.backfills) >= MOST_BACKFILLS:
        told = f"{MOST_BACKFILLS} periods are being made up for already; wait for one of them, or stop them"
        return refused(Refusal.TOO_MANY_BACKFILLS, told)
    turn.begin_backfill(command.start, command.end, is_at_once=command.is_at_once, asker=_asker(turn))
    return None


def _asker(turn: ScheduleDecision) -> w.Asker | None:
    """Who asks for times that have not come by themselves; None if that is the engine itself."""
    asked = turn.moment.asked
    actor = late_actor(asked)
    return None if actor is None else w.Asker(actor=actor, terms=late_terms(asked, turn.moment.actor.roles))


def _delete(turn: ScheduleDecision, command: w.DeleteSchedule) -> Answer | None:
    refusal = _conflict(turn.state, command.expected_version)
    if refusal is not None:
        return refusal
    waiting = turn.state.buffered
    if waiting is not None:
        turn.emit(w.FireMoved(number=waiting.number, status="skipped", detail="the schedule was deleted"))
    turn.emit(w.ScheduleDeleted(by=turn.moment.actor.id))
    turn.set_tick()
    return None


def _trigger(turn: ScheduleDecision, command: w.TriggerSchedule) -> None:
    assert turn.state.plan is not None
    asker = _asker(turn)
    stopper = Stopper() if asker is None else Stopper(asker.actor, asker.terms)
    overlap = command.overlap or turn.state.plan.overlap
    by = acting_names(turn.moment.actor)
    turn.fire(turn.moment.now, "manual", overlap, stopper, by=by, asker=asker)


def _stop_backfills(turn: ScheduleDecision, _command: w.StopBackfills) -> Answer | None:
    turn.stop_backfills()
    return None if turn.decision() is not None else _SAME


def _pass_time(turn: ScheduleDecision, _command: w.PassTime) -> Answer | None:
    if turn.moment.fired_timer != TICK:
        return _LATE
    turn.pass_time()
    return None


def _go_on(turn: ScheduleDecision, command: w.GoOn) -> None:
    turn.go_on(command.backfill)


def _note_start(turn: ScheduleDecision, command: w.NoteStart) -> Answer | None:
    return turn.note_start(command)


def _note_stop(turn: ScheduleDecision, command: w.NoteStop) -> Answer | None:
    turn.note_stop(command)
    return None


def _note_end(turn: ScheduleDecision, command: EndChild) -> Answer | None:
    return turn.note_end(command.step, command.status, command.error or command.reason)


_ALWAYS = (w.PutSchedule, w.NoteStart, w.NoteStop, EndChild)
"""What is heard whether there is a schedule or not: it is made, and what it started comes to its end."""
_TABLE: dict[type, Callable[..., Answer | None]] = {
    w.PutSchedule: _put,
    w.PauseSchedule: _pause,
    w.ResumeSchedule: _resume,
    w.TriggerSchedule: _trigger,
    w.BackfillSchedule: _backfill,
    w.StopBackfills: _stop_backfills,
    w.DeleteSchedule: _delete,
    w.PassTime: _pass_time,
    w.GoOn: _go_on,
    w.NoteStart: _note_start,
    w.NoteStop: _note_stop,
    EndChild: _note_end,
}
