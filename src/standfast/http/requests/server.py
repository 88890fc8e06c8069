"""What one server has for all its requests."""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import datetime

from standfast.app.engine import Engine
from standfast.calls.catalog.rate_limits import Rate
from standfast.http.auth.audit import Audit
from standfast.http.auth.authenticator import Authenticator
from standfast.http.auth.login import Logins
from standfast.http.auth.rate_limits import StreamSlots
from standfast.http.requests.pulse import Pulse
from standfast.http.wire.broadcaster import EventBroadcaster
from standfast.http.wire.metrics import Gauges
from standfast.http.wire.options import HttpOptions
from standfast.http.wire.webhooks import Hook


class Server:
    """The engine, who is let in, what is measured, who listens."""

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
        """The OpenAPI document for who finds the API below this path, which is made when somebody asks for it."""
        engine.listen(self.gauges.heard)

    def now(self) -> datetime:
        """The engine's time."""
        return self.engine.service.shared.clock.now()
