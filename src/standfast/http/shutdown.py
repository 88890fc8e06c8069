"""Telling streams and waiting requests that the server ends, where the API is served by somebody else's program.

A server waits for what is open before it tells an application that it ends, and a stream is open for a quarter of an hour. So the lifespan
comes too late, and what the process is asked is listened to instead: whoever serves hears of it as before.
"""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import FrameType
from typing import Any

from starlette.applications import Starlette


def end_streams(api: Starlette) -> None:
    """Have all streams and waiting requests of an API come to their end, from the loop that serves it; new ones end at once, everything else goes on.

    For whoever knows better than the signals of a process when a server ends. `ending` does it by itself.
    """
    api.state.server.hub.close()


@asynccontextmanager
async def ending(api: Starlette) -> AsyncIterator[None]:
    """For the lifespan of the application that an API is mounted into: its streams end as soon as the process is asked to (SIGTERM, SIGINT).

    `FastAPI(lifespan=lambda app: ending(api))`, or `async with ending(api)` in a lifespan that does more. An API that is served by itself has
    it already.
    """
    loop = asyncio.get_running_loop()
    before: dict[signal.Signals, Any] = {}

    def heed(number: int, frame: FrameType | None) -> None:
        loop.call_soon_threadsafe(end_streams, api)
        _pass_on(before[signal.Signals(number)], number, frame)

    if threading.current_thread() is threading.main_thread():
        before |= {number: signal.signal(number, heed) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        end_streams(api)
        for number, handler in before.items():
            if (
                signal.getsignal(number) is heed
            ):  # Whoever has put another one there since has ours in it, or wants none.
                signal.signal(number, handler)


def _pass_on(
    handler: Callable[[int, FrameType | None], object] | int | None, number: int, frame: FrameType | None
) -> None:
    """Let whoever heeded a signal before have it; if nobody did, it does what it does by itself."""
    if callable(handler):
        handler(number, frame)
    elif handler == signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
