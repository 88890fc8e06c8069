"""The rows of published events that are kept: whoever begins to wait later finds them here."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare

EVENT_KIND: Final = "event"
"""What the instances that published events are stored as are called."""


class PublicationKept(Record, frozen=True, kw_only=True, gc=False):
    """An event is kept for its time to live."""

    number: int = 1
    """Always the same: an event is an instance of its own, and has one row."""
    id: str
    """Tells it from every other event of its tenant."""
    event: str
    correlation: str = ""
    """The key that it was published for; empty if it was for none."""
    match_one: bool = False
    """Whether only one of those who wait gets it."""
    expires_at: datetime
    data: bytes
    """The whole of it, as those who wait get it."""


class PublicationForgotten(Record, frozen=True, kw_only=True, gc=False):
    """An event is not kept any more."""

    number: int = 1


class PublicationPlace(NamedTuple):
    """Where an event stands among those that are kept, which are in the order of publication."""

    published_at: datetime
    instance: InstanceId


class StoredPublication(PublicationKept, frozen=True, kw_only=True, gc=False):
    """An event that is kept, as it is read."""

    instance: InstanceId
    published_at: datetime

    @property
    def place(self) -> PublicationPlace:
        """Give it as `after` for the page that follows this event."""
        return PublicationPlace(self.published_at, self.instance)


PUBLICATIONS = declare(
    RowKind(
        name="publication",
        table="published_events",
        row=PublicationKept,
        end=PublicationForgotten,
        stored=StoredPublication,
        opened_at="published_at",
        of_instance=("partition",),
    )
)
