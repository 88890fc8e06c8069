"""What organisations say of their documents, as the database keeps it: versions that never change."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec


class StoredCharter(msgspec.Struct, frozen=True, kw_only=True):
    """One version of the rules for a type of documents, or of the settings of an organisation."""

    tenant: str
    name: str
    """`rules:<type>`, or `settings`."""
    version: int
    """Counted from 1, for each name."""
    body: bytes
    """Rules or settings, as JSON."""
    comment: str
    published_by: str
    published_at: datetime


class StoredCharters(Protocol):
    """The charters of all tenants."""

    def publish(self, charter: StoredCharter, *, replaces: int | None = None) -> StoredCharter | None:
        """Store a version behind the newest one, whatever number it is given; that one stays if it says the same. What is newest now.

        None, and nothing is stored, if the newest one is not the one that it is to replace; 0 replaces none.
        """
        ...

    def get(self, tenant: str, name: str, version: int = 0) -> StoredCharter | None:
        """One version; 0 is the newest."""
        ...

    def listed(self, tenant: str, *, name: str = "") -> list[StoredCharter]:
        """All versions by name, each oldest first; of one charter if it is named."""
        ...
