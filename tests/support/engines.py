"""Fixtures for tests of whole engines, on both stores: `place` for engines that the test drives, `live` for real threads."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from datetime import timedelta
from itertools import count
from pathlib import Path

import pytest

from standfast import CapabilityResolver, Codec, Engine, RetryPolicy, Settings
from standfast.engine.common.clock import ManualClock
from standfast.people.directory import Directory
from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from standfast.testing import ManualEngine
from standfast.testing.manual import START
from support.databases import Databases
from support.folding import assert_folded

STORES = ("sqlite", "postgres")

AT_ONCE = RetryPolicy(max_attempts=3, delay=timedelta(0), jitter=0)

QUICK = Settings(
    lease=timedelta(seconds=1.2),
    beat_interval=timedelta(seconds=0.2),
    poll_interval=timedelta(seconds=0.1),
    timer_poll_interval=timedelta(seconds=0.1),
    retry=AT_ONCE,
    command_retry=AT_ONCE,
)
"""For engines with threads: nothing takes longer than it must."""


class Place:
    """One database with a clock of its own, and the engines that a test opens on it and drives by hand."""

    def __init__(self, store: Store, url: str) -> None:
        self.store = store
        self.url = url
        self.clock = ManualClock(START)
        self.must_fold = True
        """Cleared by the few tests that spoil a history on purpose."""
        self._seeds = count(1)
        self._engines: list[ManualEngine] = []

    def engine(
        self,
        settings: Settings | None = None,
        *,
        directory: Directory | None = None,
        capabilities: CapabilityResolver | Sequence[CapabilityResolver] | None = None,
    ) -> ManualEngine:
        """Another engine, as another process would have it: nothing is shared but the database and the time."""
        seed = next(self._seeds)
        engine = ManualEngine(
            store=self.store,
            settings=settings,
            clock=self.clock,
            seed=seed,
            is_alone=False,
            directory=directory,
            capabilities=capabilities,
        )
        self._engines.append(engine)
        return engine

    def close(self) -> None:
        """Check what the engines left behind, and close them."""
        try:
            for engine in self._engines if self.must_fold else ():
                assert_folded(engine)
        finally:
            for engine in self._engines:
                engine.stop()
            self.store.close()


class Live:
    """One database for engines with threads."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.must_fold = True
        """Cleared by the few tests that leave a database nobody can open."""
        self._engines: list[Engine] = []

    def engine(
        self,
        settings: Settings = QUICK,
        *,
        codec: Codec | None = None,
        clock: ManualClock | None = None,
        directory: Directory | None = None,
        capabilities: CapabilityResolver | Sequence[CapabilityResolver] | None = None,
    ) -> Engine:
        """Another engine, with connections of its own; the test starts it. With a clock it has threads, and time that the test moves."""
        engine = Engine(
            self.url, settings=settings, codec=codec, clock=clock, directory=directory, capabilities=capabilities
        )
        self._engines.append(engine)
        return engine

    def close(self) -> None:
        """Stop all engines and check what they left behind."""
        for engine in self._engines:
            engine.stop(timedelta(seconds=5))
        proved: set[object] = set()
        for engine in self._engines if self.must_fold else ():
            self._check(engine, proved)

    def _check(self, stopped: Engine, proved: set[object]) -> None:
        store = open_store(self.url, codec=stopped._codec.name)
        witness = ManualEngine(store=store, codec=stopped._codec)
        witness.registry = stopped.registry
        witness.registry.attach(witness.service)
        try:
            assert_folded(witness, proved)
        finally:
            witness.stop()
            store.close()


def _urls(request: pytest.FixtureRequest, stack: ExitStack, file: Callable[[], str]) -> str:
    if request.param == "sqlite":
        return file()
    databases: Databases = request.getfixturevalue("postgres_server")
    return stack.enter_context(databases.warm())


@pytest.fixture(params=STORES)
def place(request: pytest.FixtureRequest) -> Iterator[Place]:
    """A database in memory or on Postgres; afterwards every state must equal the fold of its events."""
    with ExitStack() as stack:
        url = _urls(request, stack, lambda: "sqlite://")
        place = Place(open_store(url), url)
        stack.callback(place.close)
        yield place


@pytest.fixture(params=STORES)
def live(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Live]:
    """A database in a file or on Postgres, for engines with threads; checked like `place`."""
    with ExitStack() as stack:
        live = Live(_urls(request, stack, lambda: f"sqlite:///{tmp_path / 'standfast.db'}"))
        stack.callback(live.close)
        yield live
