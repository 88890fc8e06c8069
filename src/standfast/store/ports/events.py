"""Port for published events and their subscribers."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from standfast.kernel.ids import InstanceId
from standfast.kernel.row_kinds.events import PublicationPlace, StoredPublication


class Subscriber(NamedTuple):
    """A step that waits for an event."""

    instance: InstanceId
    number: int
    """Number of the waiting step."""
    place: int
    """Index of the event among those that the step waits for."""
    definition: str


class EventReads(Protocol):
    """The published events of one tenant, and their subscribers."""

    def subscribers(
        self, event: str, correlation: str, *, after: Subscriber | None = None, limit: int
    ) -> Sequence[Subscriber]:
        """Return a page of subscribers for an event name and key, in the order of their ids."""
        ...

    def kept_for(
        self, event: str, correlation: str, *, now: datetime, after: PublicationPlace | None = None, limit: int
    ) -> list[StoredPublication]:
        """Return a page of unexpired events with this name and key, in the order of publication."""
        ...

    def publications(
        self, *, event: str = "", now: datetime, after: PublicationPlace | None = None, limit: int
    ) -> list[StoredPublication]:
        """Return a page of unexpired events, of one name if given, in the order of publication."""
        ...
