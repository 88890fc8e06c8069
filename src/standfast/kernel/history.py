"""Stored events, and checks on a sequence of them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from standfast.errors import CorruptHistoryError
from standfast.kernel.codec.message_types import SYSTEM_PREFIX
from standfast.kernel.ids import InstanceId

TIMER_CANCELLED = f"{SYSTEM_PREFIX}timer_cancelled"
"""Written by the kernel when a decision cancels a pending timer."""

TIMER_REQUEUED = f"{SYSTEM_PREFIX}timer_requeued"
"""Written by the kernel when an operator requeues a dead-lettered timer."""

ROWS_REBUILT = f"{SYSTEM_PREFIX}rows_rebuilt"
"""Written by the kernel when an operator rebuilds rows of an instance from its history."""

DIRECTORY_ANSWERED = f"{SYSTEM_PREFIX}directory_answered"
"""Written by the kernel with the result of a command for which a host directory was queried. It records the
directory, the time and the roles."""


class StoredEvent(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An event in the history of an instance."""

    instance: InstanceId
    sequence: int
    """Sequence number within the instance, from 1 without gaps."""
    type: str
    version: int
    data: bytes
    at: datetime
    """Time of the commit, by the database's clock."""
    actor: str
    comment: str
    cause: str
    """Id of the command, effect or timer that caused the event."""
    tenant: str
    on_behalf_of: str = ""
    """The person whom the actor represented. Empty if the actor acted for itself."""
    trace: str = ""
    """Trace of the originating request, however indirect. Empty without one."""
    position: int = 0
    """Position in the order of all events of the database. It increases strictly within an instance, with gaps."""

    @property
    def is_system(self) -> bool:
        """Whether the kernel wrote it. Deciders never see such events."""
        return self.type.startswith(SYSTEM_PREFIX)


def check_sequence(events: Sequence[StoredEvent], *, after: int) -> None:
    """Raise CorruptHistoryError unless the events follow `after` without a gap."""
    for expected, event in enumerate(events, start=after + 1):
        if event.sequence != expected:
            raise CorruptHistoryError(
                f"instance {event.instance}: event {expected} is missing, the next stored one is {event.sequence}; "
                "restore it from a backup before going on"
            )
