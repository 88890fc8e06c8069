"""Whether the database answers: asked by one question at a time, however many want to know, and told in a moment whatever it does."""

from __future__ import annotations

import asyncio
from typing import Final

from standfast.app.engine import Engine
from standfast.errors import StandfastError

_PATIENCE_SECONDS: Final = 2.0
"""Whoever decides where requests go waits no longer than a few seconds, and takes no answer for a bad one."""


class Pulse:
    """Asks the database something that costs little."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: asyncio.Task[bool] | None = None

    async def beats(self) -> bool:
        """Whether the database answers within a moment. While a question hangs no other one is asked: they would all wait for the same thing."""
        loop = asyncio.get_running_loop()
        if self._asked is None or self._asked.done() or self._asked.get_loop() is not loop:
            self._asked = loop.create_task(self._ask())
        done, _ = await asyncio.wait([self._asked], timeout=_PATIENCE_SECONDS)
        return any(each.result() for each in done)

    async def _ask(self) -> bool:
        try:
            await self._engine.aio.admin.written()
        except StandfastError:
            return False
        return True
