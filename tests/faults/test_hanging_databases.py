"""A database that neither answers nor breaks: whoever waits for it waits alone, and what is asked about the server is answered."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from datetime import timedelta

import httpx
import msgspec
import psycopg
import pytest

from api.serving import served
from devserver.postgres import Server, temporary_server
from standfast import Engine, Saga
from standfast.http import HttpOptions
from standfast.store.opening import open_store
from support.engines import QUICK
from support.waiting import comes_to_an_end, eventually

ORDER = Saga("order").step("ship", lambda: {"parcel": 77}).build()


@contextmanager
def standing_still(server: Server) -> Iterator[None]:
    """All of a server's processes are stopped while the block lasts: connections stay, and nobody answers on them."""
    with psycopg.connect(server.dsn(), autocommit=True) as connection:
        found = connection.execute("select pid from pg_stat_activity where pid <> pg_backend_pid()").fetchall()
    pids = [server.pid, *(pid for (pid,) in found)]
    stopped = []
    for pid in pids:
        try:
            os.kill(pid, signal.SIGSTOP)
        except ProcessLookupError:  # One that has just ended.
            continue
        stopped.append(pid)
    try:
        yield
    finally:
        for pid in stopped:
            with suppress(ProcessLookupError):  # The others must go on all the same.
                os.kill(pid, signal.SIGCONT)


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of its own, which can be stopped."""
    with temporary_server() as made:
        yield made


@pytest.fixture
def engine(server: Server) -> Iterator[Engine]:
    """An engine on a database of its own, which knows a workflow."""
    url = server.create_database("hanging")
    open_store(url).close()
    engine = Engine(url, settings=QUICK).register(ORDER)
    try:
        yield engine
    finally:
        engine.stop()
        server.drop_database("hanging")


def test_a_loop_goes_on_while_the_database_hangs(server: Server, engine: Engine) -> None:
    """A start whose workflow this process has yet to look up waits for the database on another thread than that of the loop."""

    async def begin() -> str:
        with standing_still(server):
            begun = asyncio.ensure_future(engine.aio.start("order"))
            await asyncio.sleep(0)
            assert not begun.done()
        return (await (await begun).describe()).definition

    def run() -> None:
        assert asyncio.run(begin()) == "order"

    comes_to_an_end(run)


def test_who_asks_whether_a_server_is_well_is_answered_while_its_database_hangs(server: Server, engine: Engine) -> None:
    """Starts hang for as long as the database does; meanwhile the process says that it lives, that requests should go elsewhere, and its figures."""
    with (
        served(engine, HttpOptions(), insecure_dev=True) as address,
        httpx.Client(base_url=address, timeout=20) as client,
    ):
        assert client.get("/readyz").status_code == 200
        with standing_still(server):
            with pytest.raises(httpx.ReadTimeout):
                client.post("/api/v1/executions", json={"definition": "order"}, timeout=0.2)
            assert client.get("/healthz").status_code == 200
            assert client.get("/readyz").status_code == 503
            figures = client.get("/metrics", timeout=8).text  # Whoever collects them waits for ten seconds.
            assert "standfast_healthy 1" in figures
            assert "standfast_backlog" not in figures
        eventually(lambda: client.get("/readyz").status_code == 200)


def test_a_start_waits_for_a_database_that_is_away(server: Server, engine: Engine) -> None:
    """Whatever a start has to look up first: it waits as long as every command does, and is carried out when the database is back."""
    with ThreadPoolExecutor(1) as pool:
        server.stop("immediate")
        begun = pool.submit(engine.start, "order")
        server.start()
        assert begun.result(timeout=60).describe().definition == "order"


def test_nobody_restarts_a_process_because_its_database_is_away(server: Server) -> None:
    """A server whose worker and commands all wait for the database is not well and not ready, and is left alone: a restart would cure nothing."""
    url = server.create_database("left_alone")
    open_store(url).close()
    settings = msgspec.structs.replace(QUICK, unhealthy_after=timedelta(seconds=2), patience=timedelta(seconds=30))
    with (
        ThreadPoolExecutor(1) as pool,
        Engine(url, settings=settings).register(ORDER) as engine,
        served(engine, insecure_dev=True) as address,
    ):
        engine.start_worker()
        server.stop("immediate")
        begun = pool.submit(engine.start, "order")
        problems = eventually(lambda: len(found := engine.health().problems) > 3 and found)
        assert not engine.health().needs_restart, problems
        assert httpx.get(f"{address}/healthz").status_code == 200
        assert httpx.get(f"{address}/readyz").status_code == 503
        server.start()
        eventually(lambda: httpx.get(f"{address}/readyz").status_code == 200)
        begun.result(timeout=30)
    server.drop_database("left_alone")
