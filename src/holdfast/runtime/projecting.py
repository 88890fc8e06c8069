"""Projections: read models made from the events, each event exactly once where the model lives in the same database."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import NamedTuple, Protocol

import msgspec

from holdfast.errors import ConfigurationError, NotFoundError, StoppedError
from holdfast.kernel.ids import InstanceId
from holdfast.kernel.program import Programs
from holdfast.runtime.giving_up import describe
from holdfast.runtime.loops import Chores, Turns
from holdfast.runtime.raising import as_exception
from holdfast.runtime.replies import Reply
from holdfast.runtime.shared import Shared
from holdfast.store.findings import FedEvent
from holdfast.store.reading import Feed

_log = logging.getLogger("holdfast.projections")

_UNREAD = object()


class ProjectedEvent:
    """An event as projections get it. What it says is decoded when it is asked for."""

    __slots__ = ("_event", "_fed", "_programs")

    def __init__(self, fed: FedEvent, programs: Programs) -> None:
        self._fed = fed
        self._programs = programs
        self._event: object = _UNREAD

    @property
    def event(self) -> object:
        """The event in the words of its decider; None if this process does not know the decider.

        UnknownEventError if it knows the decider, but not this event: then the projection waits for a process with newer code. For an
        event of the engine, such as `$timer_cancelled`, the plain data.
        """
        if self._event is _UNREAD:
            self._event = self._decoded()
        return self._event

    @property
    def type(self) -> str:
        """The name under which the event is stored."""
        return self._fed.type

    @property
    def version(self) -> int:
        """The version of that name."""
        return self._fed.version

    @property
    def data(self) -> bytes:
        """The event as it is stored."""
        return self._fed.data

    @property
    def definition(self) -> str:
        """Type of the decider, or name of the workflow."""
        return self._fed.definition

    @property
    def definition_version(self) -> str:
        """Version of the workflow; empty for deciders."""
        return self._fed.definition_version

    @property
    def key(self) -> str:
        """Business key of the instance; empty if it has none."""
        return self._fed.key

    @property
    def instance(self) -> InstanceId:
        """The instance that the event belongs to."""
        return self._fed.instance

    @property
    def sequence(self) -> int:
        """Place in the history of the instance, from 1 on."""
        return self._fed.sequence

    @property
    def position(self) -> int:
        """Place in the order of all events of the database."""
        return self._fed.position

    @property
    def tenant(self) -> str:
        """The tenant that the instance belongs to."""
        return self._fed.tenant

    @property
    def at(self) -> datetime:
        """When it was committed."""
        return self._fed.at

    @property
    def actor(self) -> str:
        """Who asked for what led to it."""
        return self._fed.actor

    @property
    def comment(self) -> str:
        """What was said about that."""
        return self._fed.comment

    @property
    def cause(self) -> str:
        """Id of the command, effect or timer that led to it."""
        return self._fed.cause

    def __repr__(self) -> str:
        return f"ProjectedEvent({self.definition} {self.key or self.instance} {self.sequence}: {self.type})"

    def _decoded(self) -> object:
        fed = self._fed
        if fed.is_system:
            return msgspec.json.decode(fed.data)
        try:
            program = self._programs(fed.definition, fed.definition_version)
        except NotFoundError:
            return None
        return program.decode(fed)


class Projection(Protocol):
    """A read model. It sees every event once, in one order, and can never change a workflow."""

    name: str
    """Under which its checkpoint is kept."""

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        """Take in events. What is written with the connection commits together with the checkpoint."""
        ...

    def clear(self, connection: object) -> None:
        """Forget everything: a rebuild begins."""
        ...


class _Pause(NamedTuple):
    """A projection that failed is left alone for a while."""

    until: float
    """Monotonic time."""
    seconds: float


_NO_PAUSE = _Pause(0.0, 0.0)


class Projecting:
    """Feeds the projections. One thread steps it; rebuilds are asked for from any."""

    def __init__(self, open_feed: Callable[[], Feed], shared: Shared) -> None:
        self._open_feed = open_feed
        self._feed = open_feed()
        self._shared = shared
        self._projections: dict[str, Projection] = {}
        self._paused: dict[str, _Pause] = {}
        """Projections that failed."""
        self._rebuilds: list[Reply[None]] = []
        """Asked for and not done yet."""
        self._lock = threading.Lock()
        self._is_running = False
        self._rebuilding = threading.Lock()
        self._spare: Feed | None = None
        self.chores = Chores("rebuilds", limit=shared.settings.unhealthy_after.total_seconds())

    def add(self, projection: Projection) -> None:
        """Feed this projection too."""
        if projection.name in self._projections:
            raise ConfigurationError(f"there is already a projection {projection.name!r}")
        self._projections = {**self._projections, projection.name: projection}
        self.chores.wake()

    def look(self) -> None:
        """There may be events to read. Where nobody reads them, no thread is woken."""
        if self._projections:
            self.chores.wake()

    def start(self) -> None:
        """A loop steps it from now on."""
        with self._lock:
            self._is_running = True

    def stop(self) -> None:
        """No loop steps it any more; whoever still waits for a rebuild is told."""
        with self._lock:
            self._is_running = False
            waiting, self._rebuilds = self._rebuilds, []
        for reply in waiting:
            reply.set_error(StoppedError("the engine was stopped before the projection was rebuilt"))

    def step(self) -> float:
        """Feed each projection a stretch of events."""
        self.chores.run()
        if self._feed_all(time.monotonic()):
            return 0.0
        return self._shared.settings.poll_interval.total_seconds()

    def drain(self) -> int:
        """Feed everything there is; how many events were applied, counted once for each projection."""
        done = 0
        while count := self._feed_all(time.monotonic()):
            done += count
        return done

    def names(self) -> list[str]:
        """The projections of this process."""
        return sorted(self._projections)

    def rebuild_in_turn(self, name: str) -> Reply[None] | None:
        """Have the loop that feeds a projection begin anew with it, on its own thread and connection; None if no loop runs."""
        reply: Reply[None] = Reply()
        with self._lock:
            if not self._is_running:
                return None
            self._rebuilds.append(reply)
        self.chores.add(partial(self._rebuild_now, name, reply))
        return reply

    def rebuild(self, name: str) -> None:
        """Have a projection begin anew while no loop of this process feeds it.

        On a connection of its own, by one thread at a time: the lock of the checkpoint keeps the loops of other processes away.
        """
        with self._rebuilding:
            self._spare = self._spare or self._open_feed()
            self._rewind(self._spare, name)

    def _rebuild_now(self, name: str, reply: Reply[None]) -> None:
        with self._lock:
            if reply not in self._rebuilds:
                return  # Whoever asked was told that it will not come.
            self._rebuilds.remove(reply)
        try:
            self._rewind(self._feed, name)
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever asked
            reply.set_error(error)
        else:
            reply.set_result(None)

    def _rewind(self, feed: Feed, name: str) -> None:
        projection = self._projections.get(name)
        if projection is None:
            raise NotFoundError("projection", name)
        feed.rewind(name, clear=projection.clear, now=self._shared.clock.now())
        self._paused.pop(name, None)

    def _feed_all(self, now: float) -> int:
        """Feed each a stretch of events, so that one that fails keeps no other from its own; the first failure is raised at the end."""
        turns = Turns()
        done = sum(turns.take(partial(self._feed_one, each, now), 0) for each in self._projections.values())
        turns.end()
        return done

    def _feed_one(self, projection: Projection, now: float) -> int:
        pause = self._paused.get(projection.name, _NO_PAUSE)
        if now < pause.until:
            return 0
        settings, clock = self._shared.settings, self._shared.clock
        apply = partial(self._apply, projection)
        try:
            limit = settings.projection_batch
            count = self._feed.advance(projection.name, limit=limit, apply=apply, now=clock.now())
        except Exception as error:  # noqa: BLE001 - a projection that fails must not harm the others, nor any workflow
            # If the database is gone, this raises too, and the failure is not the projection's.
            self._feed.fail(projection.name, error=describe(error), now=clock.now())
            longest = settings.longest_projection_pause.total_seconds()
            seconds = min(max(pause.seconds * 2, settings.projection_pause.total_seconds()), longest)
            self._paused[projection.name] = _Pause(now + seconds, seconds)
            _log.error("projection %s failed; next try in %.1f s", projection.name, seconds, exc_info=error)
            return 0
        self._paused.pop(projection.name, None)
        return count

    def _apply(self, projection: Projection, events: Sequence[FedEvent], connection: object) -> None:
        """Let a projection take in events; whatever it raises comes as an Exception."""
        programs = self._shared.programs
        try:
            projection.apply([ProjectedEvent(each, programs) for each in events], connection)
        except Exception:
            raise
        except BaseException as error:
            raise as_exception(error) from error
