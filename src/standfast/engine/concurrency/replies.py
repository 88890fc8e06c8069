"""The answer to a call: one object that a thread waits for and a coroutine awaits.

Answers are brought by threads that many depend on: a committer, a loop, a reader. What callers want done with an answer is never done
there, because it may take long or wait for the engine itself; it goes to threads that are kept for it.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator
from typing import Generic, TypeVar
from weakref import WeakKeyDictionary, ref

from standfast.engine.concurrency.threads import Threads
from standfast.errors import DeadlockError

T = TypeVar("T")
U = TypeVar("U")

_log = logging.getLogger("standfast")

_PENDING, _DONE = 0, 1

_MOST_CALLBACKS = 64


class _Here(threading.local):
    """What the present thread is for."""

    serves_many = False
    """Whether others depend on it, so that callbacks of callers are not for it."""
    is_committing = False
    """Whether answers depend on it: while it waits, none comes."""


_here = _Here()

callbacks = Threads(_MOST_CALLBACKS, name="callback threads", prefix="standfast-callback")
"""Where callbacks of callers run; of the whole process, because a reply does not know its engine."""


def serve_many() -> None:
    """The present thread is one of an engine's own, for as long as it lives."""
    _here.serves_many = True


class Bringing:
    """Inside it the present thread brings answers, and must not wait for one."""

    __slots__ = ("_before", "_serves_many")

    def __init__(self, *, serves_many: bool = True) -> None:
        self._serves_many = serves_many

    def __enter__(self) -> None:
        self._before = _here.is_committing, _here.serves_many
        _here.is_committing = True
        _here.serves_many = self._serves_many or _here.serves_many

    def __exit__(self, *_: object) -> None:
        _here.is_committing, _here.serves_many = self._before


class Reply(Generic[T]):
    """What a call will answer. `.result()` waits for it, `await` awaits it; both give the value or raise the error.

    The work itself goes on whether anybody waits or not. An error that nobody ever asks for is logged.
    """

    __slots__ = ("_callbacks", "_error", "_lock", "_looked_at", "_state", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = _PENDING
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] | None = None
        self._looked_at = False
        """Whether anybody asked for the answer, be it that he did not wait for it in the end."""

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
        self._wait(timeout)
        return self._answer()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the answer; its error, or None."""
        self._wait(timeout)
        self._looked_at = True
        return self._error

    def __await__(self) -> Generator[object, None, T]:
        if self._state != _DONE:
            self._looked_at = True
            loop = asyncio.get_running_loop()
            arrived = loop.create_future()
            box = _postbox(loop)

            def bring() -> None:
                box.put(arrived)

            self.when_brought(bring)
            try:
                yield from arrived
            except BaseException:
                self._forget(bring)
                raise
        return self._answer()

    def when_done(self, callback: Callable[[], None]) -> None:
        """Call back when the answer is there: at once if it is, else on a thread that is kept for callbacks.

        An engine without threads calls back on the thread that drives it.
        """
        self.when_brought(lambda: _call_back(callback))

    def then(self, change: Callable[[T], U]) -> Reply[U]:
        """A reply with the changed value, or with the same error. `change` is called where `when_done` calls back."""
        changed: Reply[U] = Reply()
        self.when_done(lambda: self._pass_on(change, changed))
        return changed

    def when_brought(self, callback: Callable[[], None]) -> None:
        """Call back when the answer is there: at once if it is, else on the thread that brings it.

        For the engine's own use: others depend on that thread, so that the callback must be quick, and must neither wait nor raise.
        """
        with self._lock:
            if self._state != _DONE:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        callback()

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
            try:
                callback()
            except BaseException:  # noqa: BLE001 - whoever brings the answer has others to serve
                _log.exception("a callback of a reply failed")

    def _forget(self, callback: Callable[[], None]) -> None:
        """Whoever was to be called back does not wait any more."""
        with self._lock:
            if self._callbacks is not None and callback in self._callbacks:
                self._callbacks.remove(callback)

    def _wait(self, timeout: float | None) -> None:
        if self._state == _DONE:
            return
        self._looked_at = True
        if _here.is_committing:
            raise DeadlockError(
                "this thread carries out commands, and the answer waited for comes from such a thread: deciders and listeners"
                " must not wait for the engine; use an effect, or `then`"
            )
        gate = threading.Lock()  # Every call of a blocking face waits here: an Event would cost several times as much.
        gate.acquire()
        self.when_brought(gate.release)
        try:
            is_there = gate.acquire() if timeout is None else gate.acquire(timeout > 0, timeout if timeout > 0 else -1)
        except BaseException:
            self._forget(gate.release)
            raise
        if not is_there:
            self._forget(gate.release)
            raise TimeoutError(self.impatience(timeout))

    def impatience(self, timeout: float | None) -> str:
        """What is told to a caller who has waited so long in vain; it may ask the database."""
        return f"no answer within {timeout} seconds; {self._meanwhile(timeout)}"

    def _meanwhile(self, timeout: float | None) -> str:  # noqa: ARG002 - for replies that have more to tell
        """What becomes of the work, for a caller whose patience is over after so many seconds."""
        return "the work goes on"

    def _pass_on(self, change: Callable[[T], U], changed: Reply[U]) -> None:
        try:
            value = change(self._answer())
        except BaseException as error:  # noqa: BLE001 - it belongs to whoever waits
            changed.set_error(error)
        else:
            changed.set_result(value)

    def _answer(self) -> T:
        self._looked_at = True
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def __del__(self) -> None:
        # Ctrl-C can come before `__init__` has set anything; such a reply has no error that could be missed.
        if getattr(self, "_error", None) is not None and not self._looked_at:
            _log.error("a call failed and nobody looked at its reply: %s", self._error)


class LastingReply(Reply[T]):
    """A reply that may be weeks away. Whoever will bring it holds it weakly, so that it goes when nobody waits for it any more.

    It is kept by itself only while somebody is to be called back.
    """

    __slots__ = ("__weakref__", "_kept")

    def __init__(self, kept: set[Reply[T]]) -> None:
        super().__init__()
        self._kept = kept
        """Where the bringer keeps those with callbacks."""

    def when_brought(self, callback: Callable[[], None]) -> None:
        """Call back when the answer is there, whoever holds this reply until then."""
        super().when_brought(callback)
        self._keep()

    def _forget(self, callback: Callable[[], None]) -> None:
        super()._forget(callback)
        self._keep()

    def _finish(self) -> None:
        super()._finish()
        self._keep()

    def _keep(self) -> None:
        with self._lock:
            if self._callbacks:
                self._kept.add(self)
            else:
                self._kept.discard(self)


def _call_back(callback: Callable[[], None]) -> None:
    if _here.serves_many:
        callbacks.run(callback)
    else:
        callback()


class _Postbox:
    """Answers on their way to one event loop. A commit brings many at once: the loop is woken once for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)  # It is the loop's box: whoever keeps it must not keep the loop.
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_called = False
        """Whether the loop will look into the box. It says no before it looks, so that nothing is put in behind its back."""

    def put(self, arrived: asyncio.Future[None]) -> None:
        """Another answer is there."""
        self._waiting.append(arrived)
        if self._is_called:
            return
        self._is_called = True
        loop = self._loop()
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self._empty)
        except RuntimeError:  # The loop is closed: nobody waits any more.
            self._is_called = False
            self._waiting.clear()

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
        for other in _postboxes.keyrefs():  # An answer that a loop did not live to look at keeps it.
            if (ended := other()) is not None and ended.is_closed():
                _postboxes.pop(ended, None)
        box = _postboxes[loop] = _Postbox(loop)
    return box
