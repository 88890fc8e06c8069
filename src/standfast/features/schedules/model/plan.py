"""What a schedule says: which workflow it starts, at which times, and what becomes of times that meet a run or were missed."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final, Literal, NamedTuple, TypeAlias

import msgspec

from standfast.errors import Diagnostic
from standfast.graph.values.calendars import UTC_ZONE, calendar_findings, last_time, next_time

Data = dict[str, object]

Overlap: TypeAlias = Literal["skip", "buffer_one", "allow_all", "cancel_running"]
"""What becomes of a time at which a run of the schedule has not ended: nothing, a start afterwards, a start beside it, or a start in its place."""
CatchUp: TypeAlias = Literal["none", "one", "all"]
"""How many of the times that nobody was there for are made up for."""

GRACE: Final = timedelta(minutes=1)
"""What is no later than this is on time; of a shorter interval, what is no later than that."""
LEAST_EVERY_MS: Final = 1000
MOST_AT_ONCE: Final = 100
"""Times that one commit deals with."""

_INSTANT: Final = timedelta(microseconds=1)
_MILLISECOND: Final = timedelta(milliseconds=1)
_BEGINNING: Final = datetime.min.replace(tzinfo=UTC)


class Plan(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What a schedule says; times are those of `cron`, of `every_ms` or the one of `at`."""

    workflow: str
    version: str = ""
    """Empty means the newest one at the time of each start."""
    input: Data = {}
    computed: dict[str, Data] = {}
    """Stored expressions, by the names that they give the input."""
    is_document: bool = False
    """Whether the workflow manages documents: then each time creates one, with the input as its data."""
    document_id: Data = {}
    """The stored expression of its id; empty means that it is made of the schedule and the time."""
    cron: str = ""
    time_zone: str = UTC_ZONE
    every_ms: int = 0
    at: datetime | None = None
    start_at: datetime | None = None
    end_at: datetime | None = None
    """No time is before the first instant, or after the second."""
    jitter_ms: int = 0
    """Up to how much later each start is; how much follows from the schedule and the time."""
    overlap: Overlap = "skip"
    catch_up: CatchUp = "one"
    window_ms: int = 0
    """What was missed longer ago is not made up for; 0 means that nothing is too long ago."""
    note: str = ""

    @property
    def grace(self) -> timedelta:
        """How late a start may be without having been missed."""
        return min(GRACE, self.every_ms * _MILLISECOND) if self.every_ms else GRACE

    def findings(self) -> Iterator[Diagnostic]:
        """What is wrong with it."""
        given = [bool(self.cron), bool(self.every_ms), self.at is not None]
        if sum(given) != 1:
            yield Diagnostic(
                "schedule_times", f"it has {sum(given)} of `cron`, `every` and `at`; give one of the three"
            )
        if self.cron:
            yield from calendar_findings("the schedule", self.cron, self.time_zone)
        elif self.time_zone != UTC_ZONE:
            yield Diagnostic("time_zone", "it has a time zone and no `cron` that it is for; give one")
        if self.every_ms and self.every_ms < LEAST_EVERY_MS:
            yield Diagnostic("every", f"it starts every {self.every_ms} ms; a second is the shortest interval")
        if self.start_at is not None and self.end_at is not None and self.end_at < self.start_at:
            yield Diagnostic("schedule_period", "its `end_at` comes before its `start_at`; exchange them")
        if self.catch_up == "all" and not self.window_ms:
            told = "it makes up for all that was missed and does not say of how long; give a `window`"
            yield Diagnostic("catch_up_window", told)


class Clockwork(NamedTuple):
    """The times of a plan."""

    name: str
    plan: Plan
    anchor: datetime
    """What an interval counts from if it does not say so."""

    def after(self, instant: datetime) -> datetime | None:
        """The first time after an instant; None if there is none."""
        plan = self.plan
        earliest = instant if plan.start_at is None else max(instant, _before(plan.start_at))
        try:
            found = self._after(earliest)
        except (OverflowError, StopIteration):
            return None  # The calendar ends before.
        return None if found is None or (plan.end_at is not None and found > plan.end_at) else found

    def _after(self, instant: datetime) -> datetime | None:
        plan = self.plan
        if plan.at is not None:
            return plan.at if plan.at > instant else None
        if plan.cron:
            return next_time(plan.cron, plan.time_zone, instant)
        anchor, every = plan.start_at or self.anchor, plan.every_ms * _MILLISECOND
        return anchor + max((instant - anchor) // every + 1, 0) * every

    def until(self, instant: datetime) -> datetime | None:
        """The last time that is no later than an instant; None if there is none."""
        plan = self.plan
        latest = instant if plan.end_at is None else min(instant, plan.end_at)
        if plan.at is not None:
            found: datetime | None = plan.at
        elif plan.cron:
            found = last_time(plan.cron, plan.time_zone, latest)
        else:
            anchor, every = plan.start_at or self.anchor, plan.every_ms * _MILLISECOND
            found = anchor + (latest - anchor) // every * every
            found = None if found < anchor else found
        is_within = found is not None and found <= latest and (plan.start_at is None or found >= plan.start_at)
        return found if is_within else None

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """The times from an instant until another one, both included."""
        found = self.after(_before(start))
        while found is not None and found <= end:
            yield found
            found = self.after(found)

    def begins(self, time: datetime) -> datetime:
        """When a time's start is due."""
        jitter = self.plan.jitter_ms
        if not jitter:
            return time
        drawn = hashlib.sha256(f"{self.name}@{time.isoformat()}".encode()).digest()
        try:
            return time + int.from_bytes(drawn[:8]) % (jitter + 1) * _MILLISECOND
        except OverflowError:
            return time  # The calendar ends before.

    def due(self, time: datetime, now: datetime) -> ScheduleDueAction:
        """What is to be done now, if this is the first time that nothing was done for."""
        on_time = now - self.plan.grace - self.plan.jitter_ms * _MILLISECOND
        floor = min(on_time, self._horizon(now)) if self.plan.catch_up == "all" else on_time
        made_up = self._made_up(time, on_time, now)
        times = [] if made_up is None else [made_up]
        following: datetime | None = time if time >= floor else self.after(_before(floor))
        while following is not None and self.begins(following) <= now and len(times) < MOST_AT_ONCE:
            times.append(following)
            following = self.after(following)
        edge = floor if made_up is None else made_up
        last = self.until(_before(edge)) if time < min(floor, edge) else None
        return ScheduleDueAction(times, (time, last) if last is not None and last >= time else None, following)

    def _made_up(self, time: datetime, on_time: datetime, now: datetime) -> datetime | None:
        """The last of the times that were missed, where that one is made up for."""
        if self.plan.catch_up != "one" or time >= on_time:
            return None
        last = self.until(on_time - _INSTANT)
        return last if last is not None and last >= time and last >= self._horizon(now) else None

    def _horizon(self, now: datetime) -> datetime:
        """What was missed before is not made up for."""
        try:
            return now - self.plan.window_ms * _MILLISECOND if self.plan.window_ms else _BEGINNING
        except OverflowError:
            return _BEGINNING


def _before(instant: datetime) -> datetime:
    """The instant before one; the calendar's first has none."""
    return max(instant, _BEGINNING + _INSTANT) - _INSTANT


class ScheduleDueAction(NamedTuple):
    """What a schedule does when its timer fires."""

    times: list[datetime]
    """Those that something is started for."""
    missed: tuple[datetime, datetime] | None
    """The first and the last of those that nothing is started for, because nobody was there."""
    following: datetime | None
    """The first one that nothing has been done for yet."""
