"""Instances of the engine's own deciders that callers name: how they are found, by whom, and what it takes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from holdfast.app.desk import Desk, checked_key, nothing
from holdfast.app.rights import permit
from holdfast.errors import NotFoundError
from holdfast.kernel.decision import NOT_ALLOWED, Rejection
from holdfast.runtime.commit.submissions import receipt_key
from holdfast.store.reading import Reader
from holdfast.store.shapes import Address, Header, InstanceQuery

S = TypeVar("S")
V = TypeVar("V")

DELETED = "deleted"
"""The reason of the status of one that is no more, and whose id can be taken again."""
_PAGE = 500


class Kept:
    """Schedules, batches: what is kept under an id of a tenant, and is found by who belongs to its part of it."""

    def __init__(self, desk: Desk, word: str, definition: str, kind: str) -> None:
        self._desk = desk
        self._word = word
        """What one of them is called."""
        self._query = InstanceQuery(definition=definition, kinds=(kind,), limit=_PAGE)

    def check(self, capability: str, what: str) -> None:
        """ForbiddenError unless whoever calls has a capability."""
        actor = self._desk.request.actor
        if actor.may(capability) or self._desk.looked_up().request.actor.may(capability):
            return
        told = f"{actor.id!r} may not {what}: that takes the capability {capability!r}"
        permit(Rejection(code=NOT_ALLOWED, message=told))

    def address(self, name: str) -> Address:
        """Where commands for it go."""
        return Address(tenant=self._desk.tenant, definition=self._query.definition, key=name)

    def named(self, name: object) -> str:
        """The id of one of them."""
        return checked_key(name, self._word)

    def send(self, name: str, command: object, command_id: str = "", *, may_create: bool = False) -> None:
        """Have a command carried out."""
        address = self.address(name)
        receipt = receipt_key(address, checked_key(command_id, "command id", may_be_empty=True))
        self._desk.command(address, command, nothing, receipt=receipt, may_create=may_create).result()

    def found(self, name: str, kind: type[S]) -> tuple[Header, S]:
        """One that is there; NotFoundError if not, or not for whoever asks."""
        with self._desk.reader.look() as reader:
            return self.visible(reader, name), self.state(reader, name, kind)

    def visible(self, reader: Reader, name: str) -> Header:
        """The row of one that is there, for whoever asks."""
        found = self.header(reader, name)
        if found is None or found.reason == DELETED or self.is_hidden(found):
            raise NotFoundError(self._word, name)
        return found

    def header(self, reader: Reader, name: str) -> Header | None:
        """The row of one, whoever's it is."""
        return next(iter(reader.instances(replace(self._query, key=name, limit=1))), None)

    def is_hidden(self, header: Header | None) -> bool:
        """Whether it belongs to another part of the tenant than the one that whoever asks is bound to."""
        bound = self._desk.request.partition
        return bool(bound) and header is not None and header.partition != bound

    def state(self, reader: Reader, name: str, kind: type[S]) -> S:
        """Where one of them stands."""
        tracked = self._desk.folded(reader, self.address(name))
        assert tracked is not None
        assert isinstance(tracked.state, kind)
        return tracked.state

    def listed(
        self, reader: Reader, show: Callable[[Header], V], *, wanted: Callable[[V], bool], after: str, limit: int
    ) -> list[V]:
        """A page of them, the newest first."""
        before = self.visible(reader, self.named(after)).id if after else None
        shown: list[V] = []
        while True:
            page = reader.instances(replace(self._query, before=before))
            for header in page:
                if header.reason == DELETED or self.is_hidden(header):
                    continue
                found = show(header)
                shown += [found] if wanted(found) else []
                if len(shown) == limit:
                    return shown
            if len(page) < _PAGE:
                return shown
            before = page[-1].id
