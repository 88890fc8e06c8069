"""Seals of histories as the database keeps them: a chain for each tenant, which is only ever added to."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

import msgspec

from standfast.kernel.codec.canonical import canonical_hash
from standfast.kernel.hash_chain import Sealed, told_at
from standfast.kernel.ids import InstanceId


class StoredSeal(msgspec.Struct, frozen=True, kw_only=True):
    """That somebody has sealed the history of an instance up to an event."""

    tenant: str
    number: int
    """Counted from 1, for each tenant."""
    instance: InstanceId
    version: int
    """The last event that it covers."""
    digest: str
    """The end of the chain of these events."""
    link: str
    """The hash of this seal and of the link before it."""
    sealed_by: str
    sealed_at: datetime


class Seals(Protocol):
    """The seals of all tenants."""

    def add(self, tenant: str, sealed: Sequence[Sealed], *, by: str, at: datetime) -> list[StoredSeal]:
        """Put seals behind the last one of the tenant, in one transaction."""
        ...

    def of(self, tenant: str, instances: Sequence[InstanceId]) -> list[StoredSeal]:
        """The seals of these instances, oldest first."""
        ...

    def listed(self, tenant: str, *, after: int = 0, limit: int = 1000) -> list[StoredSeal]:
        """Those behind a number, oldest first."""
        ...

    def last(self, tenant: str) -> StoredSeal | None:
        """The last one of a tenant."""
        ...


def link_of(previous: str, seal: StoredSeal) -> str:
    """The hash of a seal and of the link before it."""
    told = [previous, seal.tenant, seal.number, str(seal.instance), seal.version, seal.digest, seal.sealed_by]
    return canonical_hash([*told, told_at(seal.sealed_at)])


def chained(
    tenant: str, previous: StoredSeal | None, sealed: Sequence[Sealed], *, by: str, at: datetime
) -> list[StoredSeal]:
    """Seals behind another one."""
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
