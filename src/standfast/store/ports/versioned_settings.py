"""What an organisation has published under a name, as the database keeps it: versions that never change."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """One version: of an approval chain, of the rules for a type of documents, or of an organisation's settings."""

    tenant: str
    name: str
    version: int
    """Counted from 1, for each name."""
    content: bytes
    """What was published, as JSON."""
    note: str
    published_by: str
    published_at: datetime


class Editions(Protocol):
    """What all tenants have published of one kind."""

    def publish(self, edition: Edition, *, replaces: int | None = None) -> Edition | None:
        """Store a version behind the newest one, whatever number it is given; that one stays if it says the same. What is newest now.

        None, and nothing is stored, if the newest one is not the one that it is to replace; 0 replaces none.
        """
        ...

    def get(self, tenant: str, name: str, version: int = 0) -> Edition | None:
        """One version; 0 is the newest."""
        ...

    def listed(self, tenant: str, *, name: str = "") -> list[Edition]:
        """All versions by name, each oldest first; of one name if it is given."""
        ...
