"""Replies: one object that threads wait for and coroutines await."""

from __future__ import annotations

import asyncio
import gc
import logging
import threading
from collections import deque

import pytest

from holdfast import Reply
from holdfast.runtime.replies import _Postbox


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
    with caplog.at_level(logging.ERROR, logger="holdfast"):
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
