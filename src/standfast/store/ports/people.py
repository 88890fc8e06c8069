"""People as the database keeps them, by tenant. A driver reads and writes; which change is sound is the business of the layers above.

Rows about people as the statements of both drivers give them, their instants already read.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import AbstractContextManager
from datetime import datetime
from typing import Any, Literal, Protocol

from standfast.kernel.people import Absence, Delegation, DirectoryLook, Grant, Principal
from standfast.kernel.row_kinds.changes import Change


class DirectoryUnit(DirectoryLook, Protocol):
    """A transaction that may change the people of one tenant; nobody else changes them meanwhile."""

    def put(self, principal: Principal) -> None:
        """Write somebody, over what was there."""
        ...

    def grant(self, grant: Grant) -> int:
        """Write a grant; its number."""
        ...

    def delegate(self, delegation: Delegation) -> int:
        """Write a delegation; its number."""
        ...

    def absent(self, absence: Absence) -> int:
        """Write an absence; its number."""
        ...

    def delegation(self, number: int) -> Delegation | None:
        """One delegation, be it over or not."""
        ...

    def absence(self, number: int) -> Absence | None:
        """One absence, be it over or not."""
        ...

    def end(self, kind: Literal["grant", "delegation", "absence"], number: int, at: datetime) -> None:
        """Have a period end at an instant."""
        ...

    def note(self, change: Change) -> None:
        """Write down what was changed."""
        ...


class People(Protocol):
    """The people of all tenants."""

    def looking(self, tenant: str) -> AbstractContextManager[DirectoryLook]:
        """A look at those of one tenant."""
        ...

    def changing(self, tenant: str) -> AbstractContextManager[DirectoryUnit]:
        """A transaction on them: committed at the end of the block, rolled back when it raises."""
        ...


Row = Sequence[Any]


def principal(row: Row) -> Principal:
    """Somebody, as the directory keeps him."""
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
    """A role that somebody has."""
    return Grant(id=row[0], begins_at=row[1], ends_at=row[2], principal=row[3], role=row[4])


def delegation(row: Row) -> Delegation:
    """Who stands in for whom."""
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
    """Who is away."""
    return Absence(id=row[0], begins_at=row[1], ends_at=row[2], principal=row[3], reason=row[4])
