"""Loops that never die, and chores that other threads leave for them."""

from __future__ import annotations

import threading

import pytest

from holdfast import StoreUnavailableError
from holdfast.runtime.loops import Chores, Loop
from holdfast.runtime.telemetry import Happening, LoopFailed, Telemetry
from support.waiting import arrives, eventually


def heard() -> tuple[Telemetry, list[Happening]]:
    """Telemetry, and what it was told."""
    told: list[Happening] = []
    telemetry = Telemetry()
    telemetry.listen(told.append)
    return telemetry, told


def test_a_loop_goes_on_after_any_failure() -> None:
    """Whatever a round raises is told and logged; the next round comes."""
    telemetry, told = heard()
    rounds, well = [ValueError("first"), StoreUnavailableError("second")], threading.Event()

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
        ("sample", "first", 1),
        ("sample", "second", 2),
    ]


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


def test_chores_are_done_in_order_and_kept_when_they_fail() -> None:
    """A chore that fails is tried again in the next round; the others are done."""
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
        chores.run()
    assert chores.run() == 2
    assert sorted(done) == ["first", "second", "third"]
    assert chores.run() == 0


def test_adding_a_chore_wakes_the_loop() -> None:
    """Whoever leaves a chore need not wait for the next look."""
    chores, woken = Chores(), threading.Event()
    chores.wake = woken.set
    chores.add(lambda: None)
    assert woken.is_set()
    woken.clear()
    chores.wake_loop()
    assert woken.is_set()
