"""The event loop of a worker's coroutines, on a thread of its own. Nothing that a coroutine does ends it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
import time
from collections.abc import Callable
from typing import ParamSpec

P = ParamSpec("P")

_log = logging.getLogger("standfast.worker")

_LAST_WORDS_SECONDS = 2.0


class EventLoop:
    """Runs coroutines, and tells when one of them keeps it from turning."""

    name = "event loop"

    def __init__(self, *, limit: float) -> None:
        self._limit = limit
        """Seconds for which it may stand still."""
        self.loop = asyncio.new_event_loop()
        self._is_stopping = False
        self._must_close = False
        """Whether its thread closes it, because nobody waits for that."""
        self._asked_at: float | None = None
        """When it was last asked whether it turns; None once it has answered."""
        self._thread = threading.Thread(target=self._run, name="standfast-loop", daemon=True)
        self._thread.start()

    def call(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a function on the loop's thread: here and now if this is it."""
        if self.is_here():
            function(*args, **kwargs)
        else:
            self.call_soon(function, *args, **kwargs)

    def call_soon(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a function on the loop's thread when it is its turn."""
        self.loop.call_soon_threadsafe(lambda: function(*args, **kwargs))

    def feel_pulse(self) -> None:
        """Ask whether it turns; the answer is in `stuck_for`."""
        if self._asked_at is None and not self._is_stopping:
            self._asked_at = time.monotonic()
            self.loop.call_soon_threadsafe(self._answer)

    @property
    def stuck_for(self) -> float:
        """Seconds for which it has not turned, as far as anybody asked."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else time.monotonic() - asked_at

    def problem(self) -> str:
        """What keeps the loop from its work, in words; empty if nothing does."""
        if self._is_stopping:
            return ""
        if not self._thread.is_alive():
            return "its thread has ended"
        stuck = self.stuck_for
        if stuck < self._limit:
            return ""
        return f"an async handler has not let it turn for {stuck:.0f} s; what takes long belongs into a plain function"

    def stop(self) -> None:
        """Let coroutines that were cancelled run their clean-up for a while, then end. One that asks for it itself has to end first."""
        self._is_stopping = True
        if self.is_here():
            self._must_close = True
            self.loop.stop()
            return
        future = asyncio.run_coroutine_threadsafe(_finish_tasks(), self.loop)
        with contextlib.suppress(TimeoutError):
            future.result(_LAST_WORDS_SECONDS)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(_LAST_WORDS_SECONDS)
        if not self._thread.is_alive():
            self.loop.close()

    def is_here(self) -> bool:
        """Whether the present thread is the loop's own."""
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        """Turn, whatever happens: SystemExit in a task that a handler made would end the loop, and `stop` called by one too."""
        while True:
            try:
                self.loop.run_forever()
            except BaseException:  # noqa: BLE001 - see above
                _log.exception("something that an async handler left on the event loop raised")
            if self._is_stopping:
                break
        if self._must_close:
            self.loop.close()

    def _answer(self) -> None:
        self._asked_at = None


async def _finish_tasks() -> None:
    tasks = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    if tasks:
        await asyncio.wait(tasks, timeout=_LAST_WORDS_SECONDS / 2)
