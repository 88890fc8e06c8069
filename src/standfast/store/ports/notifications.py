"""Port for in-app notifications. Each user and each role has a list, in which an item occurs once.

A user's item has one read mark. A role's item has one read mark per holder of the role.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, Protocol

import msgspec

from standfast.kernel.ids import InstanceId


class Recipient(NamedTuple):
    """The owner of a list: a user or a role."""

    kind: Literal["user", "role"]
    name: str


class Reader(NamedTuple):
    """A reader of lists, with the reader's roles."""

    name: str
    roles: tuple[str, ...] = ()
    on_behalf_of: str = ""

    @property
    def names(self) -> list[str]:
        """The names under which the reader may be excluded."""
        return [self.name, self.on_behalf_of]


class NewNotification(msgspec.Struct, frozen=True, kw_only=True):
    """A new notification."""

    tenant: str
    key: str
    """Items of one tenant with the same key are delivered once."""
    kind: Literal["user", "role"]
    recipient: str
    instance: InstanceId
    step: int
    subject: str
    body: str
    partition: str = ""
    """The instance's partition of the tenant."""
    occasion: str = ""
    """Identifies the occasion. A reader who receives it by name and by roles sees it once. Empty if it is unique."""
    kept_out: tuple[str, ...] = ()
    """Holders of the role who do not see the item."""


class StoredNotification(NewNotification, frozen=True, kw_only=True):
    """A stored notification."""

    id: int
    """Increases with time."""
    created_at: datetime
    read_at: datetime | None


class Notifications(Protocol):
    """The notification lists of all tenants, limited to a partition if one is given. Safe from any thread."""

    def add(self, notification: NewNotification, now: datetime) -> bool:
        """Store a notification. Return False if its key was delivered before."""
        ...

    def page(
        self, tenant: str, of: Recipient, *, who: Reader, unread: bool, before: int, limit: int, partition: str = ""
    ) -> list[StoredNotification]:
        """Return a page of a list below an id, newest first, without items that another list of the reader had before.

        Items of a role are read or unread for this reader. Items that exclude the reader are omitted.
        """
        ...

    def count_unread(self, tenant: str, of: Recipient, *, who: Reader, partition: str = "") -> int:
        """Return the number of unread items of a list, for this reader, without items that another list of the reader had before."""
        ...

    def mark_read(
        self, tenant: str, of: Recipient, number: int, now: datetime, *, who: Reader, partition: str = ""
    ) -> bool:
        """Mark an item of a list as read. Return False if it is not in the list."""
        ...

    def mark_all_read(self, tenant: str, of: Recipient, now: datetime, *, who: Reader, partition: str = "") -> int:
        """Mark all items of a list as read. Return how many were unread."""
        ...


class Notifying(Protocol):
    """The part of a store that holds notifications."""

    def notifications(self) -> Notifications:
        """Open the notification lists."""
        ...
