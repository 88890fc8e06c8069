"""Server-sent events: of one run, of all runs, of a user's inbox.

A reconnecting client continues after its last event.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from typing import Annotated, Final
from uuid import UUID

import msgspec

from standfast.errors import NotFoundError, StandfastError
from standfast.features.access.views import Written
from standfast.http.requests.routing import AnyCall, Stream
from standfast.http.wire.broadcaster import News, StreamSubscriber, changes, event
from standfast.http.wire.problems import EdgeCode, EdgeError

_log = logging.getLogger("standfast.http")
_KEPT_ALIVE: Final = b": still here\n\n"
_PAGE: Final = 500
_DIGITS: Final = len(str(2**63))
_REMEMBERED: Final = 10_000
"""Number of runs whose partition a stream caches."""
_COUNT_SECONDS: Final = 1.0
"""How often an inbox is counted at most."""
_TASKS: Final = ("task_", "people_", "step_", "workflow_")
"""How names of events begin after which an inbox may have changed."""


class Resync(msgspec.Struct, frozen=True, kw_only=True):
    """Sent to a client that is too far behind: it reloads the list, and continues from here."""

    position: int


class StreamPart:
    """The partition of a stream's caller, or the whole tenant.

    Events do not carry a partition, so each run is looked up once.
    """

    def __init__(self, call: AnyCall) -> None:
        self._calls = call.calls
        self._is_whole = not call.identity.partition
        self._known: dict[UUID, bool] = {}

    async def told(self, news: News) -> bytes:
        """Return the encoded events of this partition; callers of the whole tenant share the same bytes."""
        if self._is_whole:
            return news.told
        return changes([each for each in news.items if await self._has(each)])

    async def _has(self, written: Written) -> bool:
        if written.instance not in self._known:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            self._known[written.instance] = await self._finds(written.instance)
        return self._known[written.instance]

    async def _finds(self, run: UUID) -> bool:
        try:
            await self._calls.runs.partition_of(run)
        except NotFoundError:
            return False
        return True


async def streamed(chunks: AsyncIterator[bytes]) -> Stream:
    """A stream that has begun: whatever is to be refused was."""
    first = await anext(chunks)
    return Stream(chunks=_joined(first, chunks))


async def _joined(first: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    try:
        async for chunk in rest:
            yield chunk
    except StandfastError as error:  # The client reconnects, and continues after the last event.
        _log.warning("stream_ended error=%r", error)


class Term:
    """The duration of a stream: until the server stops, its lifetime is over, or the caller loses the credential or the permission."""

    def __init__(self, call: AnyCall) -> None:
        self._call = call
        options = call.server.options
        self._pause = options.heartbeat.total_seconds()
        self._looks_at = time.monotonic() + self._pause
        """When the credential is looked at again."""
        self._ends_at = time.monotonic() + options.stream_lifetime.total_seconds()

    async def lasts(self) -> bool:
        """Whether there is more to tell."""
        now = time.monotonic()
        if not self._call.server.hub.is_open or now >= self._ends_at:
            return False
        if now < self._looks_at:
            return True
        self._looks_at = now + self._pause
        try:
            return await self._call.revisit() == self._call.identity
        except EdgeError:
            return False
        except StandfastError as error:
            return error.retryable  # Credentials cannot be checked while the database is unavailable.


async def run_events(call: AnyCall) -> AsyncIterator[bytes]:
    """The history of a run as it grows, each entry with its sequence as id; `end` when the run has ended."""
    run, server, after = call.run, call.server, _last(call) or 0
    term = Term(call)
    watcher = StreamSubscriber(call.identity.tenant, run.id, server.options.stream_backlog)
    with server.room.place(call.identity.account), server.hub.watching(watcher):
        await server.hub.begun()
        newest = (await run.describe()).version
        yield _KEPT_ALIVE
        if newest - after > server.options.stream_backlog or after > newest:
            after = newest
            yield _resync(after)
        while await term.lasts():
            watcher.take()
            for entry in (page := await run.history(after=after, limit=_PAGE)):
                after = entry.sequence
                yield event("entry", entry, after)
            if not page and (found := await run.describe()).is_terminal and found.version <= after:
                yield event("end", found, after)
                return
            if not page and not await watcher.wait(server.options.heartbeat.total_seconds()):
                yield _KEPT_ALIVE


async def list_events(call: AnyCall) -> AsyncIterator[bytes]:
    """Stream the changed runs of the tenant, or of the caller's partition, each with its position as id."""
    server, last, part = call.server, _last(call), StreamPart(call)
    term = Term(call)
    watcher = StreamSubscriber(call.identity.tenant, None, server.options.stream_backlog)
    with server.room.place(call.identity.account), server.hub.watching(watcher):
        await server.hub.begun()
        watcher.take()
        begin = server.hub.position
        yield _still_here(begin if last is None else last)
        missed, since = await _missed(call, last, begin, part)
        if missed:
            yield missed
        while await term.lasts():
            if not await watcher.wait(server.options.heartbeat.total_seconds()):
                yield _still_here(max(since, server.hub.position))
                continue
            news = watcher.take()
            if watcher.is_behind:
                watcher.is_behind, since = False, server.hub.position
                yield _resync(since)
                continue
            for each in news:
                if told := await part.told(each.behind(since)):
                    yield told


async def inbox_events(call: AnyCall) -> AsyncIterator[bytes]:
    """Stream the number of the caller's open tasks, on every change."""
    server = call.server
    term = Term(call)
    watcher = StreamSubscriber(call.identity.tenant, None, server.options.stream_backlog)
    with server.room.place(call.identity.account), server.hub.watching(watcher):
        await server.hub.begun()
        counts = await call.calls.tasks.counts()
        yield event("counts", counts, server.hub.position)
        counted_at = time.monotonic()
        while await term.lasts():
            if not await watcher.wait(server.options.heartbeat.total_seconds()):
                yield _KEPT_ALIVE
                continue
            rest = counted_at + _COUNT_SECONDS - time.monotonic()
            news = [*watcher.take(), *([] if rest <= 0 else await _settled(watcher, rest))]
            if not watcher.is_behind and not any(each.type.startswith(_TASKS) for part in news for each in part.items):
                continue
            watcher.is_behind, counted_at, before = False, time.monotonic(), counts
            counts = await call.calls.tasks.counts()
            if counts != before:
                yield event("counts", counts, server.hub.position)


async def _settled(watcher: StreamSubscriber, seconds: float) -> list[News]:
    """Collect further events for a moment, so that a burst is counted once."""
    found: list[News] = []
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and await watcher.wait(left):
        found += watcher.take()
    return found


async def _missed(call: AnyCall, last: int | None, begin: int, part: StreamPart) -> tuple[bytes, int]:
    """Return the events since the client's last one, and the new position; `resync` if there are too many, or if they are unknown."""
    most, admin = call.server.options.stream_backlog, call.engine.admin
    if last is None or last == begin:
        return b"", begin
    if last > begin:  # Another server may have read further than this one has.
        return (b"", last) if last <= (await admin.written()).next else (_resync(begin), begin)
    page = await admin.written(after=last, limit=most + 1)
    if len(page.items) > most:
        return _resync(begin), begin
    own = [each for each in page.items if each.tenant == call.identity.tenant and each.position <= begin]
    return await part.told(News(own)), begin


def _resync(position: int) -> bytes:
    return event("resync", Resync(position=position), position)


def _still_here(position: int) -> bytes:
    """Send a heartbeat without an event; a reconnecting client continues after this position."""
    return f": still here\nid: {position}\n\n".encode()


class StreamQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The start of a stream."""

    last_event_id: Annotated[int, msgspec.Meta(ge=0, lt=10**18)] | None = None
    """As the header `Last-Event-ID`, which counts if both are there: browsers cannot send that with their first request."""


def _last(call: AnyCall) -> int | None:
    """Return the client's `Last-Event-ID`, or the position in the query; None if it sent neither."""
    given = call.headers.get("last-event-id", "")
    if not given:
        asked: StreamQuery = call.query
        return asked.last_event_id
    if not (given.isascii() and given.isdecimal() and len(given) < _DIGITS):
        raise EdgeError(EdgeCode.BAD_HEADER, "Last-Event-ID is the id of an event of this stream")
    return int(given)
