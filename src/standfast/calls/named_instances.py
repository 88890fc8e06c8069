"""Instances of the engine's own deciders that callers name: how they are found, and what it takes."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain, islice
from typing import Generic, TypeVar

from msgspec.structs import replace

from standfast.calls.authorization import permit
from standfast.calls.context import CallContext, checked_key
from standfast.engine.commit.cache import CachedInstance
from standfast.engine.commit.submission import CommandOutcome, receipt_key
from standfast.errors import NotFoundError
from standfast.kernel.decision import NOT_ALLOWED, Rejection
from standfast.kernel.ids import InstanceId
from standfast.store.ports.reading import TenantReader
from standfast.store.records.instances import Address, InstanceHeader, InstanceQuery

S = TypeVar("S")
V = TypeVar("V")

DELETED = "deleted"
"""The reason of the status of one that is no more, and whose id can be taken again."""
_PAGE = 500


class NamedInstances(Generic[S]):
    """Schedules, batches: what is kept under an id, which is a name of its partition."""

    def __init__(
        self, desk: CallContext, word: str, kind: type[S], query: InstanceQuery, *, managers: Sequence[str] = ()
    ) -> None:
        self._desk = desk
        self._managers = managers
        """Capabilities that it takes to change one of them, which the commit checks too."""
        self._word = word
        """What one of them is called."""
        self._kind = kind
        self._query = query

    def check(self, capability: str, what: str) -> None:
        """ForbiddenError unless whoever calls has a capability."""
        actor = self._desk.request.actor
        if actor.may(capability) or self._desk.looked_up().request.actor.may(capability):
            return
        told = f"{actor.id!r} may not {what}: that takes the capability {capability!r}"
        permit(Rejection(code=NOT_ALLOWED, message=told))

    def named(self, name: object) -> str:
        """The id of one of them."""
        return checked_key(name, self._word)

    def send(
        self, name: str, command: object, command_id: str = "", *, may_create: bool = False, comment: str = ""
    ) -> CommandOutcome:
        """Have a command carried out; what came of it, or of the same one before."""
        address = self._address(name)
        receipt = receipt_key(address, checked_key(command_id, "command id", may_be_empty=True))
        desk = self._desk.needing(*self._managers) if self._managers else self._desk
        return desk.command(
            address, command, _as_it_is, receipt=receipt, may_create=may_create, comment=comment
        ).result()

    def found(self, name: str) -> tuple[InstanceHeader, S]:
        """One that is there; NotFoundError if not."""
        with self._desk.reader.look() as reader:
            return self.read(reader, name)

    def read(self, reader: TenantReader, name: str) -> tuple[InstanceHeader, S]:
        """The same, as of the moment of other questions."""
        return self._shown(name, self._desk.folded(reader, self._address(name)))

    def _address(self, name: str) -> Address:
        return self._desk.address(self._query.definition, name)

    def _shown(self, name: str, tracked: CachedInstance | None) -> tuple[InstanceHeader, S]:
        if tracked is None or tracked.header.reason == DELETED:
            raise NotFoundError(self._word, name)
        assert isinstance(tracked.state, self._kind)
        return tracked.header, tracked.state

    def listed(
        self,
        reader: TenantReader,
        show: Callable[[InstanceHeader, S], V],
        *,
        before: InstanceId | None,
        limit: int,
    ) -> list[V]:
        """A page of them, the newest first; `before` is the instance of the last one of the page before."""
        found = islice(chain.from_iterable(self.pages(reader, before, limit)), limit)
        states = ((each, self._desk.folded(reader, self._desk.address(instance=each.id))) for each in found)
        return [show(*self._shown(header.key, tracked)) for header, tracked in states]

    def pages(self, reader: TenantReader, before: InstanceId | None, limit: int) -> Iterator[list[InstanceHeader]]:
        """The rows of those that are there behind one of them, the newest first, as many at a time as are wanted."""
        size = min(limit, _PAGE)
        while True:
            page = reader.instances(replace(self._query, before=before, limit=size))
            yield [each for each in page if each.reason != DELETED]
            if len(page) < size:
                return
            before = page[-1].id


def _as_it_is(outcome: CommandOutcome) -> CommandOutcome:
    return outcome
