"""Real processes, really killed: their work is taken over, nothing is lost, and nothing counts twice."""

from __future__ import annotations

import random
import signal
import subprocess
import time
from collections import Counter as Tally
from functools import partial
from pathlib import Path

import pytest

from standfast import Engine
from support.engines import Live
from support.laborer import Book, laborer
from support.samples import Order
from support.samples import Place as PlaceOrder
from support.standstill import stop_between_transactions
from support.waiting import eventually

HISTORY = ["Placed", "Paid", "$timer_cancelled", "Shipped"]


@pytest.fixture
def book(tmp_path: Path) -> Book:
    """A ledger outside of the engine."""
    return Book(tmp_path / "ledger")


def place_orders(client: Engine, count: int, *, first: int = 0) -> list[str]:
    """Orders for the workers; their keys."""
    keys = [f"o-{number}" for number in range(first, first + count)]
    for reply in [client.futures.deciders.execute(Order, PlaceOrder(key, 1), command_id=key) for key in keys]:
        reply.result(timeout=60)
    return keys


def all_ended(client: Engine, count: int) -> bool:
    """Whether so many orders have ended."""
    return len(client.futures.instances.list(status=("completed",), limit=10_000).result(timeout=30)) >= count


def check(client: Engine, keys: list[str], book: Book) -> None:
    """Every order has its four events once, and every effect was really done at least once."""
    histories = Tally(
        tuple(each.type for each in client.futures.deciders.history(Order, key).result(timeout=30)) for key in keys
    )
    assert histories == {tuple(HISTORY): len(keys)}
    assert len({line.split()[1] for line in book.lines("done")}) == 2 * len(keys)
    assert client.futures.admin.backlog().result(timeout=30) == []
    assert client.futures.dead_letters.list().result(timeout=30) == []


@pytest.mark.row("D-053", "D-078", "D-080")
def test_the_work_of_a_killed_worker_is_taken_over(live: Live, book: Book) -> None:
    """A worker dies by SIGKILL with effects in hand; another process finishes all of them."""
    client = live.engine().register(Order())
    keys = place_orders(client, 5)
    with laborer(live.url, book, "hang") as doomed:
        eventually(lambda: len(book.lines("begin")) == 5)
        doomed.kill()
        doomed.wait(10)
        assert book.lines("done") == []
        with laborer(live.url, book):
            eventually(lambda: all_ended(client, 5), within=60)
    check(client, keys, book)


@pytest.mark.row("D-053", "D-080")
def test_workers_that_are_killed_again_and_again_finish_everything(live: Live, book: Book) -> None:
    """Two workers, one of them killed and replaced at random moments: nothing is lost and no command counts twice."""
    hammer(live, book, kills=4, orders=40, seed=1)


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("seed", range(5))
def test_a_campaign_of_kills(live: Live, book: Book, seed: int) -> None:
    """The same for minutes: forty kills under load for each seed."""
    hammer(live, book, kills=40, orders=1000, seed=seed)


def is_under_way(client: Engine, book: Book, begun: int, orders: int) -> bool:
    """Whether a handler was called since then, or there is nothing left to call one for."""
    return len(book.lines("begin")) > begun or all_ended(client, orders)


def hammer(live: Live, book: Book, *, kills: int, orders: int, seed: int) -> None:
    """Kill workers while orders come in."""
    chance = random.Random(seed)
    client = live.engine().register(Order())
    keys: list[str] = []
    with laborer(live.url, book):
        for number in range(kills):
            with laborer(live.url, book) as doomed:
                keys += place_orders(client, orders // kills, first=len(keys))
                eventually(partial(is_under_way, client, book, len(book.lines("begin")), len(keys)))
                time.sleep(chance.random() / 10)  # The moment of death is random; nothing waits for it.
                doomed.kill()
                assert doomed.wait(10) == -signal.SIGKILL, number
        eventually(lambda: all_ended(client, len(keys)), within=120)
    check(client, keys, book)


@pytest.mark.row("D-083")
def test_a_stopped_worker_that_wakes_up_is_refused(live: Live, book: Book) -> None:
    """A worker sleeps (SIGSTOP) past its lease; what it brings back after waking counts for nothing, and it works on."""
    client = live.engine().register(Order())
    keys = place_orders(client, 3)
    with laborer(live.url, book, "wait") as sleeper:
        eventually(lambda: len(book.lines("begin")) >= 3)
        stop_between_transactions(sleeper, live.url)
        with laborer(live.url, book) as other:
            eventually(lambda: all_ended(client, 3), within=60)
            before = [client.futures.deciders.history(Order, key).result(timeout=30) for key in keys]
            book.path.with_suffix(".go").touch()
            sleeper.send_signal(signal.SIGCONT)
            eventually(lambda: len(book.lines("done")) >= 9)
            other.kill()
            other.wait(10)
        keys += place_orders(client, 2, first=3)
        eventually(lambda: all_ended(client, 5), within=60)
        assert [client.futures.deciders.history(Order, key).result(timeout=30) for key in keys[:3]] == before
    check(client, keys, book)


@pytest.mark.row("D-031", "D-079")
def test_a_worker_that_is_asked_to_end_finishes_what_it_does(live: Live, book: Book) -> None:
    """On SIGTERM the running handler ends, its result is committed, and the process leaves with code 0."""
    client = live.engine().register(Order())
    keys = place_orders(client, 1)
    with laborer(live.url, book, "wait") as worker:
        eventually(lambda: book.lines("begin"))
        worker.send_signal(signal.SIGTERM)
        book.path.with_suffix(".go").touch()
        assert ended(worker) == 0
    assert client.deciders.state(Order, keys[0]).status in {"paid", "shipped"}
    left = client.deciders.get(Order, keys[0]).effects
    assert {effect.worker for effect in left} <= {None}, "what it did not begin is free at once"
    assert client.admin.workers() == []


def ended(process: subprocess.Popen[bytes]) -> int:
    """The exit code of a process that is about to end."""
    return process.wait(30)
