"""Port for an organisation's versioned settings: immutable versions under a name."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec


class Edition(msgspec.Struct, frozen=True, kw_only=True):
    """One version of an approval chain, of the rules for a document type, or of an organisation's settings."""

    tenant: str
    name: str
    version: int
    """Counted from 1 for each name."""
    content: bytes
    """The published content as JSON."""
    note: str
    published_by: str
    published_at: datetime


class Editions(Protocol):
    """The published versions of one kind, of all tenants."""

    def publish(self, edition: Edition, *, replaces: int | None = None) -> Edition | None:
        """Store the next version unless the newest one is equal, and return the newest. The store assigns the number.

        Returns None, without storing, if the newest version is not the one to replace. 0 replaces none.
        """
        ...

    def get(self, tenant: str, name: str, version: int = 0) -> Edition | None:
        """Return one version. 0 means the newest."""
        ...

    def listed(self, tenant: str, *, name: str = "") -> list[Edition]:
        """Return all versions by name, each oldest first, for one name if given."""
        ...
