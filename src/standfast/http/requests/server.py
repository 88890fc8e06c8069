"""The shared state of one server, and its database check.

Concurrent checks share one query, and get an answer within a fixed time.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from datetime import datetime
from typing import Final

from standfast.app.engine import Engine
from standfast.calls.catalog.rate_limits import Rate
from standfast.errors import StandfastError
from standfast.http.auth.audit import Audit
from standfast.http.auth.authenticator import Authenticator
from standfast.http.auth.login import Logins
from standfast.http.auth.rate_limits import StreamSlots
from standfast.http.wire.broadcaster import EventBroadcaster
from standfast.http.wire.metrics import Gauges
from standfast.http.wire.options import HttpOptions
from standfast.http.wire.webhooks import Hook

_PATIENCE_SECONDS: Final = 2.0
"""A load balancer waits a few seconds at most, and takes no answer for a bad one."""


class Pulse:
    """Checks the database with a cheap query."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._asked: asyncio.Task[bool] | None = None

    async def beats(self) -> bool:
        """Return whether the database answers in time.

        While one query hangs, no other is sent: it would wait for the same thing.
        """
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


class Server:
    """The engine, authentication, metrics and stream subscribers of a server."""

    def __init__(self, engine: Engine, options: HttpOptions, *, insecure_dev: bool) -> None:
        self.engine = engine
        self.options = options
        self.door = Authenticator(engine, options, insecure_dev=insecure_dev)
        self.audit = Audit(engine, options)
        self.logins = Logins(options.logins)
        self.gauges = Gauges()
        self.hub = EventBroadcaster(engine, options)
        self.pulse = Pulse(engine)
        self.room = StreamSlots(options.streams_per_credential, options.max_streams, "streams")
        self.waits = StreamSlots(options.waits_per_credential, sys.maxsize, "requests that wait")
        """For requests that wait for a result; all together there are as many as there may be connections."""
        self.rate = Rate(options.requests_per_second, options.burst)
        self.hooks = {each.name: Hook(each) for each in options.hooks}
        self.document: Callable[[str], bytes] = str.encode
        """Returns the OpenAPI document for a base path, generated on first use."""
        engine.listen(self.gauges.heard)

    def now(self) -> datetime:
        """The engine's time."""
        return self.engine.service.shared.clock.now()
