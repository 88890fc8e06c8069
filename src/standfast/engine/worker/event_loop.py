"""The event loop of a worker's coroutines, on its own thread. No coroutine can end it."""

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
    """Runs coroutines, and detects one that blocks the loop."""

    name = "event loop"

    def __init__(self, *, limit: float) -> None:
        self._limit = limit
        """Seconds for which it may be blocked."""
        self.loop = asyncio.new_event_loop()
        self._is_stopping = False
        self._must_close = False
        """Whether its own thread closes it, because `stop` does not wait."""
        self._asked_at: float | None = None
        """Time of the last unanswered probe. None once the loop has answered."""
        self._thread = threading.Thread(target=self._run, name="standfast-loop", daemon=True)
        self._thread.start()

    def call(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Call a function on the loop's thread, immediately if this is that thread."""
        if self.is_here():
            function(*args, **kwargs)
        else:
            self.call_soon(function, *args, **kwargs)

    def call_soon(self, function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> None:
        """Schedule a function on the loop's thread."""
        self.loop.call_soon_threadsafe(lambda: function(*args, **kwargs))

    def feel_pulse(self) -> None:
        """Probe whether the loop runs. See `stuck_for` for the result."""
        if self._asked_at is None and not self._is_stopping:
            self._asked_at = time.monotonic()
            self.loop.call_soon_threadsafe(self._answer)

    @property
    def stuck_for(self) -> float:
        """Seconds for which the loop has been blocked, as of the last probe."""
        asked_at = self._asked_at
        return 0.0 if asked_at is None else time.monotonic() - asked_at

    def problem(self) -> str:
        """Describes the problem of the loop. Empty if there is none."""
        if self._is_stopping:
            return ""
        if not self._thread.is_alive():
            return "its thread has ended"
        stuck = self.stuck_for
        if stuck < self._limit:
            return ""
        return f"an async handler has blocked it for {stuck:.0f} s; move long work into a plain function"

    def stop(self) -> None:
        """Let cancelled coroutines clean up for a while, then end. A coroutine that calls this has to end first."""
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
        """Whether the current thread is the loop's own."""
        return threading.current_thread() is self._thread

    def _run(self) -> None:
        """Run the loop whatever happens.

        SystemExit in a handler's task, or a handler's call of `stop`, would end it.
        """
        while True:
            try:
                self.loop.run_forever()
            except BaseException:  # noqa: BLE001 - see above
                _log.exception("event_loop_callback_failed")
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
