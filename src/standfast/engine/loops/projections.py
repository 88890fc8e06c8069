"""Projections: read models built from events. A model in the same database sees each event exactly once."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Protocol

import msgspec

from standfast.engine.commit.context import EngineContext
from standfast.engine.common.clock import Clock
from standfast.engine.common.health import Watched
from standfast.engine.common.operator_watch import WorkSwitch
from standfast.engine.common.work_errors import as_exception, describe
from standfast.engine.concurrency.loop import Chores, IsolatedTasks
from standfast.engine.concurrency.replies import Reply
from standfast.errors import ConfigurationError, NotFoundError, StoppedError
from standfast.kernel.codec.message_types import name_flaw
from standfast.kernel.ids import InstanceId
from standfast.kernel.program import Programs
from standfast.store.ports.reading import Feed
from standfast.store.records.queries import FedEvent

_log = logging.getLogger("standfast.projections")

_UNREAD = object()


class ProjectedEvent:
    """An event as projections receive it. The data is decoded on access."""

    __slots__ = ("_event", "_fed", "_programs")

    def __init__(self, fed: FedEvent, programs: Programs) -> None:
        self._fed = fed
        self._programs = programs
        self._event: object = _UNREAD

    @property
    def event(self) -> object:
        """The event as an object of its decider. None if this process does not know the decider.

        Raises UnknownEventError if it knows the decider but not this event; the projection then waits for a process
        with newer code. An event of the engine, such as `$timer_cancelled`, is returned as plain data.
        """
        if self._event is _UNREAD:
            self._event = self._decoded()
        return self._event

    @property
    def type(self) -> str:
        """The stored type name of the event."""
        return self._fed.type

    @property
    def version(self) -> int:
        """The version of the type."""
        return self._fed.version

    @property
    def data(self) -> bytes:
        """The stored bytes of the event."""
        return self._fed.data

    @property
    def definition(self) -> str:
        """Type of the decider, or name of the workflow."""
        return self._fed.definition

    @property
    def definition_version(self) -> str:
        """Version of the workflow. Empty for deciders."""
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
        """Sequence number in the history of the instance, from 1."""
        return self._fed.sequence

    @property
    def position(self) -> int:
        """Position in the order of all events of the database."""
        return self._fed.position

    @property
    def tenant(self) -> str:
        """The tenant that the instance belongs to."""
        return self._fed.tenant

    @property
    def at(self) -> datetime:
        """Time of the commit."""
        return self._fed.at

    @property
    def actor(self) -> str:
        """The actor whose request led to the event."""
        return self._fed.actor

    @property
    def on_behalf_of(self) -> str:
        """The person for whom the actor acted. Empty if the actor acted for itself."""
        return self._fed.on_behalf_of

    @property
    def trace(self) -> str:
        """Trace of the request that the event follows from. Empty without one."""
        return self._fed.trace

    @property
    def comment(self) -> str:
        """The comment on the command."""
        return self._fed.comment

    @property
    def cause(self) -> str:
        """Id of the command, effect or timer that caused the event."""
        return self._fed.cause

    def __repr__(self) -> str:
        return f"ProjectedEvent({self.definition} {self.key or self.instance} {self.sequence}: {self.type})"

    def _decoded(self) -> object:
        fed = self._fed
        if fed.is_system:
            return msgspec.json.decode(fed.data)
        try:
            program = self._programs(fed.tenant, fed.definition, fed.definition_version)
        except NotFoundError:
            return None
        return program.decode(fed)


class Projection(Protocol):
    """A read model.

    It receives every event once and in order, and cannot change a workflow. Only a rebuild calls `clear`.
    """

    name: str
    """Name of its checkpoint."""

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        """Apply events. Writes with the connection commit together with the checkpoint."""
        ...

    def clear(self, connection: object) -> None:
        """Delete the model's data, because a rebuild begins."""
        ...


_SHAPE = "a projection has `name`, `apply(events, connection)` and, to be rebuilt, `clear(connection)`"


def _check(projection: object) -> None:
    """Raise unless the object is a valid projection."""
    if isinstance(projection, type):
        raise ConfigurationError(f"a projection is registered as an object: project({projection.__name__}())")
    kind, name = type(projection).__name__, getattr(projection, "name", None)
    if not isinstance(name, str) or not name:
        raise ConfigurationError(f"the {kind} object has no text `name`, under which its checkpoint is kept; {_SHAPE}")
    if flaw := name_flaw(name):
        raise ConfigurationError(f"the name {name!r} of a projection {flaw}; its checkpoint is kept under it")
    if not callable(getattr(projection, "apply", None)):
        raise ConfigurationError(f"the {kind} object has no method `apply(events, connection)`; {_SHAPE}")


class _Fed:
    """A projection that this process feeds. A failing one is delayed, and reported if it does not recover."""

    def __init__(self, projection: Projection, clock: Clock, *, limit: float) -> None:
        self.projection = projection
        self._clock = clock
        self.name = f"projection {projection.name!r}"
        self._limit = limit
        """Seconds for which it may fail."""
        self._paused_until = 0.0
        """In ticks of the engine's clock, like all times here."""
        self._pause = 0.0
        """Seconds. 0 while it succeeds."""
        self._failing_since: float | None = None
        self._error = ""

    @property
    def is_paused(self) -> bool:
        """Whether it is delayed after a failure."""
        return self._clock.ticks() < self._paused_until

    def fail(self, error: str, *, shortest: float, longest: float) -> float:
        """Delay it, longer after each failure. Return the seconds."""
        now = self._clock.ticks()
        self._pause = min(max(self._pause * 2, shortest), longest)
        self._paused_until = now + self._pause
        self._error = error
        self._failing_since = now if self._failing_since is None else self._failing_since
        return self._pause

    def go_on(self) -> None:
        """Reset the delay after a success or at a rebuild."""
        self._paused_until = self._pause = 0.0
        self._failing_since = None

    def problem(self) -> str:
        """Describes why it does not progress. Empty if it does."""
        since = self._failing_since
        late = 0.0 if since is None else self._clock.ticks() - since
        return f"has not gone on for {late:.0f} s: {self._error}" if since is not None and late >= self._limit else ""


class Projecting:
    """Feeds the projections. A single thread steps it; any thread may request a rebuild."""

    def __init__(self, open_feed: Callable[[], Feed], shared: EngineContext, switch: WorkSwitch) -> None:
        self._open_feed = open_feed
        self._feed = open_feed()
        self._shared = shared
        self._projections: dict[str, _Fed] = {}
        self._rebuilds: list[Reply[None]] = []
        """Requested rebuilds that are not done yet."""
        self._lock = threading.Lock()
        self._is_running = False
        self._switch = switch
        """Off in maintenance mode: no projection is fed."""
        self._rebuilding = threading.Lock()
        self._spare: Feed | None = None
        self.chores = Chores("rebuilds", limit=shared.settings.unhealthy_after.total_seconds())

    def add(self, projection: Projection) -> None:
        """Feed this projection too."""
        _check(projection)
        if projection.name in self._projections:
            raise ConfigurationError(f"there is already a projection {projection.name!r}")
        fed = _Fed(projection, self._shared.clock, limit=self._shared.settings.unhealthy_after.total_seconds())
        self._projections = {**self._projections, projection.name: fed}
        self.chores.wake()

    def parts(self) -> list[Watched]:
        """The parts with a health check."""
        return list(self._projections.values())

    def look(self) -> None:
        """Check for new events. Without projections no thread is woken."""
        if self._projections:
            self.chores.wake()

    def start(self) -> None:
        """Note that a loop steps it from now on."""
        with self._lock:
            self._is_running = True

    def stop(self) -> None:
        """Note that no loop steps it, and fail the pending rebuilds."""
        with self._lock:
            self._is_running = False
            waiting, self._rebuilds = self._rebuilds, []
        for reply in waiting:
            reply.set_error(StoppedError("the engine was stopped before the projection was rebuilt"))

    def step(self) -> float:
        """Feed each projection a batch of events."""
        self.chores.run()
        if self._feed_all():
            return 0.0
        return self._shared.settings.poll_interval.total_seconds()

    def drain(self) -> int:
        """Feed all pending events. Return how many were applied, counted once per projection."""
        done = 0
        while count := self._feed_all():
            done += count
        return done

    def names(self) -> list[str]:
        """The names of the projections of this process."""
        return sorted(self._projections)

    def rebuild_in_turn(self, name: str) -> Reply[None] | None:
        """Request a rebuild from the loop that feeds the projection, on its own thread and connection.

        Return None if no loop runs.
        """
        reply: Reply[None] = Reply()
        with self._lock:
            if not self._is_running:
                return None
            self._rebuilds.append(reply)
        self.chores.add(partial(self._rebuild_now, name, reply))
        return reply

    def rebuild(self, name: str) -> None:
        """Rebuild a projection while no loop of this process feeds it.

        It uses its own connection and one thread at a time. The lock of the checkpoint excludes the loops of other
        processes.
        """
        with self._rebuilding:
            self._spare = self._spare or self._open_feed()
            self._rewind(self._spare, name)

    def _rebuild_now(self, name: str, reply: Reply[None]) -> None:
        with self._lock:
            if reply not in self._rebuilds:
                return  # The requester already has an error.
            self._rebuilds.remove(reply)
        try:
            self._rewind(self._feed, name)
        except BaseException as error:  # noqa: BLE001 - it belongs to the requester
            reply.set_error(error)
        else:
            reply.set_result(None)

    def _rewind(self, feed: Feed, name: str) -> None:
        fed = self._projections.get(name)
        if fed is None:
            raise NotFoundError("projection", name)
        if not callable(getattr(fed.projection, "clear", None)):
            raise ConfigurationError(
                f"the projection {name!r} has no method `clear(connection)`, with which a rebuild begins; give it one that empties the model"
            )
        feed.rewind(name, clear=fed.projection.clear, now=self._shared.clock.now())
        fed.go_on()

    def _feed_all(self) -> int:
        """Feed each projection a batch.

        A failing one does not stop the others; the first error is raised at the end.
        """
        turns = IsolatedTasks()
        fed = () if self._switch.is_off else self._projections.values()
        done = sum(turns.take(partial(self._feed_one, each), 0) for each in fed)
        turns.end()
        return done

    def _feed_one(self, fed: _Fed) -> int:
        if fed.is_paused:
            return 0
        settings, clock, projection = self._shared.settings, self._shared.clock, fed.projection
        apply = partial(self._apply, projection)
        try:
            count = self._feed.advance(projection.name, limit=settings.projection_batch, apply=apply, now=clock.now())
        except Exception as error:  # noqa: BLE001 - a failing projection must not affect the others or a workflow
            # If the database is gone, this raises too, and the failure is not the projection's.
            told, longest = describe(error), settings.longest_projection_pause.total_seconds()
            self._feed.fail(projection.name, error=told, now=clock.now())
            seconds = fed.fail(told, shortest=settings.projection_pause.total_seconds(), longest=longest)
            _log.error("projection_failed projection=%r retry_in=%.1f", projection.name, seconds, exc_info=error)
            return 0
        fed.go_on()
        return count

    def _apply(self, projection: Projection, events: Sequence[FedEvent], connection: object) -> None:
        """Apply events to a projection. Whatever it raises is raised as an Exception."""
        programs = self._shared.programs
        try:
            projection.apply([ProjectedEvent(each, programs) for each in events], connection)
        except Exception:
            raise
        except BaseException as error:
            raise as_exception(error) from error
