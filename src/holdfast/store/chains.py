"""Approval chains as the database keeps them: versions that never change."""

from __future__ import annotations

from datetime import datetime
from typing import Protocol

import msgspec


class StoredChain(msgspec.Struct, frozen=True, kw_only=True):
    """One version of a chain."""

    tenant: str
    name: str
    version: int
    """Counted from 1, for each name."""
    stages: bytes
    description: str
    published_by: str
    published_at: datetime


class Chains(Protocol):
    """The chains of all tenants."""

    def publish(self, chain: StoredChain) -> StoredChain:
        """Store a version behind the newest one, whatever number it is given; that one stays if it says the same. What is newest now."""
        ...

    def get(self, tenant: str, name: str, version: int = 0) -> StoredChain | None:
        """One version; 0 is the newest."""
        ...

    def listed(self, tenant: str, *, name: str = "") -> list[StoredChain]:
        """All versions by name, each oldest first; of one chain if it is named."""
        ...
