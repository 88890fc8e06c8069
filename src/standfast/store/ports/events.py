"""What is asked of a database about published events: which are kept, and who waits for one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.events import PublicationPlace, StoredPublication


class Subscriber(NamedTuple):
    """Somebody who waits for an event."""

    instance: InstanceId
    number: int
    """Of the step that waits."""
    place: int
    """Which of the events that the step waits for."""
    definition: str


class EventReads(Protocol):
    """The published events of one tenant, and those who wait for them."""

    def subscribers(
        self, event: str, correlation: str, *, after: Subscriber | None = None, limit: int
    ) -> Sequence[Subscriber]:
        """A page of those who wait for an event of this name and key, in the order of their ids."""
        ...

    def kept_for(
        self, event: str, correlation: str, *, now: datetime, after: PublicationPlace | None = None, limit: int
    ) -> list[StoredPublication]:
        """A page of the events of this name and key that have not expired, in the order of publication."""
        ...

    def publications(
        self, *, event: str = "", now: datetime, after: PublicationPlace | None = None, limit: int
    ) -> list[StoredPublication]:
        """A page of the events that have not expired, of one name or of all if that is empty, in the order of publication."""
        ...
