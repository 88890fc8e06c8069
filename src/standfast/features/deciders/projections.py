"""Calls of projections: how far they have read, reading again, forgetting them."""

from __future__ import annotations

import builtins

from standfast.calls.context import CallContext, checked_key
from standfast.calls.operator_views import ProjectionInfo, shown
from standfast.calls.reply_chaining import and_then
from standfast.engine.concurrency.replies import Reply
from standfast.engine.loops.projections import Projecting
from standfast.errors import ConflictError, NotFoundError
from standfast.store.records.instances import SHARED_TENANT

_MOST_LAG = 10_000
"""Events that a projection has not read are counted up to here."""


class FutureProjections:
    """What operators ask of read models. They are fed with the events of all tenants."""

    def __init__(self, desk: CallContext, projecting: Projecting) -> None:
        self._desk = desk
        self._projecting = projecting

    def list(self) -> Reply[builtins.list[ProjectionInfo]]:
        """How far each projection has read, how much it has still to read, and why it does not go on if it does not."""
        names = self._projecting.names()

        def read() -> list[ProjectionInfo]:
            found = self._desk.service.survey(lambda parts: parts.feed().projections(names, most=_MOST_LAG))
            return [shown(each, ProjectionInfo) for each in found]

        return self._desk.read(read)

    def rebuild(self, projection: str) -> Reply[None]:
        """Have a projection forget everything and read all events again; the answer is there when it has forgotten."""
        is_inherited = self._desk.service.is_inherited
        begun = None if is_inherited else self._projecting.rebuild_in_turn(projection)
        begun = begun or self._desk.read(lambda: self._projecting.rebuild(projection))
        change = self._desk.changed("projection", projection, "rebuild", tenant=SHARED_TENANT)

        def told(_done: None) -> Reply[None]:
            return self._desk.read(lambda: self._desk.record(change, lambda _parts: None))

        return and_then(begun, told, self._desk.reply())

    def drop(self, projection: str) -> Reply[None]:
        """Forget how far a projection has read that no process feeds any more: finished instances are not kept for it. Its tables stay."""

        def drop() -> None:
            checked_key(projection, "projection")
            if projection in self._projecting.names():
                raise ConflictError(f"this process feeds the projection {projection!r}: drop it once no process does")
            change = self._desk.changed("projection", projection, "drop", tenant=SHARED_TENANT)
            if not self._desk.record(change, lambda parts: parts.feed().drop(projection)):
                raise NotFoundError("projection", projection)

        return self._desk.act(drop)
