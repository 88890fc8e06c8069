"""Port for immutable definitions."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from standfast.store.records.instances import StoredDefinition
from standfast.store.records.queries import ArchivedVersion, Archiving, PublishedDefinition


class Publication(NamedTuple):
    """A definition to be stored, with the events that start it."""

    definition: StoredDefinition
    triggers: Collection[str] = ()


class ClashError(Exception):
    """A different definition is stored under the name and version of one of them. Nothing was stored."""

    def __init__(self, clashing: StoredDefinition) -> None:
        super().__init__(clashing.name, clashing.version)
        self.clashing = clashing
        """The stored definition."""


class Definitions(Protocol):
    """The definitions of all tenants. Safe from any thread."""

    def publish(
        self, definition: StoredDefinition, now: datetime, *, triggers: Collection[str] = ()
    ) -> StoredDefinition:
        """Store a definition with its triggers, and return the definition that is then stored under its name and version.

        An existing version is never replaced; the caller compares the hashes. A version that exists as a shared
        definition is not stored again for a tenant.
        """
        ...

    def publish_all(self, publications: Sequence[Publication], now: datetime) -> list[StoredDefinition]:
        """Store several definitions in one transaction, and return the definitions then stored under their names and versions.

        Raises ClashError if a different one is stored under one of them. Equal ones stay as they are.
        """
        ...

    def get(self, tenant: str, name: str, version: str) -> StoredDefinition | None:
        """Return one version: the tenant's own, or else the shared one."""
        ...

    def versions(self, tenant: str, name: str) -> list[str]:
        """Return the active versions of a tenant's own definition, oldest first."""
        ...

    def archive(self, tenant: str, name: str, version: str, told: Archiving | None) -> bool:
        """Archive a version of a tenant's own definition, or restore it with None. Return whether it exists."""
        ...

    def archived(self) -> list[ArchivedVersion]:
        """Return the archived versions of all tenants, by name, each oldest first."""
        ...

    def names(self) -> set[str]:
        """Return the names of all definitions of all tenants."""
        ...

    def listed(self, tenant: str) -> list[PublishedDefinition]:
        """Return all published versions of a tenant's definitions and of the shared ones, by name, each oldest first."""
        ...

    def triggered(self, tenant: str, event: str) -> list[PublishedDefinition]:
        """Return all versions of the definitions that have a version started by the event."""
        ...
