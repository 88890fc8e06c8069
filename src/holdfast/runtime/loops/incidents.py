"""Looks for instances that have not ended and that nothing can ever wake. There should be none: each is told of as an incident.

It looks at some instances in each round, so that a large database costs no more than a small one, and begins anew when it is through.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from holdfast.kernel.ids import InstanceId
from holdfast.runtime.context import EngineContext
from holdfast.runtime.telemetry import InstanceStuck
from holdfast.runtime.work.unreadable import Throttle
from holdfast.store.incidents import Incident
from holdfast.store.port import Parts

_log = logging.getLogger("holdfast.housekeeping")

_EVERY = timedelta(minutes=1)
"""Between two rounds."""
_MOST = 5000
"""Instances that a round looks at."""
_MOST_NAMED = 10


class IncidentLook:
    """Looks for them, once in an interval. One thread steps it; any thread may ask what was found."""

    def __init__(self, parts: Parts, shared: EngineContext) -> None:
        self._incidents = parts.incidents()
        self._shared = shared
        self._throttle = Throttle(shared)
        self.kinds: tuple[str, ...] = ()
        """The kinds of instances that are looked at, given in by whoever knows them; deciders may rest for as long as they like."""
        self.alert: Callable[[Incident], None] | None = None
        """Pushes what was found to operators; given in by whoever knows how."""
        self._due_at: datetime | None = None
        """When to look next; None means now."""
        self._after: InstanceId | None = None
        self._found: list[Incident] = []
        """On this way through the database."""
        self.known: tuple[Incident, ...] = ()
        """On the last way, as far as this one has not come to it."""

    def look(self) -> int:
        """Look at the next instances, if it is time to; how many of them stand still."""
        now = self._shared.clock.now()
        if not self.kinds or (self._due_at is not None and self._due_at - _EVERY <= now < self._due_at):
            return 0
        self._due_at = now + _EVERY
        still_since = now - self._shared.settings.stuck_after
        stretch = self._incidents.look(self.kinds, after=self._after, still_since=still_since, limit=_MOST)
        self._after = stretch.last
        self._found += stretch.found
        if stretch.last is None:
            self.known, self._found = tuple(self._found), []
        else:
            self.known = tuple(dict.fromkeys((*self.known, *stretch.found)))
        for each in stretch.found:
            self._tell(each)
        return len(stretch.found)

    def told(self) -> list[str]:
        """What stands still, in words, the first few of them."""
        known = self.known
        said = [f"{each.definition!r} {each.instance} of tenant {each.tenant!r}, since {each.since}" for each in known]
        more = len(known) - _MOST_NAMED
        return [*said[:_MOST_NAMED], f"and {more} more: runs.stuck() lists them"] if more > 0 else said

    def _tell(self, found: Incident) -> None:
        if self.alert is not None:
            self.alert(found)
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
