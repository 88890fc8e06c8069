"""Starting and stopping an engine, by whomever and whenever: nothing works on afterwards, and no work stays owned."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from datetime import timedelta

import msgspec
import pytest

from standfast import EffectContext, Engine, Moment, ProjectedEvent, StoppedError
from standfast.engine.common.telemetry import Committed, Happening
from support.engines import QUICK, Live
from support.samples import Answer, Do, Ledger, Notes, Puppet, act, done
from support.waiting import arrives, eventually

SOON = msgspec.structs.replace(QUICK, shutdown_timeout=timedelta(seconds=20))
"""Nothing takes so long unless it waits for itself."""


@pytest.fixture
def left() -> Callable[[], list[str]]:
    """The engine's threads that were not there before the test."""
    before = set(threading.enumerate())

    def names() -> list[str]:
        return [
            each.name
            for each in set(threading.enumerate()) - before
            if each.name.startswith("standfast") and not each.name.startswith("standfast-callback")
        ]

    return names


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What handlers wait for; opened at the end, so that none hangs for longer than its test."""
    gate = threading.Event()
    yield gate
    gate.set()


def assert_gone(live: Live, left: Callable[[], list[str]]) -> None:
    """The engine has left whole: no thread of it runs, and the database knows of no worker."""
    eventually(lambda: not left())
    witness = Engine(live.url, settings=QUICK)
    assert witness.admin.workers() == []
    witness.stop()


class Reader:
    """A projection that does as it is told."""

    name = "reader"

    def __init__(self, do: Callable[[], None]) -> None:
        self._do = do

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        self._do()

    def clear(self, connection: object) -> None:
        pass


@pytest.mark.parametrize("where", ["plain", "async", "decider", "listener", "projection", "callback"])
def test_an_engine_may_be_stopped_by_what_it_calls(live: Live, left: Callable[[], list[str]], where: str) -> None:
    """The call comes back, what was under way is stored, and the engine leaves whole."""
    engine, came_back, calls = live.engine(SOON), threading.Event(), Ledger()

    def stop(here: str) -> None:
        if here == where and not came_back.is_set():
            engine.stop()
            came_back.set()

    def plain(context: EffectContext, effect: object) -> Do:
        calls.add(context.attempt)
        stop("plain")
        return Do("p-1", "done")

    async def coroutine(context: EffectContext, effect: object) -> Do:
        stop("async")
        return plain(context, effect)

    def decide(state: Notes, command: Do, moment: Moment) -> Answer:
        stop("decider")
        return act(state, command, moment)

    def listen(happening: Happening) -> None:
        if isinstance(happening, Committed):
            stop("listener")

    engine.register(Puppet(decide), coroutine if where == "async" else plain).listen(listen)
    engine.project(Reader(lambda: stop("projection"))).start_worker()
    engine.futures.deciders.execute(Puppet, Do("p-1", "x")).when_done(lambda: stop("callback"))
    arrives(came_back)
    assert_gone(live, left)
    other = live.engine().register(Puppet(act), plain).start_worker()
    eventually(lambda: other.deciders.state(Puppet, "p-1") == ("x", "done"))
    if where in {"plain", "async"}:
        assert calls.entries == [1]


@pytest.mark.parametrize("is_async", [True, False])
def test_an_engine_may_be_stopped_from_inside_without_another_thread(
    live: Live, left: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch, *, is_async: bool
) -> None:
    """Where the system has no more threads the call that stops the engine counts as one that did not end in time."""
    engine = live.engine(msgspec.structs.replace(QUICK, shutdown_timeout=timedelta(seconds=0.1)))
    start, came_back = threading.Thread.start, threading.Event()

    def scarce(thread: threading.Thread) -> None:
        if thread.name == "standfast-stop":
            raise RuntimeError("can't start new thread")
        start(thread)

    def plain(context: EffectContext, effect: object) -> None:
        engine.stop()
        came_back.set()

    async def coroutine(context: EffectContext, effect: object) -> None:
        plain(context, effect)

    monkeypatch.setattr(threading.Thread, "start", scarce)
    engine.register(Puppet(act), coroutine if is_async else plain).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(came_back)
    assert_gone(live, left)
    other = live.engine().register(Puppet(act), done).start_worker()
    eventually(lambda: not other.admin.backlog())


def test_a_handler_may_stop_an_engine_that_is_being_stopped(live: Live, gate: threading.Event) -> None:
    """It is not kept waiting for those who wait for it, and its result counts."""
    engine, inside = live.engine(SOON), threading.Event()

    def late(context: EffectContext, effect: object) -> Do:
        inside.set()
        arrives(gate)
        engine.stop()
        return Do("p-1", "done")

    engine.register(Puppet(act), late).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    stopper = threading.Thread(target=engine.stop)
    stopper.start()
    eventually(lambda: engine._life.is_closed)
    gate.set()
    stopper.join()
    witness = live.engine().register(Puppet(act))
    assert witness.deciders.state(Puppet, "p-1") == ("x", "done")


@pytest.mark.row("G-43")
def test_who_stops_a_stopping_engine_waits_for_its_end(live: Live, gate: threading.Event) -> None:
    """When `stop` comes back nothing runs any more, whoever called it first."""
    inside, ended, found = threading.Event(), Ledger(), Ledger()

    def slow(context: EffectContext, effect: object) -> None:
        inside.set()
        arrives(gate)
        ended.add("slow")

    engine = live.engine(SOON).register(Puppet(act), slow).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)

    def stop() -> None:
        engine.stop()
        found.add(tuple(ended.entries))

    first, second = threading.Thread(target=stop), threading.Thread(target=stop)
    first.start()
    eventually(lambda: engine._life.is_closed)
    second.start()
    eventually(lambda: found.entries or is_stopping(second))
    gate.set()
    first.join()
    second.join()
    assert found.entries == [("slow",)] * 2


def is_stopping(thread: threading.Thread) -> bool:
    """Whether a thread is inside of `stop`."""
    frame = sys._current_frames().get(thread.ident or 0)
    while frame is not None:
        if frame.f_code is Engine.stop.__code__:
            return True
        frame = frame.f_back
    return False


def test_a_stop_that_meets_a_start_leaves_nothing_behind(
    live: Live, left: Callable[[], list[str]], gate: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker that was just being started does not outlive its engine."""
    engine, inside = live.engine().register(Puppet(act), done), threading.Event()
    start = engine.runtime.worker.start

    def slowly() -> None:
        inside.set()
        arrives(gate)
        start()

    monkeypatch.setattr(engine.runtime.worker, "start", slowly)
    starter, stopper = threading.Thread(target=engine.start_worker), threading.Thread(target=engine.stop)
    starter.start()
    arrives(inside)
    stopper.start()
    eventually(lambda: engine._life.is_closed)
    gate.set()
    starter.join()
    stopper.join()
    assert_gone(live, left)
    with pytest.raises(StoppedError, match="open a new one"):
        engine.start_worker()


def test_a_signal_may_stop_an_engine_that_is_being_started(
    live: Live, left: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its handler runs on the very thread that starts the engine, in the middle of that."""
    engine = live.engine().register(Puppet(act), done)
    start = engine.runtime.worker.start

    def interrupted() -> None:
        engine.stop()
        start()

    monkeypatch.setattr(engine.runtime.worker, "start", interrupted)
    engine.start_worker()
    assert not engine.health().has_worker
    assert_gone(live, left)


def test_a_signal_may_stop_an_engine_that_is_being_stopped(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its handler runs on the very thread that stops the engine, which cannot wait for itself."""
    engine = live.engine().start_worker()
    stop = engine.runtime.stop

    def interrupted(timeout: timedelta) -> None:
        engine.stop()
        stop(timeout)

    monkeypatch.setattr(engine.runtime, "stop", interrupted)
    engine.stop()
    assert engine.health().problems == ["the engine is stopped"]


def test_a_start_that_fails_halfway_leaves_nothing_behind(
    live: Live, left: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What had begun already is stopped again, and its error is told."""
    engine = live.engine().register(Puppet(act), done)

    def fail() -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(engine.runtime.projecting, "start", fail)
    with pytest.raises(RuntimeError, match="new thread"):
        engine.start_worker()
    assert_gone(live, left)


@pytest.mark.parametrize("error", [RuntimeError("broken"), KeyboardInterrupt()])
def test_a_part_that_does_not_stop_keeps_no_other_from_it(
    live: Live, left: Callable[[], list[str]], error: BaseException, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor does an operator who loses patience: the worker leaves, and the error is told."""
    inside, gate = threading.Event(), threading.Event()

    def hang(context: EffectContext, effect: object) -> None:
        inside.set()
        arrives(gate)

    def fail(timeout: float) -> None:
        raise error

    engine = live.engine().register(Puppet(act), hang).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    monkeypatch.setattr(engine.runtime.worker, "stop", fail)
    with pytest.raises(type(error)):
        engine.stop()
    other = live.engine().register(Puppet(act), done).start_worker()
    assert len(other.admin.workers()) == 1
    eventually(lambda: not other.admin.backlog())
    monkeypatch.undo()
    engine.runtime.worker.stop(0.0)  # For the sake of the threads that this test leaves.
    gate.set()
    other.stop()
    eventually(lambda: not left())


def test_run_comes_back_when_the_engine_is_stopped(live: Live) -> None:
    """By one of its own handlers, for example."""
    engine = live.engine(SOON)

    def stop(context: EffectContext, effect: object) -> None:
        engine.stop()

    engine.register(Puppet(act), stop)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    runner = threading.Thread(target=engine.serve)
    runner.start()
    runner.join(30)
    assert not runner.is_alive()
    witness = live.engine().register(Puppet(act))
    assert witness.admin.backlog() == []
