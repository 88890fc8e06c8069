"""The Postgres server dies and comes back under load: what was acknowledged is there, and the engine goes on by itself."""

from __future__ import annotations

import random
import threading
from collections import Counter as Tally
from datetime import timedelta

import msgspec
import pytest

from devserver.postgres import Server, temporary_server
from standfast import Engine, StandfastError
from standfast.store.opening import open_store
from support.engines import QUICK, Live
from support.samples import Act, Do, Ledger, Puppet, act
from support.waiting import eventually

SETTINGS = msgspec.structs.replace(QUICK, patience=timedelta(seconds=30))


class Load:
    """Callers that note words, and remember which of them were acknowledged."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._call, args=(number,)) for number in range(4)]
        self.acknowledged = Ledger()
        self.unknown = Ledger()
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End the calls; each of them is answered."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(60)
            assert not thread.is_alive(), "a caller was never answered"

    def _call(self, number: int) -> None:
        step = 0
        while not self._is_over.is_set():
            word, step = f"{number}.{step}", step + 1
            error = self._engine.futures.deciders.execute(Puppet, Do(f"p-{step % 5}", word)).exception(timeout=60)
            if error is None:
                self.acknowledged.add(word)
            else:
                assert isinstance(error, StandfastError)
                assert error.retryable
                self.unknown.add(word)


def noted(engine: Engine) -> Tally[str]:
    """How often each word is noted."""
    states = [engine.futures.deciders.state(Puppet, f"p-{number}").result(timeout=60) for number in range(5)]
    return Tally(word for state in states for word in state)


def is_idle(engine: Engine) -> bool:
    """Whether nothing is left to do; a connection that broke unnoticed may need a second look."""
    reply = engine.futures.admin.backlog()
    return reply.exception(timeout=60) is None and not reply.result()


def campaign(server: Server, *, cycles: int, seed: int) -> None:
    """Restart the server under load, and check what is left."""
    chance = random.Random(seed)
    url = server.create_database(f"campaign_{seed}")
    open_store(url).close()
    live, done = Live(url), Ledger()
    engine = live.engine(SETTINGS).register(Puppet(act), lambda context, effect: done.add(effect)).start_worker()
    load = Load(engine)
    for _ in range(cycles):
        before = len(load.acknowledged.entries)
        eventually(lambda before=before: len(load.acknowledged.entries) > before + chance.randrange(5, 50))  # type: ignore[misc]
        server.stop("immediate")
        server.start()
    before = len(load.acknowledged.entries)
    eventually(lambda: len(load.acknowledged.entries) > before, within=60)
    load.stop()
    eventually(lambda: is_idle(engine), within=60)
    words = noted(engine)
    assert max(words.values()) == 1, "nothing counts twice"
    assert set(load.acknowledged.entries) <= set(words), "what was acknowledged is there"
    assert set(words) <= {*load.acknowledged.entries, *load.unknown.entries}
    assert {Act(word) for word in words} <= set(done.entries), "every effect was done"
    eventually(lambda: engine.health().is_healthy, within=60)
    live.close()


def test_acknowledged_commands_survive_the_servers_death() -> None:
    """The server quits without a goodbye, twice, while commands and effects are under way."""
    with temporary_server() as server:
        campaign(server, cycles=2, seed=1)


@pytest.mark.row("D-079")
def test_an_engine_stops_although_its_database_is_gone() -> None:
    """Nobody is there to say goodbye to: the engine leaves all the same, and whoever waits is answered."""
    with temporary_server() as server:
        engine = (
            Engine(server.dsn(), settings=SETTINGS).register(Puppet(act), lambda context, effect: None).start_worker()
        )
        engine.futures.deciders.execute(Puppet, Do("p-1", "x")).result(timeout=30)
        server.stop("immediate")
        reply = engine.futures.deciders.execute(Puppet, Do("p-1", "y"))
        engine.stop(timedelta(seconds=1))
        assert isinstance(reply.exception(timeout=30), StandfastError)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(5))
def test_a_campaign_of_restarts(seed: int) -> None:
    """The same, five restarts for each seed."""
    with temporary_server() as server:
        campaign(server, cycles=5, seed=seed)
