"""When a schedule starts its workflow: times follow from the plan and an instant alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from standfast.features.schedules.model.plan import MOST_AT_ONCE, CatchUp, Clockwork, Plan

NOON = datetime(2026, 3, 27, 12, tzinfo=UTC)
HOUR, DAY = timedelta(hours=1), timedelta(days=1)
MS = timedelta(milliseconds=1)


def times_of(after: datetime, count: int = 3, *, anchor: datetime = NOON, plan: Plan) -> list[str]:
    """The next times of a plan."""
    clockwork, found = Clockwork("s", plan, anchor), list[datetime]()
    following = clockwork.after(after)
    while following is not None and len(found) < count:
        found.append(following)
        following = clockwork.after(following)
    return [each.strftime("%m-%d %H:%M") for each in found]


@pytest.mark.row("G-18")
def test_clocks_that_are_set_move_the_times() -> None:
    """Two in the morning is two on the wall: it comes once on the day that has it twice, and at three on the day that skips it."""
    plan = Plan(workflow="w", cron="30 2 * * *", time_zone="Europe/Berlin")
    assert times_of(NOON, plan=plan) == ["03-28 01:30", "03-29 01:00", "03-30 00:30"]
    autumn = datetime(2026, 10, 24, 12, tzinfo=UTC)
    assert times_of(autumn, plan=plan) == ["10-25 00:30", "10-26 01:30", "10-27 01:30"]


def test_a_day_of_25_hours_has_25_hours() -> None:
    """What is wanted every hour comes every hour, however often the clock shows it."""
    plan = Plan(workflow="w", cron="0 * * * *", time_zone="Europe/Berlin")
    day = datetime(2026, 10, 24, 22, tzinfo=UTC)
    assert len(list(Clockwork("s", plan, NOON).between(day, day + timedelta(hours=25) - MS))) == 25


def test_intervals_count_from_their_beginning() -> None:
    """An interval counts from `start_at`, or from when the schedule was put, and ends with `end_at`, which is one of its times."""
    plan = Plan(workflow="w", every_ms=3_600_000)
    assert times_of(NOON, plan=plan) == ["03-27 13:00", "03-27 14:00", "03-27 15:00"]
    later = Plan(workflow="w", every_ms=3_600_000, start_at=NOON + 5 * HOUR, end_at=NOON + 6 * HOUR)
    assert times_of(NOON, plan=later) == ["03-27 17:00", "03-27 18:00"]


def test_one_time_comes_once() -> None:
    """What is wanted once has one time, and the calendar's end is no error."""
    assert times_of(NOON, plan=Plan(workflow="w", at=NOON + HOUR)) == ["03-27 13:00"]
    end = datetime.max.replace(tzinfo=UTC) - HOUR
    assert times_of(end, plan=Plan(workflow="w", every_ms=86_400_000)) == []
    assert times_of(end, plan=Plan(workflow="w", cron="0 0 1 1 *")) == []


@pytest.mark.parametrize(
    ("catch_up", "window", "started", "missed"),
    [
        ("none", timedelta(0), [], ("03-27 13:00", "03-27 18:00")),
        ("one", timedelta(0), ["03-27 18:00"], ("03-27 13:00", "03-27 17:00")),
        ("one", timedelta(minutes=10), [], ("03-27 13:00", "03-27 18:00")),
        ("all", timedelta(hours=3), ["03-27 16:00", "03-27 17:00", "03-27 18:00"], ("03-27 13:00", "03-27 15:00")),
        ("all", DAY, ["03-27 13:00", "03-27 14:00", "03-27 15:00", "03-27 16:00", "03-27 17:00", "03-27 18:00"], None),
    ],
)
@pytest.mark.row("G-18")
def test_what_was_missed_is_made_up_for_as_the_plan_says(
    catch_up: CatchUp, window: timedelta, started: list[str], missed: tuple[str, str] | None
) -> None:
    """Of the times that nobody was there for, none, the last one or all of a window are made up for; what is left is told."""
    plan = Plan(workflow="w", cron="0 * * * *", catch_up=catch_up, window_ms=window // MS)
    due = Clockwork("s", plan, NOON).due(NOON + HOUR, NOON + 6 * HOUR + timedelta(minutes=30))
    assert [each.strftime("%m-%d %H:%M") for each in due.times] == started
    told = None if due.missed is None else tuple(each.strftime("%m-%d %H:%M") for each in due.missed)
    assert told == missed
    assert due.following == NOON + 7 * HOUR


def test_what_is_a_little_late_is_on_time() -> None:
    """A time that is dealt with within the minute was not missed, whatever is made up for."""
    plan = Plan(workflow="w", cron="* * * * *", catch_up="none")
    due = Clockwork("s", plan, NOON).due(NOON, NOON + timedelta(seconds=59))
    assert (due.times, due.missed) == ([NOON], None)


def test_the_first_instant_of_all_is_made_up_for() -> None:
    """Nothing can have been missed before it."""
    first = datetime.min.replace(tzinfo=UTC)
    due = Clockwork("s", Plan(workflow="w", at=first), NOON).due(first, NOON)
    assert (due.times, due.missed, due.following) == ([first], None, None)


def test_a_year_of_minutes_is_dealt_with_in_pieces() -> None:
    """However much was missed, one commit deals with a hundred times, and the rest comes next."""
    plan = Plan(workflow="w", cron="* * * * *", catch_up="all", window_ms=366 * DAY // MS)
    due = Clockwork("s", plan, NOON).due(NOON, NOON + 365 * DAY)
    assert len(due.times) == MOST_AT_ONCE
    assert due.following == NOON + MOST_AT_ONCE * timedelta(minutes=1)


PLANS = st.one_of(
    st.builds(Plan, workflow=st.just("w"), every_ms=st.integers(300_000, 10**9)),
    st.builds(
        Plan,
        workflow=st.just("w"),
        cron=st.sampled_from(["*/17 * * * *", "0 3 * * SUN", "30 2 29 2 *", "15 14 1 * *"]),
        time_zone=st.sampled_from(
            ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
        ),
        jitter_ms=st.sampled_from([0, 0, 90_000]),
    ),
)


@settings(max_examples=60, deadline=None)
@given(
    plan=PLANS,
    now=st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)),  # noqa: DTZ001 - hypothesis gives the zone below
    late=st.timedeltas(timedelta(0), timedelta(days=2)),
    catch_up=st.sampled_from(["none", "one", "all"]),
)
def test_every_time_is_started_missed_or_to_come_and_only_one_of_them(
    plan: Plan, now: datetime, late: timedelta, catch_up: CatchUp
) -> None:
    """No time is dealt with twice and none is forgotten, whatever the plan, the zone and the delay."""
    begin = now.replace(tzinfo=UTC)
    plan = Plan(
        **{**{name: getattr(plan, name) for name in plan.__struct_fields__}, "catch_up": catch_up, "window_ms": 10**8}
    )
    clockwork = Clockwork("s", plan, begin)
    first = clockwork.after(begin)
    assert first is not None
    end = max(clockwork.begins(first), begin + late)
    due = clockwork.due(first, end)
    assert due.following is not None
    told = list(due.times)
    if due.missed is not None:
        assert due.missed[0] == first
        told += list(clockwork.between(*due.missed))
    wanted = list(islice(clockwork.between(first, due.following - MS), len(told) + 1))
    assert sorted(told) == wanted
    assert all(clockwork.begins(each) <= end for each in due.times)


@settings(max_examples=60, deadline=None)
@given(plan=PLANS, instant=st.datetimes(datetime(2020, 1, 1), datetime(2040, 1, 1)))  # noqa: DTZ001 - as above
def test_the_last_time_is_the_one_before_the_next(plan: Plan, instant: datetime) -> None:
    """Looking back from an instant finds the time behind which the next one comes."""
    clockwork, now = Clockwork("s", plan, datetime(2019, 1, 1, tzinfo=UTC)), instant.replace(tzinfo=UTC)
    last = clockwork.until(now)
    assert last is not None
    assert last <= now
    assert clockwork.after(last) == clockwork.after(now)
    assert clockwork.after(last - timedelta(microseconds=1)) == last
