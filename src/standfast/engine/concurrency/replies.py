"""The reply to a call: one object that a thread waits for and a coroutine awaits.

Shared threads set replies: committers, loops and readers. Callbacks of callers never run there, because they may block
or wait for the engine. They run on a separate thread pool.
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
    """The role of the current thread."""

    serves_many = False
    """Whether other callers depend on this thread, so that callbacks of callers must not run on it."""
    is_committing = False
    """Whether replies depend on this thread. No reply is set while it waits."""


_here = _Here()

callbacks = Threads(_MOST_CALLBACKS, name="callback threads", prefix="standfast-callback")
"""Runs the callbacks of callers. It is global, because a reply does not know its engine."""


def serve_many() -> None:
    """Mark the current thread as shared for its lifetime."""
    _here.serves_many = True


class Bringing:
    """Context in which the current thread sets replies and must not wait for one."""

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
    """The reply to a call. `.result()` waits for it and `await` awaits it; both return the value or raise the error.

    The work continues whether or not the caller waits. An error that is never retrieved is logged.
    """

    __slots__ = ("_callbacks", "_error", "_lock", "_looked_at", "_state", "_value")

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._state = _PENDING
        self._value: T | None = None
        self._error: BaseException | None = None
        self._callbacks: list[Callable[[], None]] | None = None
        self._looked_at = False
        """Whether the caller has asked for the answer, even if it did not wait long enough."""

    @classmethod
    def of(cls, value: T) -> Reply[T]:
        """Return a reply that is already set."""
        reply = cls()
        reply.set_result(value)
        return reply

    def done(self) -> bool:
        """Return whether the answer is available."""
        return self._state == _DONE

    def result(self, timeout: float | None = None) -> T:
        """Wait for the answer, and return it or raise its error.

        Raises TimeoutError after `timeout` seconds; the work continues.
        """
        self._wait(timeout)
        return self._answer()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the answer, and return its error or None."""
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
        """Call back when the answer is available: now if it is, or else on a thread of the callback pool.

        An engine without threads calls back on the thread that drives it.
        """
        self.when_brought(lambda: _call_back(callback))

    def then(self, change: Callable[[T], U]) -> Reply[U]:
        """Return a reply with the changed value or the same error. `change` runs where `when_done` calls back."""
        changed: Reply[U] = Reply()
        self.when_done(lambda: self._pass_on(change, changed))
        return changed

    def when_brought(self, callback: Callable[[], None]) -> None:
        """Call back when the answer is available: now if it is, or else on the thread that sets it.

        For internal use. Others depend on that thread, so the callback must be quick and must neither wait nor raise.
        """
        with self._lock:
            if self._state != _DONE:
                if self._callbacks is None:
                    self._callbacks = []
                self._callbacks.append(callback)
                return
        callback()

    def set_result(self, value: T) -> None:
        """Set the answer to this value."""
        self._value = value
        self._finish()

    def set_error(self, error: BaseException) -> None:
        """Set the answer to this error."""
        self._error = error
        self._finish()

    def _finish(self) -> None:
        with self._lock:
            self._state = _DONE
            callbacks, self._callbacks = self._callbacks, None
        for callback in callbacks or ():
            try:
                callback()
            except BaseException:  # noqa: BLE001 - other replies depend on this thread
                _log.exception("reply_callback_failed")

    def _forget(self, callback: Callable[[], None]) -> None:
        """Remove a callback that is no longer needed."""
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
        gate = threading.Lock()  # Every blocking API call waits here; an Event would cost several times as much.
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
        """Return the message of a timeout. A subclass may query the database for it."""
        return f"no answer within {timeout} seconds; {self._meanwhile(timeout)}"

    def _meanwhile(self, timeout: float | None) -> str:  # noqa: ARG002 - for subclasses that say more
        """Describe the state of the work after a timeout of this many seconds."""
        return "the work goes on"

    def _pass_on(self, change: Callable[[T], U], changed: Reply[U]) -> None:
        try:
            value = change(self._answer())
        except BaseException as error:  # noqa: BLE001 - it belongs to the waiting caller
            changed.set_error(error)
        else:
            changed.set_result(value)

    def _answer(self) -> T:
        self._looked_at = True
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]

    def __del__(self) -> None:
        # Ctrl-C can arrive before `__init__` has set anything. Such a reply has no error to report.
        if getattr(self, "_error", None) is not None and not self._looked_at:
            _log.error("reply_error_unread: %s", self._error)


class LastingReply(Reply[T]):
    """A reply that may take weeks. Its producer holds it weakly, so that it is freed when no caller waits.

    It keeps itself alive only while it has callbacks.
    """

    __slots__ = ("__weakref__", "_kept")

    def __init__(self, kept: set[Reply[T]]) -> None:
        super().__init__()
        self._kept = kept
        """The producer's collection of replies with callbacks."""

    def when_brought(self, callback: Callable[[], None]) -> None:
        """Call back when the answer is available. The reply stays alive until then."""
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
    """Passes answers to one event loop. A commit sets many at once and wakes the loop once for all of them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = ref(loop)  # The loop owns this object, so the reference to the loop is weak.
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_called = False
        """Whether the loop will read the box. The loop clears it before it reads, so that no entry is missed."""

    def put(self, arrived: asyncio.Future[None]) -> None:
        """Add an answer."""
        self._waiting.append(arrived)
        if self._is_called:
            return
        self._is_called = True
        loop = self._loop()
        try:
            if loop is not None:
                loop.call_soon_threadsafe(self._empty)
        except RuntimeError:  # The loop is closed: no coroutine waits.
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
        for other in _postboxes.keyrefs():  # The box of a loop that closed before it read an answer refers to the loop.
            if (ended := other()) is not None and ended.is_closed():
                _postboxes.pop(ended, None)
        box = _postboxes[loop] = _Postbox(loop)
    return box
