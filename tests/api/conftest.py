"""Fixtures of tests of the HTTP API: worlds on both stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from api.world import World, registered
from standfast.store.opening import open_store
from standfast.testing import ManualEngine
from support.databases import Databases
from support.engines import STORES, live, place

__all__ = ["live", "place"]


@pytest.fixture(scope="module", params=STORES)
def world(request: pytest.FixtureRequest) -> Iterator[World]:
    """A world for all tests of a module, on each store."""
    with ExitStack() as stack:
        url = "sqlite://"
        if request.param == "postgres":
            databases: Databases = request.getfixturevalue("postgres_server")
            url = stack.enter_context(databases.prepared())
        store = open_store(url)
        stack.callback(store.close)
        engine = ManualEngine(store=store)
        stack.callback(engine.stop)
        registered(engine)
        made = World(engine)
        stack.callback(made.close)
        yield made
