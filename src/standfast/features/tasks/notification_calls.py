"""Calls of people: what they were told in the application."""

from __future__ import annotations

from heapq import merge
from itertools import islice

from standfast.calls.context import CallContext, checked_after, checked_limit
from standfast.engine.concurrency.replies import Reply
from standfast.errors import NotFoundError
from standfast.features.runs import views
from standfast.features.tasks.authorization import authority_at
from standfast.store.ports.notifications import Reader, Recipient
from standfast.store.ports.store import StoreParts

_LAST = 2**63 - 1
"""No id is higher."""


class FutureNotifications:
    """What the actor of these calls (`acting`) was told, by name or by role; what was told to a role, each reads for themselves."""

    def __init__(self, desk: CallContext) -> None:
        self._desk = desk

    def mine(
        self, *, unread: bool = False, after: views.Notification | int | None = None, limit: int = 100
    ) -> Reply[list[views.Notification]]:
        """What the actor was told, newest first; with `unread` only what was not read. Give the last one as `after` for the next page."""

        def read() -> list[views.Notification]:
            last = after.id if isinstance(after, views.Notification) else after
            before = _LAST if last is None else checked_after(last)
            most, tenant, within = checked_limit(limit), self._desk.tenant, self._desk.request.partition
            lists, who = self._lists()
            found = self._desk.service.survey(
                lambda parts: [
                    parts.notifications().page(
                        tenant, each, who=who, unread=unread, before=before, limit=most, partition=within
                    )
                    for each in lists
                ]
            )
            newest = islice(merge(*found, key=lambda each: -each.id), most)
            return [views.notification(each) for each in newest]

        return self._desk.consult(read)

    def count_unread(self) -> Reply[int]:
        """How much the actor was told and has not read."""

        def count() -> int:
            lists, who = self._lists()
            return self._desk.service.survey(lambda parts: self._unread(parts, lists, who))

        return self._desk.consult(count)

    def mark_read(self, notification: views.Notification | int) -> Reply[None]:
        """The actor has read this; NotFoundError if it was told to somebody else."""

        def mark() -> None:
            number = checked_after(notification.id if isinstance(notification, views.Notification) else notification)
            now = self._desk.service.shared.clock.now()
            tenant, within = self._desk.tenant, self._desk.request.partition
            lists, who = self._lists()

            def is_there(parts: StoreParts) -> bool:
                side = parts.notifications()
                return any(side.mark_read(tenant, each, number, now, who=who, partition=within) for each in lists)

            if not self._desk.operate(is_there, may_repeat=True):
                raise NotFoundError("notification", number)

        return self._desk.consult(mark)

    def mark_all_read(self) -> Reply[int]:
        """The actor has read everything; how much of it was not read before."""

        def mark() -> int:
            now = self._desk.service.shared.clock.now()
            tenant, within = self._desk.tenant, self._desk.request.partition
            lists, who = self._lists()

            def all_of(parts: StoreParts) -> int:
                count = self._unread(parts, lists, who)
                for each in lists:
                    parts.notifications().mark_all_read(tenant, each, now, who=who, partition=within)
                return count

            return self._desk.operate(all_of)

        return self._desk.consult(mark)

    def _unread(self, parts: StoreParts, lists: list[Recipient], who: Reader) -> int:
        tenant, within = self._desk.tenant, self._desk.request.partition
        side = parts.notifications()
        return sum(side.count_unread(tenant, each, who=who, partition=within) for each in lists)

    def _lists(self) -> tuple[list[Recipient], Reader]:
        """The lists of the actor and of the roles that the request and the directory give, and who reads them."""
        actor = authority_at(self._desk).actor
        roles = tuple(sorted(actor.roles))
        return [Recipient("user", actor.id), *(Recipient("role", each) for each in roles)], Reader(
            actor.id, roles, actor.on_behalf_of
        )
