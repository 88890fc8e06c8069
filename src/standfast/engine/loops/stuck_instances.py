"""Looks for what somebody should look at: instances that nothing can ever wake, questions that nobody can decide, calls that may hang.

It looks at some instances in each round, so that a large database costs no more than a small one, and begins anew when it is through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from standfast.engine.commit.context import EngineContext
from standfast.engine.commit.work_rows import options_of
from standfast.engine.common.settings import Settings
from standfast.engine.common.telemetry import CallHangs, InstanceStuck
from standfast.engine.worker.unreadable_work import Throttle
from standfast.kernel.ids import InstanceId
from standfast.store.ports.maintenance import Incident, Incidents, LongCall, RefusedSchedule
from standfast.store.ports.store import StoreParts

_log = logging.getLogger("standfast.housekeeping")

_EVERY = timedelta(minutes=1)
"""Between two rounds."""
_MOST = 5000
"""Instances that a round looks at."""
_MOST_NAMED = 10
_MOST_LISTED = 1000

Alert = Callable[[Incident, str], None]
"""Pushes an incident to operators, with what it is in a few words."""


def hung_calls(incidents: Incidents, settings: Settings, now: datetime) -> list[LongCall]:
    """The calls that have taken so long that they may hang. One that has a timeout ends by itself, so that nobody has to look at it."""
    found = incidents.long_calls(before=now - settings.hung_after, limit=_MOST_LISTED)
    return [each for each in found if options_of(each).timeout is None and settings.handler_timeout is None]


class IncidentLook:
    """Looks for them, once in an interval. One thread steps it; any thread may ask what was found."""

    def __init__(self, parts: StoreParts, shared: EngineContext, kinds: tuple[str, ...], alert: Alert) -> None:
        self._incidents = parts.incidents()
        self._shared = shared
        self._throttle = Throttle(shared)
        self._kinds = kinds
        """The kinds of instances that are looked at; deciders may rest for as long as they like."""
        self._alert = alert
        self._due_at: datetime | None = None
        """When to look next; None means now."""
        self._after: InstanceId | None = None
        self._found: list[Incident] = []
        """On this way through the database."""
        self.known: tuple[Incident, ...] = ()
        """On the last way, as far as this one has not come to it."""
        self.undecidable: tuple[Incident, ...] = ()
        """Instances that wait because nobody can decide a question, as of the last look."""
        self.refused: tuple[RefusedSchedule, ...] = ()
        """Schedules whose last time was refused, as of the last look."""
        self.hung: tuple[LongCall, ...] = ()
        """Calls that may hang, as of the last look."""

    def look(self) -> int:
        """Look at the next instances, if it is time to; how many of them stand still."""
        now = self._shared.clock.now()
        if self._due_at is not None and self._due_at - _EVERY <= now < self._due_at:
            return 0
        self._due_at = now + _EVERY
        still_since = now - self._shared.settings.stuck_after
        stretch = self._incidents.look(self._kinds, after=self._after, still_since=still_since, limit=_MOST)
        self._after = stretch.last
        self._found += stretch.found
        if stretch.last is None:
            self.known, self._found = tuple(self._found), []
        else:
            self.known = tuple(dict.fromkeys((*self.known, *stretch.found)))
        for each in stretch.found:
            self._tell(each)
        self._look_at_people()
        self._look_at_schedules()
        self._look_at_calls(now)
        return len(stretch.found)

    def _look_at_people(self) -> None:
        self.undecidable = tuple(self._incidents.undecidable(limit=_MOST_LISTED))
        for each in self.undecidable:
            self._alert(each, "nobody can decide a question of it")

    def _look_at_schedules(self) -> None:
        self.refused = tuple(self._incidents.refused_schedules(limit=_MOST_LISTED))

    def _look_at_calls(self, now: datetime) -> None:
        self.hung = tuple(hung_calls(self._incidents, self._shared.settings, now))
        for each in self.hung:
            if self._throttle.allows((each.instance, each.number)):
                _log.warning("call_hangs handler=%s instance=%s since=%s", each.handler, each.instance, each.since)
                self._shared.telemetry.tell(
                    CallHangs(
                        definition=each.definition,
                        tenant=each.tenant,
                        instance=each.instance,
                        number=each.number,
                        handler=each.handler,
                        since=each.since,
                    )
                )

    def told(self) -> list[str]:
        """What was found, in words, the first few of each sort."""
        people = "waits for somebody who can decide a question"
        return [
            *_named(self.known, "", "runs.stuck() lists them"),
            *_named(self.undecidable, people, "runs.paused(reason='no_approver') lists them"),
            *_named(self.refused, "is a schedule whose last time was refused", "admin.incidents() lists them"),
            *_named(self.hung, "has a call in hand that may hang", "admin.incidents() lists them"),
        ]

    def _tell(self, found: Incident) -> None:
        self._alert(found, "it stands still, and nothing can ever wake it")
        if not self._throttle.allows(found.instance):
            return
        _log.error(
            "instance %s of %r, tenant %r, has not ended, and nothing can ever wake it; run.why() tells more",
            found.instance,
            found.definition,
            found.tenant,
        )
        self._shared.telemetry.tell(
            InstanceStuck(definition=found.definition, tenant=found.tenant, instance=found.instance, since=found.since)
        )


def _named(found: Sequence[Incident | LongCall | RefusedSchedule], what: str, remedy: str) -> list[str]:
    said = [
        " ".join(filter(None, [f"{each.definition!r} {each.instance} of tenant {each.tenant!r}", what]))
        + f", since {each.since}"
        for each in found
    ]
    more = len(found) - _MOST_NAMED
    return [*said[:_MOST_NAMED], f"and {more} more: {remedy}"] if more > 0 else said
