"""Fair scheduling between tenants. A tenant above its rate queues its excess effects behind those of other tenants."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

AT_ONCE = timedelta(0)
_MANY = 10_000
"""Number of tenants to track. Tenants within their rate need no entry."""


class TenantFairness:
    """Tracks how far each tenant of this process is ahead of its rate.

    Each effect uses one turn, and a tenant has a fixed number of turns per second. An effect beyond the rate is ordered
    as if it arrived at its turn. Tenants within their rate therefore come first in the claim order.
    """

    def __init__(self, rate: float) -> None:
        self._turn = timedelta(seconds=1.0 / rate)
        self._lock = threading.Lock()
        self._next: dict[str, datetime] = {}
        """The next turn of a tenant, if it lies in the future."""

    def take(self, tenant: str, now: datetime) -> timedelta:
        """Use a turn for an effect, and return its delay."""
        with self._lock:
            turn = max(now, self._next.get(tenant, now))
            if len(self._next) >= _MANY:
                self._next = {name: at for name, at in self._next.items() if at > now}
            self._next[tenant] = turn + self._turn
        return turn - now if turn > now else AT_ONCE
