"""For tests that stop engines at every point: a new database for each run on both stores, and a second look at what is left."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from standfast.testing import CrashReport, CrashScenario, ManualEngine, crash_everywhere
from standfast.testing.crashes import histories
from support.databases import Databases
from support.engines import STORES
from support.folding import assert_folded

NewStore = Callable[[], Store]
LEAST = 4
"""So many points has a scenario that is worth the name."""


@pytest.fixture(params=STORES)
def new_store(request: pytest.FixtureRequest) -> Iterator[NewStore]:
    """Makes an empty database each time it is called; on Postgres a copy of the template, which goes with the next call."""
    if request.param == "sqlite":
        yield lambda: open_store("sqlite://")
        return
    databases: Databases = request.getfixturevalue("postgres_server")
    with ExitStack() as stack:

        def make() -> Store:
            stack.close()
            return open_store(stack.enter_context(databases.warm()))

        yield make


def tried(
    scenario: CrashScenario,
    new_store: NewStore,
    *,
    on_server: int = 1,
    again_after: int | None = None,
) -> CrashReport:
    """Crash a scenario at every point on SQLite, and at each so many on Postgres, where a point costs more; the campaign tries all."""
    store = new_store()
    step = 1 if store.url.startswith("sqlite") else on_server
    store.close()
    report = crash_everywhere(checked(scenario), new_store=new_store, every=step, again_after=again_after)
    assert report.points * step >= LEAST, "a scenario with so few points proves nothing"
    return report


def checked(scenario: CrashScenario) -> CrashScenario:
    """The scenario with a second look at what it leaves behind: states are folds of events, and nothing waits."""

    def outcome(engine: ManualEngine) -> object:
        assert_folded(engine)
        told = (scenario.outcome or histories)(engine)
        return told, engine.admin.backlog(), engine.admin.inbox_depth()

    return CrashScenario(prepare=scenario.prepare, play=scenario.play, outcome=outcome)
