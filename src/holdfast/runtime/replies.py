"""The answer to a call: one object that a thread waits for and a coroutine awaits."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator
from contextlib import suppress
from typing import Generic, TypeVar, cast
from weakref import WeakKeyDictionary

T = TypeVar("T")
U = TypeVar("U")

_log = logging.getLogger("holdfast")

_PENDING, _DONE = 0, 1


class Reply(Generic[T]):
    """What a call will answer. `.result()` waits for it, `await` awaits it; both give the value or raise the error.

    The work itself goes on whether anybody waits or not. An error that nobody ever looks at is logged.
    """

    __slots__ = ("_callbacks", "_error", "_lock", "_looked_at", "_state", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = _PENDING
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] | None = None
        self._looked_at = False

    @classmethod
    def of(cls, value: T) -> Reply[T]:
        """A reply that is there already."""
        reply = cls()
        reply.set_result(value)
        return reply

    def done(self) -> bool:
        """Whether the answer is there."""
        return self._state == _DONE

    def result(self, timeout: float | None = None) -> T:
        """Wait for the answer; TimeoutError after `timeout` seconds, which leaves the work going on."""
        if self._state != _DONE:
            arrived = threading.Event()
            self.when_done(arrived.set)
            if not arrived.wait(timeout):
                raise TimeoutError(f"no answer within {timeout} seconds; the work goes on")
        return self._answer()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the answer; its error, or None."""
        try:
            self.result(timeout)
        except TimeoutError:
            if not self.done():
                raise
        except BaseException:  # noqa: BLE001, S110 - it is what was asked for
            pass
        return self._error

    def __await__(self) -> Generator[object, None, T]:
        if self._state != _DONE:
            loop = asyncio.get_running_loop()
            arrived = loop.create_future()
            box = _postbox(loop)
            self.when_done(lambda: box.put(arrived))
            yield from arrived
        return self._answer()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back when the answer is there: at once if it is, else from the thread that brings it."""
        with self._lock:
            if self._state != _DONE:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        callback()

    def then(self, change: Callable[[T], U]) -> Reply[U]:
        """A reply with the changed value, or with the same error."""
        changed: Reply[U] = Reply()

        def pass_on() -> None:
            self._looked_at = True
            try:
                changed.set_result(change(self._answer()))
            except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
                changed.set_error(error)

        self.when_done(pass_on)
        return changed

    def set_result(self, value: T) -> None:
        """The answer is this value."""
        self._value = value
        self._finish()

    def set_error(self, error: BaseException) -> None:
        """The answer is this error."""
        self._error = error
        self._finish()

    def _finish(self) -> None:
        with self._lock:
            self._state = _DONE
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            callback()

    def _answer(self) -> T:
        self._looked_at = True
        if self._error is not None:
            raise self._error
        return cast("T", self._value)

    def __del__(self) -> None:
        if self._error is not None and not self._looked_at:
            _log.error("a call failed and nobody looked at its reply: %s", self._error)


class _Postbox:
    """Answers on their way to one event loop. A commit brings many at once: the loop is woken once for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_called = False
        """Whether the loop will look into the box. It says no before it looks, so that nothing is put in behind its back."""

    def put(self, arrived: asyncio.Future[None]) -> None:
        """Another answer is there."""
        self._waiting.append(arrived)
        if self._is_called:
            return
        self._is_called = True
        with suppress(RuntimeError):  # The loop is closed: nobody waits any more.
            self._loop.call_soon_threadsafe(self._empty)

    def _empty(self) -> None:
        self._is_called = False
        while self._waiting:
            arrived = self._waiting.popleft()
            if not arrived.done():
                arrived.set_result(None)


_postboxes: WeakKeyDictionary[asyncio.AbstractEventLoop, _Postbox] = WeakKeyDictionary()


def _postbox(loop: asyncio.AbstractEventLoop) -> _Postbox:
    box = _postboxes.get(loop)
    if box is None:
        box = _postboxes[loop] = _Postbox(loop)
    return box
