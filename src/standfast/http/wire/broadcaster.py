"""Broadcasts stored events to streams: one feed reader per process, however many streams there are.

Changes of lists are encoded once for all subscribers.
"""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import Awaitable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from itertools import chain
from typing import Final, TypeVar
from uuid import UUID

import msgspec

from standfast.app.engine import Engine
from standfast.features.access.views import Written
from standfast.http.wire.options import HttpOptions

_encode = msgspec.json.Encoder(enc_hook=str).encode


FLOOD: Final = 100
"""Up to this many events are sent one by one."""


class Changed(msgspec.Struct, frozen=True, kw_only=True):
    """Sent to subscribers of a list: a run has a new event; in a burst, the newest of each run."""

    id: str
    definition: str
    sequence: int
    type: str


class News:
    """The new events of one tenant, shared by all its subscribers."""

    def __init__(self, items: Sequence[Written]) -> None:
        self.items = items

    @functools.cached_property
    def told(self) -> bytes:
        """As it goes over the wire."""
        return changes(self.items)

    def behind(self, position: int) -> News:
        """Return the events after a position: nearly always all of them."""
        if not self.items or self.items[0].position > position:
            return self
        return News([each for each in self.items if each.position > position])


def changes(items: Sequence[Written]) -> bytes:
    """Return the changed runs, each with its position as id.

    In a burst each run is sent once, with its latest state.
    """
    newest = {each.instance.int: each for each in items} if len(items) > FLOOD else {}
    shown = sorted(newest.values(), key=lambda each: each.position) if newest else items
    return b"".join(
        event(
            "changed",
            Changed(id=str(each.instance), definition=each.definition, sequence=each.sequence, type=each.type),
            each.position,
        )
        for each in shown
    )


def event(name: str, data: object, identity: int) -> bytes:
    """One server-sent event."""
    return b"".join((f"id: {identity}\nevent: {name}\ndata: ".encode(), _encode(data), b"\n\n"))


_Place = TypeVar("_Place", str, UUID)

_log = logging.getLogger("standfast.http")
_PAGE: Final = 5000
_PAUSE_SECONDS: Final = 1.0
"""Pause after a database error."""


class StreamSubscriber:
    """A stream's subscription: the events since the last read, of one tenant, or of one of its runs."""

    def __init__(self, tenant: str, run: UUID | None, backlog: int) -> None:
        self.tenant = tenant
        self.run = run
        self.is_behind = False
        """Whether more was written than is kept for it."""
        self._backlog = backlog
        self._news: list[News] = []
        self._bell = asyncio.Event()

    def hear(self, news: News) -> None:
        """Add events. A single batch never overflows, so that a client that keeps up is never behind."""
        self._news.append(news)
        if len(self._news) > 1 and sum(len(each.items) for each in self._news) > self._backlog:
            self._news.clear()
            self.is_behind = True
        self._bell.set()

    def ring(self) -> None:
        """Have it look, although nothing was written."""
        self._bell.set()

    async def wait(self, seconds: float) -> bool:
        """Whether something was written in this time."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._bell.wait()
        return self._bell.is_set()

    def take(self) -> list[News]:
        """Return the events since the last call, in order."""
        self._bell.clear()
        found, self._news = self._news, []
        return found


class EventBroadcaster:
    """Reads the feed while streams are open, and wakes the subscribers that an event concerns."""

    def __init__(self, engine: Engine, options: HttpOptions) -> None:
        self._engine = engine
        self._options = options
        self._lists: dict[str, set[StreamSubscriber]] = {}
        """Subscribers by tenant, so that an event wakes only those that it concerns."""
        self._runs: dict[UUID, set[StreamSubscriber]] = {}
        """Subscribers by run."""
        self._task: asyncio.Task[None] | None = None
        self.position = 0
        """How far the feed was read."""
        self.is_open = True
        """Whether streams go on; they end when the server does."""
        self._closing = asyncio.Event()

    def watching(self, watcher: StreamSubscriber) -> AbstractContextManager[None]:
        """Ring for a watcher as long as the block lasts."""
        if watcher.run is None:
            return _entered(self._lists, watcher.tenant, watcher)
        return _entered(self._runs, watcher.run, watcher)

    def close(self) -> None:
        """Close all streams, each after its pending events."""
        self.is_open = False
        self._closing.set()
        for watcher in chain.from_iterable((*self._lists.values(), *self._runs.values())):
            watcher.ring()

    async def waited(self, wanted: Awaitable[object]) -> None:
        """Wait for an awaitable, but no longer than streams run; the caller then reports the current state."""
        asked, closing = asyncio.ensure_future(wanted), asyncio.ensure_future(self._closing.wait())
        try:
            await asyncio.wait((asked, closing), return_when=asyncio.FIRST_COMPLETED)
            if asked.done():
                asked.result()
        finally:
            asked.cancel()
            closing.cancel()

    async def begun(self) -> None:
        """Have the feed read; from the position that there is when this returns, nothing is missed."""
        if self._task is None or self._task.done():
            position = (await self._engine.aio.admin.written()).next
            # A faster subscriber has not received the events in between, and holds the reader back.
            if self._task is None or self._task.done():
                self.position = position
                self._task = asyncio.create_task(self._follow())

    @property
    def _is_watched(self) -> bool:
        return bool(self._lists or self._runs)

    async def _follow(self) -> None:
        pause = self._options.stream_interval.total_seconds()
        idle = 0.0
        # A subscriber who came during the last pause has not started another reader.
        while self.is_open and (self._is_watched or idle < self._options.heartbeat.total_seconds()):
            idle = 0.0 if self._is_watched else idle + pause
            try:
                page = await self._engine.aio.admin.written(after=self.position, limit=_PAGE)
            except Exception as error:  # noqa: BLE001 - subscribers wait for later events in any case
                _log.warning("event_feed_unreadable error=%r", error)
                await asyncio.sleep(_PAUSE_SECONDS)
                continue
            self._tell(page.items)
            self.position = page.next
            if len(page.items) < _PAGE:
                # In a burst each delivery slows the writers down, and a little later there is hardly more to deliver.
                await asyncio.sleep(pause if len(page.items) <= FLOOD else 2 * pause)

    def _tell(self, items: Sequence[Written]) -> None:
        """Deliver events: all of them to subscribers of lists, a wake-up to subscribers of a run."""
        if self._runs:
            for run in {each.instance for each in items}:
                for watcher in self._runs.get(run, ()):
                    watcher.ring()
        by_tenant: dict[str, list[Written]] = {}
        for each in items:
            by_tenant.setdefault(each.tenant, []).append(each)
        for tenant, theirs in by_tenant.items():
            news = News(theirs)
            for watcher in self._lists.get(tenant, ()):
                watcher.hear(news)


@contextmanager
def _entered(
    listening: dict[_Place, set[StreamSubscriber]], place: _Place, watcher: StreamSubscriber
) -> Iterator[None]:
    listening.setdefault(place, set()).add(watcher)
    try:
        yield
    finally:
        listening[place].discard(watcher)
        if not listening[place]:
            del listening[place]
