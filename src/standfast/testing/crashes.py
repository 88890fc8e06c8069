"""Crash tests: stop an engine at every commit and handler call, and compare the outcomes.

A scenario is run once to the end. It is then run again for each crash point. At the point the engine is discarded, a
new one opens on the same database, and the old lease expires. The scenario is played once more, as clients without a
response would do. The outcome must equal that of the run without a crash.

A point is a state of the database, the time and the handlers' side effects. Two places without a change in between,
such as after one commit and before the next, are one point: the next engine could not distinguish them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import TypeVar, cast

import msgspec

from standfast.engine.common.clock import ManualClock
from standfast.engine.common.handlers import EffectContext, Function, Handlers
from standfast.engine.common.settings import Settings
from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from standfast.store.records.queries import DueWorkRecord
from standfast.testing.manual import START, ManualEngine

T = TypeVar("T")

_MANY = 10_000
_ID = re.compile(rb"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_HINT = (
    "\nThe histories were compared. Where they may differ, by times or by calls that a crash cut off, say what must not: "
    "Scenario(..., outcome=lambda engine: ...), for example the state of an instance or the statuses of its steps."
)


class Crash(BaseException):
    """The simulated crash of the process. It is no Exception, so that no code in the engine can catch it."""


class CrashScenario(msgspec.Struct, frozen=True, kw_only=True):
    """A scenario of a crash test, and the outcome to compare."""

    prepare: Callable[[ManualEngine], object]
    """Registers deciders and handlers on a new engine."""
    play: Callable[[ManualEngine], object]
    """The actions of clients and time.

    It is played again after a crash, so commands that must count once need a command id.
    """
    outcome: Callable[[ManualEngine], object] | None = None
    """The outcome that must be equal. By default the statuses and histories of all instances, with instance ids
    replaced by their keys.

    Sagas with steps need one of their own: a call that a crash interrupted is part of their history.
    """


class CrashReport(msgspec.Struct, frozen=True, kw_only=True):
    """The result of a crash test."""

    points: int
    """Number of crash points."""
    outcome: object
    """The outcome, equal in all runs."""


def crash_everywhere(
    scenario: CrashScenario,
    *,
    new_store: Callable[[], Store] = lambda: open_store("sqlite://"),
    settings: Settings | None = None,
    every: int = 1,
    again_after: int | None = None,
) -> CrashReport:
    """Run a scenario once for each point at which it can be stopped; AssertionError names the first point that makes a difference.

    Args:
        scenario: what to run, and what to compare.
        new_store: makes an empty database for each run.
        settings: of the engines.
        every: 3 means to try each third point only, for a quick look.
        again_after: crash once more, this many points into the recovery.
    """
    expected, points = _run(scenario, new_store(), settings)
    tried = range(1, points + 1, every)
    for point in tried:
        crashes = (point,) if again_after is None else (point, again_after)
        outcome, _ = _run(scenario, new_store(), settings, *crashes)
        if outcome != expected:
            raise AssertionError(
                f"a crash at point {point} of {points} changes the outcome:\n  {expected!r}\n  {outcome!r}"
                + ("" if scenario.outcome else _HINT)
            )
    if not points:
        raise AssertionError("the scenario has no point at which it could be stopped: it does nothing")
    return CrashReport(points=len(tried), outcome=expected)


def histories(engine: ManualEngine) -> object:
    """Return statuses and histories of all instances, without times, and with instance ids replaced by their keys."""
    headers = engine.instances.list(limit=_MANY)
    reader = engine.service.store.reader(engine.request.tenant)
    whose = {str(head.id).encode(): f"<{head.definition} {head.key}>".encode() for head in headers}

    def told(data: bytes) -> bytes:
        return _ID.sub(lambda found: whose.get(found[0], found[0]), data)

    return sorted(
        (head.definition, head.key, head.status, head.reason, [(e.type, told(e.data)) for e in reader.events(head.id)])
        for head in headers
    )


def _run(scenario: CrashScenario, store: Store, settings: Settings | None, *crashes: int) -> tuple[object, int]:
    """Return the outcome of a run that crashes at these points, in order, and the number of points of its last part."""
    used, clock = settings or Settings(), ManualClock(START)
    try:
        for seed, crash_at in enumerate((*crashes, None), start=1):
            boundary = _Boundary(crash_at, clock)
            engine = ManualEngine(store=_wrapped(store, boundary), settings=used, clock=clock, seed=seed)
            scenario.prepare(engine)
            boundary.wrap_handlers(engine.service.shared.handlers)
            if boundary.survives(scenario.play, engine):
                break
            clock.move(used.lease + timedelta(seconds=1))
        return (scenario.outcome or histories)(engine), boundary.count
    finally:
        store.close()


class _Boundary:
    """Counts the crash points, and raises the crash at one of them."""

    def __init__(self, crash_at: int | None, clock: ManualClock) -> None:
        self._crash_at = crash_at
        self._clock = clock
        self._moves = 0
        self._passed: object = None
        """The state at the last point."""
        self._beaten_at: datetime | None = None
        self.count = 0
        self.is_armed = False

    def survives(self, play: Callable[[ManualEngine], object], engine: ManualEngine) -> bool:
        """Play the scenario up to the crash; return whether it reached its end."""
        self.is_armed = True
        try:
            play(engine)
        except Crash:
            return False
        finally:
            self.is_armed = False
        return True

    def cross(self) -> None:
        """Cross a crash point. After the crash every crossing raises, even if code caught the first crash."""
        if not self.is_armed:
            return
        world = (self._moves, self._clock.now())
        if world != self._passed:
            self._passed = world
            self.count += 1
        if self._crash_at is not None and self.count >= self._crash_at:
            raise Crash

    def move(self) -> None:
        """Record a change: the next place is another point."""
        self._moves += 1

    def beat(self) -> None:
        """Record a heartbeat; two at the same time are one change."""
        now = self._clock.now()
        if now != self._beaten_at:
            self._beaten_at = now
            self.move()

    def wrap_handlers(self, handlers: Handlers) -> None:
        """Wrap handlers in two points: before the call, and after it with nothing stored yet."""
        handlers.wrap(self._wrapped_handler)

    def _wrapped_handler(self, function: Function) -> Function:
        def call(context: EffectContext, effect: object) -> object:
            self.cross()
            try:
                result = function(context, effect)
            finally:
                self.move()
            self.cross()
            return result

        async def call_async(context: EffectContext, effect: object) -> object:
            self.cross()
            try:
                result = await cast("Callable[..., object]", function)(context, effect)  # type: ignore[misc]
            finally:
                self.move()
            self.cross()
            return result

        return call_async if Handlers.is_async(function) else call


def _wrapped(store: Store, boundary: _Boundary) -> Store:
    """Return the store with a crash point before and after every change."""
    return cast("Store", _Wrapped(store, boundary))


_PARTS = {
    *("share", "line", "writer", "effects", "timers", "inbox", "feed", "keeper", "pauses", "notifications"),
    *("workers", "definitions", "people", "chains", "resumes"),
}
_CHANGES = {
    *("write", "accept", "claim", "retry", "release", "bury", "wake", "advance", "requeue", "discard", "delete"),
    *("begin", "end", "stride", "hold_back", "hold_timers", "add", "publish_all"),
}
_QUIET = {
    *("disown", "prune", "tidy", "maintain", "next_number", "retire", "announce", "publish", "record", "refuse"),
    *("enter", "drop", "rewind", "fail", "changing", "note"),
}
"""Changes without a crash point of their own; the next change is another point."""


def _has_changed(name: str, result: object) -> bool:
    """Return whether a call has changed the database: a claim that found no work has not."""
    match name:
        case "claim":
            return bool(result.timers if isinstance(result, DueWorkRecord) else result)
        case "wake":
            return bool(cast("tuple[list[str], object]", result)[0])
        case "advance" | "prune":
            return bool(result)
        case _:
            return True


class _Wrapped:
    """Delegates everything; calls that change the database cross a point before and after."""

    def __init__(self, target: object, boundary: _Boundary) -> None:
        self._target = target
        self._boundary = boundary

    def __getattr__(self, name: str) -> object:
        found = getattr(self._target, name)
        if name in _PARTS:
            return lambda: _Wrapped(found(), self._boundary)
        if name == "unit":
            return self._unit
        if name in _CHANGES:
            return self._crossing(name, found)
        if name == "beat" or name in _QUIET:
            return self._moving(name, found)
        return found

    def _crossing(self, name: str, change: Callable[..., T]) -> Callable[..., T]:
        moving = self._moving(name, change)

        def call(*arguments: object, **options: object) -> T:
            self._boundary.cross()
            result = moving(*arguments, **options)
            self._boundary.cross()
            return result

        return call

    def _moving(self, name: str, change: Callable[..., T]) -> Callable[..., T]:
        def call(*arguments: object, **options: object) -> T:
            try:
                result = change(*arguments, **options)
            except BaseException:  # The outcome of the commit is unknown.
                self._boundary.move()
                raise
            if name == "beat":
                self._boundary.beat()
            elif _has_changed(name, result):
                self._boundary.move()
            return result

        return call

    @contextmanager
    def _unit(self):  # type: ignore[no-untyped-def]  # noqa: ANN202 - a stand-in for the driver's own
        with self._target.unit() as unit:  # type: ignore[attr-defined]
            yield unit
            self._boundary.move()
            self._boundary.cross()
        self._boundary.move()
        self._boundary.cross()
