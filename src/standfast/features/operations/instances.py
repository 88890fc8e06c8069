"""Calls of instances of any kind, workflows and deciders alike: listing, proving, deleting them."""

from __future__ import annotations

import builtins
from collections.abc import Mapping, Sequence
from datetime import datetime

import msgspec

from standfast.calls.authorization import check_reader
from standfast.calls.context import CallContext, checked_instant, checked_limit, checked_text
from standfast.calls.operator_views import InstanceInfo, shown
from standfast.calls.references import InstanceLike, checked_instance
from standfast.engine.concurrency.replies import Reply
from standfast.errors import PayloadError
from standfast.features.deciders.deletion import delete_instance
from standfast.features.deciders.verification import Verification
from standfast.features.operations.restore import SentEffect, sent
from standfast.features.operations.seals import proved
from standfast.graph.model import KINDS
from standfast.kernel.codec.type_cache import settled
from standfast.kernel.decider import Decider
from standfast.kernel.decision import Attribute
from standfast.store.records.instances import InstanceQuery


class FutureInstances:
    """What operators ask of instances, whatever they are instances of."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def list(  # noqa: PLR0913 - filters, all by name
        self,
        *,
        definition: str = "",
        version: str | int = "",
        kind: str = "",
        status: str | Sequence[str] = (),
        key: str = "",
        parent: InstanceLike | None = None,
        attributes: Mapping[str, Attribute] | None = None,
        created_after: datetime | None = None,
        created_before: datetime | None = None,
        before: InstanceLike | None = None,
        limit: int = 100,
    ) -> Reply[builtins.list[InstanceInfo]]:
        """A page of instances, newest first; give the last one as `before` for the next page.

        `status` is one or several words as they are stored: those of a decider are its own. `attributes` are values that decisions gave
        them to be found by.
        """

        def read() -> list[InstanceInfo]:
            check_reader(self._desk)
            query = _checked_query(
                definition=definition,
                definition_version=str(version),
                kinds=(kind,) if kind else () if definition else self._kinds(),
                statuses=(status,) if isinstance(status, str) and status else tuple(status),
                key=key,
                parent=None if parent is None else checked_instance(parent),
                attributes=attributes or {},
                created_after=checked_instant(created_after, "created_after"),
                created_before=checked_instant(created_before, "created_before"),
                before=None if before is None else checked_instance(before),
                limit=checked_limit(limit),
            )
            return [shown(each, InstanceInfo) for each in self._desk.reader.instances(query)]

        return self._desk.read(read)

    def _kinds(self) -> tuple[str, ...]:
        """What is listed where nothing is asked for by name: the engine's own instances, such as published events, are not."""
        return tuple({*KINDS, Decider.kind, *self._desk.registry.kinds()})

    def verify(self, instance: InstanceLike) -> Reply[Verification]:
        """Fold the whole history of an instance again and compare it with what is stored: its row, its state, its seals, and what a workflow shows."""

        def prove() -> Verification:
            check_reader(self._desk)
            return proved(self._desk, checked_instance(instance))

        return self._desk.read(prove)

    def sent(self, keys: Sequence[str]) -> Reply[builtins.list[SentEffect]]:
        """What the database knows of effects that receivers have seen, by their idempotency keys: for whoever has restored it from a backup.

        Those that are `again` or `lost` were sent after the restore point, and nothing here knows that; at most 10,000 keys at once.
        """

        def read() -> builtins.list[SentEffect]:
            check_reader(self._desk)
            return sent(self._desk, keys)

        return self._desk.read(read)

    def delete(self, instance: InstanceLike, *, force: bool = False, reason: str = "") -> Reply[None]:
        """Delete a finished instance, whole. The only deletion there is; its command ids are remembered all the same.

        It takes the capability `execution:repair`.
        ConflictError if it is still needed: work that it asked for is not done, something of it gave up, a message for it waits, or a
        projection has not read its events. `force` deletes it with all that. A run that a saga or a document has called stays until that
        one has ended, also by force: a rollback may have it undone.
        """
        return self._desk.act(
            lambda: delete_instance(self._desk, checked_instance(instance), force=force, reason=reason)
        )


def _checked_query(**given: object) -> InstanceQuery:
    """A query with values that every database takes."""
    try:
        query = msgspec.convert(given, settled(InstanceQuery))
    except msgspec.ValidationError as error:
        raise PayloadError(f"the list asks for what cannot be: {error}") from error
    told = (query.definition, query.definition_version, query.key, *query.kinds, *query.statuses)
    for each in (*told, *query.attributes, *query.attributes.values()):
        if isinstance(each, str):
            checked_text(each, "filter of the list")
    return query
