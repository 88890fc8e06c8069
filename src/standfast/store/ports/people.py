"""Port for people, by tenant, and the conversion of their rows. The layers above validate changes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, Protocol

from standfast.kernel.people import Absence, Delegation, DirectoryLook, Grant, Principal
from standfast.kernel.row_kinds.changes import Change


class DirectoryUnit(DirectoryLook, Protocol):
    """A transaction that changes the people of one tenant. It locks out concurrent changes."""

    def put(self, principal: Principal) -> None:
        """Insert or replace a principal."""
        ...

    def grant(self, grant: Grant) -> int:
        """Insert a grant, and return its number."""
        ...

    def delegate(self, delegation: Delegation) -> int:
        """Insert a delegation, and return its number."""
        ...

    def absent(self, absence: Absence) -> int:
        """Insert an absence, and return its number."""
        ...

    def delegation(self, number: int) -> Delegation | None:
        """Return a delegation, ended or not."""
        ...

    def absence(self, number: int) -> Absence | None:
        """Return an absence, ended or not."""
        ...

    def end(self, kind: Literal["grant", "delegation", "absence"], number: int, at: datetime) -> None:
        """Set the end of a period."""
        ...

    def note(self, change: Change) -> None:
        """Store an audit entry."""
        ...


class People(Protocol):
    """The people of all tenants."""

    def looking(self, tenant: str) -> AbstractContextManager[DirectoryLook]:
        """Open a view of one tenant's people."""
        ...

    def changing(self, tenant: str) -> AbstractContextManager[DirectoryUnit]:
        """Open a transaction on one tenant's people, committed at the end of the block and rolled back when it raises."""
        ...


Row = Sequence[Any]


def principal(row: Row) -> Principal:
    """Build a principal from a row."""
    return Principal(
        id=row[0],
        kind=row[1],
        name=row[2],
        email=row[3],
        is_active=bool(row[4]),
        manager=row[5],
        attributes=json.loads(row[6]),
    )


def grant(row: Row) -> Grant:
    """Build a grant from a row."""
    return Grant(id=row[0], begins_at=row[1], ends_at=row[2], principal=row[3], role=row[4])


def delegation(row: Row) -> Delegation:
    """Build a delegation from a row."""
    return Delegation(
        id=row[0],
        begins_at=row[1],
        ends_at=row[2],
        giver=row[3],
        receiver=row[4],
        role=row[5],
        definition=row[6],
        reason=row[7],
    )


def absence(row: Row) -> Absence:
    """Build an absence from a row."""
    return Absence(id=row[0], begins_at=row[1], ends_at=row[2], principal=row[3], reason=row[4])
