"""What was changed that is no instance, as the database keeps it: added to, and never rewritten."""

from __future__ import annotations

from typing import Protocol

import msgspec

from standfast.kernel.row_kinds.changes import Change


class ChangeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Which changes are wanted, newest first; what is empty does not matter."""

    tenant: str
    subject: str = ""
    name: str = ""
    """Only together with a subject."""
    actor: str = ""
    before: int = 0
    """Those before the change with this number; 0 for the newest."""
    limit: int = 100


class Changes(Protocol):
    """The changes of all tenants."""

    def add(self, change: Change) -> None:
        """Write a change down, unless the same call wrote it before."""
        ...

    def page(self, query: ChangeQuery) -> list[Change]:
        """A page of them."""
        ...


class ChangingParts(Protocol):
    """The side of a store that keeps changes."""

    def changes(self) -> Changes:
        """For whoever changes something, and for auditors."""
        ...
