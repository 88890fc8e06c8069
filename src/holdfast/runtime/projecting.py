"""Projections: read models made from the events, each event exactly once where the model lives in the same database."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from holdfast.errors import ConfigurationError, NotFoundError, StoreUnavailableError
from holdfast.kernel.history import StoredEvent
from holdfast.runtime.giving_up import describe
from holdfast.runtime.loops import Turns
from holdfast.runtime.raising import as_exception
from holdfast.runtime.shared import Shared
from holdfast.store.reading import Feed

_log = logging.getLogger("holdfast.projections")

_MOST = 500
_FIRST_PAUSE_SECONDS, _LONGEST_PAUSE_SECONDS = 0.5, 60.0


class Projection(Protocol):
    """A read model. It sees every event once, in one order, and can never change a workflow."""

    name: str
    """Under which its checkpoint is kept."""

    def apply(self, events: Sequence[StoredEvent], connection: object) -> None:
        """Take in events. What is written with the connection commits together with the checkpoint."""
        ...

    def clear(self, connection: object) -> None:
        """Forget everything: a rebuild begins."""
        ...


class Projecting:
    """Feeds the projections. One thread steps it."""

    def __init__(self, feed: Feed, shared: Shared) -> None:
        self._feed = feed
        self._shared = shared
        self._projections: dict[str, Projection] = {}
        self._paused: dict[str, tuple[float, float]] = {}
        """Projections that failed: when to try again, and how long the pause was."""
        self.wake: Callable[[], None] = lambda: None

    def add(self, projection: Projection) -> None:
        """Feed this projection too."""
        if projection.name in self._projections:
            raise ConfigurationError(f"there is already a projection {projection.name!r}")
        self._projections = {**self._projections, projection.name: projection}
        self.wake()

    def step(self) -> float:
        """Feed each projection a stretch of events."""
        if self._feed_all(time.monotonic()):
            return 0.0
        return self._shared.settings.poll_interval.total_seconds()

    def drain(self) -> int:
        """Feed everything there is; how many events were applied, counted once for each projection."""
        done = 0
        while count := self._feed_all(time.monotonic()):
            done += count
        return done

    def rebuild(self, name: str) -> None:
        """Have a projection begin anew."""
        projection = self._projections.get(name)
        if projection is None:
            raise NotFoundError("projection", name)
        self._feed.rewind(name, clear=projection.clear, now=self._shared.clock.now())
        self._paused.pop(name, None)
        self.wake()

    def _feed_all(self, now: float) -> int:
        """Feed each a stretch of events, so that one that fails keeps no other from its own; the first failure is raised at the end."""
        turns = Turns()
        done = sum(turns.take(partial(self._feed_one, each, now), 0) for each in self._projections.values())
        turns.end()
        return done

    def _feed_one(self, projection: Projection, now: float) -> int:
        again_at, pause = self._paused.get(projection.name, (0.0, 0.0))
        if now < again_at:
            return 0
        try:
            moment = self._shared.clock.now()
            count = self._feed.advance(projection.name, limit=_MOST, apply=_contained(projection), now=moment)
        except StoreUnavailableError:
            raise
        except Exception as error:  # noqa: BLE001 - a projection that fails must not harm the others, nor any workflow
            pause = min(max(pause * 2, _FIRST_PAUSE_SECONDS), _LONGEST_PAUSE_SECONDS)
            self._paused[projection.name] = (now + pause, pause)
            _log.error("projection %s failed; next try in %.1f s", projection.name, pause, exc_info=error)
            self._feed.fail(projection.name, error=describe(error), now=self._shared.clock.now())
            return 0
        self._paused.pop(projection.name, None)
        return count


def _contained(projection: Projection) -> Callable[[Sequence[StoredEvent], object], None]:
    """The projection, with whatever it raises as an Exception."""

    def apply(events: Sequence[StoredEvent], connection: object) -> None:
        try:
            projection.apply(events, connection)
        except Exception:
            raise
        except BaseException as error:
            raise as_exception(error) from error

    return apply
