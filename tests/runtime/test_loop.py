"""Loops that never die, and chores that other threads leave for them."""

from __future__ import annotations

import logging
import re
import threading
from datetime import timedelta
from functools import partial

import pytest

from standfast import StoreUnavailableError
from standfast.engine.common.telemetry import Happening, LoopFailed, Telemetry
from standfast.engine.concurrency.loop import Chores, Loop
from support.waiting import arrives, eventually


class MuteError(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise KeyboardInterrupt


def heard() -> tuple[Telemetry, list[Happening]]:
    """Telemetry, and what it was told."""
    told: list[Happening] = []
    telemetry = Telemetry()
    telemetry.listen(told.append)
    return telemetry, told


def test_a_loop_goes_on_after_any_failure() -> None:
    """Whatever a round raises is told and logged; the next round comes."""
    telemetry, told = heard()
    rounds, well = [ValueError("first"), StoreUnavailableError("second"), SystemExit(), MuteError()], threading.Event()

    def step() -> float:
        if rounds:
            raise rounds.pop(0)
        well.set()
        return 3600.0

    loop = Loop("sample", step, telemetry)
    loop.start()
    arrives(well)
    loop.stop()
    loop.join(10)
    assert not loop.is_alive
    assert [(each.loop, each.error, each.failures) for each in told if isinstance(each, LoopFailed)] == [
        ("sample", "ValueError: first", 1),
        ("sample", "second", 2),
        ("sample", "SystemExit: SystemExit", 3),
        ("sample", "MuteError: MuteError", 4),
    ]


def test_a_loop_outlives_a_log_that_fails() -> None:
    """An application's own log handler may raise; the loop whose failure it should have written down goes on."""
    log, rounds = logging.getLogger("standfast.loops"), threading.Semaphore(0)

    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise OSError("the disk is full")

    def step() -> float:
        rounds.release()
        raise ValueError("no")

    handler = Broken()
    log.addHandler(handler)
    loop = Loop("sample", step, Telemetry())
    loop.start()
    assert rounds.acquire(timeout=20)
    loop.wake()
    assert rounds.acquire(timeout=20)
    loop.stop()
    loop.join(10)
    log.removeHandler(handler)
    assert not loop.is_alive


@pytest.mark.parametrize("rest", [timedelta.max.total_seconds(), 1e300, float("inf"), float("nan")])
def test_no_loop_rests_for_ever(rest: float) -> None:
    """However long a step wants to rest, the loop looks again before long."""
    loop = Loop("sample", lambda: rest, Telemetry())
    assert 0 <= loop._round() <= 60


def test_a_hint_wakes_a_loop_that_waits() -> None:
    """However long it would wait, a hint starts the next round; hints that come together count as one."""
    rounds = threading.Semaphore(0)

    def step() -> float:
        rounds.release()
        return 3600.0

    loop = Loop("sample", step, Telemetry())
    loop.start()
    assert rounds.acquire(timeout=20)
    for _ in range(3):
        loop.wake()
    assert rounds.acquire(timeout=20)
    loop.stop()
    loop.join(10)
    assert not loop.is_alive


def test_a_hint_during_a_round_is_not_lost() -> None:
    """Work that appears while the loop looks elsewhere is found in the round after."""
    inside, gate, rounds = threading.Event(), threading.Event(), list[int]()

    def step() -> float:
        rounds.append(len(rounds))
        inside.set()
        arrives(gate)
        return 3600.0

    loop = Loop("sample", step, Telemetry())
    loop.start()
    arrives(inside)
    loop.wake()
    gate.set()
    eventually(lambda: len(rounds) == 2)
    loop.stop()
    loop.join(10)


def test_silence_is_counted_from_the_last_good_round() -> None:
    """A loop that fails all the time grows silent, which is how health notices."""

    def step() -> float:
        raise ValueError("never")

    loop = Loop("sample", step, Telemetry())
    before = loop.silent_for
    loop.start()
    eventually(lambda: loop.silent_for > before)
    loop.stop()
    loop.join(10)


def test_a_loop_that_rests_is_not_late() -> None:
    """However long it rests by its own wish; a round that fails makes it late from then on, until one goes well."""
    outcomes, rounds = ["well", "badly", "well"], threading.Semaphore(0)

    def step() -> float:
        if outcomes.pop(0) == "badly":
            rounds.release()
            raise ValueError("no")
        rounds.release()
        return 3600.0

    loop = Loop("sample", step, Telemetry())
    loop.start()
    assert rounds.acquire(timeout=20)
    assert loop.late_by == 0
    loop.wake()
    assert rounds.acquire(timeout=20)
    assert rounds.acquire(timeout=20)
    eventually(lambda: loop.late_by == 0)
    loop.stop()
    loop.join(10)


def test_a_loop_that_only_fails_is_late() -> None:
    """Its lateness grows from the first failure on."""

    def step() -> float:
        raise ValueError("never")

    loop = Loop("sample", step, Telemetry())
    loop.start()
    first = eventually(lambda: loop.late_by)
    eventually(lambda: loop.late_by > first)
    loop.stop()
    loop.join(10)


def test_a_loop_tells_what_is_wrong() -> None:
    """In words, after its bound: the error of its rounds, or that it is stuck in one; nothing once it is well again, or stopped."""
    gate, moods = threading.Event(), ["fails"]

    def step() -> float:
        if moods[0] == "fails":
            raise ValueError("never")
        if moods[0] == "hangs":
            arrives(gate)
        return 0.01

    loop = Loop("sample", step, Telemetry(), limit=0.05)
    assert loop.problem() == ""
    loop.start()
    assert re.fullmatch(r"has not gone well for \d+ s: ValueError: never", eventually(loop.problem))
    moods[0] = "works"
    eventually(lambda: not loop.problem())
    moods[0] = "hangs"
    assert re.fullmatch(r"has been in the same round for \d+ s", eventually(loop.problem))
    gate.set()
    eventually(lambda: not loop.problem())
    loop.stop()
    loop.join(10)
    assert loop.problem() == ""


def test_a_chore_that_fails_keeps_nothing_from_being_done() -> None:
    """It is tried again after a pause, for ever if there is nothing else to do; new ones are done meanwhile."""
    chores, done = Chores(limit=0.0), list[int]()

    def broken() -> None:
        raise SystemExit

    chores.add(broken)
    for number in range(3):
        chores.add(partial(done.append, number))
        assert chores.run() == 1
    assert done == [0, 1, 2]
    assert 0 < chores.rest(3600.0) <= 5
    assert chores.problem().startswith("1 tasks fail, one of them for 0 s: SystemExit")


def test_a_chore_that_cannot_be_done_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """After a few tries something else is done in its place; an absent database is waited for instead."""
    monkeypatch.setattr("standfast.engine.concurrency.loop._LONGEST_PAUSE_SECONDS", 0.01)
    chores, done = Chores(), list[str]()
    errors: list[Exception] = [StoreUnavailableError("away")] * 10 + [ValueError("no")] * 100

    def broken() -> None:
        raise errors.pop(0)

    chores.add(broken, otherwise=lambda: done.append("otherwise"))

    def run() -> bool:
        chores.run()
        return bool(done)

    eventually(run)
    assert len(errors) == 95
    assert (done, chores.problem(), chores.run()) == (["otherwise"], "", 0)


def test_chores_of_an_absent_database_are_not_tried_one_by_one() -> None:
    """Each try may take seconds; those behind the first have their turn in the next round."""
    chores, tried = Chores(), list[int]()

    def away(number: int) -> None:
        tried.append(number)
        raise StoreUnavailableError("away")

    for number in range(3):
        chores.add(partial(away, number))
    chores.run()
    assert tried == [0]
    chores.run()
    assert tried == [0, 1]


def test_chores_are_done_in_order_and_kept_when_they_fail() -> None:
    """Whoever drives an engine by hand is told of the first failure; the others are done, and that one is kept."""
    chores, done = Chores(), []
    trouble = [ValueError("once")]

    def failing() -> None:
        if trouble:
            raise trouble.pop()
        done.append("second")

    chores.add(lambda: done.append("first"))
    chores.add(failing)
    chores.add(lambda: done.append("third"))
    with pytest.raises(ValueError, match="once"):
        chores.drain()
    assert chores.drain() == 1
    assert done == ["first", "third", "second"]
    assert chores.drain() == 0


def test_adding_a_chore_wakes_the_loop() -> None:
    """Whoever leaves a chore need not wait for the next look."""
    chores = Chores()
    chores.add(lambda: None)
    assert chores.hint.is_set()
    chores.hint.clear()
    chores.wake()
    assert chores.hint.is_set()
