"""Many callers, many workers, many processes: what is serial, what is parallel, and who may finish what."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial

import msgspec
import psycopg
import pytest

from standfast import (
    Decision,
    EffectContext,
    Engine,
    Moment,
    RetryPolicy,
    Saga,
    Settings,
    StepContext,
    StoppedError,
)
from standfast.store.postgres.commit.claims import _sql as postgres_claims
from standfast.store.records.instances import Wanted
from standfast.store.sqlite.commit.claims import _sql as sqlite_claims
from support.engines import QUICK, Live, Place
from support.samples import (
    Act,
    Add,
    Answer,
    Counter,
    Do,
    Doll,
    Gauge,
    Ledger,
    Noted,
    Notes,
    Puppet,
    act,
    done,
)
from support.waiting import LONG_SECONDS, arrives, eventually, together


def count_one(engine: Engine) -> None:
    """Add one to the counter that all share."""
    engine.deciders.execute(Counter, Add("c-1"))


@pytest.mark.row("D-073")
def test_fifty_threads_count_to_fifty(live: Live) -> None:
    """Commands for one instance never overlap: no update is lost and the sequence has no gap."""
    engine = live.engine().register(Counter())
    together(*[partial(count_one, engine)] * 50)
    assert engine.deciders.state(Counter, "c-1") == 50
    assert [each.sequence for each in engine.deciders.history(Counter, "c-1")] == list(range(1, 51))


@pytest.mark.row("D-073", "D-080")
def test_two_engines_count_together(live: Live) -> None:
    """Two processes on one instance: every command counts once, whoever loses a race decides again."""
    engines = [live.engine().register(Counter()) for _ in range(2)]
    together(*[partial(count_one, engine) for engine in engines * 20])
    assert engines[0].deciders.state(Counter, "c-1") == 40
    assert [each.sequence for each in engines[1].deciders.history(Counter, "c-1")] == list(range(1, 41))


def stalling(gate: threading.Event, inside: threading.Event) -> Puppet:
    """A puppet that stands still while it decides on `stall`."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "stall":
            inside.set()
            arrives(gate)
        return Decision.event(Noted(command.what))

    return Puppet(choose)


@pytest.mark.row("D-074")
def test_a_slow_decision_in_one_process_does_not_stop_another(live: Live) -> None:
    """A decision is made outside of the write lock: other instances go on in other processes meanwhile."""
    gate, inside = threading.Event(), threading.Event()
    slow, quick = live.engine().register(stalling(gate, inside)), live.engine().register(Puppet())
    stalled = slow.futures.deciders.execute(Puppet, Do("p-1", "stall"))
    arrives(inside)
    quick.futures.deciders.execute(Puppet, Do("p-2", "go")).result(timeout=20)
    assert not stalled.done()
    gate.set()
    stalled.result(timeout=20)


@pytest.mark.row("D-074", "D-077")
def test_handlers_of_different_instances_run_at_the_same_time(live: Live) -> None:
    """As many handlers run together as the settings allow: each waits here until all have come."""
    meeting = threading.Barrier(4)

    def meet(context: EffectContext, effect: object) -> None:
        meeting.wait(20)

    engine = live.engine().register(Puppet(act), meet).start_worker()
    for number in range(4):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    eventually(lambda: not engine.admin.backlog())
    assert engine.dead_letters.list() == []


@pytest.mark.row("G-21")
def test_a_handler_of_steps_has_a_limit_too(live: Live) -> None:
    """Of eight items two are worked on at a time, however many workers there are, and all are done in the end."""
    gauge, gate = Gauge(), threading.Event()

    def work(ctx: StepContext) -> None:
        with gauge.inside():
            arrives(gate)

    saga = Saga("s").for_each("items", "numbers", lambda each: each.step("work", "work")).join("met").build()
    engine = live.engine().register(saga).handle("work", work, concurrency=2).start_worker()
    run = engine.start("s", {"numbers": list(range(8))})
    eventually(lambda: gauge.now == 2)
    gate.set()
    run.result(timeout=LONG_SECONDS)
    assert gauge.most == 2
    assert [each.status for each in run.steps() if each.name == "work"] == ["completed"] * 8


@pytest.mark.row("D-077")
@pytest.mark.parametrize("limit", [1, 3])
@pytest.mark.row("G-21")
def test_no_more_handlers_run_than_are_allowed(live: Live, limit: int) -> None:
    """The limit holds for effects that are claimed and for those that a commit hands over, and it is reached."""
    gauge, gate = Gauge(), threading.Event()

    def handle(context: EffectContext, effect: object) -> Do:
        with gauge.inside():
            arrives(gate)
            context.wait_cancelled(0.001)
        return Do(effect.what, "next")  # type: ignore[attr-defined]

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        return decision.with_effect(Act(command.workflow_id)) if len(state) < 5 else decision

    engine = live.engine().register(Puppet(choose), handle, concurrency=limit).start_worker()
    for number in range(8):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "go"))
    eventually(lambda: gauge.now == limit)
    owned = [each for number in range(8) for each in engine.deciders.get(Puppet, f"p-{number}").effects if each.worker]
    assert len(owned) == limit
    gate.set()
    eventually(lambda: not engine.admin.backlog())
    assert gauge.most == limit
    assert [len(engine.deciders.state(Puppet, f"p-{number}")) for number in range(8)] == [6] * 8


@pytest.mark.row("D-077")
def test_the_whole_process_has_a_limit_too(live: Live) -> None:
    """`concurrency` bounds all handlers of a process together; what is beyond it belongs to nobody yet."""
    gauge, gate = Gauge(), threading.Event()

    def handle(context: EffectContext, effect: object) -> None:
        with gauge.inside():
            arrives(gate)

    settings = msgspec.structs.replace(QUICK, concurrency=2)
    engine = live.engine(settings).register(Puppet(act), handle).register(Doll(act), handle).start_worker()
    for number in range(6):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
        engine.deciders.execute(Doll, Do(f"d-{number}", "x"))
    eventually(lambda: gauge.most >= 2)
    found = [engine.deciders.get(Puppet, f"p-{number}") for number in range(6)]
    found += [engine.deciders.get(Doll, f"d-{number}") for number in range(6)]
    assert len([each for instance in found for each in instance.effects if each.worker is not None]) == 2
    gate.set()
    eventually(lambda: not engine.admin.backlog())
    assert gauge.most == 2


@pytest.mark.row("E-497", "E-498")
@pytest.mark.row("D-075", "D-080")
def test_two_runtimes_share_the_work_without_overlap(live: Live) -> None:
    """In the normal case each handler call and each timer happens once, whichever process does it."""
    ledger = Ledger()
    workers = [
        live.engine().register(ticking(), lambda c, e: ledger.add(c.idempotency_key)).start_worker() for _ in range(2)
    ]
    client = live.engine().register(ticking())
    for number in range(40):
        client.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    eventually(lambda: not client.admin.backlog())
    assert len(ledger.entries) == len(set(ledger.entries)) == 40
    states = [client.deciders.state(Puppet, f"p-{number}") for number in range(40)]
    assert states == [("x", "rang")] * 40
    assert len(workers) == len(client.admin.workers())


def ticking() -> Puppet:
    """A puppet that asks for an effect and a timer at once."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what == "rang":
            return decision
        return decision.with_effect(Act("x")).with_timer_after(timedelta(0), Do(command.workflow_id, "rang"))

    return Puppet(choose)


@pytest.mark.row("D-076")
def test_a_worker_that_is_stuck_does_not_stop_another(live: Live) -> None:
    """Claims skip what others hold: while one worker stands in a handler, another does the rest."""
    gate, stuck, ledger = threading.Event(), threading.Event(), Ledger()

    def stand(context: EffectContext, effect: object) -> None:
        stuck.set()
        arrives(gate)

    first = live.engine().register(Puppet(act), stand, concurrency=1).start_worker()
    first.deciders.execute(Puppet, Do("p-0", "x"))
    arrives(stuck)
    second = live.engine().register(Puppet(act), lambda context, effect: ledger.add(effect)).start_worker()
    for number in range(1, 6):
        second.deciders.execute(Puppet, Do(f"p-{number}", str(number)))
    eventually(lambda: len(ledger.entries) == 5)
    assert sorted(ledger.entries, key=repr) == [Act(str(number)) for number in range(1, 6)]
    assert first.deciders.state(Puppet, "p-0") == ("x",)
    assert not gate.is_set(), "the first worker still stands in its handler"
    gate.set()


@pytest.mark.row("E-491")
@pytest.mark.row("D-076")
def test_claims_skip_rows_that_are_locked(postgres_dsn: str) -> None:
    """On Postgres a row that another transaction has locked is passed over, not waited for."""
    with Engine(postgres_dsn).register(Puppet(act)) as engine:
        for number in range(3):
            engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
        with psycopg.connect(postgres_dsn) as holder:
            holder.execute("select 1 from standfast.effects order by rank limit 1 for update")
            words = engine.registry.effects()
            found = engine.service.store.effects().claim(engine.runtime.identity, [Wanted("puppet", 9)], 9, words=words)
        assert len(found) == 2


def test_timers_that_are_locked_are_passed_over(postgres_dsn: str) -> None:
    """Whoever holds the row of a timer, a commit that cancels it for example, does not keep the other timers from firing."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)).with_timer_after(timedelta(0), Do(command.workflow_id, "rang"))

    engine = Engine(postgres_dsn).register(Puppet(choose))
    for number in range(3):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "set"))
    with psycopg.connect(postgres_dsn) as holder:
        holder.execute("select 1 from standfast.timers limit 1 for update")
        words = engine.registry.commands()
        due = engine.service.store.timers().claim(None, words=words, hold=timedelta(seconds=60), limit=9)
    engine.stop()
    assert len(due.timers) == 2


@pytest.mark.row("D-078", "D-083")
@pytest.mark.parametrize("result", [Do("p-1", "done by the first"), None, ValueError("failed in the first")])
def test_a_worker_that_wakes_up_after_its_lease_changes_nothing(place: Place, result: Do | Exception | None) -> None:
    """After the lease another worker executes; what the first one brings back, however it ends, is refused."""
    second = place.engine().register(Puppet(act), lambda context, effect: Do("p-1", "done by the second"))

    def oversleep(context: EffectContext, effect: object) -> Do | None:
        second.advance(seconds=30)
        if isinstance(result, Exception):
            raise result
        return result

    first = place.engine().register(Puppet(act), oversleep)
    first.deciders.execute(Puppet, Do("p-1", "x"))
    first.drain()
    first.advance(hours=1)
    assert second.deciders.state(Puppet, "p-1") == ("x", "done by the second")
    assert second.admin.backlog() == []
    assert second.dead_letters.list() == []


@pytest.mark.row("D-083")
@pytest.mark.parametrize("result", [Do("p-1", "done by the first"), None, ValueError("failed in the first")])
def test_a_worker_cannot_end_what_another_has_in_hand(place: Place, result: Do | Exception | None) -> None:
    """The claim was taken over and the new owner is still at work: the old owner's result neither counts nor ends the effect."""
    second = place.engine().register(Puppet(act), done)

    def oversleep(context: EffectContext, effect: object) -> Do | None:
        place.clock.move(timedelta(seconds=30))
        second.runtime.heartbeat.step()
        assert second.runtime.intake.claim([Wanted("puppet", 1)], 1)
        if isinstance(result, Exception):
            raise result
        return result

    first = place.engine().register(Puppet(act), oversleep)
    first.deciders.execute(Puppet, Do("p-1", "x"))
    assert first.execute_next()
    first.runtime.intake.chores.run()
    found = second.deciders.get(Puppet, "p-1")
    assert found.state == ("x",)
    assert [(each.worker, each.attempts) for each in found.effects] == [(second.runtime.identity, 2)]


@pytest.mark.row("D-078")
def test_the_length_of_the_lease_is_a_setting(place: Place) -> None:
    """Nobody touches the work of a worker that may still live; one moment later it is free."""
    settings = Settings(lease=timedelta(seconds=60))
    first = place.engine(settings).register(Puppet(act), done)
    first.deciders.execute(Puppet, Do("p-1", "x"))
    first.runtime.heartbeat.step()
    first.runtime.intake.claim([Wanted("puppet", 1)], 1)
    ledger = Ledger()
    second = place.engine(settings).register(Puppet(act), lambda context, effect: ledger.add(effect))
    second.advance(seconds=60)
    assert ledger.entries == []
    second.advance(seconds=1)
    assert ledger.entries == [Act("x")]


@pytest.mark.row("E-499")
@pytest.mark.row("D-079")
def test_a_graceful_stop_lets_running_handlers_finish(live: Live) -> None:
    """New claims end at once, what runs may finish, and its result is committed before the engine is gone."""
    gate, inside = threading.Event(), threading.Event()

    def handle(context: EffectContext, effect: object) -> Do:
        inside.set()
        arrives(gate)
        return Do("p-1", "done")

    engine = live.engine().register(Puppet(act), handle).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    client = live.engine().register(Puppet(act))
    stopping = threading.Thread(target=engine.stop, args=(timedelta(seconds=20),))
    stopping.start()
    eventually(lambda: not engine.runtime.worker._is_open)
    client.deciders.execute(Puppet, Do("p-2", "x"))
    gate.set()
    stopping.join(30)
    assert client.deciders.state(Puppet, "p-1") == ("x", "done")
    (left,) = client.deciders.get(Puppet, "p-2").effects
    assert (left.attempts, left.worker) == (0, None)


@pytest.mark.row("D-079")
@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_that_overruns_the_stop_is_left_to_others(live: Live, *, is_async: bool) -> None:
    """After the time limit the handler is told to stop, and others call it again: for them it is the second call."""
    gate, inside, told = threading.Event(), threading.Event(), threading.Event()

    def hang(context: EffectContext, effect: object) -> Do:
        inside.set()
        while not context.wait_cancelled(0.01) and not gate.is_set():
            pass
        told.set()
        return Do("p-1", "done too late")

    async def hang_async(context: EffectContext, effect: object) -> Do:
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            told.set()
        return Do("p-1", "done too late")

    engine = live.engine().register(Puppet(act), hang_async if is_async else hang).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    engine.stop(timedelta(seconds=0.05))
    arrives(told)
    other = live.engine().register(Puppet(act), lambda c, e: Do("p-1", f"done in call {c.attempt}")).start_worker()
    eventually(lambda: other.deciders.state(Puppet, "p-1") == ("x", "done in call 2"))
    assert other.deciders.get(Puppet, "p-1").effects == []


def test_a_call_that_overruns_the_stop_is_one_of_those_that_are_allowed(live: Live) -> None:
    """However often processes are stopped in the middle of a call, no more calls are made than the policy says."""
    gate, calls = threading.Event(), Ledger()

    def hang(context: EffectContext, effect: object) -> None:
        calls.add(context.attempt)
        arrives(gate)

    policy = RetryPolicy(max_attempts=2, delay=timedelta(0))
    live.engine().register(Puppet(act)).deciders.execute(Puppet, Do("p-1", "x"))
    for number in (1, 2):
        engine = live.engine().register(Puppet(act), hang, retry=policy).start_worker()
        eventually(lambda number=number: calls.entries == list(range(1, number + 1)))  # type: ignore[misc]
        engine.stop(timedelta(0))
    other = live.engine().register(Puppet(act), hang, retry=policy).start_worker()
    (letter,) = eventually(other.dead_letters.list)
    gate.set()
    assert (letter.reason, letter.attempts, calls.entries) == ("attempts_spent", 2, [1, 2])


def test_what_is_called_once_is_not_given_back_by_a_stop(live: Live) -> None:
    """A call that overruns the stop may have done its work: nobody calls it again, and it is a dead letter after the lease."""
    gate, inside, again = threading.Event(), threading.Event(), Ledger()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Decision.event(Noted(command.what)).with_effect(Act("x"), once=True)

    def hang(context: EffectContext, effect: object) -> None:
        inside.set()
        arrives(gate)

    engine = live.engine().register(Puppet(choose), hang).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    engine.stop(timedelta(seconds=0.05))
    other = live.engine().register(Puppet(choose), lambda context, effect: again.add("called")).start_worker()
    eventually(other.dead_letters.list)
    gate.set()
    assert [letter.reason for letter in other.dead_letters.list()] == ["attempts_spent"]
    assert again.entries == []


@pytest.mark.row("D-079")
def test_the_time_for_a_stop_is_a_setting(live: Live) -> None:
    """Nobody waits for a handler longer than the setting says, nor for readers that hang."""
    inside, told, gate = threading.Event(), list[bool](), threading.Event()

    def hang(context: EffectContext, effect: object) -> None:
        inside.set()
        told.append(context.wait_cancelled(LONG_SECONDS / 6))

    settings = msgspec.structs.replace(QUICK, shutdown_timeout=timedelta(0))
    engine = live.engine(settings).register(Puppet(act), hang).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    readers = [engine._desk.read(lambda: arrives(gate)) for _ in range(5)]
    engine.stop()
    eventually(lambda: told)
    assert told == [True]
    assert {type(reply.exception(timeout=0)) for reply in readers} == {StoppedError}
    gate.set()


def explained(place: Place, table: str, statement: str) -> str:
    """How the database means to carry out a statement, with many rows in the table."""
    if place.url.startswith("sqlite"):
        with place.store._database.reading() as connection:  # type: ignore[attr-defined]
            found = connection.execute(f"explain query plan {statement}", (None,) * statement.count("?")).fetchall()
        return "\n".join(row[3] for row in found)
    with psycopg.connect(place.url) as connection, psycopg.RawCursor(connection) as cursor:
        cursor.execute(f"analyze standfast.{table}")
        cursor.execute("set enable_seqscan = off")
        cursor.execute("set plan_cache_mode = force_generic_plan")
        cursor.execute(f"prepare claim as {statement}")
        nothing = ", ".join(["null"] * len(set(re.findall(r"\$\d+", statement))))
        cursor.execute(f"explain execute claim({nothing})")
        return "\n".join(row[0] for row in cursor.fetchall())


@pytest.mark.row("E-357", "E-379", "E-381", "E-961")
@pytest.mark.row("D-082")
@pytest.mark.parametrize(("table", "name"), [("effects", "ready"), ("timers", "due")])
def test_claims_are_served_by_an_index(place: Place, table: str, name: str) -> None:
    """Finding the next effect or timer never reads the whole table."""
    engine = place.engine().register(ticking())
    for number in range(20):
        engine.deciders.execute(Puppet, Do(f"p-{number}", "x"))
    claims = sqlite_claims if place.url.startswith("sqlite") else postgres_claims
    names = {"effects": ("ready_effects", "claim_effects"), "timers": ("due_timers", "claim_timers")}[table]
    statement = next(getattr(claims, each) for each in names if hasattr(claims, each))
    assert f"{table}_{name}" in explained(place, table, statement)


@pytest.mark.row("D-122")
def test_results_timers_and_clients_are_serialised(live: Live) -> None:
    """Effect results, timers, messages and calls hit one instance at once, and none of them is lost."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        decision = Decision.event(Noted(command.what))
        if command.what != "start":
            return decision
        for _ in range(10):
            decision = decision.with_effect(Act("x")).with_timer_after(timedelta(milliseconds=20), Do("p-1", "timer"))
        return decision

    engine = live.engine().register(Puppet(choose), lambda context, effect: Do("p-1", "effect")).start_worker()
    other = live.engine().register(Puppet(choose))
    engine.deciders.execute(Puppet, Do("p-1", "start"))
    calls: list[Callable[[], object]] = [lambda: other.deciders.execute(Puppet, Do("p-1", "client"))] * 10
    calls += [lambda: other.deciders.submit(Puppet, Do("p-1", "message"))] * 10
    together(*calls)
    eventually(lambda: not engine.admin.backlog())
    notes = engine.deciders.state(Puppet, "p-1")
    assert {word: notes.count(word) for word in set(notes)} == {
        "start": 1,
        "effect": 10,
        "timer": 10,
        "client": 10,
        "message": 10,
    }


def test_a_withdrawn_effect_stops_its_handler(live: Live) -> None:
    """When a decision takes back an effect that is running, the coroutine is cancelled and its end changes nothing."""
    inside, stopped = threading.Event(), threading.Event()

    async def hang(context: EffectContext, effect: object) -> Do:
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            stopped.set()
        return Do("p-1", "done")

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "stop":
            return Decision((Noted("stop"),), withdrawn_effects=(0,))
        return act(state, command, moment)

    engine = live.engine().register(Puppet(choose), hang).start_worker()
    engine.deciders.execute(Puppet, Do("p-1", "x"))
    arrives(inside)
    engine.deciders.execute(Puppet, Do("p-1", "stop"))
    arrives(stopped)
    eventually(lambda: not engine.runtime.worker.held())
    assert engine.deciders.state(Puppet, "p-1") == ("x", "stop")
    assert engine.dead_letters.list() == []


def test_an_engine_says_who_works_and_how_it_is(live: Live) -> None:
    """Live workers are listed with their handlers; health names every loop and when it last went well."""
    settings = msgspec.structs.replace(QUICK, worker_name="ant")
    engine = live.engine(settings).register(Puppet(act), done).start_worker()
    (worker,) = eventually(engine.admin.workers)
    assert (worker.name, worker.handlers) == ("ant", ["puppet"])
    health = engine.health()
    assert health.is_healthy
    assert health.has_worker
    assert set(health.loops) - {"notifier"} == {
        *("heartbeat", "intake", "due work", "projections", "housekeeping", "listener"),
        *("calls", "watch"),
    }
    engine.stop()
    assert live.engine().admin.workers() == []
