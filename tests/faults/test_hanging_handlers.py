"""Handlers that hang, block the event loop or do not listen: each keeps its own effect from its end, and nothing else."""

from __future__ import annotations

import asyncio
import re
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import timedelta
from functools import partial

import msgspec
import pytest

from standfast import EffectContext, Engine, RetryPolicy, Saga
from support.engines import QUICK, Live, Place
from support.samples import Act, Do, Doll, Ledger, Puppet, act
from support.waiting import arrives, eventually

SOON = timedelta(milliseconds=50)
ONCE = RetryPolicy(max_attempts=1)
FEW = msgspec.structs.replace(QUICK, threads=2, unhealthy_after=timedelta(seconds=0.5))


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What handlers wait for; opened at the end, so that none hangs for longer than its test."""
    gate = threading.Event()
    yield gate
    gate.set()


def test_a_thread_that_hangs_is_replaced(live: Live, gate: threading.Event) -> None:
    """More calls hang past their limits than there are threads, and other plain handlers are called all the same."""
    good, hung = Ledger(), Ledger()

    def hang(context: EffectContext, effect: object) -> None:
        hung.add(context.instance)
        arrives(gate)

    engine = live.engine(FEW).register(Puppet(act), hang, timeout=SOON, retry=ONCE, concurrency=1)
    engine.register(Doll(act), lambda context, effect: good.add(effect)).start_worker()
    for number in range(2):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    eventually(lambda: len(engine.dead_letters.list()) == 2)
    for number in range(4):
        engine.deciders.execute(Doll, Do(f"d-{number}", str(number)))
    eventually(lambda: len(good.entries) == 4)
    eventually(lambda: engine.health().is_healthy)
    gate.set()
    eventually(lambda: engine.runtime.worker._threads.lost == 0)
    eventually(lambda: not engine.admin.backlog())
    eventually(lambda: engine.runtime.worker._slots._total == 0)
    assert len(hung.entries) == 2


def test_when_all_threads_hang_others_do_the_work(live: Live, gate: threading.Event) -> None:
    """Beyond as many threads again nobody is replaced: health says so, and the work goes to processes that have room."""
    engine = live.engine(FEW).register(Puppet(act), lambda context, effect: arrives(gate), timeout=SOON, retry=ONCE)
    engine.register(Doll(act), lambda context, effect: Do("", "done here")).start_worker()
    for number in range(4):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    eventually(lambda: len(engine.dead_letters.list()) == 4)
    engine.deciders.execute(Doll, Do("d-0", "x"))
    said = "handler threads: 4 have hung past the limits of their calls; 0 of 2 are left"
    eventually(lambda: said in engine.health().problems)
    other = live.engine(FEW).register(Doll(act), lambda context, effect: Do("", "done there")).start_worker()
    eventually(lambda: other.deciders.state(Doll, "d-0") == ("x", "done there"))
    engine.deciders.execute(Doll, Do("d-1", "x"))
    eventually(lambda: other.deciders.state(Doll, "d-1") == ("x", "done there"))
    gate.set()
    eventually(lambda: engine.health().is_healthy)
    other.stop()
    engine.deciders.execute(Doll, Do("d-2", "x"))
    eventually(lambda: engine.deciders.state(Doll, "d-2") == ("x", "done here"))
    assert {letter.definition for letter in engine.dead_letters.list()} == {"puppet"}


def test_what_was_given_back_was_not_tried(live: Live, gate: threading.Event) -> None:
    """An effect that waited for a thread has all its attempts left."""
    calls, inside = Ledger(), threading.Event()

    def hang(context: EffectContext, effect: Act) -> None:
        inside.set()
        arrives(gate)

    settings = msgspec.structs.replace(FEW, threads=1)
    engine = live.engine(settings).register(Puppet(act), hang)
    engine.register(Doll(act), lambda context, effect: calls.add(context.attempt), retry=ONCE).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    engine.deciders.execute(Doll, Do("d-1", "x"))

    def waiting() -> tuple[object, int]:
        (effect,) = engine.deciders.get(Doll, "d-1").effects
        return effect.worker, effect.attempts

    assert eventually(lambda: [seen for seen in (waiting(),) if seen[0] is None]) == [(None, 0)]
    gate.set()
    eventually(lambda: calls.entries == [1])


@pytest.mark.parametrize("stops", ["here", "elsewhere"])
def test_a_call_that_an_abort_left_behind_is_given_up(
    live: Live, gate: threading.Event, monkeypatch: pytest.MonkeyPatch, stops: str
) -> None:
    """Nobody waits for the handler any more: after a while its slot and its thread are free, and its call counts."""
    monkeypatch.setattr("standfast.engine.worker.worker._GRACE_SECONDS", 0.05)
    inside = threading.Event()

    def hang() -> None:
        inside.set()
        arrives(gate)

    saga = Saga("s").step("hang", hang).build()
    engine = live.engine(FEW).register(saga).start_worker()
    instance = engine.start("s").id
    arrives(inside)
    other = engine if stops == "here" else live.engine(FEW).register(saga)
    other.run(instance).abort("now")
    eventually(lambda: not engine.admin.backlog())
    eventually(lambda: engine.runtime.worker._slots._total == 0)
    (step,) = engine.run(instance).steps()
    assert (step.status, step.retry_count) == ("skipped", 1)


def test_a_coroutine_that_does_not_listen_is_given_up(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """It swallows its cancellation: after a while it counts as failed, its slot is free, and what it says later is void."""
    monkeypatch.setattr("standfast.engine.worker.worker._GRACE_SECONDS", 0.05)
    ends, ledger = asyncio.Event(), Ledger()

    async def stubborn(context: EffectContext, effect: object) -> Do:
        if context.attempt > 1:
            return Do("p-1", "done")
        while not ends.is_set():
            try:
                await ends.wait()
            except asyncio.CancelledError:
                ledger.add("cancelled")
        ledger.add("ended")
        return Do("p-1", "done too late")

    engine = live.engine().register(Puppet(act), stubborn, timeout=SOON, concurrency=1).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", "done"))
    assert engine.runtime.worker._loop is not None
    engine.runtime.worker._loop.call_soon(ends.set)
    eventually(lambda: "ended" in ledger.entries)
    eventually(lambda: engine.runtime.worker._slots._total == 0)
    assert engine.deciders.state(Puppet, "p-1") == ("x", "done")


def test_a_coroutine_that_blocks_past_its_limit_is_too_late(live: Live) -> None:
    """Like a plain function: that nobody could interrupt it does not make its answer count."""

    async def rude(context: EffectContext, effect: object) -> Do:
        threading.Event().wait(SOON.total_seconds())
        return Do("p-1", "done too late")

    engine = live.engine().register(Puppet(act), rude, timeout=SOON, retry=ONCE).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (letter,) = eventually(engine.dead_letters.list)
    assert letter.error == "TimeoutError: no answer within 0.05 s"
    assert engine.deciders.state(Puppet, "p-1") == ("x",)


def test_an_event_loop_that_stands_keeps_nothing_from_others(live: Live, gate: threading.Event) -> None:
    """Async effects that this process cannot begin go to one that can; health names the trouble until it is over."""

    async def rude(context: EffectContext, effect: object) -> None:
        arrives(gate)

    async def polite(context: EffectContext, effect: object) -> Do:
        return Do("", "done")

    engine = live.engine(FEW).register(Puppet(act), rude).register(Doll(act), polite).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.deciders.execute(Doll, Do("d-1", "x"))
    said = "event loop: an async handler has blocked it for "
    eventually(lambda: any(each.startswith(said) for each in engine.health().problems))
    other = live.engine(FEW).register(Doll(act), polite).start_worker()
    eventually(lambda: other.deciders.state(Doll, "d-1") == ("x", "done"))
    gate.set()
    eventually(lambda: engine.health().is_healthy)
    other.stop()
    engine.deciders.execute(Doll, Do("d-2", "x"))
    eventually(lambda: engine.deciders.state(Doll, "d-2") == ("x", "done"))
    assert engine.dead_letters.list() == []


def is_done(engine: Engine, key: str, what: str) -> bool:
    """Whether the puppet has heard of the end of what it asked for."""
    return engine.deciders.state(Puppet, key) == (what, f"done {what}")


async def leaves_an_exit() -> None:
    """Ends the process, as it thinks."""
    sys.exit(3)


left: list[object] = []
DEEDS: dict[str, Callable[[asyncio.AbstractEventLoop], object]] = {
    "a task that exits": lambda loop: left.append(loop.create_task(leaves_an_exit())),
    "a callback that exits": lambda loop: loop.call_soon(sys.exit),
    "stop": lambda loop: loop.stop(),
}


@pytest.mark.parametrize("deed", DEEDS)
def test_nothing_that_a_coroutine_leaves_behind_ends_the_event_loop(live: Live, deed: str) -> None:
    """What it put on the loop raises there, or the loop is told to stop: the next coroutines are run."""

    async def handle(context: EffectContext, effect: Act) -> Do:
        loop = asyncio.get_running_loop()
        if effect.what == "bad":
            DEEDS[deed](loop)
        await asyncio.sleep(0)
        return Do("", f"done {effect.what}")

    engine = live.engine().register(Puppet(act), handle).start_worker()
    for number, what in enumerate(("bad", "good")):
        engine.deciders.execute(Puppet, Do(f"p-{number}", what))
        eventually(partial(is_done, engine, f"p-{number}", what))
    eventually(lambda: engine.health().is_healthy)
    assert engine.dead_letters.list() == []


@pytest.mark.parametrize("slots", ["plain", "async", "process"])
def test_slots_that_are_taken_for_good_are_told(live: Live, gate: threading.Event, slots: str) -> None:
    """Calls without a limit have all slots of a handler, or of the process, and others wait: health says so until one is free."""

    def plain(context: EffectContext, effect: object) -> None:
        arrives(gate)

    async def coroutine(context: EffectContext, effect: object) -> None:
        await asyncio.to_thread(arrives, gate)

    settings = msgspec.structs.replace(QUICK, unhealthy_after=timedelta(seconds=0.5))
    if slots == "process":
        settings = msgspec.structs.replace(settings, concurrency=2)
    engine = live.engine(settings).register(
        Puppet(act), plain if slots == "plain" else coroutine, concurrency=None if slots == "process" else 2
    )
    engine.register(Doll(act), lambda context, effect: None).start_worker()
    caller = (
        live.engine().register(Puppet(act)).register(Doll(act))
    )  # Nobody is refused a slot in the worker's own process.
    for number in range(2):
        caller.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    eventually(lambda: len(engine.runtime.worker.held()) == 2)
    caller.deciders.execute(Doll if slots == "process" else Puppet, Do("waiting", "x"))
    whose = "of the process" if slots == "process" else "of 'puppet'"
    said = rf"slots: all 2 {whose} have been busy for \d+ s with calls that have no limit, and more wait"
    eventually(lambda: any(re.match(said, each) for each in engine.health().problems))
    gate.set()
    eventually(lambda: not engine.admin.backlog())
    eventually(lambda: engine.health().is_healthy)


@pytest.mark.parametrize(
    ("limit", "waits", "waited", "is_told"),
    [(None, True, 11, True), (None, True, 9, False), (None, False, 11, False), (timedelta(hours=1), True, 11, False)],
    ids=["jam", "not yet", "nothing waits", "limited"],
)
def test_busy_slots_are_no_problem_by_themselves(
    place: Place, limit: timedelta | None, waited: int, *, waits: bool, is_told: bool
) -> None:
    """Only if something waits for one, for long, and no limit says when it will have it."""
    told: list[str] = []
    engine = place.engine()
    jams = engine.runtime.worker.jams

    def work(context: EffectContext, effect: object) -> None:
        place.clock.move(timedelta(seconds=waited))
        jams.look(engine.runtime.intake._waits)
        told.append(jams.problem())

    engine.register(Puppet(act), work, concurrency=1, timeout=limit)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    if waits:
        engine.deciders.execute(Puppet, Do("p-2", "x"))
    assert engine.execute_next()
    assert [bool(each) for each in told] == [is_told]
