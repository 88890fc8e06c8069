"""People as the database keeps them, by tenant. A driver reads and writes; which change is sound is the business of the layers above."""

from __future__ import annotations

from contextlib import AbstractContextManager
from datetime import datetime
from typing import Literal, Protocol

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
