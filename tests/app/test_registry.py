"""Registration, and the parts of an engine: a service that takes commands, a runtime that works."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections import Counter as Counting
from datetime import UTC, datetime
from functools import partial
from types import MappingProxyType

import pytest

import standfast.engine.loops.due_work
import standfast.engine.worker.claimer
import standfast.kernel.decider
import standfast.kernel.decision
import standfast.store.ports.store
from standfast import ConfigurationError, DefinitionError, EffectContext, Engine, Moment, NotFoundError, StoppedError
from standfast.engine.common.clock import ManualClock
from standfast.engine.common.randomness import SeededRandomness
from standfast.engine.dispatcher import Dispatcher
from standfast.engine.worker_process import WorkerProcess
from standfast.kernel.codec.codecs import JsonCodec
from standfast.store.opening import open_store
from support.engines import Live, Place
from support.samples import (
    Add,
    Answer,
    Counter,
    Do,
    Doll,
    Ledger,
    Notes,
    Order,
    Puppet,
    Shop,
    act,
    done,
    note,
)
from support.samples import Place as PlaceOrder
from support.waiting import LONG_SECONDS, arrives, eventually, together


@pytest.mark.row("D-030")
def test_the_service_works_without_the_runtime(live: Live) -> None:
    """An engine that was never started takes commands and answers questions; it only does no work."""
    engine = live.engine().register(Order(), Shop())
    engine.deciders.execute(Order, PlaceOrder("o-1", 5))
    found = engine.deciders.get(Order, "o-1")
    assert (found.state.status, len(found.effects), len(found.timers)) == ("placed", 1, 1)
    health = engine.health()
    assert (health.is_healthy, health.has_worker, health.problems) == (True, False, [])


@pytest.mark.row("D-030")
def test_an_engine_without_threads_works_when_it_is_driven(live: Live) -> None:
    """`drain` does all that is due, `execute_next` makes one call at a time; an engine with threads refuses both."""
    with Engine(live.url, threads=False).register(Order(), Shop()) as engine:
        engine.deciders.execute(Order, PlaceOrder("o-1", 5))
        assert [engine.execute_next() for _ in range(3)] == [True, True, False]
        assert engine.deciders.state(Order, "o-1").status == "shipped"
        engine.deciders.execute(Order, PlaceOrder("o-2", 5))
        assert engine.drain() > 0
        assert engine.drain() == 0
        assert engine.deciders.state(Order, "o-2").status == "shipped"
        assert engine.health().is_healthy
    with pytest.raises(StoppedError):
        engine.drain()
    for drive in (live.engine().drain, live.engine().execute_next):
        with pytest.raises(ConfigurationError, match="threads=False"):
            drive()


def test_an_engine_without_threads_leaves_what_it_may_not_call(live: Live) -> None:
    """A worker whose lease is in doubt gives back what it has claimed, untried."""
    with Engine(live.url, threads=False).register(Puppet(act), done) as engine:
        engine.deciders.execute(Puppet, Do("p-1", "x"))
        engine.runtime.heartbeat.step()
        engine.runtime.worker.trust_until(0.0)
        assert engine.runtime.execute_next() == 0
        engine.runtime.intake.chores.drain()
        (effect,) = engine.deciders.get(Puppet, "p-1").effects
        assert (effect.attempts, effect.worker) == (0, None)
        engine.drain()
        assert engine.admin.backlog() == []


@pytest.mark.row("D-031")
def test_run_works_until_the_shutdown_signal(live: Live) -> None:
    """`run` starts the workers and returns, stopped, once it is told to end."""
    engine = live.engine().register(Order(), Shop())
    ending = threading.Event()
    running = threading.Thread(target=engine.serve, args=(ending,))
    running.start()
    other = live.engine().register(Order())
    other.deciders.execute(Order, PlaceOrder("o-1", 5))
    eventually(lambda: other.deciders.state(Order, "o-1").status == "shipped")
    ending.set()
    running.join(10)
    assert not running.is_alive()


@pytest.mark.row("D-031")
def test_run_gives_the_signals_back(live: Live) -> None:
    """On the main thread SIGTERM ends `run`, and afterwards the process has its own signal handlers again."""
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)]
    engine = live.engine()

    def ask_to_end() -> None:
        eventually(lambda: engine.health().has_worker)
        os.kill(os.getpid(), signal.SIGTERM)

    asking = threading.Thread(target=ask_to_end)
    asking.start()
    engine.serve()
    asking.join()
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)] == before


@pytest.mark.row("D-032")
def test_one_engine_bundles_both_parts(place: Place) -> None:
    """For a program with one process the engine is both, and both parts can be reached."""
    engine = place.engine()
    assert isinstance(engine.service, Dispatcher)
    assert isinstance(engine.runtime, WorkerProcess)


@pytest.mark.row("D-033")
def test_one_registration_serves_calls_and_effects(place: Place) -> None:
    """A registered type is reached by typed calls, by dynamic calls and by its effects; calls to `register` chain."""
    shop, ledger = Shop(), Ledger()
    engine = place.engine().register(Order(), shop).register(Puppet(act), lambda c, e: ledger.add(e))
    engine.deciders.execute_dynamic("order", {"type": "Place", "workflow_id": "o-1", "amount": 5})
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.drain()
    assert shop.ledger.entries == ["Charge", "Deliver"]
    assert len(ledger.entries) == 1


@pytest.mark.row("D-034")
def test_a_type_is_registered_once(place: Place) -> None:
    """A second decider, or a second handler, under the same name is refused with the name."""
    engine = place.engine().register(Puppet(), done)
    with pytest.raises(ConfigurationError, match="already a decider or workflow of type 'puppet'") as caught:
        engine.register(Puppet(), done)
    assert caught.value.code == "bad_configuration"
    with pytest.raises(ConfigurationError, match="already a handler for 'puppet'"):
        engine.service.shared.handlers.register("puppet", done)


@pytest.mark.row("D-034")
@pytest.mark.parametrize(("handler", "concurrency"), [(42, None), (done, 0)])
def test_a_handler_that_cannot_be_called_is_refused(place: Place, handler: object, concurrency: int | None) -> None:
    """A handler is a function or an object with `handle`, and takes at least one call at a time."""
    with pytest.raises(ConfigurationError, match="the handler for 'puppet'"):
        place.engine().register(Puppet(), handler, concurrency=concurrency)  # type: ignore[call-overload]


@pytest.mark.row("D-035", "D-055")
def test_effects_reach_the_handler_of_their_own_type(place: Place) -> None:
    """One runtime hosts many types and routes each effect by the type that asked for it."""
    puppets, dolls = Ledger(), Ledger()
    engine = place.engine()
    engine.register(Puppet(act), lambda context, effect: puppets.add(effect))
    engine.register(Doll(act), lambda context, effect: dolls.add(effect))
    engine.deciders.execute(Puppet, Do("x", "for the puppet"))
    engine.deciders.execute(Doll, Do("x", "for the doll"))
    engine.drain()
    assert [entry.what for entry in puppets.entries] == ["for the puppet"]  # type: ignore[attr-defined]
    assert [entry.what for entry in dolls.entries] == ["for the doll"]  # type: ignore[attr-defined]


@pytest.mark.row("D-036")
def test_a_type_has_many_instances(place: Place) -> None:
    """Instances of one type are independent of one another."""
    engine = place.engine().register(Counter())
    for number in range(10):
        for _ in range(number + 1):
            engine.deciders.execute(Counter, Add(f"c-{number}"))
    assert [engine.deciders.state(Counter, f"c-{number}") for number in range(10)] == list(range(1, 11))


@pytest.mark.row("D-036")
def test_instances_of_a_type_work_side_by_side_and_each_in_order(live: Live) -> None:
    """Calls of different instances run at the same time; commands of one instance are decided one after the other."""
    meeting = threading.Barrier(4)
    inside: Counting[str] = Counting()
    overlaps: list[str] = []

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        key = command.workflow_id
        inside[key] += 1
        overlaps.extend([key] if inside[key] > 1 else [])
        decision = act(state, command, moment) if command.what == "meet" else note(state, command, moment)
        inside[key] -= 1
        return decision

    def meet(context: EffectContext, effect: object) -> None:
        meeting.wait(LONG_SECONDS)  # Nobody comes through alone.

    engine = live.engine().register(Puppet(choose), meet).start_worker()
    keys = [f"p-{number}" for number in range(4)]

    def send(what: str) -> None:
        for reply in [engine.futures.deciders.execute(Puppet, Do(key, what)) for key in keys for _ in range(5)]:
            reply.result(LONG_SECONDS)

    together(*(partial(send, what) for what in "abcd"))
    for key in keys:
        engine.deciders.execute(Puppet, Do(key, "meet"))
    eventually(lambda: not engine.admin.backlog())
    assert not meeting.broken
    assert engine.dead_letters.list() == []
    assert overlaps == []
    for key in keys:
        history = engine.deciders.history(Puppet, key)
        assert [each.sequence for each in history] == list(range(1, 22))
        notes = engine.deciders.state(Puppet, key)
        assert Counting(notes) == {"a": 5, "b": 5, "c": 5, "d": 5, "meet": 1}


@pytest.mark.row("D-125")
def test_the_parts_can_be_replaced_one_by_one() -> None:
    """Store, clock, chance and codec are arguments; decider, decision, effects, timers and the port are modules of their own."""
    start = datetime(2031, 2, 3, tzinfo=UTC)
    with Engine(
        store=open_store("sqlite://"),
        clock=ManualClock(start),
        chance=SeededRandomness(7),
        codec=JsonCodec(),
        threads=False,
    ) as engine:
        engine.register(Counter()).deciders.execute(Counter, Add("c-1"))
        (first,) = engine.instances.list()
    assert first.created_at == start
    parts = (
        standfast.kernel.decider.Decider,
        standfast.kernel.decision.Decision,
        standfast.store.ports.store.Transaction,
        standfast.engine.worker.claimer.Claimer,
        standfast.engine.loops.due_work.DueWork,
        Dispatcher,
        WorkerProcess,
    )
    assert len({part.__module__ for part in parts}) == len(parts)


def test_two_engines_in_one_process_share_nothing(live: Live) -> None:
    """There is no process-wide state: what one engine knows, another one does not."""
    first, second = live.engine().register(Counter()), live.engine().register(Puppet())
    first.deciders.execute(Counter, Add("c-1"))
    with pytest.raises(NotFoundError, match="registered are: puppet"):
        second.deciders.state(Counter, "c-1")


def test_a_decider_class_that_cannot_work_is_refused_with_every_reason(place: Place) -> None:
    """A class without a name, without types or with two events of one name never gets into an engine."""

    class Nameless(Puppet):
        type = ""

    with pytest.raises(DefinitionError) as caught:
        place.engine().register(Nameless())
    assert caught.value.code == "invalid_definition"
    assert [each.code for each in caught.value.diagnostics] == ["missing_type"]


def test_an_engine_without_threads_is_drained_and_one_with_threads_is_started(place: Place, live: Live) -> None:
    """Each kind of engine says how it wants to be driven."""
    with pytest.raises(ConfigurationError, match="drain"):
        place.engine().start_worker()
    with pytest.raises(ConfigurationError, match="started"):
        live.engine().drain()


def test_a_url_that_is_no_database_is_refused() -> None:
    """The message says which URLs there are."""
    for url in ("mysql://x", "sqlite:/x", "nonsense"):
        with pytest.raises(ConfigurationError, match=r"sqlite:///file\.db"):
            Engine(url)


@pytest.mark.row("G-02")
def test_coroutines_functions_and_objects_are_handlers(live: Live) -> None:
    """An effect is handled by a plain function, a coroutine function, or an object whose `handle` is one of the two."""
    seen = MappingProxyType({name: threading.Event() for name in ("plain", "async", "object")})

    class Asking(Puppet):
        type = "asking"

    async def waits(context: object, effect: object) -> None:
        seen["async"].set()

    class Handling:
        async def handle(self, context: object, effect: object) -> None:
            seen["object"].set()

    engine = live.engine()
    engine.register(Puppet(act), lambda context, effect: seen["plain"].set())
    engine.register(Doll(act), waits)
    engine.register(Asking(act), Handling())
    engine.start_worker()
    for kind in (Puppet, Doll, Asking):
        engine.deciders.execute(kind, Do("x", "go"))
    for event in seen.values():
        arrives(event)
    assert {name for name, event in seen.items() if event.is_set()} == {"plain", "async", "object"}
    assert engine.dead_letters.list() == []


def test_a_registration_that_fails_leaves_nothing(place: Place) -> None:
    """Whoever corrects a handler that cannot be called registers the decider again."""
    engine = place.engine()
    with pytest.raises(ConfigurationError, match="two arguments"):
        engine.register(Counter(), lambda effect: None)  # type: ignore[arg-type]
    engine.register(Counter(), lambda context, effect: None)
    engine.deciders.execute(Counter, Add("c-1"))


def test_a_stopped_engine_is_not_started_again(live: Live) -> None:
    """It says so, and what to do."""
    engine = live.engine()
    engine.stop()
    with pytest.raises(StoppedError, match="open a new one"):
        engine.start_worker()


def test_an_engine_opens_and_closes_in_async_code(live: Live) -> None:
    """`async with` starts the worker, and stops it while the event loop goes on: here that of whoever lets the last call end."""
    begun, may_end = threading.Event(), threading.Event()

    def work(context: EffectContext, effect: object) -> Do:
        begun.set()
        arrives(may_end)
        return Do("p-1", "done")

    async def let_it_end(engine: Engine) -> None:
        await asyncio.to_thread(eventually, lambda: "the engine is stopped" in engine.health().problems)
        may_end.set()

    async def play() -> None:
        async with live.engine().register(Puppet(act), work) as engine:
            await engine.aio.deciders.execute(Puppet, Do("p-1", "x"))
            await asyncio.to_thread(arrives, begun)
            ending = asyncio.create_task(let_it_end(engine))
        assert may_end.is_set(), "the event loop turned while the engine was stopping"
        await ending

    asyncio.run(play())
    assert live.engine().register(Puppet(act)).deciders.state(Puppet, "p-1") == ("x", "done")


def test_an_engine_without_threads_takes_part_in_async_code() -> None:
    """There it has nothing to start, and is closed all the same; what is raised inside comes out."""

    async def play() -> None:
        async with Engine("sqlite://", threads=False).register(Counter()) as engine:
            await engine.aio.deciders.execute(Counter, Add("c-1"))
            assert await engine.aio.deciders.state(Counter, "c-1") == 1
            raise LookupError

    with pytest.raises(LookupError):
        asyncio.run(play())
