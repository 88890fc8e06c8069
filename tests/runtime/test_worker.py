"""The worker: slots, hand-over, and who answers for an effect at every moment."""

from __future__ import annotations

import threading
from datetime import timedelta

import msgspec
import pytest

from standfast import Decision, EffectContext, Moment, Settings
from standfast.engine.common.telemetry import EffectEnded, Happening, WorkLost
from standfast.engine.worker.slots import ReservedSlots
from standfast.store.records.instances import Wanted
from support.engines import QUICK, Live, Place
from support.samples import Act, Answer, Do, Doll, Ledger, Noted, Notes, Order, Puppet, Shop, act, done
from support.samples import Place as PlaceOrder
from support.waiting import arrives, eventually


def test_the_commit_hands_the_next_effect_to_the_worker(live: Live) -> None:
    """Commits lease effects to the process that made them: most of a chain needs no claim."""
    engine = live.engine().register(Order(), Shop()).start_worker()
    claims: list[int] = []
    claim = engine.runtime.intake.claim

    def counting(wanted: object, limit: int) -> object:
        found = claim(wanted, limit)  # type: ignore[arg-type]
        claims.append(len(found))
        return found

    engine.runtime.intake.claim = counting  # type: ignore[method-assign,assignment]
    for number in range(5):
        engine.deciders.execute(Order, PlaceOrder(f"o-{number}", 1))
    eventually(lambda: not engine.admin.backlog())
    assert sum(claims) < 10, "an effect is claimed only if a claim was under way when it was asked for"
    assert engine.deciders.state(Order, "o-4").status == "shipped"


def test_a_call_that_a_commit_handed_over_is_the_first_attempt(live: Live) -> None:
    """It counts from the commit on, so that a call that kills its worker is not forgotten."""
    seen: list[tuple[int, int]] = []

    def look(context: EffectContext, effect: object) -> None:
        (pending,) = engine.deciders.get(Puppet, "p-1").effects
        seen.append((context.attempt, pending.attempts))

    engine = live.engine().register(Puppet(act), look)
    engine.runtime.worker.reserve_room = lambda most: ReservedSlots([], 0)  # type: ignore[method-assign]
    engine.start_worker().deciders.execute(Puppet, Do("p-1", "x"))
    eventually(lambda: not engine.admin.backlog())
    assert seen == [(1, 1)]


def test_nothing_is_handed_over_without_a_handler_or_a_slot(live: Live) -> None:
    """Effects that this process cannot run at once are left for others, unowned."""
    gate, inside = threading.Event(), threading.Event()

    def stand(context: EffectContext, effect: object) -> None:
        inside.set()
        arrives(gate)

    engine = live.engine().register(Puppet(act), stand, concurrency=1).register(Doll(act)).start_worker()
    engine.deciders.execute(Puppet, Do("p-0", "x"))
    arrives(inside)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.deciders.execute(Doll, Do("d-1", "x"))
    waiting = [*engine.deciders.get(Puppet, "p-1").effects, *engine.deciders.get(Doll, "d-1").effects]
    assert [(each.worker, each.attempts) for each in waiting] == [(None, 0)] * 2
    gate.set()
    eventually(lambda: not engine.deciders.get(Puppet, "p-1").effects)


def test_slots_are_given_back_when_a_command_is_refused(live: Live) -> None:
    """A decision that is dropped after slots were reserved for it leaves the worker as free as before."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what == "twice":
            return decision.with_effect(Act("a")).with_effect(Act("b"))
        return decision.with_effect(Act("x"))

    engines = [live.engine().register(Puppet(choose), done, concurrency=2).start_worker() for _ in range(2)]
    for round_ in range(
        10
    ):  # Each engine's memory is outdated by the other one, so that half of the commits are undone.
        for engine in engines:
            engine.deciders.execute(Puppet, Do("p-1", "twice" if round_ % 2 else "once"))
    for engine in engines:
        eventually(lambda engine=engine: engine.runtime.worker._slots._total == 0)  # type: ignore[misc]
        assert engine.runtime.worker._slots._busy["puppet"] == 0
    eventually(lambda: not engines[0].admin.backlog())


def test_a_worker_whose_lease_is_in_doubt_takes_nothing(place: Place) -> None:
    """When its last heartbeat is too long ago, a worker neither claims nor lets commits hand work to it."""
    engine = place.engine().register(Puppet(act), done)
    worker = engine.runtime.worker
    engine.runtime.heartbeat.step()
    assert worker.reserve("puppet")
    worker.release("puppet")
    worker.trust_until(0.0)
    assert not worker.reserve("puppet")
    assert worker.reserve_room(10) == ([], 0)


@pytest.mark.row("E-496")
def test_a_little_room_is_for_every_handler(place: Place) -> None:
    """However few calls may run at once, each handler is asked for, up to its own limit; what is not used is given back."""
    engine = place.engine(Settings(concurrency=2)).register(Puppet(act), done, concurrency=1).register(Doll(act), done)
    worker = engine.runtime.worker
    engine.runtime.heartbeat.step()
    room = worker.reserve_room(10)
    own = ("$documents", "$engine", "$notices", "$people", "standfast.webhook")
    wanted = [*(Wanted(each, 2) for each in own), Wanted("doll", 2), Wanted("puppet", 1)]
    assert (sorted(room.wanted), room.limit) == (sorted(wanted), 2)
    assert worker.reserve_room(10) == ([], 0)
    worker.leave_room(room, {"doll": 1})
    small = worker.reserve_room(1)
    assert (sorted(small.wanted), small.limit) == (sorted(Wanted(each, 1) for each in (*own, "doll", "puppet")), 1)


def test_no_handler_starves_another(live: Live) -> None:
    """On a worker that makes one call at a time, the effects of all handlers have their turn."""
    calls = Ledger()
    engine = live.engine(msgspec.structs.replace(QUICK, concurrency=1))
    for kind in (Puppet(act), Doll(act)):
        engine.register(kind, lambda context, effect: calls.add(effect.what))
    client = live.engine().register(Puppet(act)).register(Doll(act))
    for number in range(3):
        client.deciders.execute(Doll, Do(f"d-{number}", f"doll {number}"))
        client.deciders.execute(Puppet, Do(f"p-{number}", f"puppet {number}"))
    engine.start_worker()
    eventually(lambda: len(calls.entries) == 6)
    eventually(lambda: not engine.admin.backlog())
    eventually(lambda: engine.runtime.worker._slots._total == 0)


def test_a_withdrawn_plain_handler_sees_it(live: Live) -> None:
    """A plain function cannot be stopped; it is told through its context, and its result counts for nothing."""
    inside, told, heard = threading.Event(), threading.Event(), list[Happening]()

    def patient(context: EffectContext, effect: object) -> Do:
        inside.set()
        while not context.wait_cancelled(0.01):
            pass
        told.set()
        return Do("p-1", "done")

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "stop":
            return Decision((Noted("stop"),), withdrawn_effects=(0,))
        return act(state, command, moment)

    engine = live.engine().register(Puppet(choose), patient).listen(heard.append).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    engine.deciders.execute(Puppet, Do("p-1", "stop"))
    arrives(told)
    eventually(lambda: not engine.runtime.worker.held())
    assert engine.deciders.state(Puppet, "p-1") == ("x", "stop")
    assert [type(each) for each in heard if isinstance(each, WorkLost)] == [WorkLost]


def test_every_call_is_told_to_listeners(place: Place) -> None:
    """Telemetry hears of each call which effect it was, which attempt, how long it took and how it ended."""
    heard: list[Happening] = []

    def sometimes(context: EffectContext, effect: object) -> None:
        if context.attempt == 1:
            raise ValueError("no")

    engine = place.engine().register(Puppet(act), sometimes).listen(heard.append)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.advance(timedelta(minutes=1))
    ended = [each for each in heard if isinstance(each, EffectEnded)]
    assert [(each.handler, each.number, each.attempt, each.error) for each in ended] == [
        ("puppet", 0, 1, "ValueError: no"),
        ("puppet", 0, 2, ""),
    ]
    assert all(each.took >= timedelta(0) for each in ended)
