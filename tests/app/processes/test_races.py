"""Several callers of one process at the same time, and workers that come and go."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from queue import Queue
from uuid import UUID

import pytest

from app.processes.acting import ANN, BOB, INPUT, asking, ends, person, process, published, registered, system
from standfast import (
    NotFoundError,
    PayloadError,
    ProcessInstance,
    RejectedError,
    StandfastError,
    StoreUnavailableError,
)
from standfast.calls.waiters import IdleWait
from standfast.engine.common.clock import ManualClock
from standfast.engine.concurrency.replies import Reply
from standfast.features.processes.advance import landed
from standfast.kernel.ids import InstanceId
from standfast.store.records.instances import Address, InstanceHeader
from standfast.testing.manual import START
from support.engines import Live, Place
from support.waiting import arrives, eventually, together


@pytest.mark.row("P-055")
def test_simultaneous_starts_with_one_key_are_one(live: Live) -> None:
    """All callers get the same instance, and it began once."""
    engine = live.engine()
    published(engine)
    with engine, ThreadPoolExecutor(8) as pool:
        calls = asking(engine, ANN).processes
        found = list(pool.map(lambda _: calls.start("orders.approval", INPUT, idempotency_key="k").id, range(8)))
        assert len(set(found)) == 1
        assert [each.event for each in engine.processes.events(found[0])] == ["step_entered"]
        assert engine.processes.list().total == 1


@pytest.mark.row("P-077", "P-078", "C-26", "EC-20")
def test_of_simultaneous_advances_one_counts(live: Live) -> None:
    """The others are judged by what it led to, each event is there once, and the backend was called once."""
    engine = live.engine()
    backend = published(engine)
    with engine, ThreadPoolExecutor(8) as pool:
        instance = asking(engine, ANN).processes.start("orders.approval", INPUT).id
        calls = asking(engine, BOB).processes

        def advance(_number: int) -> ProcessInstance | str:
            try:
                return calls.advance(instance, "approved")
            except RejectedError as error:
                return error.reason

        answers = list(pool.map(advance, range(8)))
        assert sum(isinstance(each, ProcessInstance) for each in answers) == 1
        refused = {each for each in answers if isinstance(each, str)}
        assert refused <= {"WORKFLOW_NOT_ACTIVE", "INVALID_TRANSITION", "VERSION_CONFLICT"}
        eventually(lambda: backend.calls == ["confirm", "notify"])  # Nobody waits for the notification.
        events = [each.event for each in engine.processes.events(instance)]
        assert events.count("approved") == 1


def test_a_caller_without_patience_is_answered_at_once(live: Live) -> None:
    """The automatic steps are left to the workers, here to nobody; whoever looks later finds them done."""
    engine, worker = live.engine(), live.engine()
    published(engine)
    backend = published(worker)
    instance = asking(engine, ANN).processes.start("orders.approval", INPUT).id
    seen = asking(engine, BOB).processes.advance(instance, "approved", patience=0)
    assert (seen.status, seen.current_step) == ("active", "process")
    with worker:
        assert worker.run(instance).result(timeout=30) is not None
        eventually(lambda: backend.calls == ["confirm", "notify"])  # Nobody waits for the notification.


def test_a_call_hears_of_what_another_process_does(live: Live) -> None:
    """An engine without a worker waits for the automatic steps too."""
    engine, worker = live.engine(), live.engine()
    published(engine)
    published(worker)
    with worker:
        instance = asking(engine, ANN).processes.start("orders.approval", INPUT).id
        # Nothing but a look into the database ends so long a wait here.
        seen = asking(engine, BOB).futures.processes.advance(instance, "approved", patience=3600).result(60)
    assert (seen.status, seen.current_step) == ("completed", "approved")


def test_nobody_waits_longer_because_another_instance_cannot_be_looked_at(live: Live) -> None:
    """What cannot be read is told to whoever waits for it; and while there is no database, time passes for the others all the same."""
    engine, answers = live.engine(), Queue[str]()

    def wait(number: int, name: str, seconds: float, error: StandfastError | None = None) -> None:
        def look() -> bool:
            if error is not None:
                raise error
            return False

        waiting = IdleWait(view=landed, look=look, bring=lambda _: answers.put(name), seconds=seconds)
        engine._desk.endings.rests.wait(InstanceId(UUID(int=number)), 1, waiting)

    with engine:
        wait(1, "unreadable", 3600, PayloadError("spoilt"))
        assert answers.get(timeout=30) == "unreadable"
        wait(2, "without a database", 3600, StoreUnavailableError("gone"))
        wait(3, "in time", 0.01)
        assert answers.get(timeout=30) == "in time"


def test_whoever_comes_during_a_look_is_not_told_what_it_found(live: Live) -> None:
    """An instance rested when it was looked at, and somebody made it go on since then: whoever waits for that waits on."""
    engine, answers, number = live.engine(), Queue[str](), InstanceId(UUID(int=1))
    is_looked, may_end = threading.Event(), threading.Event()

    def wait(name: str, look: Callable[[], bool]) -> None:
        waiting = IdleWait(view=landed, look=look, bring=lambda _: answers.put(name), seconds=3600)
        engine._desk.endings.rests.wait(number, 1, waiting)

    def rested() -> bool:
        is_looked.set()
        return may_end.wait(30)

    with engine:
        wait("first", rested)
        assert is_looked.wait(30)
        wait("second", lambda: False)
        may_end.set()
        assert answers.get(timeout=30) == "first"
        assert len(engine._desk.endings.rests._waiting[number.int]) == 1
        assert answers.empty()


def test_whoever_comes_during_a_look_is_not_told_that_it_is_missing(live: Live) -> None:
    """An instance was not there when it was looked for, and it may have begun since then: whoever waits for its end is told by the next look."""
    engine, replies, answered = live.engine(), list[Reply[object]](), list[list[bool]]()
    is_looked, may_end = threading.Event(), threading.Event()
    address = Address(tenant="", instance=InstanceId(UUID(int=1)))
    endings = engine._desk.endings

    def wait() -> None:
        reply = endings.reply(str)
        replies.append(reply)
        endings.wait(address, reply, lambda ending, each: each.set_result(ending))

    def look(*_: object) -> list[InstanceHeader]:
        answered.append([each.done() for each in replies])
        is_looked.set()
        assert may_end.wait(30)
        return []

    endings._lookup = look
    with engine:
        wait()
        assert is_looked.wait(30)
        wait()
        may_end.set()
        for reply in replies:
            with pytest.raises(NotFoundError):
                reply.result(30)
    assert answered == [[False], [True, False]]


@pytest.mark.row("P-081", "P-096", "C-26")
def test_a_system_step_that_nobody_confirmed_stays_current(place: Place) -> None:
    """The way to it was committed before it is called: another process finds it there, active, and does it."""
    first = place.engine()
    published(first)
    instance = asking(first, ANN).processes.start("orders.approval", INPUT).id
    asking(first, BOB).processes.advance(instance, "approved")
    second = place.engine()
    backend = published(second)
    seen = second.processes.get(instance).instance
    assert (seen.status, seen.current_step) == ("active", "process")
    with pytest.raises(RejectedError) as refused:
        asking(second, BOB).processes.advance(instance, "approved")
    assert refused.value.reason == "INVALID_TRANSITION"
    second.drain()
    assert backend.calls == ["confirm", "notify"]
    assert second.processes.get(instance).instance.status == "completed"


@pytest.mark.row("P-058", "P-076", "C-41")
def test_a_start_answers_behind_its_automatic_steps(live: Live) -> None:
    """Three of them in a row, and then a person: the call returns when it waits for that person."""
    engine = live.engine()
    ways = "a completed b,b completed c,c completed ask,ask sent done"
    backend = published(engine, process(*(system(name) for name in "abc"), person("ask"), *ends("done"), ways=ways))
    with engine:
        seen = engine.processes.start("w")
    assert (seen.status, seen.current_step) == ("active", "ask")
    assert backend.calls == ["confirm"] * 3


@pytest.mark.row("P-041", "P-119")
def test_a_cancellation_does_not_wait_for_a_call_that_is_under_way(live: Live) -> None:
    """It has ended when the caller is told so; what the call comes back with changes nothing."""
    engine = live.engine()
    registered(
        engine,
        process(system("work", "work"), system("next"), *ends("done"), ways="work completed next,next completed done"),
    )
    entered, leave = threading.Event(), threading.Event()
    called: list[str] = []

    def work() -> dict[str, object]:
        entered.set()
        arrives(leave)
        return {}

    engine.handle("work", work).handle("orders.confirm", lambda data: called.append("next"))
    with engine:
        instance = engine.processes.start("w", patience=0).id
        arrives(entered)
        seen = engine.processes.cancel(instance, "not wanted")
        assert seen.status == "cancelled"
        leave.set()
        eventually(lambda: not engine.admin.backlog())
        assert engine.processes.events(instance)[-1].event == "cancelled"
        assert not called


@pytest.mark.row("P-104", "P-164")
def test_a_sweep_is_over_when_it_answers(live: Live) -> None:
    """Also in an engine that does not work: whoever looks then finds all of them moved on."""
    clock = ManualClock(START)
    engine = live.engine(clock=clock)
    published(engine)
    ids = [asking(engine, ANN).processes.start("orders.approval", INPUT).id for _ in range(12)]
    clock.move(timedelta(hours=73))
    assert engine.processes.process_timeouts() == 12
    assert {engine.processes.get(each).instance.current_step for each in ids} == {"expired"}


@pytest.mark.row("P-115")
def test_a_timeout_and_an_answer_at_the_same_moment_are_one_of_them(live: Live) -> None:
    """Whichever is first counts, and the other finds it so; nothing is told twice."""
    clock = ManualClock(START)
    engine = live.engine(clock=clock)
    published(engine)
    ids = [asking(engine, ANN).processes.start("orders.approval", INPUT).id for _ in range(8)]
    clock.move(timedelta(hours=73))

    def answer() -> None:
        for each in ids:
            with suppress(RejectedError):
                asking(engine, BOB).processes.advance(each, "rejected")

    together(answer, engine.processes.process_timeouts)
    for each in ids:
        events = [entry.event for entry in engine.processes.events(each)]
        assert events.count("timeout") + events.count("rejected") == 1
        assert engine.processes.get(each).instance.current_step in {"expired", "rejected"}


def test_a_call_gives_up_waiting_and_the_work_goes_on(live: Live) -> None:
    """A system step that takes longer than the caller's patience is told as it stands, and is done all the same."""
    engine = live.engine()
    registered(engine, process(system("work", "work"), *ends("done"), ways="work completed done"))
    leave = threading.Event()
    engine.handle("work", lambda data: arrives(leave))
    with engine:
        seen = engine.processes.start("w", patience=0.05)
        assert (seen.status, seen.current_step) == ("active", "work")
        leave.set()
        eventually(lambda: engine.processes.get(seen.id).instance.status == "completed")
