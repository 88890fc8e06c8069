"""Servers and workers that are killed under load over HTTP: what was acknowledged is there and finishes, and a repeated key is one run."""

from __future__ import annotations

import random
import socket
import sys
import threading
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from uuid import UUID

import pytest

from cli.programs import Program
from standfast import Engine
from standfast.client import Client, Retries
from standfast.features.runs.views import InstanceSummary
from support.engines import Live
from support.waiting import eventually

SHOP = """
from standfast import Saga

order = (
    Saga("order")
    .step("reserve", lambda number: {"reserved": number}, undo=lambda: None)
    .step("ship", lambda number: {"shipped": number})
    .build()
)
"""
PATIENT = Retries(attempts=500, delay=0.05, longest_delay=0.3)
"""Whoever waits for a server that was killed does not give up before the test does."""


class Plant:
    """A server and a worker on one database, each a process that can be killed and is started anew."""

    def __init__(self, url: str, secret: str, folder: Path) -> None:
        self.secret = secret
        (folder / "killed_shop.py").write_text(SHOP, encoding="utf-8")
        with socket.create_server(("127.0.0.1", 0)) as line:
            self.port = line.getsockname()[1]
        self._environment = {
            "STANDFAST_DATABASE": url,
            "STANDFAST_APP": "killed_shop:order",
            "STANDFAST_SERVE_PORT": str(self.port),
            "STANDFAST_SERVE_REQUESTS_PER_SECOND": "100000",
            "STANDFAST_LEASE": "1200ms",
            "STANDFAST_BEAT_INTERVAL": "200ms",
            "STANDFAST_POLL_INTERVAL": "100ms",
        }
        self._programs: dict[str, Program] = {}

    def begin(self, *words: str) -> None:
        """Start a server or a worker, by the words of its command."""
        program = Program(sys.executable, "-m", "standfast.cli", *words, environment=self._environment)
        self._programs[words[0]] = program
        program.hear(r"serving at|working on")
        program.ignore()

    def kill(self, *words: str) -> None:
        """Kill one of them the hard way, and start another."""
        self._programs[words[0]].close()
        self.begin(*words)

    def close(self) -> None:
        """Leave nothing behind."""
        for each in self._programs.values():
            each.close()


class Buyers:
    """Clients that order without a pause; each start is sent twice under one key, as by somebody who never saw the first answer."""

    def __init__(self, address: str, secret: str) -> None:
        self.acknowledged: dict[str, set[UUID]] = defaultdict(set)
        self._address = address
        self._secret = secret
        self._numbers = count()
        self._ending = threading.Event()
        self._wrong: list[BaseException] = []

    @contextmanager
    def buying(self, clients: int) -> Iterator[None]:
        """Order until the block ends, and then until what was begun is acknowledged."""
        threads = [threading.Thread(target=self._buy, daemon=True) for _ in range(clients)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            self._ending.set()
            for each in threads:
                each.join(90)
        assert self._wrong == []
        assert not any(each.is_alive() for each in threads)

    def await_more(self, count: int) -> None:
        """Wait until so many more orders are acknowledged."""
        enough = len(self.acknowledged) + count
        eventually(lambda: len(self.acknowledged) >= enough, within=60)

    def _buy(self) -> None:
        try:
            with Client(self._address, self._secret, retries=PATIENT) as client:
                while not self._ending.is_set():
                    number = next(self._numbers)
                    for _ in range(2):
                        made = client.start_execution(
                            definition="order", input={"number": number}, idempotency_key=f"k-{number}"
                        )
                        self.acknowledged[f"k-{number}"].add(made.id)
        except Exception as error:  # noqa: BLE001 - told by the thread that looks on
            self._wrong.append(error)


@pytest.fixture
def plant(live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Plant]:
    """A plant on each store."""
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:
        key = live.engine().keys.create("buyer", actor="buyer", capabilities=["execution:start", "execution:read"])
        made = Plant(live.url, key.secret, tmp_path)
        stack.callback(made.close)
        yield made


@pytest.mark.row("D-053", "D-080")
def test_what_a_killed_server_has_acknowledged_is_there_and_finishes(live: Live, plant: Plant) -> None:
    """Server and worker, here in one process, die by SIGKILL while clients order; every acknowledged order is completed, once."""
    both = ("server", "--with-worker")
    plant.begin(*both)
    hammer(live.engine(), plant, kills=[both], clients=3, between=15, seed=1)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(3))
def test_a_campaign_of_kills_under_load(live: Live, plant: Plant, seed: int) -> None:
    """The same for minutes, with a process for each."""
    chance = random.Random(seed)
    kills = [(chance.choice(["server", "worker"]),) for _ in range(20)]
    plant.begin("server")
    plant.begin("worker")
    hammer(live.engine(), plant, kills=kills, clients=8, between=150, seed=seed)


def hammer(
    client: Engine, plant: Plant, *, kills: Sequence[tuple[str, ...]], clients: int, between: int, seed: int
) -> None:
    """Kill while orders come in, and look at what became of all of them."""
    chance = random.Random(seed)
    buyers = Buyers(f"http://127.0.0.1:{plant.port}", plant.secret)
    with buyers.buying(clients):
        for words in kills:
            buyers.await_more(chance.randrange(1, between))
            plant.kill(*words)
        buyers.await_more(between)
    orders = buyers.acknowledged
    assert all(len(each) == 1 for each in orders.values())
    wanted = {each for known in orders.values() for each in known}
    assert len(wanted) == len(orders)
    eventually(lambda: not client.runs.list(is_active=True, limit=1).items, within=120)
    found = all_runs(client)
    assert {each.id for each in found} == wanted
    assert {each.status for each in found} == {"completed"}
    for key, (run,) in orders.items():
        number = int(key.removeprefix("k-"))
        assert client.run(run).describe().result == {"number": number, "reserved": number, "shipped": number}


def all_runs(client: Engine) -> list[InstanceSummary]:
    """Every run that there is."""
    page = client.runs.list(limit=500)
    found = list(page)
    while page.next is not None:
        page = client.runs.list(cursor=page.next, limit=500)
        found += list(page)
    return found
