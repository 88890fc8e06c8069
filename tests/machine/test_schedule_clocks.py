"""Schedules and clocks that are wrong: no time is started twice or forgotten because a clock is set, or two of them differ."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from standfast.features.schedules.model import messages as w
from standfast.features.schedules.model.decider import ScheduleDecider
from standfast.features.schedules.model.firing import TICK
from standfast.features.schedules.model.plan import Clockwork, Plan
from standfast.kernel.decision import Decision, Ignored, Rejection
from standfast.kernel.ids import InstanceId
from standfast.kernel.moment import Moment

NOON = datetime(2030, 1, 1, 12, tzinfo=UTC)
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOURLY = Plan(workflow="w", cron="0 * * * *")
SET_BACK = [
    ("Europe/Berlin", "30 2 * * *", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("Europe/Berlin", "0,30 2 * * *", datetime(2026, 10, 25, 1, tzinfo=UTC)),
    ("America/New_York", "30 1 * * SUN", datetime(2026, 11, 1, 6, tzinfo=UTC)),
    ("America/Havana", "15 0 * * *", datetime(2026, 11, 1, 5, tzinfo=UTC)),
    ("Australia/Lord_Howe", "45 1 * * *", datetime(2026, 4, 4, 15, tzinfo=UTC)),
    ("Antarctica/Troll", "30 1 * * *", datetime(2026, 10, 25, 1, tzinfo=UTC)),
]
"""Zones, rules whose time the wall clock shows twice, and when it is set back."""


@pytest.mark.parametrize(("zone", "cron", "at"), SET_BACK)
@pytest.mark.row("G-18")
def test_in_the_hour_that_comes_twice_a_time_has_passed_once(zone: str, cron: str, at: datetime) -> None:
    """Whenever it is asked, the next time is to come, the last one has passed, and nothing lies between them."""
    clockwork = Clockwork("s", Plan(workflow="w", cron=cron, time_zone=zone), NOON)
    for minutes in range(-150, 151, 25):
        now = at + minutes * MINUTE
        following, last = clockwork.after(now), clockwork.until(now)
        assert last is not None
        assert following is not None
        assert last <= now < following
        assert clockwork.after(last) == following
        assert clockwork.until(following) == following


class Stage:
    """One schedule, whose commands come at whatever time the clock shows."""

    def __init__(self) -> None:
        self._decider = ScheduleDecider()
        self.state = self._decider.initial()
        self.fired: list[datetime] = []

    def tell(self, command: w.Command, now: datetime, **timer: object) -> None:
        """Have a command decided."""
        moment = Moment(now=now, instance=InstanceId(UUID(int=1)), version=len(self.fired), **timer)  # type: ignore[arg-type]
        answer = self._decider.decide(self.state, command, moment)
        assert isinstance(answer, Decision)
        for event in answer.events:
            self.state = self._decider.evolve(self.state, event)  # type: ignore[arg-type]
            self.fired += [event.fire.at] if isinstance(event, w.FireTold) else []

    def tick(self, now: datetime) -> None:
        """Let the timer of the next time fire, by a clock that may be another one."""
        assert self.state.next_at is not None
        self.tell(w.PassTime(id="s"), now, fired_timer=TICK, fired_due_at=self.state.next_at)


@pytest.fixture
def stage() -> Stage:
    """A schedule of every hour that has fired at one."""
    stage = Stage()
    stage.tell(w.PutSchedule(id="s", plan=HOURLY), NOON)
    stage.tick(NOON + HOUR)
    return stage


UNHEARD: dict[str, tuple[w.Command, str]] = {
    "pause": (w.PauseSchedule(id="s"), "refused"),
    "resume": (w.ResumeSchedule(id="s"), "refused"),
    "trigger": (w.TriggerSchedule(id="s"), "refused"),
    "backfill": (w.BackfillSchedule(id="s", start=NOON, end=NOON + HOUR), "refused"),
    "stop backfills": (w.StopBackfills(id="s"), "refused"),
    "delete": (w.DeleteSchedule(id="s"), "refused"),
    "a timer": (w.PassTime(id="s"), "ignored"),
    "the next of a backfill": (w.GoOn(id="s", backfill=1), "ignored"),
}


@pytest.mark.parametrize("case", UNHEARD)
def test_what_is_said_to_a_schedule_that_is_not_there_is_answered(stage: Stage, case: str) -> None:
    """Before it is put and after it is deleted: callers are told so, and what the engine itself was late with is nobody's error."""
    command, how = UNHEARD[case]
    stage.tell(w.DeleteSchedule(id="s"), NOON + HOUR)
    decider = ScheduleDecider()
    moment = Moment(now=NOON + HOUR, instance=InstanceId(UUID(int=1)))
    for state in (decider.initial(), stage.state):
        answer = decider.decide(state, command, moment)
        if how == "ignored":
            assert isinstance(answer, Ignored)
        else:
            assert isinstance(answer, Rejection)
            assert (answer.code, "no such schedule" in answer.message) == ("not_started", True)


def test_a_timer_that_fires_by_a_clock_ahead_of_ours_starts_its_time(stage: Stage) -> None:
    """The database says that the time has come: a process whose clock is behind goes by that, and does not ask for it again and again."""
    stage.tick(NOON + 2 * HOUR - 5 * MINUTE)
    assert (stage.fired, stage.state.next_at) == ([NOON + HOUR, NOON + 2 * HOUR], NOON + 3 * HOUR)


def test_a_clock_that_is_set_back_brings_no_time_twice(stage: Stage) -> None:
    """Whoever puts it anew, or lets it go on, when the clock shows less than at the last time, waits for the one behind that."""
    back = NOON + HOUR - 5 * MINUTE
    stage.tell(w.PutSchedule(id="s", plan=Plan(workflow="w", cron="0 * * * *", note="new")), back)
    assert stage.state.next_at == NOON + 2 * HOUR
    stage.tell(w.PauseSchedule(id="s"), back)
    stage.tell(w.ResumeSchedule(id="s"), back)
    assert stage.state.next_at == NOON + 2 * HOUR
    stage.tick(NOON + 2 * HOUR)
    assert stage.fired == [NOON + HOUR, NOON + 2 * HOUR]


def test_a_clock_that_was_years_ahead_does_not_keep_a_schedule_from_its_times(stage: Stage) -> None:
    """What was fired by a clock that was wrong by more than an hour is not gone by once somebody puts the schedule anew."""
    stage.tick(NOON + timedelta(days=9000))
    stage.tell(w.PutSchedule(id="s", plan=Plan(workflow="w", cron="0 * * * *", note="new")), NOON + 2 * HOUR)
    assert stage.state.next_at == NOON + 3 * HOUR
