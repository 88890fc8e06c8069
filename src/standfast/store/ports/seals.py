"""Port for seals of histories: an append-only hash chain per tenant."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.hash_chain import Sealed, told_at
from standfast.kernel.ids import InstanceId


class StoredSeal(msgspec.Struct, frozen=True, kw_only=True):
    """A seal over the history of an instance up to an event."""

    tenant: str
    number: int
    """Counted from 1 for each tenant."""
    instance: InstanceId
    version: int
    """The last covered event."""
    digest: str
    """End of the hash chain of these events."""
    link: str
    """Hash of this seal and the previous link."""
    sealed_by: str
    sealed_at: datetime


class Seals(Protocol):
    """The seals of all tenants."""

    def add(self, tenant: str, sealed: Sequence[Sealed], *, by: str, at: datetime) -> list[StoredSeal]:
        """Append seals to the tenant's chain, in one transaction."""
        ...

    def of(self, tenant: str, instances: Sequence[InstanceId]) -> list[StoredSeal]:
        """Return the seals of these instances, oldest first."""
        ...

    def listed(self, tenant: str, *, after: int = 0, limit: int = 1000) -> list[StoredSeal]:
        """Return the seals after a number, oldest first."""
        ...

    def last(self, tenant: str) -> StoredSeal | None:
        """Return the last seal of a tenant."""
        ...


def link_of(previous: str, seal: StoredSeal) -> str:
    """Return the hash of a seal and the previous link."""
    told = [previous, seal.tenant, seal.number, str(seal.instance), seal.version, seal.digest, seal.sealed_by]
    return canonical_hash([*told, told_at(seal.sealed_at)])


def chained(
    tenant: str, previous: StoredSeal | None, sealed: Sequence[Sealed], *, by: str, at: datetime
) -> list[StoredSeal]:
    """Build the seals that follow a previous one."""
    last, link = (0, "") if previous is None else (previous.number, previous.link)
    made = []
    for number, each in enumerate(sealed, start=last + 1):
        seal = StoredSeal(
            tenant=tenant,
            number=number,
            instance=each.instance,
            version=each.version,
            digest=each.digest,
            link="",
            sealed_by=by,
            sealed_at=at,
        )
        link = link_of(link, seal)
        made.append(msgspec.structs.replace(seal, link=link))
    return made
