"""The lock before a file's only writer: granted in the order of asking, to one thread at a time."""

from __future__ import annotations

import threading
from collections.abc import Callable

from standfast.store.sqlite.connection.connection import FairLock
from support.waiting import eventually


def queued(lock: FairLock, count: int) -> None:
    """Wait until so many threads stand before the lock."""
    eventually(lambda: len(lock._waiting) == count)


def entering(lock: FairLock, work: Callable[[], None]) -> threading.Thread:
    """A thread that goes in and does something there."""

    def enter() -> None:
        with lock:
            work()

    thread = threading.Thread(target=enter)
    thread.start()
    return thread


def test_a_lock_is_granted_in_the_order_of_asking() -> None:
    """Whoever asked first is first: under load no committer, timer or heartbeat waits for ever."""
    lock, entered, threads = FairLock(), list[int](), list[threading.Thread]()
    with lock:
        for number in range(5):
            threads.append(entering(lock, lambda number=number: entered.append(number)))  # type: ignore[misc]
            queued(lock, number + 1)
    for thread in threads:
        thread.join(30)
    assert entered == [0, 1, 2, 3, 4]


def test_a_lock_that_is_handed_over_is_not_free() -> None:
    """Between the thread that leaves and the one that was waiting nobody slips in, not even the one that leaves."""
    lock, entered = FairLock(), list[str]()

    def look() -> None:
        queued(lock, 1)
        entered.append("the one that waited")

    with lock:
        waiting = entering(lock, look)
        queued(lock, 1)
    with lock:
        entered.append("the one that came back")
    waiting.join(30)
    assert entered == ["the one that waited", "the one that came back"]


def test_a_lock_may_be_taken_again_by_its_holder() -> None:
    """It is free for others only when it was left as often as it was taken."""
    lock, entered = FairLock(), list[str]()
    with lock:
        with lock:
            other = entering(lock, lambda: entered.append("other"))
            queued(lock, 1)
        entered.append("holder")
    other.join(30)
    assert entered == ["holder", "other"]
