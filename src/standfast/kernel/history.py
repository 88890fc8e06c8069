"""Events as they lie in a store, and the checks on a stretch of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from standfast.errors import CorruptHistoryError
from standfast.kernel.codec.message_types import SYSTEM_PREFIX
from standfast.kernel.ids import InstanceId

TIMER_CANCELLED = f"{SYSTEM_PREFIX}timer_cancelled"
"""Written by the kernel when a decision cancels a timer that was really pending."""

TIMER_REQUEUED = f"{SYSTEM_PREFIX}timer_requeued"
"""Written by the kernel when an operator puts a timer back that gave up."""

ROWS_REBUILT = f"{SYSTEM_PREFIX}rows_rebuilt"
"""Written by the kernel when an operator has rows of an instance made again from its history."""

DIRECTORY_ANSWERED = f"{SYSTEM_PREFIX}directory_answered"
"""Written by the kernel with what a command did, where a directory of the host was asked about its actor: which one, when, and the roles that it said."""


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One fact in the history of an instance."""

    instance: InstanceId
    sequence: int
    """1 for the first event of the instance, then one more each, without gaps."""
    type: str
    version: int
    data: bytes
    at: datetime
    """When it was committed, by the database's clock."""
    actor: str
    comment: str
    cause: str
    """Id of the command, effect or timer that led to it."""
    tenant: str
    on_behalf_of: str = ""
    """Whom the actor stood in for; empty if it acted for itself."""
    trace: str = ""
    """Names the request that it follows from, at whatever distance; empty if none was named."""
    position: int = 0
    """Place in the order of all events of the database; grows strictly within an instance, with gaps."""

    @property
    def is_system(self) -> bool:
        """Whether the kernel wrote it; deciders never see such events."""
        return self.type.startswith(SYSTEM_PREFIX)


def check_sequence(events: Sequence[StoredEvent], *, after: int) -> None:
    """Raise CorruptHistoryError unless the events follow `after` without a gap."""
    for expected, event in enumerate(events, start=after + 1):
        if event.sequence != expected:
            raise CorruptHistoryError(
                f"instance {event.instance}: event {expected} is missing, the next stored one is {event.sequence}; "
                "restore it from a backup before going on"
            )
