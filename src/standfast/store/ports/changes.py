"""Port for the append-only audit of changes to things other than instances."""

from __future__ import annotations

from typing import Protocol

import msgspec

from standfast.kernel.row_kinds.changes import Change


class ChangeQuery(msgspec.Struct, frozen=True, kw_only=True):
    """Filter for changes, newest first. Empty fields match all."""

    tenant: str
    subject: str = ""
    name: str = ""
    """Requires a subject."""
    actor: str = ""
    before: int = 0
    """Only changes before this number. 0 starts with the newest."""
    limit: int = 100


class Changes(Protocol):
    """The audited changes of all tenants."""

    def add(self, change: Change) -> None:
        """Store a change, unless the same call has stored it before."""
        ...

    def page(self, query: ChangeQuery) -> list[Change]:
        """Return a page of changes."""
        ...


class ChangingParts(Protocol):
    """The part of a store that holds changes."""

    def changes(self) -> Changes:
        """Open the audit of changes."""
        ...
