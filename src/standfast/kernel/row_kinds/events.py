"""The rows of retained published events, for subscribers that begin to wait later."""

from __future__ import annotations

from datetime import datetime
from typing import Final, NamedTuple

from standfast.kernel.ids import InstanceId
from standfast.kernel.rows import Record, RowKind, declare

EVENT_KIND: Final = "event"
"""Kind of the instances that store published events."""


class PublicationKept(Record, frozen=True, kw_only=True, gc=False):
    """A published event is retained for its time to live."""

    number: int = 1
    """Always 1: an event is an instance of its own with one row."""
    id: str
    """Unique id of the event within its tenant."""
    event: str
    correlation: str = ""
    """Correlation key of the event. Empty without one."""
    match_one: bool = False
    """Whether only one subscriber gets it."""
    expires_at: datetime
    data: bytes
    """The whole event, as subscribers get it."""


class PublicationForgotten(Record, frozen=True, kw_only=True, gc=False):
    """An event is no longer retained."""

    number: int = 1


class PublicationPlace(NamedTuple):
    """Position of an event in the order of publication, for paging."""

    published_at: datetime
    instance: InstanceId


class StoredPublication(PublicationKept, frozen=True, kw_only=True, gc=False):
    """A retained event as it is read."""

    instance: InstanceId
    published_at: datetime

    @property
    def place(self) -> PublicationPlace:
        """Position of this event. Pass it as `after` to get the next page."""
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
