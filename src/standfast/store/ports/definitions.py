"""Definitions as the database keeps them: stored once, read for ever."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from standfast.store.records.instances import StoredDefinition
from standfast.store.records.queries import ArchivedVersion, Archiving, PublishedDefinition


class Publication(NamedTuple):
    """A definition that is to be stored, and which events start it."""

    definition: StoredDefinition
    triggers: Collection[str] = ()


class ClashError(Exception):
    """Something else is stored under the name and version of one of them: nothing was stored."""

    def __init__(self, clashing: StoredDefinition) -> None:
        super().__init__(clashing.name, clashing.version)
        self.clashing = clashing
        """What is stored."""


class Definitions(Protocol):
    """The definitions of all tenants. Any thread may ask: a definition is met wherever an instance of it is."""

    def publish(
        self, definition: StoredDefinition, now: datetime, *, triggers: Collection[str] = ()
    ) -> StoredDefinition:
        """Store a definition, and which events start it; what is stored under its name and version afterwards.

        A version that exists already stays as it is, whoever stored it: the caller compares the hashes. One that exists as a shared
        definition is not stored again for a tenant.
        """
        ...

    def publish_all(self, publications: Sequence[Publication], now: datetime) -> list[StoredDefinition]:
        """Store several in one transaction, all of them or none; what is stored under each name and version afterwards.

        ClashError if something else is stored under one of them; what is the same already stays as it is.
        """
        ...

    def get(self, tenant: str, name: str, version: str) -> StoredDefinition | None:
        """One version: the tenant's own, or else the shared one."""
        ...

    def versions(self, tenant: str, name: str) -> list[str]:
        """The versions of a tenant's own definition that are in use, oldest first."""
        ...

    def archive(self, tenant: str, name: str, version: str, told: Archiving | None) -> bool:
        """Take a version of a tenant's own definition out of use, or back with None; whether there is one."""
        ...

    def archived(self) -> list[ArchivedVersion]:
        """The versions of all tenants that are out of use, by name, each oldest first."""
        ...

    def names(self) -> set[str]:
        """The names of all definitions, whosever they are."""
        ...

    def listed(self, tenant: str) -> list[PublishedDefinition]:
        """All published versions of a tenant's definitions and of the shared ones, by name, each oldest first."""
        ...

    def triggered(self, tenant: str, event: str) -> list[PublishedDefinition]:
        """Those of them, in all versions, that have a version which the event starts."""
        ...
