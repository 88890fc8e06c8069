"""Server-sent events: of one run, of all runs, of somebody's inbox. A client that comes back goes on behind the last event that it has."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any, Final
from uuid import UUID

import msgspec

from holdfast.app.access_views import Written
from holdfast.errors import NotFoundError
from holdfast.http.hub import Watcher
from holdfast.http.problems import EdgeCode, EdgeError
from holdfast.http.routing import Call, Stream

_encode = msgspec.json.Encoder(enc_hook=str).encode
_KEPT_ALIVE: Final = b": still here\n\n"
_PAGE: Final = 500
_DIGITS: Final = len(str(2**63))
_REMEMBERED: Final = 10_000
"""Runs of which a stream remembers whether they are of its part."""
_COUNT_SECONDS: Final = 1.0
"""How often an inbox is counted at most."""
_TASKS: Final = ("task_", "people_", "step_", "workflow_")
"""How names of events begin after which an inbox may have changed."""


class Resync(msgspec.Struct, frozen=True, kw_only=True):
    """Told to a client that is too far behind: it reads anew, and goes on from here."""

    position: int


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """Told to those who look at a list: this run has an event more."""

    id: str
    definition: str
    sequence: int
    type: str


class Part:
    """The part of a tenant that somebody is bound to, or all of it. What is written does not say of which part it is, so runs are looked up, each once."""

    def __init__(self, call: Call[Any, Any]) -> None:
        self._calls = call.calls
        self._is_whole = not call.identity.partition
        self._known: dict[UUID, bool] = {}

    async def has(self, written: Written) -> bool:
        """Whether something was written about a run of this part."""
        if self._is_whole:
            return True
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
    async for chunk in rest:
        yield chunk


async def run_events(call: Call[Any, Any]) -> AsyncIterator[bytes]:
    """The history of a run as it grows, each entry with its sequence as id; `end` when the run has ended."""
    run, server, after = call.run, call.server, _last(call)
    ends_at = time.monotonic() + server.options.stream_lifetime.total_seconds()
    watcher = Watcher(call.identity.tenant, run.id, server.options.stream_backlog)
    with server.room.place(call.identity.account), server.hub.watching(watcher):
        await server.hub.begun()
        newest = (await run.describe()).version
        yield _KEPT_ALIVE
        if newest - after > server.options.stream_backlog or after > newest:
            after = newest
            yield _event("resync", Resync(position=after), after)
        while server.hub.is_open and time.monotonic() < ends_at:
            watcher.take()
            for entry in (page := await run.history(after=after, limit=_PAGE)):
                after = entry.sequence
                yield _event("entry", entry, after)
            if not page and (found := await run.describe()).is_terminal and found.version <= after:
                yield _event("end", found, after)
                return
            if not page and not await watcher.wait(server.options.heartbeat.total_seconds()):
                yield _KEPT_ALIVE


async def list_events(call: Call[Any, Any]) -> AsyncIterator[bytes]:
    """That runs of the tenant have changed, or of the part of it that the caller is bound to, each with its position as id."""
    server, last, part = call.server, _last(call), Part(call)
    ends_at = time.monotonic() + server.options.stream_lifetime.total_seconds()
    watcher = Watcher(call.identity.tenant, None, server.options.stream_backlog)
    with server.room.place(call.identity.account), server.hub.watching(watcher):
        await server.hub.begun()
        yield _KEPT_ALIVE
        for chunk in await _missed(call, last, part):
            yield chunk
        while server.hub.is_open and time.monotonic() < ends_at:
            if not await watcher.wait(server.options.heartbeat.total_seconds()):
                yield _KEPT_ALIVE
                continue
            if watcher.is_behind:
                watcher.is_behind = False
                yield _event("resync", Resync(position=server.hub.position), server.hub.position)
            for written in watcher.take():
                if await part.has(written):
                    yield _changed(written)


async def inbox_events(call: Call[Any, Any]) -> AsyncIterator[bytes]:
    """How many questions wait for the caller, whenever that has changed."""
    server = call.server
    ends_at = time.monotonic() + server.options.stream_lifetime.total_seconds()
    watcher = Watcher(call.identity.tenant, None, server.options.stream_backlog)
    with server.room.place(call.identity.account), server.hub.watching(watcher):
        await server.hub.begun()
        counts = await call.calls.tasks.counts()
        yield _event("counts", counts, server.hub.position)
        counted_at = time.monotonic()
        while server.hub.is_open and time.monotonic() < ends_at:
            if not await watcher.wait(server.options.heartbeat.total_seconds()):
                yield _KEPT_ALIVE
                continue
            rest = counted_at + _COUNT_SECONDS - time.monotonic()
            news = [*watcher.take(), *([] if rest <= 0 else await _settled(watcher, rest))]
            if not watcher.is_behind and not any(each.type.startswith(_TASKS) for each in news):
                continue
            watcher.is_behind, counted_at, before = False, time.monotonic(), counts
            counts = await call.calls.tasks.counts()
            if counts != before:
                yield _event("counts", counts, server.hub.position)


async def _settled(watcher: Watcher, seconds: float) -> list[Written]:
    """What else is written in a while, so that a burst is counted once."""
    found: list[Written] = []
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0 and await watcher.wait(left):
        found += watcher.take()
    return found


async def _missed(call: Call[Any, Any], last: int, part: Part) -> list[bytes]:
    """What a client that comes back has missed; `resync` if that is too much, or if nobody knows."""
    hub, most = call.server.hub, call.server.options.stream_backlog
    if not last:
        return []
    page = await call.engine.admin.written(after=last, limit=most + 1)
    if len(page.items) > most or last > hub.position:
        return [_event("resync", Resync(position=hub.position), hub.position)]
    own = [each for each in page.items if each.tenant == call.identity.tenant and each.position <= hub.position]
    return [_changed(each) for each in own if await part.has(each)]


def _changed(written: Written) -> bytes:
    told = Changed(
        id=str(written.instance), definition=written.definition, sequence=written.sequence, type=written.type
    )
    return _event("changed", told, written.position)


def _last(call: Call[Any, Any]) -> int:
    """The id of the last event that a client has; 0 if it has none."""
    given = call.headers.get("last-event-id", "")
    if not given:
        return 0
    if not (given.isascii() and given.isdecimal() and len(given) < _DIGITS):
        raise EdgeError(EdgeCode.BAD_HEADER, "Last-Event-ID is the id of an event of this stream")
    return int(given)


def _event(name: str, data: object, identity: int) -> bytes:
    return b"".join((f"id: {identity}\nevent: {name}\ndata: ".encode(), _encode(data), b"\n\n"))
