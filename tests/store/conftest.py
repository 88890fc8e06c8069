"""The contract suite runs over every kind of store: a test that takes `store` or `desk` runs once on each."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from support.desks import Desk

NewDatabase = Callable[[], AbstractContextManager[str]]


@pytest.fixture
def new_database(request: pytest.FixtureRequest) -> NewDatabase:
    """How a test comes to a database of Postgres: to one that is like new, with sessions that others have had."""
    return lambda: request.getfixturevalue("postgres_server").warm()


@pytest.fixture(params=["file", "memory", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path, new_database: NewDatabase) -> Iterator[str]:
    """The URL of a store of the test's own, of each kind in turn."""
    if request.param == "postgres":
        with new_database() as dsn:
            yield dsn
    else:
        yield f"sqlite:///{tmp_path / 'store.db'}" if request.param == "file" else "sqlite://"


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A store of each kind in turn."""
    opened = open_store(store_url)
    yield opened
    opened.close()


@pytest.fixture
def desk(store: Store) -> Desk:
    """The parts of such a store."""
    return Desk(store)
