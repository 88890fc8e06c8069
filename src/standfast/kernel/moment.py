"""The context of a decision: everything it may use besides state and command, as plain values."""

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
    """The context of one command."""

    now: datetime
    """The database's time in UTC, with zone. It is the same for all decisions of one commit."""
    instance: InstanceId
    """The instance of the decision."""
    key: str = ""
    """Business key of the instance, empty if it has none."""
    tenant: str = "default"
    """The tenant that the instance belongs to."""
    partition: str = ""
    """Partition of the instance, empty if it has none."""
    actor: Actor = SYSTEM
    """The requesting actor with its rights."""
    comment: str = ""
    """The actor's reason."""
    version: int = 0
    """Number of events of the instance. The next event gets `version + 1`."""
    issued: int = 0
    """Number of effects and timers that the instance has issued. The first effect of this decision gets this number,
    further effects follow, and its timers come after them."""
    commits: int = 0
    """Number of commands that have changed the instance."""
    pending_timers: Mapping[str, datetime] = NO_TIMERS
    """Due times of the pending timers by key. A paused timer is computed as if its pause ended now. The timer of
    this command has fired and is not included."""
    is_shifting: bool = False
    """Whether a wider pause stops the clocks of the instance. Its timers are then delayed further until the pause
    ends."""
    is_held: bool = False
    """Whether a pause of the definition, the version or the tenant holds the instance. Timers that are set now fire
    when it has ended."""
    fired_timer: str = ""
    """Key of the timer that sent this command. Empty if none did, or for one without a key."""
    fired_due_at: datetime | None = None
    """When that timer was due: later than set if a pause stopped the clocks of its instance."""

    asked: RequestContext = OWN
    """The request as the caller made it. `actor` has the current rights, the actor in here those from the request."""
    facts: Facts = NO_FACTS
    """Data from outside the instance: people, rules and settings of the organisation, other documents."""

    def derive_id(self, *parts: object) -> UUID:
        """Derive an id that is the same each time this command is decided on this state.

        The parts distinguish several ids.
        """
        return derive_uuid7(self.now, self.instance, self.version, *parts)
