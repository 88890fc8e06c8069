"""What is said to a schedule, what happens to it, and where it stands."""

from __future__ import annotations

from datetime import datetime
from typing import Final, TypeAlias

import msgspec

from standfast.features.schedules.model.plan import Overlap, Plan
from standfast.kernel.actor import NO_TERMS, Actor, Terms
from standfast.kernel.codec.message_types import message
from standfast.kernel.row_kinds.schedules import FireStatus, Why
from standfast.machine.model.commands.run_commands import EndChild

SCHEDULE: Final = "$schedule"
"""The decider of schedules: every schedule is an instance of it, and its id is the key."""


class _Word(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """What is said to a schedule, of it, and by it."""


# -- commands


@message(name="PutSchedule")
class PutSchedule(_Word, frozen=True, kw_only=True):
    """Let it be so, be it new or not."""

    id: str
    plan: Plan
    expected_version: int | None = None
    """The version that the caller has seen, 0 if none; None means that it does not matter."""


@message(name="PauseSchedule")
class PauseSchedule(_Word, frozen=True, kw_only=True):
    """Start nothing more by itself."""

    id: str
    reason: str = ""


@message(name="ResumeSchedule")
class ResumeSchedule(_Word, frozen=True, kw_only=True):
    """Go on with the times that are to come."""

    id: str
    reason: str = ""


@message(name="TriggerSchedule")
class TriggerSchedule(_Word, frozen=True, kw_only=True):
    """Start the workflow now."""

    id: str
    overlap: Overlap | None = None
    """None means that of the plan."""


@message(name="BackfillSchedule")
class BackfillSchedule(_Word, frozen=True, kw_only=True):
    """Start the workflow for the times of a period, one after the other or all at once."""

    id: str
    start: datetime
    end: datetime
    is_at_once: bool = False


@message(name="StopBackfills")
class StopBackfills(_Word, frozen=True, kw_only=True):
    """Start nothing more for periods."""

    id: str


@message(name="DeleteSchedule")
class DeleteSchedule(_Word, frozen=True, kw_only=True):
    """Let it be no more."""

    id: str
    expected_version: int | None = None


@message(name="PassTime")
class PassTime(_Word, frozen=True, kw_only=True):
    """A time has come."""

    id: str


@message(name="GoOn")
class GoOn(_Word, frozen=True, kw_only=True):
    """More times of a period are due than one commit deals with."""

    id: str
    backfill: int


@message(name="NoteStart")
class NoteStart(_Word, frozen=True, kw_only=True):
    """The engine has started the workflow, or created the document; or could not, and says why."""

    id: str
    number: int
    error: str = ""
    run: str = ""
    document: str = ""
    """Of a document: its instance and its id."""
    was_there: bool = False
    """Whether somebody else has created a document with this id before."""


@message(name="NoteStop")
class NoteStop(_Word, frozen=True, kw_only=True):
    """The engine has told a run to end, or could not, and says why."""

    id: str
    number: int
    """Whose run it is."""
    waiting: int
    """What was to begin in its place."""
    error: str = ""


Command: TypeAlias = (
    PutSchedule
    | PauseSchedule
    | ResumeSchedule
    | TriggerSchedule
    | BackfillSchedule
    | StopBackfills
    | DeleteSchedule
    | PassTime
    | GoOn
    | NoteStart
    | NoteStop
    | EndChild
)


# -- events


@message(name="schedule_put")
class SchedulePut(_Word, frozen=True, kw_only=True):
    """It says this from now on."""

    id: str
    plan: Plan
    version: int
    owner: Actor | None = None
    """On whose behalf it starts workflows, with what came with their request; None if that is the engine itself. What else they may do is looked up then."""
    terms: Terms = NO_TERMS
    """What they must be allowed each time, and what their roles stood for at the front end."""
    next_at: datetime | None = None
    at: datetime


@message(name="schedule_paused")
class SchedulePaused(_Word, frozen=True, kw_only=True):
    """It starts nothing by itself."""

    by: str
    reason: str = ""
    at: datetime


@message(name="schedule_resumed")
class ScheduleResumed(_Word, frozen=True, kw_only=True):
    """It goes on."""

    by: str
    reason: str = ""
    next_at: datetime | None = None


@message(name="schedule_deleted")
class ScheduleDeleted(_Word, frozen=True, kw_only=True):
    """It is no more; its runs go on."""

    by: str


@message(name="schedule_moved")
class ScheduleMoved(_Word, frozen=True, kw_only=True):
    """What was due is dealt with; this is the next time."""

    next_at: datetime | None = None


@message(name="fire_told")
class FireTold(_Word, frozen=True, kw_only=True):
    """A time has come, and this became of it."""

    fire: Fire
    stopper: Actor | None = None
    """On whose behalf other runs are told to end for it, if they are; None means the engine itself."""
    terms: Terms = NO_TERMS


@message(name="fire_moved")
class FireMoved(_Word, frozen=True, kw_only=True):
    """What a time has come to has changed."""

    number: int
    status: FireStatus
    detail: str = ""
    run: str = ""
    """Set when it begins; of a document, when it is created."""
    document: str = ""
    """The id of the document that was created."""


@message(name="fire_stopped")
class FireStopped(_Word, frozen=True, kw_only=True):
    """Its run was told to end, because another one is to take its place."""

    number: int
    is_refused: bool = False
    """Whether it goes on, because whoever wanted that may not stop it."""


@message(name="backfill_moved")
class BackfillMoved(_Word, frozen=True, kw_only=True):
    """A period was asked for, or another time of it has come."""

    backfill: Backfill
    is_over: bool = False
    is_stopped: bool = False
    """Whether somebody has ended it before its time."""


Event: TypeAlias = (
    SchedulePut
    | SchedulePaused
    | ScheduleResumed
    | ScheduleDeleted
    | ScheduleMoved
    | FireTold
    | FireMoved
    | FireStopped
    | BackfillMoved
)


class Asker(_Word, frozen=True, kw_only=True):
    """Whoever has times started that have not come by themselves, and on which terms: they must still be allowed to when these start."""

    actor: Actor
    terms: Terms = NO_TERMS


# -- the effect


@message(name="StartScheduled")
class StartScheduled(_Word, frozen=True, kw_only=True):
    """The effect: start a workflow for a time."""

    id: str
    number: int
    at: datetime
    why: Why
    run: str
    plan: Plan
    owner: Actor | None = None
    terms: Terms = NO_TERMS
    by: list[str] = []
    """Who wants it now; nobody if the time has come by itself."""
    asker: Asker | None = None
    """The same with what they may do; None stands for the engine itself, too."""


@message(name="StopScheduled")
class StopScheduled(_Word, frozen=True, kw_only=True):
    """The effect: have the run of a time end, so that another one can begin."""

    id: str
    number: int
    waiting: int
    """What is to begin in its place."""
    run: str
    reason: str
    stopper: Actor | None = None
    terms: Terms = NO_TERMS


ScheduleEffect: TypeAlias = StartScheduled | StopScheduled


# -- where it stands


class Fire(_Word, frozen=True, kw_only=True):
    """A time, and what became of it."""

    number: int
    at: datetime
    """The time itself, however late it was."""
    until: datetime | None = None
    """Of times that were missed together: the last of them."""
    why: Why = "time"
    status: FireStatus
    detail: str = ""
    run: str = ""
    workflow: str = ""
    told_at: datetime
    backfill: int = 0
    """Which period it belongs to; 0 if to none."""
    by: list[str] = []
    """Who wants it now, and for whom; nobody if the time has come by itself."""
    asker: Asker | None = None
    is_stopping: bool = False
    """Whether its run was told to end."""


class Backfill(_Word, frozen=True, kw_only=True):
    """A period that is made up for."""

    number: int
    start: datetime
    end: datetime
    is_at_once: bool = False
    by: str = ""
    on_behalf_of: str = ""
    asker: Asker | None = None
    next_at: datetime | None = None
    """The first time of it that nothing was started for; None once there is none left."""


class SchedulePause(_Word, frozen=True, kw_only=True):
    """Since when it starts nothing by itself."""

    at: datetime
    by: str
    reason: str = ""


class ScheduleState(msgspec.Struct, kw_only=True, omit_defaults=True, gc=False):
    """Where a schedule stands."""

    id: str = ""
    plan: Plan | None = None
    version: int = 0
    """How often it was put."""
    owner: Actor | None = None
    terms: Terms = NO_TERMS
    anchor: datetime | None = None
    """When it was put first."""
    changed_at: datetime | None = None
    next_at: datetime | None = None
    last_at: datetime | None = None
    """The last time that was dealt with."""
    pause: SchedulePause | None = None
    is_deleted: bool = False
    count: int = 0
    """How many fires and periods it has numbered."""
    running: dict[int, Fire] = {}
    """Those whose run has not ended, by number."""
    buffered: Fire | None = None
    """The one that begins when no other runs."""
    stopper: Actor | None = None
    """On whose behalf others are told to end for that one, if they are."""
    stopper_terms: Terms = NO_TERMS
    backfills: dict[int, Backfill] = {}

    def copied(self) -> ScheduleState:
        """The same for whoever changes it."""
        return msgspec.structs.replace(self, running={**self.running}, backfills={**self.backfills})
