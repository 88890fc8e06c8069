"""Calls of seals: what tells later whether anybody rewrote a history."""

from __future__ import annotations

from datetime import datetime

import msgspec

from standfast.calls.authorization import check_reader, check_repairer, check_unbound
from standfast.calls.context import CallContext, checked_after, checked_limit, checked_text
from standfast.calls.references import checked_instance
from standfast.engine.concurrency.replies import Reply
from standfast.features.operations.sealing import SealCheck, SealedPage, examined, sealed
from standfast.kernel.ids import InstanceId
from standfast.store.ports.seals import StoredSeal


class Seal(msgspec.Struct, frozen=True, kw_only=True):
    """That somebody has sealed the history of an instance up to an event. Its `link` stands for all seals up to it: keep that elsewhere."""

    number: int
    instance: InstanceId
    version: int
    digest: str
    link: str
    sealed_by: str
    sealed_at: datetime


class FutureSeals:
    """Seals of the tenant's histories. They are a chain that is only ever added to; those of the whole tenant, whatever its partitions."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def seal(self, *, cursor: str | None = None, limit: int = 1000) -> Reply[SealedPage]:
        """Seal a stretch of the instances, newest first: each history that has grown since it was sealed last.

        It takes the capability `execution:repair`; have it called every night, say, until `next` is None.
        """

        def act() -> SealedPage:
            check_unbound(self._desk, "seals")
            check_repairer(self._desk)
            after = None if cursor is None else checked_instance(checked_text(cursor, "cursor"))
            return sealed(self._desk, after, checked_limit(limit))

        return self._desk.read(act)

    def verify(self, *, after: int = 0, limit: int = 1000) -> Reply[SealCheck]:
        """Look at the seals behind a number: whether none is missing or was changed, and whether the histories are as they were sealed."""

        def read() -> SealCheck:
            check_unbound(self._desk, "seals")
            check_reader(self._desk)
            return examined(self._desk, checked_after(after), checked_limit(limit))

        return self._desk.read(read)

    def holds(self, number: int, link: str) -> Reply[bool]:
        """Whether the seal with a number is the one whose link was kept elsewhere: then none before it was taken away or made anew."""

        def read() -> bool:
            check_unbound(self._desk, "seals")
            check_reader(self._desk)
            found = _listed(self._desk, max(1, checked_after(number)))
            return found is not None and found.link == checked_text(link, "link")

        return self._desk.read(read)

    def head(self) -> Reply[Seal | None]:
        """The last seal; None if there is none. Whoever keeps its number and link elsewhere can tell later whether seals were taken away or made anew."""

        def read() -> Seal | None:
            check_unbound(self._desk, "seals")
            check_reader(self._desk)
            found = self._desk.service.survey(lambda parts: parts.seals().last(self._desk.tenant))
            return None if found is None else _shown(found)

        return self._desk.read(read)


def _listed(desk: CallContext, number: int) -> StoredSeal | None:
    """One seal of the tenant."""
    found = desk.service.survey(lambda parts: parts.seals().listed(desk.tenant, after=number - 1, limit=1))
    return found[0] if found and found[0].number == number else None


def _shown(seal: StoredSeal) -> Seal:
    return Seal(**{name: getattr(seal, name) for name in Seal.__struct_fields__})
