"""Hints between processes: they may get lost, but one that arrives is passed on, and closing ends the wait."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psycopg
import pytest

from standfast.errors import StoreUnavailableError
from standfast.store.opening import open_store
from standfast.store.ports.store import Store
from support.desks import Desk
from support.rows import (
    born,
)
from support.waiting import LONG_SECONDS


@pytest.fixture
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Store, Store]]:
    """Two stores on one database, as two processes have them."""
    kind: str = request.param
    url = f"sqlite:///{tmp_path / 'store.db'}" if kind == "file" else request.getfixturevalue("postgres_dsn")
    stores = open_store(url), open_store(url)
    yield stores
    for store in stores:
        store.close()


both = pytest.mark.parametrize("pair", ["file", "postgres"], indirect=True)
postgres = pytest.mark.parametrize("pair", ["postgres"], indirect=True)


@both
def test_another_process_hears_of_a_commit(pair: tuple[Store, Store]) -> None:
    """After a commit and its hint the other process is told; how is the store's business."""
    mine, other = pair
    heard: list[str] = []
    ear = other.wakeups(heard.append)
    ear.listen(0.0)
    heard.clear()
    Desk(mine).born(born())
    mouth = mine.wakeups(heard.append)
    if mouth.must_send:
        mouth.send("effects")
    while not heard:
        ear.listen(0.05)
    assert heard == ["effects" if mouth.must_send else ""]
    ear.close()
    mouth.close()


@postgres
def test_a_new_connection_counts_as_a_hint(pair: tuple[Store, Store]) -> None:
    """While nobody listened anything may have happened, so connecting is a hint by itself, also after an outage."""
    mine, _ = pair
    heard: list[str] = []
    ear = mine.wakeups(heard.append)
    ear.listen(0.0)
    assert heard == [""]
    with psycopg.connect(mine._opened.dsn) as admin:  # type: ignore[attr-defined]
        admin.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity where query ilike '%listen standfast%' and pid <> pg_backend_pid()"
        )
    while len(heard) == 1:
        with suppress(StoreUnavailableError):
            ear.listen(0.05)
    assert heard == ["", ""]
    ear.close()


def test_nothing_happened_is_no_hint(tmp_path: Path) -> None:
    """On a file nobody is told of one's own commits; only those of other processes count."""
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    heard: list[str] = []
    ear = store.wakeups(heard.append)
    Desk(store).born(born())
    ear.listen(0.0)
    assert heard == []
    store.close()


@pytest.mark.parametrize("kind", ["file", "memory", "postgres"])
def test_closing_ends_the_wait(request: pytest.FixtureRequest, tmp_path: Path, kind: str) -> None:
    """Whoever waits for hints is released when the listener is closed, at whatever moment."""
    urls = {"file": f"sqlite:///{tmp_path / 'store.db'}", "memory": "sqlite://"}
    store = open_store(urls.get(kind) or request.getfixturevalue("postgres_dsn"))
    for _ in range(10):
        ear = store.wakeups(lambda _: None)
        ear.listen(0.0)
        thread = threading.Thread(target=ear.listen, args=(3600.0,))
        thread.start()
        ear.close()
        thread.join(LONG_SECONDS)
        assert not thread.is_alive()
    store.close()
