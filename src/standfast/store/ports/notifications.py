"""What people are told in the application itself: a list for each user and each role, in which everything stands once.

What a user was told is read when that user has read it; what a role was told, each who has the role reads for themselves.
"""

from __future__ import annotations

from datetime import datetime
from typing import Literal, NamedTuple, Protocol

import msgspec

from standfast.kernel.ids import InstanceId


class Recipient(NamedTuple):
    """Whose list it is."""

    kind: Literal["user", "role"]
    name: str


class Reader(NamedTuple):
    """Who looks at lists: their own, and those of their roles."""

    name: str
    roles: tuple[str, ...] = ()
    on_behalf_of: str = ""

    @property
    def names(self) -> list[str]:
        """Under which names they are kept out."""
        return [self.name, self.on_behalf_of]


class NewNotification(msgspec.Struct, frozen=True, kw_only=True):
    """Something to be told."""

    tenant: str
    key: str
    """Whatever has the same key, of one tenant, is told once."""
    kind: Literal["user", "role"]
    recipient: str
    instance: InstanceId
    step: int
    subject: str
    body: str
    partition: str = ""
    """The part of the tenant that the instance is in."""
    occasion: str = ""
    """Names what is told, whomever and however: whoever is told by name and by roles finds it once. Empty if it is like no other."""
    kept_out: tuple[str, ...] = ()
    """Those with the role who do not find it in its list."""


class StoredNotification(NewNotification, frozen=True, kw_only=True):
    """Something that was told."""

    id: int
    """Rises with time."""
    created_at: datetime
    read_at: datetime | None


class Notifications(Protocol):
    """The lists of all tenants, or of one partition of one where it is named. Any thread may ask."""

    def add(self, notification: NewNotification, now: datetime) -> bool:
        """Tell somebody something; False if it was told before."""
        ...

    def page(
        self, tenant: str, of: Recipient, *, who: Reader, unread: bool, before: int, limit: int, partition: str = ""
    ) -> list[StoredNotification]:
        """A page of a list, newest first, of those with an id below this one, without what another list of the reader had before.

        The reader says what of a role's list was read. What keeps the reader out is not there.
        """
        ...

    def count_unread(self, tenant: str, of: Recipient, *, who: Reader, partition: str = "") -> int:
        """How many of a list were not read, of a role's by this reader, without what another list of the reader had before."""
        ...

    def mark_read(
        self, tenant: str, of: Recipient, number: int, now: datetime, *, who: Reader, partition: str = ""
    ) -> bool:
        """One of a list was read, if it was not before; False if there is no such one in it."""
        ...

    def mark_all_read(self, tenant: str, of: Recipient, now: datetime, *, who: Reader, partition: str = "") -> int:
        """All of a list were read; how many had not been."""
        ...


class Notifying(Protocol):
    """A source of the side of a store that this is about."""

    def notifications(self) -> Notifications:
        """For those who tell people something, and for those people."""
        ...
