"""What a decision may know of the world: everything that is not state and not the command, as plain values."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Final
from uuid import UUID

import msgspec

from standfast.kernel.actor import OWN, SYSTEM, Actor, RequestContext
from standfast.kernel.facts import NO_FACTS, Facts
from standfast.kernel.ids import InstanceId, derive_uuid7

NO_TIMERS: Final[Mapping[str, datetime]] = MappingProxyType({})


class Moment(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The circumstances of one command."""

    now: datetime
    """The database's time, aware, in UTC; the same for everything decided in one commit."""
    instance: InstanceId
    """The instance that is being decided for."""
    key: str = ""
    """Its business key; empty if it has none."""
    tenant: str = "default"
    """The tenant that the instance belongs to."""
    partition: str = ""
    """The part of the tenant that the instance belongs to; empty if it belongs to none."""
    actor: Actor = SYSTEM
    """Who asked, with what they may do."""
    comment: str = ""
    """Why, in the actor's words."""
    version: int = 0
    """How many events the instance has; the next one gets `version + 1`."""
    issued: int = 0
    """How many effects and timers the instance has issued, which are counted together: the first effect of this decision gets this
    number, the next one more, and its timers the numbers behind those of its effects."""
    commits: int = 0
    """How many commands have changed the instance."""
    pending_timers: Mapping[str, datetime] = NO_TIMERS
    """The timers that are set and have not fired, by key: when each of them is due. Where clocks stand still, as if that ended now. The one that brings this command has fired."""
    is_shifting: bool = False
    """Whether a pause of more than this instance has its clocks stand still: its timers are due later than they say, by as long as that goes on."""
    fired_timer: str = ""
    """Key of the timer that brings this command; empty if none does, or one without a key."""
    fired_due_at: datetime | None = None
    """When that timer was due: later than it was set for if the clocks of its instance have stood still meanwhile."""

    asked: RequestContext = OWN
    """The request as the caller made it. `actor` has the roles and capabilities of this moment, the actor in here those that came with the request."""
    facts: Facts = NO_FACTS
    """What can be read from outside of the instance: people, rules and settings of the organisation, other documents."""

    def derive_id(self, *parts: object) -> UUID:
        """A new id that is the same each time this command is decided on this state. Give parts to tell several apart."""
        return derive_uuid7(self.now, self.instance, self.version, *parts)
