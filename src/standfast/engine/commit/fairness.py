"""Whose turn it is: a tenant that asks for more than its share stands behind the others with the rest, and loses nothing while there is room."""

from __future__ import annotations

import threading
from datetime import datetime, timedelta

AT_ONCE = timedelta(0)
_MANY = 10_000
"""Tenants that are remembered; those who are within their share need not be."""


class TenantFairness:
    """How far the tenants of one process are ahead of their shares.

    Each effect takes a turn, and a tenant has so many turns in a second. What is asked for beyond that counts as if it had come when its turn is:
    so those who ask for little stand before it in the one order by which work is claimed.
    """

    def __init__(self, rate: float) -> None:
        self._turn = timedelta(seconds=1.0 / rate)
        self._lock = threading.Lock()
        self._next: dict[str, datetime] = {}
        """When the next turn of a tenant is, if that is later than now."""

    def take(self, tenant: str, now: datetime) -> timedelta:
        """Take a turn for an effect; how much later than now it is."""
        with self._lock:
            turn = max(now, self._next.get(tenant, now))
            if len(self._next) >= _MANY:
                self._next = {name: at for name, at in self._next.items() if at > now}
            self._next[tenant] = turn + self._turn
        return turn - now if turn > now else AT_ONCE
