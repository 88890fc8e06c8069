"""The heartbeat: how a worker says that it lives, and hears what it has lost."""

from __future__ import annotations

import logging
import threading
from datetime import timedelta
from typing import Any

import msgspec
import pytest

from standfast import EffectContext, Settings
from standfast.engine.common.telemetry import Happening, WorkLost, WorkRevived
from standfast.store.records.instances import Wanted
from standfast.store.records.queries import Beat
from support.engines import QUICK, Live, Place
from support.samples import Do, Puppet, act, done
from support.waiting import arrives, comes_to_an_end, eventually


def test_a_beat_extends_the_lease(place: Place) -> None:
    """A worker that beats is listed as alive until its lease ends; one that does not is gone."""
    engine = place.engine(Settings(worker_name="ant")).register(Puppet(act), done)
    engine.runtime.heartbeat.step()
    (worker,) = engine.admin.workers()
    assert (worker.name, worker.alive_until) == ("ant", place.clock.now() + timedelta(seconds=6))
    place.clock.move(timedelta(seconds=5))
    engine.runtime.heartbeat.step()
    place.clock.move(timedelta(seconds=6))
    assert len(engine.admin.workers()) == 1
    place.clock.move(timedelta(microseconds=1))
    assert engine.admin.workers() == []


def test_a_beat_frees_the_work_of_the_dead(place: Place, caplog: pytest.LogCaptureFixture) -> None:
    """Whoever beats next takes what a silent worker held away from it, and says so."""
    heard: list[Happening] = []
    dead = place.engine().register(Puppet(act), done)
    dead.deciders.execute(Puppet, Do("p-1", "x"))
    dead.runtime.heartbeat.step()
    dead.runtime.intake.claim([Wanted("puppet", 1)], 1)
    alive = place.engine().register(Puppet(act), done).listen(heard.append)
    place.clock.move(timedelta(seconds=7))
    with caplog.at_level(logging.WARNING):
        alive.runtime.heartbeat.step()
    assert heard == [WorkRevived(handlers=("puppet",))]
    assert "dead_workers_released workers=puppet" in caplog.text


def test_a_worker_that_was_taken_for_dead_stops_what_it_does(live: Live) -> None:
    """When others took over, the next beat tells the handler to stop; its result is refused anyway."""
    inside, told = threading.Event(), threading.Event()

    def patient(context: EffectContext, effect: object) -> Do:
        if context.attempt > 1:
            return Do("p-1", "done")
        inside.set()
        while not context.wait_cancelled(0.01):
            pass
        told.set()
        return Do("p-1", "done too late")

    engine = live.engine().register(Puppet(act), patient).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    engine.service.store.workers().retire(engine.runtime.identity)
    arrives(told)
    eventually(lambda: not engine.runtime.worker.held())
    eventually(lambda: not engine.admin.backlog())
    assert engine.deciders.state(Puppet, "p-1") == ("x", "done")
    assert engine.health().is_healthy


def test_the_loss_of_an_old_claim_does_not_touch_a_new_one(live: Live) -> None:
    """While a beat is under way an effect may fail, go back and come again: only the claim that was lost is given up."""
    gates, inside = [threading.Event(), threading.Event()], [threading.Event(), threading.Event()]

    def hang(context: EffectContext, effect: object) -> Do:
        number = context.attempt - 1
        inside[number].set()
        arrives(gates[number])
        if number == 0:
            raise ValueError("once")
        return Do("p-1", "done")

    engine = live.engine().register(Puppet(act), hang).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside[0])
    before = engine.runtime.worker.held()
    gates[0].set()
    arrives(inside[1])
    engine.runtime.worker.lose(before)
    gates[1].set()
    eventually(lambda: engine.deciders.state(Puppet, "p-1") == ("x", "done"))
    assert engine.admin.backlog() == []


def test_a_stopped_worker_leaves_the_list_at_once(live: Live) -> None:
    """Nobody waits for the lease of a worker that said goodbye."""
    first = live.engine().register(Puppet(act), done).start_worker()
    second = live.engine()
    assert len(second.admin.workers()) == 1
    first.stop()
    assert second.admin.workers() == []


def test_a_beat_tells_the_handler_that_its_claim_is_lost(place: Place) -> None:
    """When another worker has taken over, the handler is told at the next beat, while it still works."""
    other = place.engine().register(Puppet(act), done)
    told: list[bool] = []

    def oversleep(context: EffectContext, effect: object) -> None:
        place.clock.move(timedelta(seconds=30))
        other.runtime.heartbeat.step()
        assert other.runtime.intake.claim([Wanted("puppet", 1)], 1)
        told.append(context.cancelled)
        engine.runtime.heartbeat.step()
        told.append(context.cancelled)

    heard: list[Happening] = []
    engine = place.engine().register(Puppet(act), oversleep).listen(heard.append)
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    assert engine.execute_next()
    assert told == [False, True]
    assert [each.number for each in heard if isinstance(each, WorkLost)] == [0]


class Watch:
    """A monotonic clock that the test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        """The time it was set to."""
        return self.now


def test_the_lease_counts_from_before_the_beat(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long the answer took: the database may have renewed the lease at the very beginning of that time."""
    engine = place.engine().register(Puppet(act), done)
    watch, heart = Watch(), engine.runtime.heartbeat
    beat = heart.workers.beat

    def slow(*claims: Any, **facts: Any) -> Beat:
        watch.now += 4.0
        return beat(*claims, **facts)

    monkeypatch.setattr("standfast.engine.worker.heartbeat.time", watch)
    monkeypatch.setattr(heart.workers, "beat", slow)
    heart.step()
    assert engine.runtime.worker._trusted_until == 1000.0 + engine.settings.lease.total_seconds()


@pytest.mark.parametrize("live", ["postgres"], indirect=True)
def test_a_worker_whose_heart_hangs_says_goodbye(live: Live, monkeypatch: pytest.MonkeyPatch) -> None:
    """The heart's connection is in use: the worker leaves the list on another one, and does not wait for the beat."""
    patient = msgspec.structs.replace(QUICK, lease=timedelta(minutes=10))
    engine = live.engine(patient).register(Puppet(act), done).start_worker()
    workers: Any = engine.runtime.heartbeat.workers
    inside = threading.Event()

    def hang(*_: Any, **__: Any) -> Beat:
        with workers._line.use() as connection:
            inside.set()
            connection.execute("select pg_sleep(50)")
        raise AssertionError("nobody waited for this beat")

    monkeypatch.setattr(workers, "beat", hang)
    arrives(inside)
    witness = live.engine()
    assert len(witness.admin.workers()) == 1
    comes_to_an_end(lambda: engine.stop(timedelta(milliseconds=200)), within=20.0)
    assert witness.admin.workers() == []
