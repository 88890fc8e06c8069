"""Shutdown of streams and waiting requests where another program serves the API.

A server waits for open requests before it runs the lifespan's shutdown, and a stream is open for a quarter of an hour.
The lifespan comes too late, so signals are observed instead. The serving program still receives them.
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
    """End all streams and waiting requests of an API, from its event loop.

    New ones end immediately; other requests continue.

    For programs that know of a shutdown without a signal. `ending` calls it on signals.
    """
    api.state.server.hub.close()


@asynccontextmanager
async def ending(api: Starlette) -> AsyncIterator[None]:
    """Lifespan of the application that an API is mounted into: streams end on SIGTERM or SIGINT.

    `FastAPI(lifespan=lambda app: ending(api))`, or `async with ending(api)` in a larger lifespan. An API served by
    `serve` has it already.
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
            if signal.getsignal(number) is heed:  # A later handler calls ours, or has replaced it on purpose.
                signal.signal(number, handler)


def _pass_on(
    handler: Callable[[int, FrameType | None], object] | int | None, number: int, frame: FrameType | None
) -> None:
    """Pass a signal to the previous handler, or to the default action."""
    if callable(handler):
        handler(number, frame)
    elif handler == signal.SIG_DFL:
        signal.signal(number, signal.SIG_DFL)
        signal.raise_signal(number)
