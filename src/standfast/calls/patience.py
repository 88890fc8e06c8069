"""Waiting in a coroutine for an answer that may be weeks away."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from standfast.calls.waiters import CompletionReply

T = TypeVar("T")


async def awaited(reply: CompletionReply[T], timeout: float | None) -> T:  # noqa: ASYNC109 - as in the blocking face
    """The answer; TimeoutError after `timeout` seconds says where the run stands, as in the blocking face."""
    if timeout is None:
        return await reply
    try:
        async with asyncio.timeout(timeout):
            return await reply
    except TimeoutError:
        told = await asyncio.to_thread(reply.impatience, timeout)  # It asks the database.
        raise TimeoutError(told) from None
