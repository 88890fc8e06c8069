"""Instances that have not ended and that nothing can ever wake: there should never be any, and whoever looks for them finds them here."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple, Protocol

from holdfast.kernel.ids import InstanceId


class Incident(NamedTuple):
    """An instance that nothing can wake."""

    instance: InstanceId
    tenant: str
    definition: str
    since: datetime
    """When something last happened to it."""


class Stretch(NamedTuple):
    """What was found among the next instances."""

    found: list[Incident]
    last: InstanceId | None
    """The last instance that was looked at; None if there is none behind it."""


class Incidents(Protocol):
    """The instances of all tenants, in the order of their ids."""

    def look(self, kinds: Sequence[str], *, after: InstanceId | None, still_since: datetime, limit: int) -> Stretch:
        """Look at the next instances, up to a limit, for those of these kinds that have stood still since before an instant.

        The same counts that `Instances.stuck` counts; the cost is that of the instances that are looked at.
        """
        ...


class IncidentParts(Protocol):
    """The side of a store that knows such instances."""

    def incidents(self) -> Incidents:
        """For whoever looks for instances that nothing can wake."""
        ...
