"""Calls of schedules: what starts workflows at given times."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from typing import TypeVar

from standfast.calls.catalog.definitions import check_names
from standfast.calls.context import (
    CallContext,
    checked_after,
    checked_flag,
    checked_id,
    checked_instant,
    checked_key,
    checked_last,
    checked_limit,
    checked_text,
)
from standfast.calls.named_instances import NamedInstances
from standfast.calls.references import DefinitionLike
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError
from standfast.features.runs.start import check_right
from standfast.features.schedules.model import messages as w
from standfast.features.schedules.model.plan import Clockwork, Plan
from standfast.features.schedules.model.rows import state_of
from standfast.features.schedules.plan_input import (
    ScheduleTiming,
    check_creator,
    check_overlap_of_documents,
    checked_overlap,
    document_plan,
    plan_of,
)
from standfast.features.schedules.views import CatchUp, FireInfo, Overlap, Schedule, fire_of, schedule_of
from standfast.kernel.decider import SCHEDULE_KIND
from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.schedules import FIRES, SCHEDULES, StoredFire
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import InstanceHeader, InstanceQuery

READ_SCHEDULES, MANAGE_SCHEDULES = "schedule:read", "schedule:manage"
"""What it takes to look at schedules, and to say what they are."""
MOST_TIMES = 10_000
"""Times of a period that can be made up for at once."""
_MOST_FIRES = 2**31 - 1
_PAGE = 100

T = TypeVar("T")


def check_starter(desk: CallContext, plan: Plan, *, overlap: Overlap | None = "allow_all") -> None:
    """ForbiddenError unless whoever has a schedule start something now could start that without it, and stop what that takes the place of."""
    if plan.is_document:
        check_creator(desk, plan.workflow)
    else:
        which = desk.registry.library.find_open(desk.tenant, plan.workflow, plan.version)
        check_right(desk, *which, stops=(overlap or plan.overlap) == "cancel_running")


class FutureSchedules:
    """What can be asked of schedules. To look takes the capability `schedule:read`, to change them `schedule:manage`.

    The id of a schedule is a name of its partition, like a business key: whoever names no partition lists those of all, and names those of none.
    """

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk
        query = InstanceQuery(definition=w.SCHEDULE, kinds=(SCHEDULE_KIND,))
        self._kept = NamedInstances(desk, "schedule", w.ScheduleState, query, managers=(MANAGE_SCHEDULES,))

    def put(  # noqa: PLR0913 - all that can be said of a schedule, by name
        self,
        schedule: str,
        definition: DefinitionLike,
        input: object = None,  # noqa: A002 - the word that everybody uses for it
        *,
        version: str | int = "",
        computed: Mapping[str, str] | None = None,
        cron: str = "",
        time_zone: str = "UTC",
        every: timedelta | float | None = None,
        at: datetime | None = None,
        start_at: datetime | None = None,
        end_at: datetime | None = None,
        jitter: timedelta | float = 0,
        overlap: Overlap | None = None,
        catch_up: CatchUp = "one",
        window: timedelta | float | None = None,
        document_id: str = "",
        note: str = "",
        expected_version: int | None = None,
    ) -> Reply[Schedule]:
        """Have a workflow started at the times of `cron` (in `time_zone`), `every` so long, or once `at` an instant; a new schedule, or another content for it.

        If the `definition` is a type of documents, each time creates one, with the `input` as its data. Its id is made of the schedule and
        the time, or by the expression `document_id`, so that a time that comes again is the same document; it is told as `skipped` then.

        `computed` gives more of the input, by expressions that read `scheduled_at`, `scheduled_on` (the day, in the time zone), `started_at`,
        `schedule` and `number`. `overlap` says what becomes of a time at which a run of it has not ended: `skip` (the default), `buffer_one`, `allow_all`, `cancel_running`; of documents `allow_all` alone, because
        a time is over when its document is there. `catch_up` says
        which times are made up for that nobody was there for: `none`, the last `one`, or `all` of a `window`. `jitter` puts each start off
        by up to so much. It acts on behalf of whoever puts it, who must be allowed to start the workflow. `expected_version` is the
        `revision` that the caller has seen, 0 for a new one: RejectedError (`version_conflict`) if there is another by now.
        """

        def write() -> Schedule:
            self._kept.check(MANAGE_SCHEDULES, "change schedules")
            desk, name = self._desk.looked_up(), checked_id(schedule, "schedule")
            timing = ScheduleTiming(
                cron=cron,
                time_zone=time_zone,
                every=every,
                at=at,
                start_at=start_at,
                end_at=end_at,
                jitter=jitter,
                overlap=overlap,
                catch_up=catch_up,
                window=window,
            )
            plan = plan_of(desk, definition, input, timing, version=version, computed=computed, note=note)
            plan = self._startable(desk, name, plan, overlap=overlap, document_id=document_id)
            command = w.PutSchedule(id=name, plan=plan, expected_version=_checked_version(expected_version))
            return self._told(name, command)

        return self._desk.read(write)

    def get(self, schedule: str) -> Reply[Schedule]:
        """One schedule: what it says, its next time, and what it runs."""
        return self._look(schedule, schedule_of)

    def list(
        self, *, workflow: str = "", after: Schedule | None = None, limit: int = 100
    ) -> Reply[builtins.list[Schedule]]:
        """The schedules, the newest first; give the last one as `after` for the next page."""

        def read(reader: TenantReader) -> list[Schedule]:
            self._kept.check(READ_SCHEDULES, "look at schedules")
            wanted = checked_key(workflow, "workflow", may_be_empty=True)
            last = checked_last(after, Schedule, "`after`")
            before, most = None if last is None else last.instance, checked_limit(limit)
            found = (each for page in self._kept.pages(reader, before, most) for each in _shown(reader, page))
            return list(islice((each for each in found if wanted in {"", each.workflow}), most))

        return self._desk.look(read)

    def fires(self, schedule: str, *, after: int = 0, limit: int = 100) -> Reply[builtins.list[FireInfo]]:
        """What became of each time, the last one first; give the last number as `after` for the next page.

        The runs that a schedule has started are also those whose parent is its `instance`.
        """

        def read(reader: TenantReader) -> list[FireInfo]:
            self._kept.check(READ_SCHEDULES, "look at schedules")
            header, _ = self._kept.read(reader, self._kept.named(schedule))
            behind, most = checked_after(after), checked_limit(limit)
            return [fire_of(each) for each in _fires(reader, header.id, behind, most)]

        return self._desk.look(read)

    def next_times(
        self, schedule: str, *, after: datetime | None = None, limit: int = 10
    ) -> Reply[builtins.list[datetime]]:
        """The times that are to come, or those after an instant, as the plan names them; a pause holds them back all the same."""

        def read(header: InstanceHeader, state: w.ScheduleState) -> list[datetime]:
            begin = checked_instant(after, "`after`") or self._desk.service.shared.clock.now()
            times = _clockwork(header, state)
            found, following = list[datetime](), times.after(begin)
            while following is not None and len(found) < min(checked_limit(limit), MOST_TIMES):
                found.append(following)
                following = times.after(following)
            return found

        return self._look(schedule, read)

    def pause(self, schedule: str, reason: str = "") -> Reply[Schedule]:
        """Start nothing more by itself; runs that there are go on. What passes meanwhile is not made up for, unless by `backfill`."""
        return self._command(schedule, lambda name: w.PauseSchedule(id=name, reason=checked_text(reason, "reason")))

    def resume(self, schedule: str, reason: str = "") -> Reply[Schedule]:
        """Go on with the times that are to come."""
        return self._command(schedule, lambda name: w.ResumeSchedule(id=name, reason=checked_text(reason, "reason")))

    def trigger(self, schedule: str, *, overlap: Overlap | None = None, command_id: str = "") -> Reply[FireInfo]:
        """Start the workflow now, paused or not, and say what became of it: it may be skipped or put off, by the policy or by another `overlap`.

        `command_id` makes the call safe to repeat.
        """

        def act() -> FireInfo:
            self._kept.check(MANAGE_SCHEDULES, "change schedules")
            name, policy = self._kept.named(schedule), checked_overlap(overlap)
            header, state = self._found(name)
            self._check_starter(state, policy)
            if state.plan is not None and state.plan.is_document:
                check_overlap_of_documents(policy)
            outcome = self._kept.send(name, w.TriggerSchedule(id=name, overlap=policy), command_id)
            with self._desk.reader.look() as reader:
                return self._asked_for(reader, header, outcome.version)

        return self._desk.read(act)

    def backfill(
        self, schedule: str, start: datetime, end: datetime, *, at_once: bool = False, command_id: str = ""
    ) -> Reply[Schedule]:
        """Start the workflow for every time of a period, both ends included: each when the one before has ended, or all `at_once`.

        The policies of overlap and catch-up are not asked, and what was started for these times before counts for nothing: it is started
        again. `command_id` makes the call safe to repeat.
        """

        def act() -> Schedule:
            self._kept.check(MANAGE_SCHEDULES, "change schedules")
            name = self._kept.named(schedule)
            begin, finish = checked_instant(start, "`start`"), checked_instant(end, "`end`")
            if begin is None or finish is None or finish < begin:
                raise PayloadError("a period has a `start`, and an `end` that is no earlier")
            header, state = self._found(name)
            self._check_starter(state)
            if sum(1 for _ in islice(_clockwork(header, state).between(begin, finish), MOST_TIMES + 1)) > MOST_TIMES:
                raise PayloadError(f"the period has more than {MOST_TIMES} times; ask for shorter ones")
            command = w.BackfillSchedule(
                id=name, start=begin, end=finish, is_at_once=checked_flag(at_once, "`at_once`")
            )
            return self._told(name, command, command_id)

        return self._desk.read(act)

    def stop_backfills(self, schedule: str) -> Reply[Schedule]:
        """Start nothing more for periods that are being made up for; runs that there are go on."""
        return self._command(schedule, lambda name: w.StopBackfills(id=name))

    def delete(self, schedule: str, *, expected_version: int | None = None) -> Reply[None]:
        """Let there be no such schedule any more; its runs go on, and its history is kept. One may be put under its id again."""

        def act() -> None:
            self._kept.check(MANAGE_SCHEDULES, "change schedules")
            name = self._kept.named(schedule)
            self._found(name)
            self._kept.send(name, w.DeleteSchedule(id=name, expected_version=_checked_version(expected_version)))

        return self._desk.read(act)

    # -- how

    def _asked_for(self, reader: TenantReader, header: InstanceHeader, version: int) -> FireInfo:
        """The fire that a command led to which made the schedule this version: the last one that its history tells of up to there."""
        program = self._desk.registry.get(header.tenant, header.definition, header.definition_version)
        while True:
            first = max(version - _PAGE, 0)
            for event in reversed(reader.events(header.id, after=first, limit=version - first)):
                told = None if event.is_system else program.decode(event)
                if isinstance(told, w.FireTold):
                    return fire_of(*_fires(reader, header.id, told.fire.number + 1, 1))
            version = first

    def _command(self, schedule: str, make: Callable[[str], w.Command]) -> Reply[Schedule]:
        def act() -> Schedule:
            self._kept.check(MANAGE_SCHEDULES, "change schedules")
            name = self._kept.named(schedule)
            self._found(name)
            return self._told(name, make(name))

        return self._desk.read(act)

    def _told(self, name: str, command: w.Command, command_id: str = "") -> Schedule:
        self._kept.send(name, command, command_id, may_create=isinstance(command, w.PutSchedule))
        return schedule_of(*self._found(name))

    def _look(self, schedule: str, question: Callable[[InstanceHeader, w.ScheduleState], T]) -> Reply[T]:
        def read(reader: TenantReader) -> T:
            self._kept.check(READ_SCHEDULES, "look at schedules")
            return question(*self._kept.read(reader, self._kept.named(schedule)))

        return self._desk.look(read)

    def _found(self, name: str) -> tuple[InstanceHeader, w.ScheduleState]:
        return self._kept.found(name)

    def _check_starter(self, state: w.ScheduleState, overlap: Overlap | None = "allow_all") -> None:
        if state.plan is not None:
            check_starter(self._desk.looked_up(), state.plan, overlap=overlap)

    def _startable(
        self, desk: CallContext, name: str, plan: Plan, *, overlap: Overlap | None, document_id: object
    ) -> Plan:
        """The plan as it is kept: whoever puts it may start its workflow, or create its documents."""
        library = desk.registry.library
        workflow, pinned = library.find_open(desk.tenant, plan.workflow, plan.version)
        kind = library.graph(desk.tenant, workflow, pinned).kind
        if kind == "envelope":
            return document_plan(desk, plan, name, overlap=overlap, document_id=document_id)
        check_names(kind, {**plan.input, **plan.computed})
        check_right(desk, workflow, pinned, stops=plan.overlap == "cancel_running")
        if document_id:
            told = f"{workflow!r} is started and creates no document; leave `document_id` out"
            raise PayloadError(told, reason="invalid_schedule")
        return plan


def _shown(reader: TenantReader, page: Sequence[InstanceHeader]) -> builtins.list[Schedule]:
    """Schedules from their rows."""
    rows = {each.instance: each for each in reader.rows_of(SCHEDULES, [header.id for header in page])}
    return [schedule_of(header, state_of(rows[header.id])) for header in page]


def _fires(reader: TenantReader, schedule: InstanceId, behind: int, limit: int) -> builtins.list[StoredFire]:
    """The fires before one of them, or all if that is 0, the last one first."""
    return reader.rows(FIRES, schedule, after=-behind if behind else -_MOST_FIRES, limit=limit)


def _clockwork(header: InstanceHeader, state: w.ScheduleState) -> Clockwork:
    assert state.plan is not None
    assert state.anchor is not None
    return Clockwork(header.key, state.plan, state.anchor)


def _checked_version(given: object) -> int | None:
    if given is None or (isinstance(given, int) and not isinstance(given, bool) and given >= 0):
        return given
    raise PayloadError(f"`expected_version` is the revision of the schedule, a number from 0, not {given!r}")
