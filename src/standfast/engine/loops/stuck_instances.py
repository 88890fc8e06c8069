"""Detects incidents for operators: stuck instances, tasks without an eligible approver, and calls that may hang.

Each round looks at a limited number of instances, so that its cost does not grow with the database. After the last one
it starts again.
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
"""Interval between two rounds."""
_MOST = 5000
"""Instances per round."""
_MOST_NAMED = 10
_MOST_LISTED = 1000

Alert = Callable[[Incident, str], None]
"""Sends an incident to operators, with a short description."""


def hung_calls(incidents: Incidents, settings: Settings, now: datetime) -> list[LongCall]:
    """Return the calls that have run so long that they may hang.

    Calls with a timeout are left out, because they end without help.
    """
    found = incidents.long_calls(before=now - settings.hung_after, limit=_MOST_LISTED)
    return [each for each in found if options_of(each).timeout is None and settings.handler_timeout is None]


class IncidentLook:
    """Looks for incidents, once per interval. A single thread steps it; any thread may read the results."""

    def __init__(self, parts: StoreParts, shared: EngineContext, kinds: tuple[str, ...], alert: Alert) -> None:
        self._incidents = parts.incidents()
        self._shared = shared
        self._throttle = Throttle(shared)
        self._kinds = kinds
        """The kinds of instances to check. Deciders are excluded, because they may be idle forever."""
        self._alert = alert
        self._due_at: datetime | None = None
        """Time of the next round. None means now."""
        self._after: InstanceId | None = None
        self._found: list[Incident] = []
        """Incidents of the current pass."""
        self.known: tuple[Incident, ...] = ()
        """Incidents of the last pass that the current one has not reached."""
        self.undecidable: tuple[Incident, ...] = ()
        """Instances that wait for a task without an eligible approver, as of the last round."""
        self.refused: tuple[RefusedSchedule, ...] = ()
        """Schedules whose last start was refused, as of the last round."""
        self.hung: tuple[LongCall, ...] = ()
        """Calls that may hang, as of the last round."""

    def look(self) -> int:
        """Check the next instances if a round is due. Return the number of stuck ones."""
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
            self._alert(each, "one of its tasks has no eligible approver")

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
        """Describe the incidents, the first few of each kind."""
        people = "has a task without an eligible approver"
        return [
            *_named(self.known, "", "runs.stuck() lists them"),
            *_named(self.undecidable, people, "runs.paused(reason='no_approver') lists them"),
            *_named(self.refused, "is a schedule whose last time was refused", "admin.incidents() lists them"),
            *_named(self.hung, "has a call in hand that may hang", "admin.incidents() lists them"),
        ]

    def _tell(self, found: Incident) -> None:
        self._alert(found, "it is stuck: no timer, effect or message can wake it")
        if not self._throttle.allows(found.instance):
            return
        _log.error(
            "instance_stuck instance=%s definition=%r tenant=%r: no timer, effect or message can wake it; see run.why()",
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
