"""Processes that have not ended although their time is over, or will be before an instant: found by their deadlines, of one tenant or of all."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec

from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import InstanceHeader


class ExpiredQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which of them to list: those whose deadline is the earliest first."""

    before: datetime
    """Only those whose deadline is before this instant; one that is at it is not."""
    tenant: str | None = None
    """None means all."""
    partition: str | None = None
    """Only those of one part of the tenant, or of none if it is empty; None means all."""
    after: tuple[datetime, InstanceId] | None = None
    """Only those behind this one: the last of the page before, with its deadline."""
    limit: int = 100


class Expiries(Protocol):
    """The deadlines of active processes."""

    def expired(self, query: ExpiredQuery) -> list[InstanceHeader]:
        """A page of active processes whose deadline is before an instant."""
        ...


class ExpiryParts(Protocol):
    """The side of a store that knows deadlines."""

    def expiries(self) -> Expiries:
        """For operators who look for what should have ended."""
        ...
