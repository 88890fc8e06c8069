"""Routes of in-app notifications."""

from __future__ import annotations

import msgspec

from standfast.features.runs.views import Notification
from standfast.http.requests.routing import NoQuery, Paged, Route, RouteCall, Subject
from standfast.http.routes.workflows.dead_letters import numbered
from standfast.http.wire import paging as cursors
from standfast.http.wire.paging import Listing


class NotificationQuery(Paged, frozen=True, kw_only=True):
    """The filters of a list of notifications."""

    unread: bool = False


class Count(msgspec.Struct, frozen=True, kw_only=True):
    """A count."""

    count: int


async def list_notifications(call: RouteCall[NotificationQuery, None]) -> Listing[Notification]:
    """List the caller's notifications, newest first."""
    size, last = call.page(call.query.limit), cursors.counted(call.query.cursor)
    found = await call.calls.notifications.mine(unread=call.query.unread, after=last or None, limit=size + 1)
    return cursors.listing(found, size, lambda each: each.id)


async def count_unread(call: RouteCall[NoQuery, None]) -> Count:
    """Count the caller's unread notifications."""
    return Count(count=await call.calls.notifications.count_unread())


async def mark_read(call: RouteCall[NoQuery, None]) -> None:
    """Mark a notification as read."""
    await call.calls.notifications.mark_read(numbered(call.path["number"], "notification"))


async def mark_all_read(call: RouteCall[NoQuery, None]) -> Count:
    """Mark all notifications as read; return how many were unread."""
    return Count(count=await call.calls.notifications.mark_all_read())


_NOTIFICATIONS = Subject("notifications", "/api/v1/notifications", "notification:use", "own")

ROUTES: tuple[Route, ...] = (
    _NOTIFICATIONS.get("", list_notifications, query=NotificationQuery, answer=Listing[Notification]),
    _NOTIFICATIONS.get("/unread-count", count_unread, answer=Count),
    _NOTIFICATIONS.post("/read-all", mark_all_read, answer=Count),
    _NOTIFICATIONS.post("/{number}/read", mark_read),
)
