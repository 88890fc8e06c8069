"""Replies: one object that threads wait for and coroutines await."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import pytest

from standfast import DeadlockError, Engine, Moment, RejectedError, Rejection, Reply, Saga
from standfast.engine.common.telemetry import Committed, Happening
from standfast.engine.concurrency.manual_replies import ManualReply
from standfast.engine.concurrency.replies import _Postbox
from standfast.testing import ManualEngine
from support.batching import ONE_COMMITTER, Batching
from support.engines import Live, Place
from support.samples import Add, Answer, Counter, Do, Notes, Puppet, note
from support.waiting import arrives, eventually


def test_a_thread_waits_for_the_value() -> None:
    """`result` blocks until the answer is there, from whichever thread it comes."""
    reply: Reply[int] = Reply()
    threading.Timer(0.01, reply.set_result, (7,)).start()
    assert reply.result(timeout=20) == 7
    assert reply.done()
    assert reply.exception() is None


def test_waiting_has_a_limit_and_can_be_taken_up_again() -> None:
    """A timeout leaves the reply as it is."""
    reply: Reply[int] = Reply()
    for wait in (reply.result, reply.exception):
        with pytest.raises(TimeoutError, match="the work goes on"):
            wait(0.001)
    reply.set_result(7)
    assert reply.result() == 7


def test_an_error_is_raised_for_everybody_who_asks() -> None:
    """A thread and a coroutine get the same error, as often as they ask; a TimeoutError of the work itself too."""
    reply: Reply[int] = Reply()
    reply.set_error(TimeoutError("of the work"))
    for _ in range(2):
        with pytest.raises(TimeoutError, match="of the work"):
            reply.result()
    assert isinstance(reply.exception(), TimeoutError)

    async def ask() -> int:
        return await reply

    with pytest.raises(TimeoutError, match="of the work"):
        asyncio.run(ask())


def test_coroutines_of_many_loops_await_one_reply() -> None:
    """Each event loop is woken in its own thread."""
    reply: Reply[int] = Reply()
    waiting = threading.Barrier(4)
    seen: list[int] = []

    async def ask() -> None:
        waiting.wait(20)
        seen.append(await reply)

    threads = [threading.Thread(target=lambda: asyncio.run(ask())) for _ in range(3)]
    for thread in threads:
        thread.start()
    waiting.wait(20)
    reply.set_result(7)
    for thread in threads:
        thread.join(20)
    assert seen == [7] * 3


def test_a_cancelled_await_leaves_the_others_alone() -> None:
    """A coroutine that stops waiting does no harm to one that goes on."""

    async def both() -> int:
        reply: Reply[int] = Reply()

        async def ask() -> int:
            return await reply

        impatient, patient = asyncio.create_task(ask()), asyncio.create_task(ask())
        await asyncio.sleep(0)
        impatient.cancel()
        threading.Timer(0.01, reply.set_result, (7,)).start()
        with pytest.raises(asyncio.CancelledError):
            await impatient
        return await asyncio.wait_for(patient, 20)

    assert asyncio.run(both()) == 7


def test_no_answer_is_forgotten_by_an_event_loop() -> None:
    """An answer that arrives at the moment when the loop has just emptied its box wakes the loop again."""

    async def race() -> None:
        loop = asyncio.get_running_loop()
        box = _Postbox(loop)

        class Racing(deque[asyncio.Future[None]]):
            """While an answer is being put in, the loop empties the box."""

            def append(self, arrived: asyncio.Future[None], /) -> None:
                box._empty()
                super().append(arrived)

        box._waiting = Racing()
        first, second = loop.create_future(), loop.create_future()
        deque.append(box._waiting, first)
        box.put(second)
        await asyncio.wait_for(second, 5)
        assert first.done()

    asyncio.run(race())


def test_an_answer_for_a_loop_that_is_closed_is_dropped() -> None:
    """A program that ended its event loop does not hurt the thread that brings the answer."""
    reply: Reply[int] = Reply()

    async def ask() -> None:
        task = asyncio.ensure_future(_awaited(reply))
        await asyncio.sleep(0)
        task.cancel()

    asyncio.run(ask())
    reply.set_result(7)
    assert reply.result() == 7


async def _awaited(reply: Reply[int]) -> int:
    return await reply


def test_an_event_loop_lives_no_longer_for_having_awaited_a_reply() -> None:
    """A program that makes a loop for each of its calls keeps none of them, also where the answer came when the loop had ended."""
    loops = list[weakref.ref[asyncio.AbstractEventLoop]]()
    late: Reply[int] = Reply()

    async def ask() -> None:
        loops.append(weakref.ref(asyncio.get_running_loop()))
        reply: Reply[int] = Reply()
        threading.Timer(0.01, reply.set_result, (7,)).start()
        assert await reply == 7
        asyncio.ensure_future(_awaited(late)).add_done_callback(lambda _task: None)
        await asyncio.sleep(0)

    for _ in range(3):
        asyncio.run(ask())
    late.set_result(7)
    gc.collect()
    assert [loop() for loop in loops] == [None] * 3


def test_whoever_stops_waiting_leaves_nothing_behind() -> None:
    """A reply that is asked again and again, with a limit or by tasks that are cancelled, keeps nothing of those who asked."""
    reply: Reply[int] = Reply()

    async def ask() -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(_awaited(reply), 0.001)

    for _ in range(3):
        with pytest.raises(TimeoutError):
            reply.result(0)
        asyncio.run(ask())
    assert not reply._callbacks


def test_a_changed_reply_passes_values_and_errors_on() -> None:
    """`then` changes the value; an error, also one of the change itself, goes to whoever waits."""
    assert Reply.of(6).then(lambda value: value + 1).result() == 7
    with pytest.raises(ZeroDivisionError):
        Reply.of(0).then(lambda value: 1 // value).result()
    failed: Reply[int] = Reply()
    failed.set_error(KeyError("x"))
    with pytest.raises(KeyError):
        failed.then(lambda value: value).result()


def test_an_error_that_nobody_looks_at_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """A call whose reply is thrown away does not fail in silence; one that was looked at is not reported again."""
    with caplog.at_level(logging.ERROR, logger="standfast"):
        forgotten: Reply[int] = Reply()
        forgotten.set_error(ValueError("nobody asked"))
        del forgotten
        seen: Reply[int] = Reply()
        seen.set_error(ValueError("somebody asked"))
        seen.exception()
        del seen
        gc.collect()
    assert "nobody asked" in caplog.text
    assert "somebody asked" not in caplog.text


async def awaited_for_a_moment(reply: Reply[int]) -> None:
    """Ask, and stop asking."""
    asking = asyncio.ensure_future(awaited(reply))
    await asyncio.sleep(0)
    asking.cancel()
    with suppress(asyncio.CancelledError):
        await asking


async def awaited(reply: Reply[int]) -> int:
    """What a coroutine gets."""
    return await reply


ASKED: dict[str, Callable[[Reply[int]], object]] = {
    "result": lambda reply: reply.result(timeout=0),
    "exception": lambda reply: reply.exception(timeout=0),
    "await": lambda reply: asyncio.run(awaited_for_a_moment(reply)),
}


@pytest.mark.parametrize("how", ASKED)
@pytest.mark.parametrize("kind", [Reply, ManualReply])
def test_a_reply_that_was_asked_for_is_not_called_unseen(
    how: str, kind: type[Reply[int]], caplog: pytest.LogCaptureFixture
) -> None:
    """Whoever asked and did not wait for the end knows that he has no answer: the log does not say that nobody asked."""
    reply = kind()
    with suppress(TimeoutError, DeadlockError):
        ASKED[how](reply)
    reply.set_error(ValueError("too late"))
    del reply
    gc.collect()
    assert "reply_error_unread" not in caplog.text


def test_an_engine_that_is_stopped_says_nothing_of_answers_that_were_asked_for(
    live: Live, caplog: pytest.LogCaptureFixture
) -> None:
    """A wait that was given up, with threads or without, is no call that nobody looked at."""
    saga = Saga("waits").wait_for("word", "word").build()
    with live.engine().register(saga) as engine, pytest.raises(TimeoutError):
        engine.start("waits").result(timeout=0)
    with Engine("sqlite://", threads=False).register(saga) as driven, pytest.raises(DeadlockError):
        driven.start("waits").result()
    gc.collect()
    assert "reply_error_unread" not in caplog.text


def test_a_callback_may_wait_for_the_engine(live: Live) -> None:
    """It does not run on the thread that brings answers, so that the answer it waits for can come."""
    engine = live.engine(ONE_COMMITTER).register(Counter())
    batching, threads = Batching(engine), list[str]()

    def add_again(_nothing: object) -> int:
        threads.append(threading.current_thread().name)
        engine.futures.deciders.execute(Counter, Add("c-1")).result(timeout=30)
        return engine.futures.deciders.state(Counter, "c-1").result(timeout=30)

    with batching.one():
        told = engine.futures.deciders.execute(Counter, Add("c-1")).then(add_again)
        called = threading.Event()
        engine.futures.deciders.execute(Counter, Add("c-2")).when_done(called.set)
    assert told.result(timeout=30) == 2
    arrives(called)
    assert [name.rpartition("-")[0] for name in threads] == ["standfast-callback"]


def test_a_callback_of_an_answer_that_is_there_is_called_at_once() -> None:
    """On the thread that asks."""
    seen: list[threading.Thread] = []
    Reply.of(1).when_done(lambda: seen.append(threading.current_thread()))
    assert Reply.of(2).then(lambda value: value + 1).result() == 3
    assert seen == [threading.current_thread()]


def test_a_callback_that_raises_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The others are called, and whoever brings the answer does not notice."""
    reply, called = Reply[int](), list[str]()

    def broken() -> None:
        raise SystemExit

    reply.when_done(broken)
    reply.when_done(lambda: called.append("second"))
    reply.set_result(7)
    assert called == ["second"]
    assert "reply_callback_failed" in caplog.text


@pytest.mark.parametrize("asked", ["result", "exception"])
def test_whoever_brings_answers_cannot_wait_for_one(live: Live, asked: str) -> None:
    """A decider, or a listener, that waits for its own engine is told so, instead of standing still with all others."""
    heard = list[BaseException]()

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.what == "bad":
            getattr(engine.futures.deciders.execute(Puppet, Do("p-2", "x")), asked)(timeout=30)
        return note(state, command, moment)

    def listen(happening: Happening) -> None:
        if isinstance(happening, Committed) and not heard:
            with pytest.raises(DeadlockError) as caught:
                getattr(engine.futures.deciders.execute(Puppet, Do("p-3", "x")), asked)(timeout=30)
            heard.append(caught.value)

    engine = live.engine().register(Puppet(choose)).listen(listen)
    with pytest.raises(DeadlockError, match="must not wait for the engine"):
        engine.futures.deciders.execute(Puppet, Do("p-1", "bad")).result(timeout=30)
    engine.futures.deciders.execute(Puppet, Do("p-1", "good")).result(timeout=30)
    eventually(lambda: heard)
    assert engine.deciders.state(Puppet, "p-1") == ("good",)


def test_an_engine_without_threads_says_so_too() -> None:
    """Nobody else would ever carry out the command that is waited for."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        if command.workflow_id == "p-1":
            engine.deciders.execute(Puppet, Do("p-2", "x"))
        return note(state, command, moment)

    engine = ManualEngine().register(Puppet(choose))
    with pytest.raises(DeadlockError):
        engine.deciders.execute(Puppet, Do("p-1", "x"))
    engine.stop()


def test_a_call_that_failed_keeps_nothing_of_its_caller_alive(place: Place) -> None:
    """Its error, its reply and the frame that called hold one another: the collector finds them when nobody else does."""

    class Kept:
        """What the caller has in its hands."""

    def choose(state: Notes, command: Do, moment: Moment) -> Answer:
        return Rejection(code="no", message="never")

    engine = place.engine().register(Puppet(choose))

    def call() -> weakref.ref[Kept]:
        kept = Kept()
        with suppress(RejectedError):
            engine.deciders.execute(Puppet, Do("p-1", "x"))
        return weakref.ref(kept)

    seen = [call() for _ in range(20)]
    gc.collect()
    assert [each for each in seen if each() is not None] == []


def test_a_reply_that_ctrl_c_kept_from_being_made_goes_silently(caplog: pytest.LogCaptureFixture) -> None:
    """An interrupt can come before the first line of `__init__`; collecting what is left raises nothing and logs nothing."""
    unmade: Reply[int] = Reply.__new__(Reply)
    with pytest.MonkeyPatch.context() as patch:
        unraisable: list[object] = []
        patch.setattr("sys.unraisablehook", unraisable.append)
        del unmade
        gc.collect()
        assert unraisable == []
    assert caplog.records == []
