"""Waiting for something that other threads or processes do: by looking until a deadline, never by a fixed sleep."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

LONG_SECONDS = 30.0
_LOOK_SECONDS = 0.01


def eventually(condition: Callable[[], T], *, within: float = LONG_SECONDS) -> T:
    """The first truthy answer of the condition; an AssertionError with the last answer after the deadline."""
    deadline = time.monotonic() + within
    while not (answer := condition()):
        assert time.monotonic() < deadline, f"still {answer!r} after {within} s"
        time.sleep(_LOOK_SECONDS)
    return answer


def arrives(event: threading.Event, *, within: float = LONG_SECONDS) -> None:
    """Wait for an event, which must come."""
    assert event.wait(within), f"the event did not come within {within} s"


def together(*actions: Callable[[], object]) -> None:
    """Call all of them at the same moment, each on a thread of its own; the first error is raised here."""
    barrier = threading.Barrier(len(actions))
    errors: list[BaseException] = []

    def call(action: Callable[[], object]) -> None:
        barrier.wait()
        try:
            action()
        except BaseException as error:  # noqa: BLE001 - raised below
            errors.append(error)

    threads = [threading.Thread(target=call, args=(action,)) for action in actions]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def comes_to_an_end(action: Callable[[], object], *, within: float = LONG_SECONDS) -> None:
    """Call something that must not hang, whatever else does."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(within)
    assert not thread.is_alive(), f"still not over after {within} s"
