"""What people were to be told and were not: the run goes on without it, so somebody who asks about the run should hear of it."""

from __future__ import annotations

from collections.abc import Iterator

from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Program
from standfast.machine.model.events import NotificationFailed
from standfast.store.ports.reading import TenantReader

_TYPE = "notification_failed"
_MOST = 10
"""How many are told, the last ones; the history has them all."""


def untold(reader: TenantReader, program: Program, run: InstanceId) -> Iterator[str]:
    """The last notices that could not be delivered, in words."""
    for stored in [each for each in reader.events(run) if each.type == _TYPE][-_MOST:]:
        event = program.decode(stored)
        assert isinstance(event, NotificationFailed)
        yield f"{event.to!r} could not be told by {event.channel!r} at {stored.at}: {event.error}"
