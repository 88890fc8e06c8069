"""Maintenance mode in processes that work: what is under way comes to its end, and nothing else begins until it is over."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from datetime import timedelta

import msgspec
import pytest

from standfast import EffectContext, Moment, ProjectedEvent, RejectedError, Saga
from standfast.store.records.instances import DEFAULT_TENANT
from standfast.store.records.queries import Beat
from support.engines import QUICK, Live, Place
from support.inside import store_of
from support.samples import Act, Add, Answer, Counter, Do, Ledger, Notes, Puppet, act, note
from support.waiting import arrives, eventually


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What handlers wait for; opened at the end, so that none hangs for longer than its test."""
    gate = threading.Event()
    yield gate
    gate.set()


@pytest.mark.row("D-091", "G-26")
@pytest.mark.parametrize("is_plain", [True, False])
def test_a_saga_takes_no_further_step_in_maintenance(live: Live, gate: threading.Event, *, is_plain: bool) -> None:
    """The step that runs comes to its end; the next one waits, untried, until maintenance is over."""
    inside, steps = threading.Event(), Ledger()

    def first() -> None:
        inside.set()
        arrives(gate)
        steps.add("first")

    async def second() -> None:
        steps.add("second")

    def third() -> None:
        steps.add("third")

    saga = Saga("s").step("a", first).step("b", third if is_plain else second).build()
    engine = live.engine().register(saga).start_worker()
    instance = engine.start("s").id
    arrives(inside)
    engine.admin.pause_processing()
    gate.set()
    eventually(lambda: engine.run(instance).steps()[0].status == "completed")
    (waiting,), _ = store_of(engine).reader(DEFAULT_TENANT).work(instance)
    assert (waiting.owner, waiting.attempts, steps.entries) == (None, 0, ["first"])
    engine.admin.resume_processing()
    engine.run(instance).result(timeout=30)
    assert len(steps.entries) == 2


@pytest.mark.row("D-091")
def test_a_new_command_has_nothing_done_in_maintenance(live: Live) -> None:
    """In the process that works too: what the command asks for waits, untried."""
    ledger = Ledger()
    engine = live.engine().register(Puppet(act), lambda context, effect: ledger.add(effect)).start_worker()
    engine.admin.pause_processing()
    for number in range(5):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    waiting = [engine.deciders.get(Puppet, f"p-{number}").effects[0] for number in range(5)]
    assert [(each.worker, each.attempts) for each in waiting] == [(None, 0)] * 5
    engine.admin.resume_processing()
    eventually(lambda: len(ledger.entries) == 5)


@pytest.mark.row("D-091")
def test_what_waits_for_a_thread_is_not_begun_in_maintenance(live: Live, gate: threading.Event) -> None:
    """Effects that are in hand and have no thread yet are given back, untried."""
    begun = Ledger()

    def hold(context: EffectContext, effect: Act) -> None:
        begun.add((effect.what, context.attempt))
        arrives(gate)

    patient = msgspec.structs.replace(QUICK, threads=1, lease=timedelta(minutes=10))  # By itself it gives nothing back.
    engine = live.engine(patient).register(Puppet(act), hold).start_worker()
    engine.deciders.execute(Puppet, Do("p-0", "0"))
    eventually(lambda: begun.entries)
    for number in range(1, 4):
        engine.deciders.execute(Puppet, Do(f"p-{number}", str(number)))
    engine.admin.pause_processing()
    eventually(lambda: len(engine.runtime.worker.held()) == 1)
    gate.set()
    eventually(lambda: not engine.runtime.worker.held())
    assert begun.entries == [("0", 1)]
    engine.admin.resume_processing()
    eventually(lambda: len(begun.entries) == 4)
    assert sorted(begun.entries) == [(str(number), 1) for number in range(4)]  # type: ignore[type-var]


@pytest.mark.row("D-091", "G-26")
def test_a_worker_that_starts_in_maintenance_takes_nothing(live: Live) -> None:
    """Its process may have heard of it long before."""
    engine = live.engine().register(Puppet(act), lambda context, effect: None)
    engine.admin.pause_processing()
    engine.start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    (waiting,) = engine.deciders.get(Puppet, "p-1").effects
    assert waiting.attempts == 0
    engine.admin.resume_processing()
    eventually(lambda: not engine.admin.backlog())


def test_a_beat_that_was_under_way_does_not_end_maintenance(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it read of the database is older than what an operator of this very process has said since."""
    engine = place.engine().register(Puppet(act))
    heart = engine.runtime.heartbeat
    beat = heart.workers.beat

    def overtaken(*claims: object, **facts: object) -> Beat:
        answer = beat(*claims, **facts)  # type: ignore[arg-type]
        engine.admin.pause_processing()
        return answer

    monkeypatch.setattr(heart.workers, "beat", overtaken)
    heart.step()
    assert not engine.runtime.worker.reserve("puppet")
    assert engine.service.watch.mode == "pause"


class Seen:
    """A read model that notes what it is fed."""

    name = "seen"

    def __init__(self) -> None:
        self.events: list[str] = []

    def apply(self, events: Sequence[ProjectedEvent], connection: object) -> None:
        self.events += [event.key for event in events]

    def clear(self, connection: object) -> None:
        self.events = []


@pytest.mark.row("D-091")
def test_projections_stand_still_in_maintenance(place: Place) -> None:
    """Nothing reads on while the operator works on the database; afterwards nothing is missing."""
    seen = Seen()
    engine = place.engine().register(Counter()).project(seen)
    engine.deciders.execute(Counter, Add("c-1"))
    engine.drain()
    engine.admin.pause_processing()
    engine.deciders.execute(Counter, Add("c-2"))
    engine.drain()
    engine.runtime.projecting.step()
    assert seen.events == ["c-1"]
    engine.admin.resume_processing()
    engine.drain()
    assert seen.events == ["c-1", "c-2"]


@pytest.mark.row("D-091")
def test_messages_in_hand_are_given_back_in_maintenance(place: Place) -> None:
    """A process that has taken many messages for one instance hands in no further one, and they are there when it is over."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "pause":
            engine.service.watch.tell("pause")
        return note(state, command, moment)

    engine = place.engine().register(Puppet(choose))
    for what in ("first", "pause", "third", "fourth"):
        engine.deciders.submit(Puppet, Do("p-1", what))
    assert engine.runtime.due_work.deliver() == 4
    assert engine.deciders.state(Puppet, "p-1") == ("first", "pause")
    engine.runtime.due_work.chores.drain()
    assert [each.attempts for each in engine.inbox.list()] == [0, 0]
    engine.service.watch.tell("")
    engine.drain()
    assert engine.deciders.state(Puppet, "p-1") == ("first", "pause", "third", "fourth")


@pytest.mark.row("E-675")
def test_a_question_whose_time_is_over_is_in_no_inbox_during_maintenance(place: Place) -> None:
    """No timer fires, and nobody can decide it any more: neither a list nor a count has it."""
    engine = place.engine()
    engine.register(Saga("x").human("q", ask="user:ann", timeout=timedelta(hours=1)).build())
    run = engine.run(engine.start("x").id)
    engine.drain()
    engine.admin.pause_processing()
    ann = engine.acting("ann").tasks
    assert len(ann.list(mine=True)) == ann.counts().own == 1
    engine.advance(hours=2)
    assert ann.list(mine=True) == []
    assert ann.counts().own == 0
    with pytest.raises(RejectedError) as refused:
        ann.approve(run.tasks()[0])
    assert refused.value.reason == "expired"
