"""What organisations have published for themselves: approval chains, rules and settings of their documents, contracts and bodies; and the seals of their histories."""

from __future__ import annotations

from typing import Protocol

from standfast.store.ports.blueprints import Blueprints
from standfast.store.ports.seals import Seals
from standfast.store.ports.versioned_settings import Editions


class OrganisationParts(Protocol):
    """The sides of a store that know it."""

    def chains(self) -> Editions:
        """For whoever resolves approval chains."""
        ...

    def charters(self) -> Editions:
        """For what organisations say of their documents."""
        ...

    def seals(self) -> Seals:
        """For whoever seals histories."""
        ...

    def blueprints(self) -> Blueprints:
        """For whoever publishes contracts and bodies."""
        ...
